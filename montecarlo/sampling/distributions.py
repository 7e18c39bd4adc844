"""Distributions of one entry of Q or K, standardised, with exact moments.

They have mean 0 and variance 1.  A new distribution is one entry in `DISTRIBUTIONS`.
Users register their own by `distribution`, and name those of SciPy as
``scipy.gamma(a=2.0)``.  Parameters mean and std shift and scale any of them, as in
``gaussian(mean=0.5,std=2.0)``.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from montecarlo.errors import InputError, show
from montecarlo.names import look_up, require_number, require_text

Draw = Callable[[Generator, tuple[int, ...]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of one entry.

    Distributions with the same name are equal.

    Attributes
    ----------
    name : str
        Canonical: parameters sorted, defaults omitted, ``repr`` of each float.
    draw : callable
        (generator, shape) -> float32 array of independent entries with mean 0 and
        variance 1.
    kurtosis : float
        Exact fourth standardised moment; infinite if it does not exist.
    moments : float
        All absolute moments of an order below this one are finite.
    mean, std : float
        Exact mean and standard deviation.
    words : str
        Name on pages in English, a message that is translated.
    """

    name: str
    draw: Draw = field(compare=False, repr=False)
    kurtosis: float = field(compare=False)
    moments: float = field(default=math.inf, compare=False)
    mean: float = field(default=0.0, compare=False)
    std: float = field(default=1.0, compare=False)
    words: str = field(default="", compare=False, repr=False)

    @property
    def family(self) -> str:
        """Name of the distribution without the parameters mean and std."""
        base, _, given = self.name.rstrip(")").partition("(")
        shape = [one for one in _read_pairs(given) if one[0] not in ("mean", "std")]
        return _canonical(base, shape)

    @property
    def is_standard(self) -> bool:
        """Whether the mean is 0 and the standard deviation 1."""
        return self.mean == 0.0 and self.std == 1.0

    def sample(self, rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return independent entries of this distribution, float32 of a given shape."""
        return self.rescale(self.draw(rng, shape))

    def rescale(self, standard: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return standardised entries, scaled and shifted to ``std`` and ``mean``.

        If `is_standard`, the array itself is returned, not a copy.
        """
        if self.is_standard:
            return standard
        return np.float32(self.mean) + np.float32(self.std) * standard


def _uniforms(rng: Generator, size: int) -> NDArray[np.float32]:
    """Return ``size`` float32 uniforms on [0, 1), those of ``rng.random`` for float32.

    This takes half the time of NumPy's.
    """
    return _to_uniforms(_random_words(rng, size))


def _random_words(rng: Generator, size: int) -> NDArray[np.uint32]:
    """Return ``size`` random 32-bit integers: the halves of random 64-bit integers."""
    return rng.bit_generator.random_raw((size + 1) // 2).view(np.uint32)[:size]


def _to_uniforms(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return float32 uniforms on [0, 1) from the upper 24 bits of random words.

    The array of words is overwritten.
    """
    words >>= np.uint32(8)
    uniforms = words.astype(np.float32)
    uniforms *= np.float32(2.0**-24)
    return uniforms


def _exclude_zero(uniforms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Change uniforms on [0, 1) to (0, 1], in place; return them.

    One uniform in 2**24 is exactly 0.
    """
    return np.subtract(np.float32(1.0), uniforms, out=uniforms)


def _signs(uniforms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Change uniforms on [0, 1) to random signs 1 and -1, in place; return them."""
    uniforms -= np.float32(0.5)
    return np.copysign(np.float32(1.0), uniforms, out=uniforms)


#: Number of pairs of uniforms that are transformed together, to stay in the cache.
DRAWS_TOGETHER = 2**15


def _gaussian(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return standard normal draws by the method of Box and Muller.

    The method is four times as fast as NumPy's.  Uniforms of 24 bits limit the draws to
    5.77 standard deviations; a normal draw exceeds that with probability 8e-9.
    """
    size = math.prod(shape)
    half = (size + 1) // 2
    words = _random_words(rng, 2 * half).reshape(2, half)
    draws = np.empty((2, half), dtype=np.float32)
    for first in range(0, half, DRAWS_TOGETHER):
        some = np.s_[:, first : first + DRAWS_TOGETHER]
        radius, angle = _to_uniforms(words[some])
        np.log(_exclude_zero(radius), out=radius)
        radius *= np.float32(-2.0)
        np.sqrt(radius, out=radius)
        angle *= np.float32(2.0 * math.pi)
        for side, part in zip((np.cos, np.sin), draws[some], strict=True):
            np.multiply(radius, side(angle, out=part), out=part)
    return draws.reshape(-1)[:size].reshape(shape)


def _uniform(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return uniform draws on (-sqrt(3), sqrt(3))."""
    draws = _uniforms(rng, math.prod(shape))
    draws -= np.float32(0.5 - 2.0**-25)
    draws *= np.float32(2.0 * math.sqrt(3.0))
    return draws.reshape(shape)


def _rademacher(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return random signs 1 and -1."""
    return _signs(_uniforms(rng, math.prod(shape))).reshape(shape)


def _laplace(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return Laplace draws of variance 1: exponential draws with random signs."""
    size = math.prod(shape)
    uniforms = _uniforms(rng, 2 * size)
    draws, signs = _exclude_zero(uniforms[:size]), _signs(uniforms[size:])
    np.log(draws, out=draws)
    draws *= np.float32(-math.sqrt(0.5))
    draws *= signs
    return draws.reshape(shape)


def _logistic(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return logistic draws of variance 1: logits of uniforms, scaled.

    They are computed in float64, as float32 uniforms are too coarse near 1.
    """
    u = rng.random(shape)
    np.maximum(u, 2.0**-54, out=u)
    u /= 1.0 - u
    np.log(u, out=u)
    u *= math.sqrt(3.0) / math.pi
    return u.astype(np.float32)


def _student_t(
    degrees_of_freedom: int, rng: Generator, shape: tuple[int, ...]
) -> NDArray[np.float32]:
    """Return draws of Student's t divided by its standard deviation.

    With f degrees of freedom and independent uniforms U and V, a draw is
    sqrt(f (U**(-2/f) - 1)) cos(2 pi V), and its standard deviation sqrt(f/(f - 2)).
    This is six times as fast as NumPy's method.  U has 32 bits, which limit draws with
    3 degrees of freedom to 2000 standard deviations; 24 bits would lose half a per cent
    of their variance.

    References
    ----------
    Bailey (1994), Polar generation of random variates with the t-distribution,
    Mathematics of Computation 62.
    """
    size = math.prod(shape)
    radius = _random_words(rng, size).astype(np.float32)
    radius += np.float32(0.5)
    radius *= np.float32(2.0**-32)
    np.log(radius, out=radius)
    radius *= np.float32(-2.0 / degrees_of_freedom)
    np.expm1(radius, out=radius)
    radius *= np.float32(degrees_of_freedom - 2)
    np.sqrt(radius, out=radius)
    angle = _uniforms(rng, size)
    angle *= np.float32(2.0 * math.pi)
    np.cos(angle, out=angle)
    angle *= radius
    return angle.reshape(shape)


#: The kurtosis of Student's t is 3 + 6/(freedom - 4).
DISTRIBUTIONS = {
    distribution.name: distribution
    for distribution in (
        Distribution("gaussian", _gaussian, 3.0, words="Gaussian"),
        Distribution("uniform", _uniform, 1.8, words="uniform"),
        Distribution("laplace", _laplace, 6.0, words="Laplace"),
        Distribution("rademacher", _rademacher, 1.0, words="Rademacher, a fair sign"),
        Distribution("logistic", _logistic, 4.2, words="logistic"),
        *(
            Distribution(
                f"student_t{freedom}",
                partial(_student_t, freedom),
                kurtosis,
                moments=float(freedom),
                words=f"Student $t$ with ${freedom}$ degrees of freedom",
            )
            for freedom, kurtosis in ((10, 4.0), (5, 9.0), (3, math.inf))
        ),
    )
}

#: Distributions that were registered by `distribution` in this process.
OWN: dict[str, Distribution] = {}

#: Other names of the Gaussian.
_CALLED = re.compile(r"^\s*(?:normal|Gaussian|Normal)\b")
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_NAMED = re.compile(rf"((?:scipy\.)?\w+)(?:\((\w+={_NUMBER}(?:,\w+={_NUMBER})*)\))?")


def _read_pairs(text: str) -> list[tuple[str, float]]:
    """Return the (name, value) pairs in a text such as ``a=1.0,b=2.0``."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return [(name, float(value)) for name, _, value in pairs]


def _canonical(base: str, parameters: list[tuple[str, float]]) -> str:
    """Return the name of a distribution with parameters: ``base(a=1.0,b=2.0)``."""
    written = ",".join(f"{name}={value!r}" for name, value in parameters)
    return f"{base}({written})" if written else base


def parse_distribution(name: str) -> Distribution:
    """Return the distribution with a given name, under its canonical name.

    Parameters
    ----------
    name : str
        A key of `DISTRIBUTIONS` or `OWN`, or ``scipy.`` and a key of `OF_SCIPY`; also
        ``normal`` for the Gaussian.  In parentheses follow parameters of SciPy, mean
        and std: ``scipy.gamma(a=2.0,mean=1.0)``.

    Raises
    ------
    InputError
        If the name is unknown, a parameter is unknown, missing or given twice, or the
        variance is not finite.  Also unless 1e-6 <= std <= 1e6 and |mean| <= 1000 std.
    """
    name = _CALLED.sub("gaussian", name)
    match = _NAMED.fullmatch(name.replace(" ", ""))
    base, parameters = (match[1], match[2]) if match else (name, None)
    pairs = _read_pairs(parameters or "")
    given = dict(pairs)
    if len(given) < len(pairs):
        raise InputError(
            f"distribution must give each parameter once, got {show(name)}"
        )
    mean, std = given.pop("mean", 0.0), given.pop("std", 1.0)
    # outside of these bounds, float32 draws and products lose their variance
    if not (1e-6 <= std <= 1e6 and abs(mean) <= 1e3 * std):
        raise InputError(
            f"distribution must have 1e-6 <= std <= 1e6 and |mean| <= 1000 std, "
            f"got {show(name)}"
        )
    shape = sorted(given.items())
    if base.startswith(SCIPY):
        distribution = _standardise_scipy(base.removeprefix(SCIPY), tuple(shape))
    else:
        known = {**DISTRIBUTIONS, **OWN}
        _require_known(base, given, known)
        distribution = look_up("distribution", name if given else base, known)
    shift = [("mean", mean)] * (mean != 0.0) + [("std", std)] * (std != 1.0)
    canonical = _canonical(base, [*shape, *shift])
    return replace(distribution, name=canonical, mean=mean, std=std)


def _require_known(
    base: str, given: Mapping[str, float], known: Collection[str]
) -> None:
    """Raise `InputError` if a name takes no parameters, or lacks its ``scipy.``.

    Also for the names in `WITHOUT_VARIANCE`.  Other unknown names pass.  ``base`` is
    the name and ``known`` are the names of this package.  ``given`` are parameters
    other than mean and std, which only distributions of SciPy have.
    """
    if base in known and given:
        raise InputError(
            f"distribution {base} must have no parameters but mean and std, got "
            f"{', '.join(given)}"
        )
    if base not in known and (base in OF_SCIPY or base in WITHOUT_VARIANCE):
        hint = f"that of SciPy is {SCIPY}{base}"
        if base in WITHOUT_VARIANCE:
            hint = "it has no variance; student_t3, student_t5, scipy.t(df=2.5) and "
            hint += "scipy.pareto(b=3) have one, and heavy tails"
        raise InputError(
            f"distribution must be one of {', '.join(known)}, got {base!r}: {hint}"
        )


#: A function (generator, shape) -> entries of that shape.
Sampler = Callable[[Generator, tuple[int, ...]], ArrayLike]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
#: Shapes for checking a sampler, with 4 and with 64 generators.
LARGE, SMALL = (4096, 64), (3, 5)
#: Largest deviation of its moments in standard errors, and largest probability that a
#: valid sampler is refused because entries coincide.
MOST_OFF, FALSE_REFUSAL = 7.0, 1e-11


def distribution(  # noqa: PLR0913 - a name, a sampler and its moments
    name: str,
    sampler: Sampler,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    kurtosis: float,
    moments: float = math.inf,
) -> Distribution:
    """Register a distribution by name, for `measure`, `grid` and `judge`; return it.

    A name that was registered before is registered anew.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and underscores, a letter first, at most 31.  It
        denotes the standardised distribution, with mean 0 and variance 1;
        ``"name(mean=1.0,std=2.0)"`` is shifted and scaled.  With the mean and std
        below, its entries are those of the sampler.
    sampler : callable
        (`numpy.random.Generator`, shape) -> array of independent entries.  For use in
        several processes it must be importable: no lambda, and not defined in a
        notebook.
    mean : float
        Exact mean of the entries of the sampler.
    std : float
        Their exact standard deviation, positive.
    kurtosis : float
        Their exact fourth standardised moment, at least 1; infinite if it does not
        exist.
    moments : float
        All absolute moments of an order below this one are finite; above 2.

    Returns
    -------
    Distribution
        It can be used by its name as long as the Python process runs.

    Raises
    ------
    InputError
        If the name is invalid, or that of a distribution of this package.  If a moment
        is impossible: ``kurtosis`` must be infinite exactly where ``moments`` is at
        most 4.  If the entries of the sampler are not finite, have a wrong shape, mean
        or variance, or depend on anything but its generator.  The variance is checked
        only if the kurtosis is finite, and the kurtosis is not checked.

    Examples
    --------
    >>> import numpy as np
    >>> from montecarlo import distribution, measure
    >>> drawn = np.random.Generator.standard_exponential
    >>> exponential = distribution("exponential", drawn, mean=1.0, kurtosis=9.0)
    >>> measure(exponential.name, d_k=16, quantity="score_variance").reference
    1.0
    """
    mean = require_number("mean", mean, ends=False)
    std = require_number("std", std, 0.0, ends=False)
    kurtosis = require_number("kurtosis", kurtosis, 1.0)
    moments = require_number("moments", moments)
    if not callable(sampler):
        raise InputError(f"sampler must be a function, got {show(sampler)}")
    if not _NAME.fullmatch(require_text("name", name)) or name in {
        *DISTRIBUTIONS,
        "normal",
    }:
        raise InputError(
            "name must be small letters, digits and underscores, and not one of "
            f"{', '.join(DISTRIBUTIONS)}, got {show(name)}"
        )
    if moments <= 2.0 or math.isinf(kurtosis) != (moments <= 4.0):
        raise InputError(
            "moments must be above 2, for there must be a variance, and kurtosis "
            "infinite where moments is 4 or less, and only there, got "
            f"{moments!r} and {kurtosis!r}"
        )
    draw = partial(_draw_standardised, sampler, mean, std)
    _require_moments(name, draw, mean, std, kurtosis)
    OWN[name] = Distribution(name, draw, kurtosis, moments, words=name)
    return OWN[name]


def _draw_standardised(
    sampler: Sampler, mean: float, std: float, rng: Generator, shape: tuple[int, ...]
) -> NDArray[np.float32]:
    """Return (draws of a sampler - ``mean``) / ``std``, as float32.

    Raise `InputError` if the draws are not finite real numbers of the given shape.
    """
    drawn = sampler(rng, shape)
    try:
        entries = np.asarray(drawn)
    except (TypeError, ValueError):  # rows of different lengths
        entries = np.asarray(None)
    if isinstance(drawn, np.ma.MaskedArray) or entries.dtype.kind not in "biuf":
        raise InputError(
            "sampler must give an array of real numbers, without a mask, got "
            f"{show(drawn)}"
        )
    with np.errstate(all="ignore"):
        wide = (entries.astype(np.float64) - mean) / std
        standard = wide.astype(np.float32)
    if entries.shape != tuple(shape) or not np.isfinite(standard).all():
        raise InputError(
            f"sampler must give finite entries of the shape {tuple(shape)}, got "
            f"{entries.shape}"
        )
    return standard


def _require_moments(
    name: str, draw: Draw, mean: float, std: float, kurtosis: float
) -> None:
    """Raise `InputError` if draws do not have mean 0 and variance 1.

    They may be off by `MOST_OFF` standard errors.  Raise it also if draws depend on
    anything but the generator.  ``draw`` returns draws of the sampler ``name``,
    standardised by ``mean`` and ``std``.  The variance is checked only if ``kurtosis``
    is finite.
    """
    values = _require_generator(name, draw)
    n = values.size
    moments = [("mean", mean, float(values.mean()) * std, std / n**0.5)]
    if math.isfinite(kurtosis):
        error = math.sqrt(max(kurtosis - 1.0, 1e-6) / n) * std**2
        variance = float((values**2).mean()) * std**2
        moments.append(("variance", std**2, variance - std**2, error))
    for moment, stated, off, error in moments:
        if abs(off) > MOST_OFF * error:
            raise InputError(
                f"sampler of {name!r} must have the {moment} that was stated, "
                f"{stated:.6g}, got {stated + off:.6g} ± {error:.2g}"
            )


def _require_generator(name: str, draw: Draw) -> NDArray[np.float64]:
    """Return draws, shape (n_draws,), after checking that only the generator matters.

    Raise an `InputError` about the sampler ``name`` if draws depend on anything else.
    Equal generators must give equal draws.  For several different generators, the
    number of positions at which all draws coincide must be consistent with the
    probability with which values coincide.
    """
    must = f"sampler of {name!r} must draw from its generator and nothing else, got"

    def draws_of(shape: tuple[int, ...], n: int) -> NDArray[np.float32]:
        """Return ``draw(rng, shape)`` for generators with the seeds 0 to n - 1.

        The shape is (n, size of ``shape``): a row for each generator, flattened.
        """
        generators = map(np.random.default_rng, range(n))
        return np.stack([draw(rng, shape).ravel() for rng in generators])

    large, small = draws_of(LARGE, 4), draws_of(SMALL, 64)
    if not np.array_equal(small, draws_of(SMALL, 64)) or not np.array_equal(
        large[0], draws_of(LARGE, 1)[0]
    ):
        raise InputError(f"{must} other entries from an equal one")
    for draws in (large, small):
        _, counts = np.unique(draws, return_counts=True)
        by_chance = draws.shape[1] * (((counts - 1) / draws.size) ** len(draws)).sum()
        same = (draws == draws[0]).all(axis=0).sum()
        # probability of at least this number, by a Poisson distribution
        chance = scipy.special.pdtrc(same - 1.0, by_chance)
        if same == large.shape[1] or chance < FALSE_REFUSAL:
            raise InputError(f"{must} the same entries from another one: {same}")
    entries: NDArray[np.float64] = large[0].astype(np.float64)
    return entries


#: Supported continuous distributions of `scipy.stats`.  Each has a function of its
#: parameters that returns the order below which absolute moments are finite.
OF_SCIPY: dict[str, Callable[[Mapping[str, float]], float]] = {
    **dict.fromkeys(
        (
            *("anglit", "arcsine", "beta", "chi", "chi2", "cosine", "dgamma"),
            *("dweibull", "expon", "exponnorm", "gamma", "genlogistic", "gennorm"),
            *("gumbel_l", "gumbel_r", "halflogistic", "halfnorm", "hypsecant"),
            *("invgauss", "johnsonsu", "laplace", "laplace_asymmetric", "loggamma"),
            *("logistic", "lognorm", "maxwell", "moyal", "nakagami", "norm"),
            *("norminvgauss", "powerlaw", "rayleigh", "rice", "semicircular"),
            *("skewnorm", "trapezoid", "triang", "truncnorm", "uniform"),
            *("weibull_max", "weibull_min"),
        ),
        lambda _: math.inf,
    ),
    "f": lambda p: 0.5 * p["dfd"],
    "fisk": lambda p: p["c"],
    "genpareto": lambda p: 1.0 / p["c"] if p["c"] > 0.0 else math.inf,
    "invgamma": lambda p: p["a"],
    "lomax": lambda p: p["c"],
    "nct": lambda p: p["df"],
    "pareto": lambda p: p["b"],
    "t": lambda p: p["df"],
}
SCIPY = "scipy."
#: Distributions that are asked for and cannot be standardised.
WITHOUT_VARIANCE = ("cauchy", "levy")


@lru_cache(maxsize=256)
def _standardise_scipy(
    name: str, parameters: tuple[tuple[str, float], ...]
) -> Distribution:
    """Return a distribution of SciPy, standardised to mean 0 and variance 1.

    Parameters
    ----------
    name : str
        A key of `OF_SCIPY`.
    parameters : tuple of (str, float)
        Sorted by name; without loc and scale.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, if a parameter is missing or the variance
        is not finite, or if draws do not have the mean and variance that SciPy states.
    """
    finite = look_up(f"distribution after {SCIPY!r}", name, OF_SCIPY)
    from scipy import stats  # takes a second

    family: Any = getattr(stats, name)  # its types differ between versions
    wanted = sorted((family.shapes or "").replace(",", " ").split())
    called = f"distribution {SCIPY}{name}"
    if [key for key, _ in parameters] != wanted:
        got = ", ".join(key for key, _ in parameters) or "none"
        raise InputError(
            f"{called} must have the parameters {', '.join(wanted) or 'none'}, besides "
            f"mean and std, got {got}"
        )
    given = dict(parameters)
    with np.errstate(all="ignore"):
        moments = float(finite(given))
        mean, variance, excess = map(float, family.stats(**given, moments="mvk"))
    if not (moments > 2.0 and math.isfinite(mean) and 0.0 < variance < math.inf):
        raise InputError(
            f"{called} must have a finite variance, got "
            f"{', '.join(f'{key}={value:g}' for key, value in parameters)}"
        )
    kurtosis = excess + 3.0 if moments > 4.0 else math.inf
    whole, std = _canonical(f"{SCIPY}{name}", list(parameters)), math.sqrt(variance)
    sampler = partial(_draw_scipy, name, given)
    draw = partial(_draw_standardised, sampler, mean, std)
    _require_moments(whole, draw, mean, std, kurtosis)
    return Distribution(whole, draw, kurtosis, moments, words=whole)


def _draw_scipy(
    name: str, parameters: Mapping[str, float], rng: Generator, shape: tuple[int, ...]
) -> ArrayLike:
    """Return draws of a distribution of SciPy, not standardised.

    ``name`` is that in SciPy, such as ``gamma``, and ``parameters`` are its shape
    parameters.
    """
    from scipy import stats

    family: Any = getattr(stats, name)
    drawn: ArrayLike = family.rvs(**parameters, size=shape, random_state=rng)
    return drawn
