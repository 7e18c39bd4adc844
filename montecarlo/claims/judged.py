"""Verdicts on claims of one's own: what claims.json says, and a table of it."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pandas as pd

from montecarlo.claims.outcomes import CaseOutcome
from montecarlo.claims.record import ClaimsRecord
from montecarlo.study.measured import round_to

COLUMNS = ("claim", "verdict", "checked", "where", "measured", "claimed", "outcome")


class Judged(dict[str, Any]):
    """What claims.json says of claims of one's own; in a notebook, its table.

    ``["claims"]`` holds them, with ``id`` and ``verdict`` each; ``["not_judged"]`` says
    in a line each what could not be judged, and why.
    """

    def __init__(self, record: ClaimsRecord, not_judged: Sequence[str]) -> None:
        said: dict[str, Any] = msgspec.to_builtins(record)
        super().__init__(said, not_judged=list(not_judged))
        self._record = record

    def frame(self) -> pd.DataFrame:
        """Return a line for each case of each check: claimed, measured, outcome."""
        return pd.DataFrame(self._lines(), columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        shown = self.frame().to_html(index=False, border=0, max_rows=40)
        notes = pd.DataFrame({"not judged": self["not_judged"]})
        return shown + (notes.to_html(index=False, border=0) if len(notes) else "")

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for claim in self._record.claims:
            for interpretation in claim.interpretations:
                for check in interpretation.checks:
                    checked = f"{check.quantity} ({check.summary}), {check.divisor}"
                    for case in check.cases:
                        named = claim.id, str(claim.verdict), checked
                        yield (*named, *say_case(case), str(case.outcome))


def say_case(case: CaseOutcome) -> tuple[str, str, str]:
    """Say where a case is, what was measured there, and what was claimed."""
    where = [part for part in (case.distribution, case.context) if part]
    if case.d_k_range:
        low, high = case.d_k_range
        where.append(f"d_k = {low}" if low == high else f"d_k = {low} to {high}")
    if case.n_keys is not None:
        where.append(f"n = {case.n_keys}")
    measured = "-"
    if case.estimate is not None:
        error = case.std_error or 0.0
        measured = round_to(case.estimate, error)
        measured += f" ± {round_to(error, error)}" if error else ""
    elif case.simultaneous_high is not None:  # a quantile beyond what is counted
        measured = f"at most {case.simultaneous_high:.4g}"
    least, most = case.region_low, case.region_high
    if least is not None and most is not None:
        claimed = f"{least:.4g} to {most:.4g}"
    elif least is not None:
        claimed = f"at least {least:.4g}"
    elif most is not None:
        claimed = f"at most {most:.4g}"
    else:
        claimed = "a limit, which theory decides"
    return ", ".join(where), measured, claimed
