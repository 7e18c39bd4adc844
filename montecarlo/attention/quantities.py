"""All quantities by name: of pairs, of rows, and of rows in number formats."""

from montecarlo.attention.number_formats import FORMAT_QUANTITIES, FormatQuantity
from montecarlo.attention.pairs import PAIR_QUANTITIES, PairQuantity
from montecarlo.attention.rows import ROW_QUANTITIES, RowQuantity

QUANTITIES: dict[str, PairQuantity | RowQuantity | FormatQuantity] = {
    **PAIR_QUANTITIES,
    **ROW_QUANTITIES,
    **FORMAT_QUANTITIES,
}


def is_indicator(name: str) -> bool:
    """Tell whether a quantity is 1 for rows for which something holds, else 0."""
    return not isinstance(one := QUANTITIES[name], PairQuantity) and one.indicator
