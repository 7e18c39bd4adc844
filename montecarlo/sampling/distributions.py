"""Distributions of one entry of Q or K, of mean 0 and variance 1, with exact moments.

A new distribution is one entry in `DISTRIBUTIONS`; `distribution` names one of the
user's own, and ``scipy.gamma(a=2.0)`` is one of SciPy's.  Each may be shifted and
rescaled: ``gaussian(mean=0.5,std=2.0)``.
"""

import math
import re
from collections.abc import Callable, Mapping
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

    Attributes
    ----------
    name : str
        Canonical: parameters sorted, defaults dropped, ``repr`` of each float.
    draw : callable
        (generator, shape) -> float32 array of the standardised distribution, mean 0,
        variance 1.
    kurtosis : float
        Exact fourth standardised moment; infinite where there is none.
    moments : float
        Every absolute moment of an order below this one is finite.
    mean, std : float
        Exact mean and standard deviation.
    words : str
        What it is called on pages, in English: a message, to be translated.
    """

    name: str  # which tells it from others
    draw: Draw = field(compare=False, repr=False)
    kurtosis: float = field(compare=False)
    moments: float = field(default=math.inf, compare=False)
    mean: float = field(default=0.0, compare=False)
    std: float = field(default=1.0, compare=False)
    words: str = field(default="", compare=False, repr=False)

    @property
    def family(self) -> str:
        """Its name without mean and standard deviation."""
        base, _, given = self.name.partition("(")
        shape = [one for one in _parameters(given) if one[0] not in ("mean", "std")]
        return _canonical(base, shape)

    @property
    def is_standard(self) -> bool:
        """Whether mean and standard deviation are 0 and 1."""
        return self.mean == 0.0 and self.std == 1.0

    def sample(self, rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Draw entries of this distribution as float32, shape ``shape``."""
        return self.rescale(self.draw(rng, shape))

    def rescale(self, standard: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give standardised entries this distribution's mean and standard deviation."""
        if self.is_standard:
            return standard
        return np.float32(self.mean) + np.float32(self.std) * standard


def _uniforms(rng: Generator, size: int) -> NDArray[np.float32]:
    """Draw uniforms from [0, 1): those of ``random``, in half the time."""
    return _in_unit(_words(rng, size))


def _words(rng: Generator, size: int) -> NDArray[np.uint32]:
    """Draw words of 32 bits; of an odd number, half a word of 64 is not kept."""
    return rng.bit_generator.random_raw((size + 1) // 2).view(np.uint32)[:size]


def _in_unit(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Turn words, which are used up, into uniforms from [0, 1) of 24 bits."""
    words >>= np.uint32(8)
    uniforms = words.astype(np.float32)
    uniforms *= np.float32(2.0**-24)
    return uniforms


def _open(uniforms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn uniforms into ones from (0, 1], in place: one in 2**24 is exactly 0."""
    return np.subtract(np.float32(1.0), uniforms, out=uniforms)


def _signs(uniforms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn uniforms into 1 and -1, in place: small integers are buffered."""
    uniforms -= np.float32(0.5)
    return np.copysign(np.float32(1.0), uniforms, out=uniforms)


#: Draws of each kind that go through all steps together, so that they stay in cache.
DRAWS_TOGETHER = 2**15


def _gaussian(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Box-Muller over whole arrays: four times as fast as NumPy's own normal draws.

    The 24 bits of a float32 uniform end the tail at 5.77 standard deviations, beyond
    which 8e-9 of the draws would lie.
    """
    size = math.prod(shape)
    half = (size + 1) // 2
    words = _words(rng, 2 * half).reshape(2, half)
    draws = np.empty((2, half), dtype=np.float32)
    for first in range(0, half, DRAWS_TOGETHER):
        some = np.s_[:, first : first + DRAWS_TOGETHER]
        radius, angle = _in_unit(words[some])
        np.log(_open(radius), out=radius)
        radius *= np.float32(-2.0)
        np.sqrt(radius, out=radius)
        angle *= np.float32(2.0 * math.pi)
        for side, part in zip((np.cos, np.sin), draws[some], strict=True):
            np.multiply(radius, side(angle, out=part), out=part)
    return draws.reshape(-1)[:size].reshape(shape)


def _uniform(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Uniform on (-sqrt 3, sqrt 3)."""
    draws = _uniforms(rng, math.prod(shape))
    draws -= np.float32(0.5 - 2.0**-25)
    draws *= np.float32(2.0 * math.sqrt(3.0))
    return draws.reshape(shape)


def _rademacher(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Either 1 or -1."""
    return _signs(_uniforms(rng, math.prod(shape))).reshape(shape)


def _laplace(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Double exponential of scale 1/sqrt 2: magnitude and sign from two uniforms."""
    size = math.prod(shape)
    uniforms = _uniforms(rng, 2 * size)
    draws, signs = _open(uniforms[:size]), _signs(uniforms[size:])
    np.log(draws, out=draws)
    draws *= np.float32(-math.sqrt(0.5))
    draws *= signs
    return draws.reshape(shape)


def _logistic(rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Logit of a uniform, divided by its standard deviation pi/sqrt 3.

    In double precision: float32 uniforms would be too coarse near 1.
    """
    u = rng.random(shape)
    np.maximum(u, 2.0**-54, out=u)
    u /= 1.0 - u
    np.log(u, out=u)
    u *= math.sqrt(3.0) / math.pi
    return u.astype(np.float32)


def _student_t(
    freedom: int, rng: Generator, shape: tuple[int, ...]
) -> NDArray[np.float32]:
    """Student's t, divided by its standard deviation sqrt(freedom/(freedom - 2)).

    The radius of a circle and its first coordinate, as for a normal: with U and V
    uniform, sqrt(freedom (U**(-2/freedom) - 1)) cos(2 pi V).  The second coordinate is
    not independent of the first.  Six times as fast as NumPy's own draws.  U has 32
    bits, which end the tail of 3 degrees of freedom at 2000 standard deviations; 24
    bits would cost half a per cent of its variance.

    References
    ----------
    Bailey (1994), Polar generation of random variates with the t-distribution,
    Mathematics of Computation 62.
    """
    size = math.prod(shape)
    radius = _words(rng, size).astype(np.float32)
    radius += np.float32(0.5)
    radius *= np.float32(2.0**-32)
    np.log(radius, out=radius)
    radius *= np.float32(-2.0 / freedom)
    np.expm1(radius, out=radius)
    radius *= np.float32(freedom - 2)
    np.sqrt(radius, out=radius)
    angle = _uniforms(rng, size)
    angle *= np.float32(2.0 * math.pi)
    np.cos(angle, out=angle)
    angle *= radius
    return angle.reshape(shape)


def _make_student(freedom: int, kurtosis: float) -> Distribution:
    return Distribution(
        f"student_t{freedom}",
        partial(_student_t, freedom),
        kurtosis,
        moments=float(freedom),
        words=f"Student $t$ with ${freedom}$ degrees of freedom",
    )


#: Kurtosis of Student's t is 3 + 6/(freedom - 4); of the others, textbook values.
DISTRIBUTIONS = {
    distribution.name: distribution
    for distribution in (
        Distribution("gaussian", _gaussian, 3.0, words="Gaussian"),
        Distribution("uniform", _uniform, 1.8, words="uniform"),
        Distribution("laplace", _laplace, 6.0, words="Laplace"),
        Distribution("rademacher", _rademacher, 1.0, words="Rademacher, a fair sign"),
        Distribution("logistic", _logistic, 4.2, words="logistic"),
        _make_student(10, kurtosis=4.0),
        _make_student(5, kurtosis=9.0),
        _make_student(3, kurtosis=math.inf),
    )
}

#: Distributions named by `distribution`, for the life of the process.
OWN: dict[str, Distribution] = {}

#: Other names of the Gaussian.
_CALLED = re.compile(r"^\s*(?:normal|Gaussian|Normal)\b")
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_SHIFTED = re.compile(rf"(\w+)\((mean|std)=({_NUMBER})(?:,(mean|std)=({_NUMBER}))?\)")
_OF_SCIPY = re.compile(rf"scipy\.(\w+)(?:\((\w+={_NUMBER}(?:,\w+={_NUMBER})*)\))?")


def _parameters(given: str) -> list[tuple[str, float]]:
    """Return names and values of ``a=1.0,b=2.0)``, in order."""
    pairs = (one.partition("=") for one in given.rstrip(")").split(",") if one)
    return [(name, float(value)) for name, _, value in pairs]


def _canonical(base: str, parameters: list[tuple[str, float]]) -> str:
    """Return a name with its parameters, in this order."""
    written = ",".join(f"{name}={value!r}" for name, value in parameters)
    return f"{base}({written})" if written else base


def parse_distribution(name: str) -> Distribution:
    """Return the distribution that a name stands for, under its canonical name.

    Parameters
    ----------
    name : str
        A key of `DISTRIBUTIONS`, or one followed by ``(mean=…)``, ``(std=…)`` or
        ``(mean=…,std=…)``; or ``scipy.`` and a key of `OF_SCIPY`, with its parameters
        among these: ``scipy.gamma(a=2.0,mean=1.0)``.
    """
    name = _CALLED.sub("gaussian", name)
    plain = name.replace(" ", "")
    match = _SHIFTED.fullmatch(plain)
    if of_scipy := _OF_SCIPY.fullmatch(plain):
        pairs = _parameters(of_scipy[2] or "")
    elif match is None:
        return look_up("distribution", name, {**DISTRIBUTIONS, **OWN})
    else:
        pairs = _parameters(plain.partition("(")[2])
    given = dict(pairs)
    if len(given) < len(pairs):
        raise InputError(
            f"distribution must give each parameter once, got {show(name)}"
        )
    mean, std = given.pop("mean", 0.0), given.pop("std", 1.0)
    # Draws and products are float32: beyond these bounds they lose their variance.
    if not (1e-6 <= std <= 1e6 and abs(mean) <= 1e3 * std):
        raise InputError(
            f"distribution must have 1e-6 <= std <= 1e6 and |mean| <= 1000 std, "
            f"got {show(name)}"
        )
    if of_scipy:
        distribution = _standardise_scipy(of_scipy[1], tuple(sorted(given.items())))
    else:
        family = plain.partition("(")[0]
        distribution = look_up("distribution", family, {**DISTRIBUTIONS, **OWN})
    shift = [("mean", mean)] * (mean != 0.0) + [("std", std)] * (std != 1.0)
    canonical = _canonical(
        distribution.name.partition("(")[0],
        [*_parameters(distribution.name.partition("(")[2]), *shift],
    )
    return replace(distribution, name=canonical, mean=mean, std=std)


#: (generator, shape) -> entries of that shape.
Sampler = Callable[[Generator, tuple[int, ...]], ArrayLike]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
#: Shapes that a sampler is tried with: one with 4 generators, the other with 64.
LARGE, SMALL = (4096, 64), (3, 5)
#: Standard errors that its moments may be off, and the probability of a false refusal.
MOST_OFF, FALSE_REFUSAL = 7.0, 1e-11


def distribution(  # noqa: PLR0913 - a name, what draws, and what is known of it
    name: str,
    sampler: Sampler,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    kurtosis: float,
    moments: float = math.inf,
) -> Distribution:
    """Register a distribution by name, for `measure`, `grid` and `judge`.

    Parameters
    ----------
    name : str
        Small letters, digits and underscores; it stands for the standardised
        distribution, of mean 0 and variance 1, like every other: ``"name(mean=1.0)"``
        and ``"name(mean=1.0,std=2.0)"`` shift and rescale it.  With the mean and std
        below it is what the sampler draws.
    sampler : callable
        (`numpy.random.Generator`, shape) -> independent entries.  Processes find it by
        its name in a module, so that there it may be no lambda and nothing of a
        notebook.
    mean : float
        Exact mean of what the sampler draws.
    std : float
        Exact standard deviation of it.
    kurtosis : float
        Its exact fourth standardised moment, at least 1; infinite where there is none.
    moments : float
        Every absolute moment of an order below this one is finite.

    Returns
    -------
    Distribution
        Known by its name from now on, as long as Python runs.

    Raises
    ------
    InputError
        If the name is taken or none, a moment cannot be, the sampler draws from
        anything but its generator, or what it draws has another shape or mean or, where
        there is a kurtosis, another variance.  The kurtosis itself is believed.

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
    draw = _Standardised(sampler, mean, std)
    _require_moments(name, draw, kurtosis)
    OWN[name] = Distribution(name, draw, kurtosis, moments, words=name)
    return OWN[name]


@dataclass(frozen=True, slots=True)
class _Standardised:
    """What a sampler draws, with mean 0 and variance 1."""

    sampler: Sampler
    mean: float
    std: float

    def __call__(self, rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        drawn = self.sampler(rng, shape)
        try:
            entries = np.asarray(drawn)
        except (TypeError, ValueError):  # rows of several lengths
            entries = np.asarray(None)
        if isinstance(drawn, np.ma.MaskedArray) or entries.dtype.kind not in "biuf":
            raise InputError(
                "sampler must give an array of real numbers, without a mask, got "
                f"{show(drawn)}"
            )
        wide = entries.astype(np.float64)
        with np.errstate(all="ignore"):
            standard = ((wide - self.mean) / self.std).astype(np.float32)
        if wide.shape != tuple(shape) or not np.isfinite(standard).all():
            raise InputError(
                f"sampler must give finite entries of the shape {tuple(shape)}, got "
                f"{wide.shape}"
            )
        return standard


def _require_moments(name: str, draw: _Standardised, kurtosis: float) -> None:
    """Refuse a sampler that draws from anything but its generator, or other moments."""
    values = _require_generator(name, draw)
    n = values.size
    moments = [("mean", draw.mean, float(values.mean()) * draw.std, draw.std / n**0.5)]
    if math.isfinite(kurtosis):
        error = math.sqrt(max(kurtosis - 1.0, 1e-6) / n) * draw.std**2
        variance = float((values**2).mean()) * draw.std**2
        moments.append(("variance", draw.std**2, variance - draw.std**2, error))
    for moment, stated, off, error in moments:
        if abs(off) > MOST_OFF * error:
            raise InputError(
                f"sampler of {name!r} must have the {moment} that was stated, "
                f"{stated:.6g}, got {stated + off:.6g} ± {error:.2g}"
            )


def _require_generator(name: str, draw: _Standardised) -> NDArray[np.float64]:
    """Refuse a sampler that draws from anything but its generator; return entries.

    An entry may come again from another generator as often as values do by chance.
    """
    must = f"sampler of {name!r} must draw from its generator and nothing else, got"

    def draws_of(shape: tuple[int, ...], n: int) -> NDArray[np.float32]:
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
        # so many or more, of a Poisson law
        chance = scipy.special.pdtrc(same - 1.0, by_chance)
        if same == large.shape[1] or chance < FALSE_REFUSAL:
            raise InputError(f"{must} the same entries from another one: {same}")
    entries: NDArray[np.float64] = large[0].astype(np.float64)
    return entries


#: Continuous distributions of `scipy.stats` that can be named, those of heavy tails
#: with the order below which absolute moments are finite, by their parameters.
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


@lru_cache(maxsize=256)
def _standardise_scipy(
    name: str, parameters: tuple[tuple[str, float], ...]
) -> Distribution:
    """Return a distribution of SciPy's with mean 0 and variance 1.

    ``name`` is without ``scipy.``; loc and scale are no parameters.

    Raises
    ------
    InputError
        If it is not known, has other parameters, or no variance; or if draws have
        another mean or variance than SciPy says.
    """
    finite = look_up(f"distribution after {SCIPY!r}", name, OF_SCIPY)
    from scipy import stats  # which takes a second

    family: Any = getattr(stats, name)  # whose types differ by version
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
    whole = _canonical(f"{SCIPY}{name}", list(parameters))
    draw = _Standardised(partial(_draw_scipy, name, given), mean, math.sqrt(variance))
    _require_moments(whole, draw, kurtosis)
    return Distribution(whole, draw, kurtosis, moments, words=whole)


def _draw_scipy(
    name: str, parameters: Mapping[str, float], rng: Generator, shape: tuple[int, ...]
) -> ArrayLike:
    from scipy import stats

    family: Any = getattr(stats, name)
    drawn: ArrayLike = family.rvs(**parameters, size=shape, random_state=rng)
    return drawn
