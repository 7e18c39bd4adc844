"""The size of scores: their variance against d_k, the largest of a row against n."""

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from pandas import DataFrame

from montecarlo.report.content.tables.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    largest_scores,
    plain_rows,
    with_interval,
)
from montecarlo.report.content.tables.topics import N_KEYS
from montecarlo.report.figures.captions.picking import (
    at_nearest,
    gaussian_pairs,
    pair,
    pick_two,
)
from montecarlo.report.figures.drawing.palette import (
    DISTRIBUTION_LOOKS,
    DIVISOR_LOOKS,
    MUTED,
    keep_looks,
)
from montecarlo.report.figures.drawing.panels import (
    WIDTH,
    key_of,
    keys_of,
    legend_above,
    legend_below,
    level,
    limit_key,
    logarithmic,
    plot_estimates,
    plot_limit,
    plot_reference,
    powers_of_two,
    rescale,
)
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec, message
from montecarlo.sampling.design_points import parse_point
from montecarlo.theory.references import reference

#: Distributions stand beside each other, this factor of d_k apart.
APART = 1.085
#: Numbers of keys that the lines against n are drawn through, at most.
LINE_POINTS = 25
#: Smaller than elsewhere, or intervals would hide behind them.
LARGEST_LOOK = replace(DIVISOR_LOOKS["sqrt"], size=4.0)


def variance_rows(measurements: DataFrame, _: DataFrame) -> DataFrame:
    """Return the variances of scores that are drawn, of q and k of one distribution."""
    rows = plain_rows(measurements, quantity="score_variance", summary="value")
    rows = with_interval(rows[rows["distribution_q"].eq(rows["distribution_k"])])
    return rows[rows["distribution_q"].isin(DISTRIBUTION_LOOKS)]


