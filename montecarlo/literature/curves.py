"""The exact curves of the page of papers."""

import math
from collections.abc import Iterator

import numpy as np

from montecarlo.literature.growth import std_that_holds
from montecarlo.literature.quantities import critical_std
from montecarlo.literature.record import (
    CONCENTRATION_CURVE,
    GROWTH_CURVE,
    LIMIT,
    CurvePoint,
)
from montecarlo.theory.row_integrals import ROW_NAMES, gaussian_profile, integrate_row

#: Keys that a rule of extension starts from, and those that curves go over.
FROM = 4096
GROWTH_KEYS = tuple(2**i for i in range(6, 19))
CONCENTRATION_KEYS = (64, 1024, 16384, 131072, 1048576)
#: Of s over sqrt(2 ln n).
PLACES = tuple(np.geomspace(0.1, 8.0, 45).round(4).tolist())
#: What is held while rows grow: its name, what it is, at what level.
HELD = (
    ("entropy-1", "entropy", 1.0),
    ("entropy-3", "entropy", 3.0),
    ("concentration-0.5", "concentration", 0.5),
)
#: Laws that papers have.
LAWS = ("logarithm", "root", "extension")


def literature_curves() -> Iterator[CurvePoint]:
    """Yield all of them."""
    for n_keys in GROWTH_KEYS:
        ratio = math.log(n_keys) / math.log(FROM)
        factors = {
            name: std_that_holds(held, level, n_keys)
            / std_that_holds(held, level, FROM)
            for name, held, level in HELD
        }
        further = max(1.0, n_keys / FROM)
        laws = (ratio, math.sqrt(ratio), (0.1 * math.log(further) + 1.0) ** 2)
        for name, factor in (factors | dict(zip(LAWS, laws, strict=True))).items():
            yield CurvePoint(
                curve=GROWTH_CURVE, outcome=name, x=float(n_keys), estimate=factor
            )
    place = ROW_NAMES.index("inverse_participation")
    for n_keys in CONCENTRATION_KEYS:
        critical = critical_std(n_keys)
        for x in PLACES:
            row = integrate_row(gaussian_profile(np.array([x * critical])), n_keys)
            yield CurvePoint(
                curve=CONCENTRATION_CURVE,
                n_keys=n_keys,
                outcome="exact",
                x=x,
                estimate=float(row.values[0, place]),
            )
    for x in PLACES:
        if x > 1.0:
            yield CurvePoint(
                curve=CONCENTRATION_CURVE, outcome=LIMIT, x=x, estimate=1.0 - 1.0 / x
            )
