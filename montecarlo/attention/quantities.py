"""All quantities by name: of pairs and of rows."""

from montecarlo.attention.pairs import PAIR_QUANTITIES, PairQuantity
from montecarlo.attention.rows import ROW_QUANTITIES, RowQuantity

QUANTITIES: dict[str, PairQuantity | RowQuantity] = {
    **PAIR_QUANTITIES,
    **ROW_QUANTITIES,
}
