"""All quantities by name: of pairs, of rows, and of rows in number formats."""

from montecarlo.attention.number_formats import FORMAT_QUANTITIES, FormatQuantity
from montecarlo.attention.pairs import PAIR_QUANTITIES, PairQuantity
from montecarlo.attention.rows import ROW_QUANTITIES, RowQuantity

QUANTITIES: dict[str, PairQuantity | RowQuantity | FormatQuantity] = {
    **PAIR_QUANTITIES,
    **ROW_QUANTITIES,
    **FORMAT_QUANTITIES,
}
