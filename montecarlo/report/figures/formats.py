"""Number formats: where the exponential overflows, and what rounding leaves."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from montecarlo.report.content.tables.rows import nearest, with_interval
from montecarlo.report.figures.drawing.palette import (
    DIVISOR_LOOKS,
    GREEN,
    INK,
    OCHRE,
    Look,
)
from montecarlo.report.figures.drawing.panels import (
    key_of,
    logarithmic,
    panels,
    plot_estimates,
    plot_limit,
    plot_reference,
    powers_of_two,
)

#: Formats by the power of 2 that their rounding is: 11 bits of a number in float16.
ROUNDOFF = {"bfloat16": -8, "float16": -11, "float32": -24}
FORMAT_LOOKS = {
    "bfloat16": Look(GREEN, "s", symbol=r"$u = 2^{-8}$"),
    "float16": Look(INK, "o", symbol=r"$u = 2^{-11}$"),
    "float32": Look(OCHRE, "D", symbol=r"$u = 2^{-24}$", filled=False),
}
D_K, N_KEYS = 64, 128
MARK = 4.5


def build_formats(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build overflow probabilities against d_k, and errors of weights by rounding."""
    tails = tail_rows(measurements)
    errors = error_rows(measurements)
    if tails.empty or errors.empty:
        return None
    figure, (left, right) = panels(1, 2, 2.9)
    plot_overflow(left, tails)
    plot_errors(right, errors)
    right.set_title(f"$d_k = {D_K}$")
    present = [f for f in FORMAT_LOOKS if f in set(tails["number_format"])]
    figure.legend(
        handles=[key_of(FORMAT_LOOKS[name]) for name in present],
        loc="outside upper center",
        ncols=len(present),
    )
    divisors = set(errors["divisor"])
    figure.legend(
        handles=[key_of(k) for d, k in DIVISOR_LOOKS.items() if d in divisors],
        loc="outside lower center",
        ncols=len(divisors),
    )
    return figure


def tail_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the probabilities of overflow that measurements.csv has."""
    return measurements[measurements["quantity"].eq("overflow_probability")]


def error_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return mean errors of weights by format and divisor, at one d_k and n.

    Parameters
    ----------
    measurements : DataFrame
        measurements.csv.

    Returns
    -------
    DataFrame
        Of softmax as libraries compute it: the largest score is subtracted first.
    """
    rows = measurements[
        measurements["quantity"].eq("format_error")
        & measurements["softmax"].eq("shifted")
        & measurements["number_format"].isin(ROUNDOFF)
        & measurements["d_k"].eq(D_K)
        & measurements["summary"].eq("mean")
    ]
    rows = with_interval(rows)
    return rows[rows["n_keys"].eq(nearest(rows["n_keys"].dropna(), N_KEYS) or 0)]


def plot_overflow(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw the probability that one exponential overflows, with exact values as lines.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of ``overflow_probability``.

    Returns
    -------
    Axes
    """
    for name, look in FORMAT_LOOKS.items():
        rows = table[table["number_format"].eq(name)]
        if len(rows):
            plot_reference(axes, rows)
            plot_estimates(axes, rows, replace(look, size=MARK))
    logarithmic(axes)
    powers_of_two(axes, table["d_k"], columns=2)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$P(e^{q\cdot k} = \infty)$")
    return axes


def plot_errors(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw errors of weights by the rounding u of their format, with u as a line.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        As `error_rows` gives them.

    Returns
    -------
    Axes
    """
    present = sorted(set(table["number_format"]), key=ROUNDOFF.__getitem__)
    column = table["number_format"].map({name: i for i, name in enumerate(present)})
    for place, (divisor, look) in enumerate(DIVISOR_LOOKS.items()):
        rows = table[table["divisor"].eq(divisor)]
        # beside each other, or they would cover each other
        rows = rows.assign(column=column[rows.index] + 0.2 * (place - 1.5))
        if len(rows):
            plot_estimates(axes, rows, replace(look, size=MARK), "column")
    for i, name in enumerate(present):
        plot_limit(
            axes, np.array([i - 0.45, i + 0.45]), np.full(2, 2.0 ** ROUNDOFF[name])
        )
    logarithmic(axes)
    axes.set_xticks(range(len(present)), [f"$2^{{{ROUNDOFF[f]}}}$" for f in present])
    axes.set_xlim(-0.6, len(present) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("$u$")
    axes.set_ylabel(r"$\mathrm{E}\,\delta$")
    return axes
