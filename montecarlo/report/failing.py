"""``--fail-on``: the outcomes that make a command exit with status 1."""

from collections.abc import Callable, Sequence
from functools import partial

from montecarlo.claims.verdicts import Verdict
from montecarlo.names import look_up_all
from montecarlo.report.content.findings import Findings


def _has_verdict(verdict: Verdict, findings: Findings) -> bool:
    return any(verdict in claim.verdicts for claim in findings.claims)


#: What ``--fail-on`` of a report names: a verdict, or what is wrong with the simulator.
FAIL_ON: dict[str, Callable[[Findings], bool]] = {
    "self-check": lambda findings: bool(findings.record.failed_self_checks()),
    **{verdict.value: partial(_has_verdict, verdict) for verdict in Verdict},
}


def failing_outcome(names: Sequence[str]) -> Callable[[Findings], bool]:
    """Return what tells whether findings have one of the outcomes that are named.

    Raises
    ------
    InputError
        If there is no outcome of a name.
    """
    chosen = look_up_all("fail-on", names, FAIL_ON)
    return lambda findings: any(has_failed(findings) for has_failed in chosen)
