"""All quantities by name: of pairs, of rows, and of rows in number formats."""

from montecarlo.attention.format_quantities import FORMAT_QUANTITIES, FormatQuantity
from montecarlo.attention.pairs import PAIR_QUANTITIES, PairQuantity
from montecarlo.attention.quantiles import quantile_level
from montecarlo.attention.ranges import Range
from montecarlo.attention.rows import ROW_QUANTITIES, RowQuantity

QUANTITIES: dict[str, PairQuantity | RowQuantity | FormatQuantity] = {
    **PAIR_QUANTITIES,
    **ROW_QUANTITIES,
    **FORMAT_QUANTITIES,
}


def beyond_table(quantity: str, summary: str) -> tuple[tuple[str, str], ...]:
    """Return a quantity of rows and a summary that tables lack, if it is such a pair.

    Raises
    ------
    KeyError
        If there is no such quantity.
    """
    one = QUANTITIES[quantity]
    if isinstance(one, FormatQuantity):
        return () if one.tabled else ((quantity, summary),)
    if isinstance(one, PairQuantity) or summary in one.summaries:
        return ()
    asked = quantile_level(summary) is not None and one.grid is not None
    return ((quantity, summary),) if asked else ()


def range_of(name: str, n_keys: int | None) -> Range:
    """Return the range of a quantity's values, and so of their means and quantiles."""
    one = QUANTITIES[name]
    return one.within if isinstance(one, PairQuantity) else one.within(n_keys or 0)


def is_indicator(name: str) -> bool:
    """Tell whether a quantity is 1 for rows for which something holds, else 0."""
    return not isinstance(one := QUANTITIES[name], PairQuantity) and one.indicator
