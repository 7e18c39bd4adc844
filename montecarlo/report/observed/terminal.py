"""What the terminal shows of an observation."""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from montecarlo.model.diagnosis import LEAST, STATES
from montecarlo.model.head_quantities import FEWEST
from montecarlo.model.model import Head
from montecarlo.model.observing import HeadView, Observation
from montecarlo.model.steps import Steps
from montecarlo.model.telling import JudgedScales
from montecarlo.model.words import (
    say_answer,
    say_findings,
    say_without_evidence,
)
from montecarlo.printing import print_lines, printable
from montecarlo.report.terminal import make_table
from montecarlo.study.progress import open_console

#: Heads that the terminal lists.
MOST_LINES = 12
#: Assumptions that the line of a head names.
MOST_CAUSES = 3
#: Quantities in the line of a head.
SHOWN = (
    "score_variance",
    "score_row_variance",
    "scaled_row_variance",
    "unit_divisor",
)


def print_observed(
    observation: Observation,
    judged: JudgedScales,
    steps: Steps | None,
    written: Sequence[Path],
) -> None:
    """Print the applied scale, the heads farthest off, and the paths written.

    First the arrays, if any, that are in files and were not read.
    """
    model = observation.model
    if model.unread:
        more = ", ..." if len(model.unread) > MOST_LINES else ""
        print_lines(
            f"not read: {', '.join(model.unread[:MOST_LINES])}{more} (--names tells "
            "what arrays are: of attention weights, or of values and outputs together)"
        )
    print_lines(say_answer(judged.applied, judged.answer, judged.expected))
    if judged.applied.heads:
        n_heads = judged.applied.n_heads
        for found in say_findings(judged.findings, judged.expected, n_heads):
            print_lines(f"  {found}")
    else:
        size = math.sqrt(observation.overall["score_variance"].value / model.d_k)
        print_lines(f"  {say_without_evidence(size)}")
    for name, heads in steps.warnings.items() if steps else ():
        if heads:
            print_lines(f"over training, {name} (layer, head): {_list(heads)}")
    if observation.dead:
        print_lines(
            "left out, since queries or keys are the same for every token (layer, "
            f"head): {_list(observation.dead)}"
        )
    console = open_console(sys.stdout, highlight=False)
    headings = ("layer", "head", "Var(q.k)", "within rows", "divided", "right divisor")
    told = ("state", "what fails, and the factor it alone makes")
    rows = map(_row, sorted(observation.heads, key=_closeness)[:MOST_LINES])
    console.print(make_table((*headings, *told), rows, right=len(headings)))
    counts = Counter(view.diagnosis.state for view in observation.heads)
    states = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    console.print(
        printable(
            f"{len(observation.heads)} heads, d_k = {model.d_k}, "
            f"divisor {observation.divisor:.4g}: {states}"
        )
    )
    if observation.n_sequences < FEWEST:
        console.print("fewer than 5 sequences: these tokens are described, no more")
    for path in written:
        print_lines(path)


def _closeness(view: HeadView) -> float:
    """Sort heads by how far the divisor is off, those farthest off first."""
    return -abs(math.log(max(view.found["scaled_row_variance"].value, LEAST)))


def _row(view: HeadView) -> tuple[str, ...]:
    causes = ", ".join(
        f"{fault.name} {fault.factor.value:.3g}"
        for fault in view.diagnosis.failing[:MOST_CAUSES]
    )
    return (
        str(view.head.layer),
        str(view.head.head),
        *(f"{view.found[name].value:.4g}" for name in SHOWN),
        view.diagnosis.state,
        causes or "-",
    )


def _list(heads: Iterable[Head]) -> str:
    named = [f"({head.layer}, {head.head})" for head in heads]
    return " ".join(named[:MOST_LINES]) + " ..." * (len(named) > MOST_LINES)
