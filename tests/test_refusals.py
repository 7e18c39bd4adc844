"""What is refused before anything is drawn: on one line that names the argument.

Texts by the parser that reads them, and arguments of functions by the function.
"""

import math
from fractions import Fraction
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

from montecarlo import distribution, expected_row, figure, grid, judge, measure
from montecarlo.attention.divisors import name_divisor, parse_divisor
from montecarlo.cli.options import TYPES, Seed, parse_indices
from montecarlo.errors import InputError
from montecarlo.names import parse_decimal, parse_whole
from montecarlo.sampling.design_points import (
    parse_dependence,
    parse_initialisation,
    parse_normalisation,
    parse_point,
)
from montecarlo.sampling.distributions import LARGE, OWN, parse_distribution
from montecarlo.theory import largest_weight_share, query_gradient_squared


def refusal(function, *given, **named):
    """Return the one line by which a call is refused."""
    with pytest.raises(InputError) as error:
        function(*given, **named)
    (line,) = str(error.value).splitlines()
    return line


# --- Texts ----------------------------------------------------------------------------

INIT = "init(kind={},norm={},shape={},width={})"
#: Parser, the argument that it names, and what it refuses.
TEXTS = [
    (
        parse_divisor,
        "divisor",
        *("", "sqr", "0", "-3", "nan", "inf", "True", "d_k+1", "((", "exp(n)", "d_k^n"),
        *("ln(d_k)", "sqrt(d_k, n)", "sqrt()", "2j", "'a'", "n^(1/0)", "9**9**9"),
        *("10**400", "__import__('os')", "d_k.real", "d_k^9", "1e31", "1e-31", "[n]"),
        *("d_k\nn", "d_k;n", "lambda: 1", "d_k if n else n", "(" * 200, "1*" * 61),
    ),
    (
        name_divisor,  # a fraction needs brackets, and the parts of a pair differ
        "divisor",
        *("n/8", "1/sqrt(d_k)", "3/13.5", "sqrt(d_k)/ln(n)", "a/b", "n/n/n"),
        "2sqrt/2*sqrt(d_k)",
    ),
    (
        parse_dependence,
        "dependence",
        *("", "some", "None", "none(0.5)", "pairs", "pairs()", "pairs(1.1)"),
        *("pairs(-0.5)", "planted(nan)", "planted(0.5", "planted(rho=0.5)"),
    ),
    (
        parse_initialisation,
        "initialisation",
        *("he_normal", INIT.format("he_nromal", "rms", "full", 8)),
        INIT.format("he_normal", "rms", "full", 0),
        INIT.format("he_normal", "rms", "full", 2**20 + 1),
        INIT.format("he_normal", "rms", "full", 8) + ")",
    ),
    (parse_initialisation, "norm", INIT.format("he_normal", "batch", "full", 8)),
    (parse_initialisation, "shape", INIT.format("he_normal", "rms", "whole", 8)),
    (parse_normalisation, "normalisation", "l1", "none(gain=2)", "l2(gain=0)", "l2("),
    (
        parse_distribution,
        "distribution",
        *("", "gausian", "zipf", "gaussian(std=0)", "gaussian(mean=1e7)"),
        *("cauchy", "gamma"),
        *("gaussian(mean=1,mean=2)", "gaussian(variance=2)", "gaussian(std=nan)"),
        *("gaussian(std=1", "scipy.gama(a=2)", "scipy.poisson(mu=2)", "scipy.gamma"),
        *("scipy.stats.gamma(a=2)", "scipy.norm(loc=2)", "scipy.gamma(a=-1)"),
        *("scipy.t(df=2)", "scipy.gamma(a=2,a=3)", "scipy.gamma(a=2,std=0)"),
        *("scipy.gamma(a=__import__('os'))", "scipy.__doc__"),
    ),
]


@pytest.mark.parametrize(
    ("parse", "argument", "typed"),
    [(parse, name, text) for parse, name, *texts in TEXTS for text in texts],
)
def test_texts(parse, argument, typed):
    """Nothing of a text is ever run."""
    assert argument in refusal(parse, typed).partition(" must ")[0]


@pytest.mark.parametrize(
    ("divisor", "sizes"),
    [
        *(("ln(n)", (64, n)) for n in (None, 1)),  # of one key ln n is 0
        *((text, (4096, 4096)) for text in ("1e30", "1e25*n^2", "d_k^-8", "1e-21")),
    ],
)
def test_divisors_that_have_no_value_at_some_sizes(divisor, sizes):
    """For want of keys, or since weights would be wrong in single precision."""
    assert "divisor" in refusal(parse_divisor(divisor).value, *sizes)


