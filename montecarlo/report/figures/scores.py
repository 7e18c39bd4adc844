"""The variance of divided scores against d_k: the first picture of the report."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from montecarlo.report.figures.drawing import (
    WIDTH,
    key_of,
    legend_above,
    level,
    logarithmic,
    plot_estimates,
    plot_reference,
    powers_of_two,
)
from montecarlo.report.figures.palette import DIVISOR_LOOKS, GAUSSIAN_LOOK, LAW_LOOKS
from montecarlo.report.figures.rows import (
    FEWEST_POINTS,
    gaussian_rows,
    plain_rows,
    with_interval,
)

ALL_LAWS = {"gaussian": GAUSSIAN_LOOK, **LAW_LOOKS}
#: Laws stand beside each other, this factor of d_k apart.
APART = 1.085


def build_variance(
    measurements: pd.DataFrame,
    curves: pd.DataFrame,  # noqa: ARG001 - builders share one signature
) -> Figure | None:
    """Build the variance under each divisor, and below it relative to theory."""
    rows = plain_rows(measurements, quantity="score_variance", summary="value")
    rows = with_interval(rows[rows["law_q"].eq(rows["law_k"])])
    rows = rows[rows["law_q"].isin(ALL_LAWS)]
    if gaussian_rows(rows)["d_k"].nunique() < FEWEST_POINTS:
        return None
    figure = Figure(figsize=(WIDTH, 6.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
    plot_variance(above, rows)
    plot_relative_variance(below, rows)
    powers_of_two(below, rows["d_k"], columns=1)
    above.tick_params(labelbottom=False)
    divisors = [look for d, look in DIVISOR_LOOKS.items() if d in set(rows["divisor"])]
    laws = [look for law, look in ALL_LAWS.items() if law in set(rows["law_q"])]
    legend_above(figure, [key_of(look) for look in divisors])
    figure.legend(
        handles=[key_of(look) for look in laws],
        loc="outside lower center",
        ncols=len(laws),
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
        Rows of ``score_variance`` under any laws and divisors.  Gaussian estimates are
        filled marks with intervals, other laws rings around them.

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
    present = [law for law in ALL_LAWS if law in set(raw["law_q"])]
    for place, law in enumerate(present):
        rows = _over_reference(raw[raw["law_q"].eq(law)])
        rows["d_k"] = rows["d_k"] * APART**place
        plot_estimates(axes, rows, ALL_LAWS[law])
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
