"""What gives a report, which is written all the same, the status of a failure."""

from collections.abc import Callable

from montecarlo.names import look_up
from montecarlo.report.content.views import Findings

#: What ``--fail-on`` of a report names.
FAIL_ON: dict[str, Callable[[Findings], bool]] = {
    "self-check": lambda findings: bool(findings.record.failed_self_checks()),
}


def failing_outcome(name: str | None) -> Callable[[Findings], bool]:
    """Return what tells whether findings fail; None: none does.

    Raises
    ------
    ValueError
        If there is no outcome of this name.
    """
    if name is None:
        return lambda _: False
    return look_up("fail-on", name, FAIL_ON)
