"""Quantiles over rows, by name."""

import re

#: What part of the rows lies below each quantile that the table has.
QUANTILES = {"q10": 0.1, "median": 0.5, "q90": 0.9}
#: Any other: its percentage.
_PERCENTILE = re.compile(r"q([0-9]{1,2}(?:\.[0-9]{1,3})?)\Z")


def quantile_level(summary: str) -> float | None:
    """Return the part of the rows below a quantile, None for what is none.

    Examples
    --------
    >>> quantile_level("median"), quantile_level("q99.9"), quantile_level("mean")
    (0.5, 0.999, None)
    """
    if summary in QUANTILES:
        return QUANTILES[summary]
    found = _PERCENTILE.match(summary)
    percent = float(found[1]) if found else 0.0
    has_one_name = summary == f"q{percent:g}" and percent not in (0.0, 50.0)
    return percent / 100.0 if has_one_name else None
