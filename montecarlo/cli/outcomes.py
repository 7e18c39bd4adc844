"""What came out, by the names that ``--fail-on`` has."""

from collections.abc import Sequence

from montecarlo.claims.outcomes import ClaimsRecord
from montecarlo.claims.verdicts import UNREACHED, Verdict
from montecarlo.names import look_up_all

#: What ``--fail-on`` names that is no verdict: a refuted check of the simulator.
SELF_CHECK = "self-check"


def read_fail_on(names: Sequence[str]) -> set[str]:
    """Return the outcomes that ``--fail-on`` names; ``none`` alone: of no name.

    Raises
    ------
    InputError
        If there is no such outcome.
    """
    known = (SELF_CHECK, *(verdict.value for verdict in Verdict))
    return set(look_up_all("fail-on", names, {name: name for name in known}))


def outcomes_of(record: ClaimsRecord, *, unreached: bool = True) -> set[str]:
    """Return all that came out of a study.

    ``unreached``: whether what the sample does not reach counts as open.
    """
    rulings = {ruling for claim in record.claims for ruling in claim.rulings}
    if not unreached:
        rulings.discard(UNREACHED)
    found = {str(ruling.verdict) for ruling in rulings}
    return found | ({SELF_CHECK} if record.failed_self_checks() else set())
