"""What gives a report, which is written all the same, the status of a failure."""

from collections.abc import Callable, Sequence

from montecarlo.names import look_up_all
from montecarlo.report.content.views import Findings

#: What ``--fail-on`` of a report names.
FAIL_ON: dict[str, Callable[[Findings], bool]] = {
    "self-check": lambda findings: bool(findings.record.failed_self_checks())
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