def build_variance(measurements: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the variance under each divisor, and below it relative to theory."""
    rows = variance_rows(measurements, curves)
    if gaussian_rows(rows)["d_k"].nunique() < FEWEST_POINTS:
        return None
    figure = Figure(figsize=(WIDTH, 6.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
    plot_variance(above, rows)
    plot_relative_variance(below, rows)
    powers_of_two(below, rows["d_k"], columns=1)
    above.tick_params(labelbottom=False)
    legend_above(figure, keys_of(DIVISOR_LOOKS, rows["divisor"]))
    distributions = keys_of(DISTRIBUTION_LOOKS, rows["distribution_q"])
    legend_below(figure, distributions, columnspacing=1.0, handlelength=1.0)
    return figure


def plot_variance(axes: Axes, table: DataFrame) -> Axes:
    """Draw the variance of divided scores against d_k.

    Gaussian estimates are filled marks with intervals, other distributions rings around
    them.
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


def plot_relative_variance(axes: Axes, table: DataFrame) -> Axes:
    """Draw variance over its exact value, where intervals can be seen.

    Of raw scores, since a divisor divides estimate, interval and exact value alike.
    """
    raw = table[table["divisor"].eq("none") & table["reference"].notna()]
    looks = keep_looks(DISTRIBUTION_LOOKS, raw["distribution_q"])
    for place, (distribution, look) in enumerate(looks.items()):
        rows = _over_reference(raw[raw["distribution_q"].eq(distribution)])
        plot_estimates(axes, rows.assign(d_k=rows["d_k"] * APART**place), look)
    level(axes, 1.0)
    axes.set_xlabel("$d_k$")
    axes.set_ylabel(r"$\mathrm{Var}(q\cdot k)\,/\,d_k$")
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.grid(visible=False, axis="x")
    return axes


def _over_reference(rows: DataFrame) -> DataFrame:
    return rescale(rows, lambda value: value / rows["reference"])


def pick_variances(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the variances of Gaussian scores under two divisors."""
    rows = gaussian_pairs(measurements)
    return pick_two(
        rows, ("score_variance", "value", "none"), ("score_variance", "value", "sqrt")
    )


def build_largest_score(measurements: DataFrame, _: DataFrame) -> Figure | None:
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
    legend_above(figure, [key_of(LARGEST_LOOK), limit_key(r"$\sqrt{2\,\ln n}$")])
    return figure


def plot_largest_score(axes: Axes, table: DataFrame) -> Axes:
    """Draw mean largest scaled scores against n, their exact values, sqrt(2 ln n)."""
    n, exact = _exact_line(table)
    axes.plot(n, exact, color=MUTED, linewidth=1.1, zorder=1.6)
    plot_limit(axes, n, np.sqrt(2.0 * np.log(n)))
    plot_estimates(axes, table, LARGEST_LOOK, "n_keys")
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel(r"$\mathrm{E}\,s_{\max}$")
    return axes


def plot_relative_largest_score(axes: Axes, table: DataFrame) -> Axes:
    """Draw estimates and sqrt(2 ln n) over the exact value, where both can be told."""
    n, exact = _exact_line(table)
    plot_limit(axes, n, np.sqrt(2.0 * np.log(n)) / exact)
    plot_estimates(axes, _over_reference(table), LARGEST_LOOK, "n_keys")
    level(axes, 1.0)
    axes.set_xlabel("$n$")
    axes.set_ylabel(r"$\mathrm{E}\,s_{\max}\,/\,\mathrm{E}^{\ast}$")
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    return axes


def _exact_line(table: DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of keys between those of a table, and exact values there."""
    d_k, sizes = int(table["d_k"].iloc[0]), table["n_keys"]
    n = np.unique(np.geomspace(sizes.min(), sizes.max(), LINE_POINTS).round())
    points = [parse_point("gaussian", "gaussian", d_k, int(size)) for size in n]
    found = [reference("score_max", one, "sqrt", "mean") for one in points]
    return n, np.array([np.nan if one is None else one.value for one in found])


def pick_largest_score(measurements: DataFrame, _: DataFrame) -> Fact | None:
    """Pick the largest score and the asymptotic formula for it at one n."""
    row = at_nearest(largest_scores(measurements), "n_keys", N_KEYS)
    if row.empty:
        return None
    n = row["n_keys"].iloc[0]
    formula = row.assign(estimate=np.sqrt(2.0 * np.log(n)))
    fact = pair(row, formula, n=n, d_k=row["d_k"].iloc[0])
    # a formula has no error
    return {name: one for name, one in fact.items() if name != "second_error"}


VARIANCE = FigureSpec(
    "variance",
    build_variance,
    "variance of the scores against d_k under several divisors",
    section="variance",
    caption=message(
        "Above: the variance of the scores against $d_k$, both axes logarithmic, for "
        "several divisors $c$; points are estimates for Gaussian entries, rings those "
        "for other distributions, lines are exact theory. Below: the unscaled "
        "variance over $d_k$ for several distributions of the entries, with pointwise "
        r"$95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s the variance of the scores is %(first)s unscaled and "
        "%(second)s divided by √d_k."
    ),
    named=("score_variance_unscaled", "score_variance_scaled"),
    fact=pick_variances,
    series={"divisors": variance_rows, "distributions": variance_rows},
)
LARGEST_SCORE = FigureSpec(
    "largest-score",
    build_largest_score,
    "largest score of a row against n",
    section="weights",
    caption=message(
        r"Above: mean of the largest scaled score $s_{\max}$ of a row against $n$, "
        r"with pointwise $95\,\%%$ intervals. Grey line: its exact expectation, by "
        r"quadrature. Dashed: the asymptotic formula $\sqrt{2\ln n}$. Below: estimates "
        "and formula over the exact expectation."
    ),
    alternative=message(
        "At d_k = %(d_k)s the largest of n = %(n)s scaled scores is %(first)s on "
        "average, where the asymptotic formula says %(second)s."
    ),
    named=("score_max_measured", "score_max_asymptotic"),
    fact=pick_largest_score,
)
