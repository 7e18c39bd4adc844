"""The size of scores: their variance against d_k, the largest of a row against n."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    largest_scores,
    plain_rows,
    with_interval,
)
from montecarlo.report.figures.drawing.palette import (
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
    GAUSSIAN_LOOK,
    MUTED,
)
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    key_of,
    legend_above,
    level,
    limit_key,
    logarithmic,
    plot_estimates,
    plot_limit,
    plot_reference,
    powers_of_two,
)
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.references import reference

ALL_DISTRIBUTIONS = {"gaussian": GAUSSIAN_LOOK, **DISTRIBUTION_LOOKS}
#: Distributions stand beside each other, this factor of d_k apart.
APART = 1.085
#: Numbers of keys that the lines against n are drawn through, at most.
LINE_POINTS = 25
#: Smaller than elsewhere, or intervals would hide behind them.
LARGEST_LOOK = replace(DIVISOR_LOOKS["sqrt"], size=4.0)


def variance_rows(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the variances of scores that are drawn, of q and k of one distribution."""
    rows = plain_rows(measurements, quantity="score_variance", summary="value")
    rows = with_interval(rows[rows["distribution_q"].eq(rows["distribution_k"])])
    return rows[rows["distribution_q"].isin(ALL_DISTRIBUTIONS)]


def build_variance(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build the variance under each divisor, and below it relative to theory."""
    rows = variance_rows(measurements)
    if gaussian_rows(rows)["d_k"].nunique() < FEWEST_POINTS:
        return None
    figure = Figure(figsize=(WIDTH, 6.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
    plot_variance(above, rows)
    plot_relative_variance(below, rows)
    powers_of_two(below, rows["d_k"], columns=1)
    above.tick_params(labelbottom=False)
    divisors = [look for d, look in DIVISOR_LOOKS.items() if d in set(rows["divisor"])]
    distributions = [
        look
        for distribution, look in ALL_DISTRIBUTIONS.items()
        if distribution in set(rows["distribution_q"])
    ]
    legend_above(figure, [key_of(look) for look in divisors])
    figure.legend(
        handles=[key_of(look) for look in distributions],
        loc="outside lower center",
        ncols=len(distributions),
        columnspacing=1.0,
        handlelength=1.0,
    )
    return figure


def plot_variance(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw the variance of divided scores against d_k.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of ``score_variance`` under any distributions and divisors.  Gaussian
        estimates are filled marks with intervals, other distributions rings around
        them.

    Returns
    -------
    Axes
    """
    for divisor, look in DIVISOR_LOOKS.items():
        rows = table[table["divisor"].eq(divisor)]
        gaussian = gaussian_rows(rows)
        others = rows.drop(gaussian.index)
        plot_reference(axes, gaussian)
        plot_estimates(axes, gaussian, look)
        axes.plot(
            others["d_k"],
            others["estimate"],
            color=look.colour,
            marker="o",
            markersize=10.0,
            markerfacecolor="none",
            markeredgewidth=0.8,
            linestyle="none",
        )
    logarithmic(axes)
    axes.set_ylabel(r"$\mathrm{Var}(q\cdot k\,/\,c)$")
    return axes


def plot_relative_variance(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw variance over its exact value, where intervals can be seen.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of ``score_variance``; those of raw scores are drawn, since a divisor
        divides estimate, interval and exact value alike.

    Returns
    -------
    Axes
    """
    raw = table[table["divisor"].eq("none") & table["reference"].notna()]
    present = [
        distribution
        for distribution in ALL_DISTRIBUTIONS
        if distribution in set(raw["distribution_q"])
    ]
    for place, distribution in enumerate(present):
        rows = _over_reference(raw[raw["distribution_q"].eq(distribution)])
        rows["d_k"] = rows["d_k"] * APART**place
        plot_estimates(axes, rows, ALL_DISTRIBUTIONS[distribution])
    level(axes, 1.0)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$\mathrm{Var}(q\cdot k)\,/\,d_k$")
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.grid(visible=False, axis="x")
    return axes


def _over_reference(rows: pd.DataFrame) -> pd.DataFrame:
    columns = ["estimate", "ci_low", "ci_high"]
    rows = rows.astype({"d_k": float})
    rows[columns] = rows[columns].div(rows["reference"], axis=0)
    return rows


def build_largest_score(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build the mean largest scaled score against n, and below it over its exact value.

    Between the measured n the exact value comes from theory, as in the table.
    """
    rows = largest_scores(measurements)
    if rows.empty:
        return None
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.7, 1.0))
    plot_largest_score(above, rows)
    plot_relative_largest_score(below, rows)
    above.set_title(f"$d_k = {rows['d_k'].iloc[0]}$")
    powers_of_two(below, rows["n_keys"], columns=1)
    above.tick_params(labelbottom=False)
    legend_above(
        figure,
        [key_of(LARGEST_LOOK), limit_key(r"$\sqrt{2\,\ln n}$")],
    )
    return figure


def plot_largest_score(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw the mean largest scaled score against n, its exact value and sqrt(2 ln n).

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        Rows of ``score_max`` of one d_k: ``d_k``, ``n_keys``, ``estimate``, ``ci_low``,
        ``ci_high``.

    Returns
    -------
    Axes
    """
    n, exact = _exact_line(table)
    axes.plot(n, exact, color=MUTED, linewidth=1.1, zorder=1.6)
    plot_limit(axes, n, np.sqrt(2.0 * np.log(n)))
    plot_estimates(axes, table, LARGEST_LOOK, "n_keys")
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel(r"$\mathrm{E}\,s_{\max}$")
    return axes


def plot_relative_largest_score(axes: Axes, table: pd.DataFrame) -> Axes:
    """Draw estimates and sqrt(2 ln n) over the exact value, where both can be told.

    Parameters
    ----------
    axes : Axes
    table : DataFrame
        As for `plot_largest_score`, with ``reference``.

    Returns
    -------
    Axes
    """
    n, exact = _exact_line(table)
    plot_limit(axes, n, np.sqrt(2.0 * np.log(n)) / exact)
    plot_estimates(axes, _over_reference(table), LARGEST_LOOK, "n_keys")
    level(axes, 1.0)
    axes.set_xlabel("$n$")
    axes.set_ylabel(r"$\mathrm{E}\,s_{\max}\,/\,\mathrm{E}^{\ast}$")
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    return axes


def _exact_line(table: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of keys between those of a table, and exact values there."""
    d_k, sizes = int(table["d_k"].iloc[0]), table["n_keys"]
    n = np.unique(np.geomspace(sizes.min(), sizes.max(), LINE_POINTS).round())
    points = [parse_point("gaussian", "gaussian", d_k, int(size)) for size in n]
    found = [reference("score_max", one, "sqrt", "mean") for one in points]
    return n, np.array([np.nan if one is None else one.value for one in found])
