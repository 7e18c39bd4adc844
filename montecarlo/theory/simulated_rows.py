"""Simulated values of row quantities that have no exact value, with small errors.

In: a quantity, a point and a divisor.  Out: the value in a table that
`studies.explorer` makes, with a relative standard error of 0.3 %, or None.
"""

from functools import cache
from typing import Any

from montecarlo.attention.divisors import parse_divisor
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.small_files import read_package_toml
from montecarlo.theory.row_integrals import Reference

#: File of the table, in the package.
TABLE = "theory/simulated_rows.toml"
#: Quantity and summary -> name in the table, and whether it is divided by the divisor.
STATISTICS = {
    ("effective_keys", "mean"): ("effective_keys", False),
    ("gradient_query_undivided", "median"): ("passed_on", False),
    ("gradient_query", "median"): ("passed_on", True),
}


@cache
def simulated_table() -> dict[str, Any]:
    """Return the table of simulated values as a dict, with the keys of its file.

    ``values`` is a list of rows.  There is a row for each combination of an entry of
    ``keys``, of ``d_k`` and of ``divisors``; the last varies fastest.  A row has a
    number for each of ``statistics``, to four digits.  ``effective_keys`` and
    ``passed_on`` are simulated, with a relative standard error of at most ``error``.
    ``weight_max`` and ``saturated`` are exact.
    """
    return read_package_toml(TABLE)


def simulated_value(
    quantity: str, point: DesignPoint, divisor: str, summary: str
) -> Reference | None:
    """Return a value from the table of simulated values, with its standard error.

    Parameters are those of `montecarlo.theory.references.reference`.  For two divisors
    the result is the ratio of their values.  None if the table lacks the value: it has
    those of `STATISTICS`, for independent standard normal entries without a mask.
    """
    table, gaussian = simulated_table(), DISTRIBUTIONS["gaussian"]
    name, is_divided = STATISTICS.get((quantity, summary), ("", False))
    is_standard = point.distribution_q == point.distribution_k == gaussian
    is_plain = point.is_independent and not (point.is_masked or point.is_normalised)
    sizes = [table["keys"], table["d_k"], table["divisors"]]
    value, divisors = 1.0, divisor.split("/")
    for one, exponent in zip(divisors, (1.0, -1.0), strict=False):
        place = [point.n_keys, point.d_k, one]
        known = all(x in axis for x, axis in zip(place, sizes, strict=True))
        if not (name and is_standard and is_plain and known):
            return None
        keys, d_k, number = map(list.index, sizes, place)
        row = (keys * len(sizes[1]) + d_k) * len(sizes[2]) + number
        drawn = table["values"][row][table["statistics"].index(name)]
        if is_divided:
            drawn /= parse_divisor(one).value(point.d_k, point.n_keys)
        value *= drawn**exponent
    return Reference(value, table["error"] * len(divisors) ** 0.5 * value)
