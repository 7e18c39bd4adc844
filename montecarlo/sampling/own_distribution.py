"""A distribution of one's own: a sampler and its moments, under a name."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from montecarlo.errors import InputError
from montecarlo.names import require_number, require_text, show
from montecarlo.sampling.distributions import DISTRIBUTIONS, OWN, Distribution

#: (generator, shape) -> entries of that shape.
Sampler = Callable[[Generator, tuple[int, ...]], ArrayLike]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
#: Draws that a sampler is tried with, and how many standard errors its mean and
#: variance may be off: of means that are nearly normal one in 10**11 is, by chance.
TRIED, MOST_OFF = 2**18, 7.0


def distribution(  # noqa: PLR0913 - a name, what draws, and what is known of it
    name: str,
    sampler: Sampler,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    kurtosis: float,
    moments: float = math.inf,
) -> Distribution:
    """Name a distribution of one's own, for `measure`, `grid` and `judge`.

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
    mean, std : float
        Exact, of what the sampler draws.
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
    >>> measure(exponential.name, "gaussian", 16, quantity="score_variance").reference
    16.0
    """
    mean, std, kurtosis, moments = (
        require_number(*one)
        for one in (
            ("mean", mean),
            ("std", std),
            ("kurtosis", kurtosis),
            ("moments", moments),
        )
    )
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
    if not (math.isfinite(mean) and 0.0 < std < math.inf):
        raise InputError(f"std must be a number above 0, got {mean!r} and {std!r}")
    if not (kurtosis >= 1.0 and moments > 2.0):
        raise InputError(
            "kurtosis must be at least 1 and moments above 2, for there must be a "
            f"variance, got {kurtosis!r} and {moments!r}"
        )
    if math.isinf(kurtosis) != (moments <= 4.0):
        raise InputError(
            "kurtosis must be infinite where moments is 4 or less, and only there, got "
            f"{kurtosis!r} and {moments!r}"
        )
    draw = _Standardised(sampler, mean, std)
    _try(name, draw, kurtosis)
    found = Distribution(
        name,
        draw,
        kurtosis,
        moments,
        symbol=rf"\mathrm{{{_typeset(name)}}}",
        words=name,
    )
    OWN[name] = found
    return found


@dataclass(frozen=True, slots=True)
class _Standardised:
    """What a sampler draws, with mean 0 and variance 1."""

    sampler: Sampler
    mean: float
    std: float

    def __call__(self, rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
        found = self.sampler(rng, shape)
        try:
            drawn = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"sampler must give an array of numbers, got {show(found)}"
            ) from None
        with np.errstate(all="ignore"):
            standard = ((drawn - self.mean) / self.std).astype(np.float32)
        if drawn.shape != tuple(shape) or not np.isfinite(standard).all():
            raise InputError(
                f"sampler must give finite entries of the shape {tuple(shape)}, got "
                f"{drawn.shape}"
            )
        return standard


def _try(name: str, draw: _Standardised, kurtosis: float) -> None:
    """Draw, and refuse what is not drawn from the generator or has other moments."""
    shape = TRIED // 64, 64
    first, again, other = (draw(np.random.default_rng(s), shape) for s in (1, 1, 2))
    must = f"sampler of {name!r} must draw from its generator and nothing else, got"
    if not np.array_equal(first, again):
        raise InputError(f"{must} other entries from an equal one")
    if np.array_equal(first, other):
        raise InputError(f"{must} the same entries from another one")
    values = first.astype(np.float64)
    n = values.size
    found = [("mean", draw.mean, float(values.mean()) * draw.std, draw.std / n**0.5)]
    if math.isfinite(kurtosis):
        error = math.sqrt(max(kurtosis - 1.0, 1e-6) / n) * draw.std**2
        variance = float((values**2).mean()) * draw.std**2
        found.append(("variance", draw.std**2, variance - draw.std**2, error))
    for moment, said, off, error in found:
        if abs(off) > MOST_OFF * error:
            raise InputError(
                f"sampler of {name!r} must have the {moment} that was said, "
                f"{said:.6g}, got {said + off:.6g} ± {error:.2g}"
            )


def _typeset(name: str) -> str:
    return name.replace("_", r"\_")