#: Those of numbers: whole ones, and others.
WHOLE = {
    "x": lambda typed: parse_whole("x", typed),
    "seed": lambda typed: TYPES[Seed][1]("seed", typed),
    "replicates": lambda typed: parse_indices("replicates", f"0:{typed}").stop,
}
DECIMAL = {
    "absolute-error": lambda typed: parse_decimal("absolute-error", typed),
    "distribution": lambda typed: parse_distribution(f"gaussian(std={typed})").std,
    "dependence": lambda typed: 100 * parse_dependence(f"pairs(0.{typed})").rho,
    "initialisation": lambda typed: (
        parse_initialisation(INIT.format("he_normal", "rms", "full", typed)).width
    ),
    "normalisation": lambda typed: parse_normalisation(f"l2(gain={typed})").gain,
}


@pytest.mark.parametrize("name", [*WHOLE, *DECIMAL])
def test_numbers_have_the_digits_0_to_9(name):
    """Python's own `int` and `float` take other scripts' digits and underscores."""
    parse = (WHOLE | DECIMAL)[name]
    assert parse("32") == 32
    for typed in ("٣٢", "３２", "1_0", "0x1f", "", "-9" * 999):
        assert name in refusal(parse, typed)


def test_decimals():
    """All ways of writing that people have, and no number that is not finite."""
    for typed in ("0.01", ".5", "5.", "-3", "1e-2", "+1.5E+3"):
        assert parse_decimal("x", typed) == float(typed)
    for typed in ("nan", "inf", "-inf", "1e999", "1e", ".", "1,5", "5%"):
        assert "x must" in refusal(parse_decimal, "x", typed)


# --- Design points --------------------------------------------------------------------

HE = INIT.format("he_normal", "rms", "full", 64)


@pytest.mark.parametrize(
    ("argument", "changed"),
    [
        *(("d_k", {"d_k": d_k}) for d_k in (0, 2.0, True)),
        *(("n_keys", {"n_keys": n}) for n in (1, "8")),
        ("initialisation", {"initialisation": HE}),  # of keys that are not Gaussian
        ("dependence", {"dependence": "pairs(0.5)"}),  # of rows
        ("dependence", {"dependence": "planted(0.5)", "n_keys": None}),
        ("dependence", {"dependence": "planted(0.5)"}),  # of two distributions
    ],
)
def test_points_that_cannot_be(argument, changed):
    """What cannot be sampled is refused at once."""
    usual = {"distribution_q": "gaussian", "distribution_k": "laplace"}
    sizes = {"d_k": 64, "n_keys": 128}
    assert argument in refusal(parse_point, **usual | sizes | changed)


# --- Arguments of functions -----------------------------------------------------------

