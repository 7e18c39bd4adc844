"""What the terminal shows of an observation."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from montecarlo.applied.telling import JudgedScales
from montecarlo.applied.words import (
    say_answer,
    say_findings,
    say_without_evidence,
)
from montecarlo.printing import print_lines, printable
from montecarlo.report.content.observed.views import ObservedView
from montecarlo.report.terminal import make_table
from montecarlo.study.progress import open_console

#: Heads that the terminal lists.
MOST_LINES = 12


def print_observed(
    view: ObservedView,
    judged: JudgedScales,
    written: Sequence[Path],
    unread: Sequence[str] = (),
) -> None:
    """Print the applied scale, the heads farthest off, and the paths written.

    First the arrays, if any, that are in files and were not read.
    """
    if unread:
        more = ", ..." if len(unread) > MOST_LINES else ""
        print_lines(
            f"not read: {', '.join(unread[:MOST_LINES])}{more} (--names tells what "
            "arrays are: of attention weights, or of values and outputs together)"
        )
    print_lines(say_answer(judged.applied, judged.answer, judged.expected))
    if judged.applied.heads:
        n_heads = judged.applied.n_heads
        for found in say_findings(judged.findings, judged.expected, n_heads):
            print_lines(f"  {found}")
    else:
        size = math.sqrt(view.overall["score_variance"].value / view.record["d_k"])
        print_lines(f"  {say_without_evidence(size)}")
    for name, heads in view.warnings.items():
        if heads:
            print_lines(f"over training, {name} (layer, head): {_list(heads)}")
    if dead := [f"({layer}, {head})" for layer, head in view.record["dead"]]:
        print_lines(
            "left out, since queries or keys are the same for every token (layer, "
            f"head): {_list(dead)}"
        )
    console = open_console(sys.stdout, highlight=False)
    headings = ("layer", "head", "Var(q.k)", "within rows", "divided", "right divisor")
    rows = []
    for line in view.lines[:MOST_LINES]:
        names = ("score_variance", "score_row_variance", "scaled_row_variance")
        values = [line.cells[name].value for name in (*names, "unit_divisor")]
        causes = ", ".join(f"{name} {cell.value:.3g}" for name, cell in line.causes)
        shown = [f"{value:.4g}" for value in values]
        rows.append((line.layer, line.head, *shown, line.state, causes or "-"))
    told = ("state", "what fails, and the factor it alone makes")
    console.print(make_table((*headings, *told), rows, right=len(headings)))
    states = ", ".join(f"{count} {state}" for state, count in view.states if count)
    console.print(
        printable(
            f"{view.n_heads} heads, d_k = {view.record['d_k']}, "
            f"divisor {view.record['divisor']:.4g}: {states}"
        )
    )
    if not view.record["intervals"]:
        console.print("fewer than 5 sequences: these tokens are described, no more")
    for path in written:
        print_lines(path)


def _list(heads: Sequence[str]) -> str:
    return " ".join(heads[:MOST_LINES]) + " ..." * (len(heads) > MOST_LINES)
