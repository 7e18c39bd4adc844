"""Kinds of claims, and what each is decided on: a new kind is one entry in `RECORDED`.

Claims of kind ``measured`` are decided by simulation; ``practice`` and ``assumption``
by nothing.  What is decided on a record, which is there before anything is sampled,
says here how it is read, and in its module which quantities it has.
"""

from collections.abc import Callable, Iterable, Mapping

from montecarlo.claims.checks import Check
from montecarlo.claims.evidence import Evidence, Recorded
from montecarlo.claims.facts import Facts
from montecarlo.claims.schema import Catalogue

#: Kind to what makes its evidence; shapes and records have their own checks.
RECORDED: Mapping[str, Callable[[Catalogue], Evidence]] = {
    "shape": Facts,
    "record": Facts,
}
#: Kind to the quantities that checks of a catalogue may name, and how they are read.
TABLES: Mapping[str, Recorded] = {}


def find_table(quantity: str) -> Recorded | None:
    """Return the record that has a quantity; None: it is sampled."""
    return next((one for one in TABLES.values() if quantity in one.quantities), None)


def gather_evidence(catalogue: Catalogue, measured: Evidence) -> dict[str, Evidence]:
    """Return what claims of each kind are decided on."""
    made = {kind: make(catalogue) for kind, make in RECORDED.items()}
    return {"measured": measured, **made, **TABLES}


def drop_recorded(checks: Iterable[Check]) -> list[Check]:
    """Return the checks that have to be sampled for."""
    return [check for check in checks if find_table(check.quantity) is None]
