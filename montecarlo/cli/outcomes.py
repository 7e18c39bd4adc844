"""Outcomes of a study, by the names that ``--fail-on`` accepts."""

from collections.abc import Sequence

from montecarlo.claims.outcomes import ClaimsRecord
from montecarlo.claims.verdicts import UNREACHED, Verdict
from montecarlo.names import require_names

#: The outcome that is no verdict: a refuted self-check of the simulator.
SELF_CHECK = "self-check"


def read_fail_on(names: Sequence[str]) -> set[str]:
    """Return the outcomes that ``--fail-on`` names, as a set; empty for ``none``.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    known = (SELF_CHECK, *(verdict.value for verdict in Verdict))
    return set(require_names("fail-on, unless none,", names, known))


def outcomes_of(record: ClaimsRecord, *, unreached: bool = True) -> set[str]:
    """Return the outcomes of a study, by the names that ``--fail-on`` accepts.

    They are the verdicts on claims, and on interpretations that count for a claim's
    verdict.  ``self-check`` is added if a self-check of the simulator is refuted.
    ``unreached`` says whether a verdict of ``open`` counts whose reason is that cases
    in its scope were not sampled; ``open`` for undecided cases always counts.
    """
    rulings = {ruling for claim in record.claims for ruling in claim.rulings}
    if not unreached:
        rulings.discard(UNREACHED)
    verdicts = {str(ruling.verdict) for ruling in rulings}
    return verdicts | ({SELF_CHECK} if record.failed_self_checks() else set())