CLAIM = Path(__file__).parents[1] / "docs" / "own-claim.toml"
#: What is no text, no size, no number, and what is only nearly a distribution.
NO_TEXT = (None, True, 4, 1.5, b"sqrt", object(), [["none"]], {"none": 1}, np.array(4))
NO_SIZE = (
    *(True, 0, -1, 1.5, "4", b"4", [[4]], {4: 1}, object(), math.nan),
    np.array(4.0),
)
NO_NUMBER = (True, "1", b"1", [1.0], object(), math.nan, 1j, 10**400)
ENTRIES = {"distribution_q": "gaussian", "distribution_k": "gaussian"}
ASKED = {**ENTRIES, "d_k": 4, "n_keys": 8, "quantity": "entropy"}
ROW = {"n_keys": 8, "std": 1.0}
QUERY = {"n_keys": 8, "d_k": 4}
SHARE = {"threshold": 0.5, "n_keys": 8, "std": 1.0}
EXPONENTIAL = Generator.standard_exponential
MINE = {"name": "mine", "sampler": EXPONENTIAL, "mean": 1.0, "kurtosis": 9.0}
#: Draws with the right moments that do not come from the generator.
FIXED, OTHER = (
    np.random.default_rng(3).exponential(size=LARGE),
    np.random.default_rng(4),
)
WRONG_SAMPLERS = (
    lambda rng, shape: rng.random(3),
    lambda rng, shape: np.full(shape, np.nan),
    lambda rng, shape: np.full(shape, "1,0"),
    lambda rng, shape: np.resize(FIXED, shape),
    lambda rng, shape: OTHER.exponential(size=shape),
)
#: Function, what it is called with, and the arguments that are to be of some type.
CALLS = (
    (measure, ASKED, ("quantity", "number_format", "softmax"), NO_TEXT),
    (measure, ASKED, ("distribution_q",), NO_TEXT),
    (measure, ASKED, ("distribution_k",), NO_TEXT[1:]),  # None: that of q
    (measure, ASKED, ("dependence", "initialisation", "normalisation"), NO_TEXT),
    (measure, ASKED, ("mask",), NO_TEXT),
    (measure, ASKED, ("summary",), NO_TEXT[1:]),
    (measure, ASKED, ("divisor",), (*NO_TEXT[:2], *NO_TEXT[4:])),
    (measure, ASKED, ("d_k", "first", "most"), NO_SIZE),
    (measure, ASKED, ("d_k", "n_keys"), ([4, 16], (4,), np.array([4, 16]), range(3))),
    (measure, ASKED, ("seed",), (-1, 2**63, *NO_SIZE[2:])),
    (measure, ASKED, ("relative_error",), (0.0, 1.0, 1e-300, *NO_NUMBER)),
    (measure, ASKED, ("absolute_error",), (0.0, math.inf, *NO_NUMBER)),
    (measure, ASKED, ("executor",), (4, "threads", object())),
    (grid, ASKED, ("quantity", "dependence", "initialisation"), NO_TEXT),
    (grid, ASKED, ("normalisation", "mask"), NO_TEXT),
    (grid, ASKED, ("divisor",), (["none", "sqr"], *NO_TEXT[:2], *NO_TEXT[4:])),
    (grid, ASKED, ("d_k", "n_keys"), (*NO_SIZE, [4, 1.5], range(10**9), count(2))),
    (grid, ASKED, ("n_keys", "quantity", "d_k", "divisor"), ([],)),
    (grid, ASKED, ("relative_error",), (2.0,)),
    (grid, ASKED, ("first", "most"), (1, *NO_SIZE)),
    (grid, ASKED, ("seed", "jobs"), (-1, 2**63, *NO_SIZE[2:])),
    (grid, ASKED, ("progress",), (1, "yes", None)),
    (judge, {"claims": CLAIM}, ("claims", "preset"), (*NO_TEXT[:6], "[[claim\n", "")),
    (judge, {"claims": CLAIM}, ("seed",), (-1, 2**63, *NO_SIZE[2:])),
    (expected_row, ROW, ("n_keys",), (1, 2**21, *NO_SIZE)),
    (expected_row, ROW, ("std", "bias"), (1e300, 1e6, *NO_NUMBER)),
    (expected_row, ROW, ("std",), (0.0, None)),
    (expected_row, ROW, ("d_k",), (4,)),
    (expected_row, ROW, ("mask",), (1, None, "yes", "window(129)")),
    (expected_row, QUERY, ("d_k",), (10**400, *NO_SIZE)),
    (expected_row, QUERY, ("divisor",), (1e30, None, True, b"1", "root", "none/sqrt")),
    (expected_row, QUERY | {"divisor": "none"}, ("d_k",), (2**26,)),
    (expected_row, QUERY, ("bias",), (1.0,)),
    (query_gradient_squared, QUERY, ("n_keys", "d_k"), (0,)),
    (largest_weight_share, SHARE, ("threshold",), (0.0, 1.0, -0.1, math.nan)),
    (distribution, MINE, ("name", "sampler"), (*NO_TEXT, "a b")),
    (distribution, MINE, ("name",), ("gaussian", "normal", "Mine!")),
    (distribution, MINE, ("mean", "std", "kurtosis", "moments"), NO_NUMBER),
    (distribution, MINE, ("mean",), (math.inf, 1.05)),
    (distribution, MINE, ("std",), (0.0, math.inf)),
    (distribution, MINE, ("kurtosis",), (0.5, math.inf)),
    (distribution, MINE, ("moments",), (2.0, 3.0)),
    (distribution, MINE, ("sampler",), WRONG_SAMPLERS),
    (distribution, MINE | {"std": 1.1}, ("sampler",), (EXPONENTIAL,)),
    (figure, {"frame": 4}, ("frame",), NO_TEXT),
)


@pytest.mark.parametrize(("function", "usual", "names", "values"), CALLS)
def test_arguments(function, usual, names, values):
    """One line with the argument and what came; nothing is sampled."""
    for name, value in product(names, values):
        line = refusal(function, **usual | {name: value})
        assert name in line, (value, line)
        assert len(line) < 250 or "must be one of" in line, (name, value)
    assert "mine" not in OWN


def test_numbers_of_any_kind_are_numbers():
    """NumPy's and fractions are sizes, seeds, errors and divisors like Python's."""
    kinds = {
        "d_k": np.int64(4),
        "seed": np.uint8(1),
        "first": np.int32(8),
        "most": np.int64(8),
        "relative_error": np.float32(0.5),
        "divisor": Fraction(2),
    }
    plain = {"seed": 1, "first": 8, "most": 8, "relative_error": 0.5}
    one, other = (
        measure(**ASKED | more) for more in (kinds, plain | {"divisor": "sqrt"})
    )
    assert (one.estimate, one.row_id != other.row_id) == (other.estimate, True)
