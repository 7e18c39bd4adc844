"""Where a statement of a paper is looked at: the numbers of a model of scores."""

from typing import Annotated

from msgspec import Meta, Struct

from montecarlo.study.validating import about

Part = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0, le=1e6)]
Gap = Annotated[float, Meta(ge=0, le=1000)]
Keys = Annotated[int, Meta(ge=2, le=2**20)]
Dimension = Annotated[int, Meta(ge=1, le=2**20)]


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """A place in a model of scores; what it does not have is None or empty."""

    n_keys: Annotated[Keys | None, about("keys of a row")] = None
    from_keys: Annotated[Keys | None, about("the smaller of two that are compared")] = (
        None
    )
    d_k: Annotated[Dimension | None, about("length of a query")] = None
    from_d_k: Annotated[
        Dimension | None, about("the smaller of two that are compared")
    ] = None
    std: Annotated[Positive | None, about("s of independent normal scores")] = None
    times: Annotated[Positive | None, about("s over sqrt(2 ln n), held as n grows")] = (
        None
    )
    gap: Annotated[Gap | None, about("by how much one score lies above")] = None
    growth: Annotated[
        Positive | None, about("scores are multiplied by it times ln n")
    ] = None
    holds: Annotated[str, about("`entropy`, or `concentration`: held as n grows")] = ""
    level: Annotated[Positive | None, about("at what it is held")] = None
    correlation: Annotated[
        Part | None, about("of an entry of a query with that of its key")
    ] = None
    scale: Annotated[
        Positive | None, about("what weights are multiplied by before rounding")
    ] = None
    number_format: Annotated[str, about("empty: none")] = ""

    @property
    def keys(self) -> int:
        """The number of keys, where a quantity needs it."""
        return _needed("n_keys", self.n_keys)

    @property
    def dimension(self) -> int:
        """The length of queries, where a quantity needs it."""
        return _needed("d_k", self.d_k)


def _needed(name: str, size: int | None) -> int:
    if size is None:
        raise ValueError(f"{name} must be given here, got None")
    return size
