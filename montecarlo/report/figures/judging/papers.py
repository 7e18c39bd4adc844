"""What papers differ on: how scores must grow with n, and where rows concentrate."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from montecarlo.claims.papers import CONCENTRATION_CURVE, GROWTH_CURVE, LIMIT
from montecarlo.report.figures.drawing import (
    legend_above,
    limit_key,
    line_key,
    panels,
    plot_limit,
    powers_of_two,
)
from montecarlo.report.figures.palette import (
    BLUE,
    GREEN,
    INK,
    OCHRE,
    PURPLE,
    VERMILLION,
    Dash,
)
from montecarlo.report.figures.specs import Fact, FigureSpec, message

LONG, SHORT, MIXED = (0, (5, 1.6)), (0, (1.4, 1.2)), (0, (5, 1.6, 1.2, 1.6))
Line = tuple[str, Dash, str]
#: Colour, dash and symbol of what is held, and of the laws.
GROWTHS: Mapping[str, Line] = {
    "entropy-1": (BLUE, "-", "$H = 1$"),
    "entropy-3": (GREEN, "-", "$H = 3$"),
    "concentration-0.5": (PURPLE, "-", r"$\Sigma\,p^2 = 1/2$"),
    "logarithm": (VERMILLION, LONG, r"$\ln n$"),
    "root": (OCHRE, SHORT, r"$\sqrt{\ln n}$"),
    "extension": (INK, MIXED, r"$(0.1\,\ln(n/4096) + 1)^2$"),
}
#: Colour and dash of each number of keys, from the fewest on.
LENGTHS: tuple[tuple[str, Dash], ...] = (
    (VERMILLION, SHORT),
    (OCHRE, MIXED),
    (GREEN, LONG),
    (BLUE, "-"),
    (PURPLE, (0, (3, 1, 1, 1, 1, 1))),
)


def build_growth(_: DataFrame, curves: DataFrame) -> Figure | None:
    """Build the factor that scores must grow by against n."""
    rows = curves[curves["curve"].eq(GROWTH_CURVE)]
    if rows.empty:
        return None
    figure, (axes,) = panels(1, 1, 3.2)
    for name, (colour, dash, _symbol) in GROWTHS.items():
        mine = rows[rows["outcome"].eq(name)].sort_values("x")
        axes.plot(
            mine["x"], mine["estimate"], color=colour, linestyle=dash, linewidth=1.5
        )
    powers_of_two(axes, rows["x"], columns=1)
    axes.set_xlabel("$n$")
    axes.set_ylabel("$s(n)/s(4096)$")
    keys = [line_key(dash, symbol, colour) for colour, dash, symbol in GROWTHS.values()]
    legend_above(figure, keys, columns=3)
    return figure


def build_concentration(_: DataFrame, curves: DataFrame) -> Figure | None:
    """Build E Σp² against s over sqrt(2 ln n)."""
    rows = curves[curves["curve"].eq(CONCENTRATION_CURVE)]
    if rows.empty:
        return None
    figure, (axes,) = panels(1, 1, 3.2)
    exact = rows[rows["outcome"].eq("exact")]
    keys = sorted(set(exact["n_keys"]))
    lines = dict(zip(keys, LENGTHS, strict=False))
    for n_keys, (colour, dash) in lines.items():
        _plot_length(axes, exact[exact["n_keys"].eq(n_keys)], colour, dash)
    limit = rows[rows["outcome"].eq(LIMIT)].sort_values("x")
    plot_limit(axes, limit["x"].to_numpy(), limit["estimate"].to_numpy())
    powers_of_two(axes, rows["x"], columns=1)
    axes.set_xlabel(r"$s/\sqrt{2\,\ln n}$")
    axes.set_ylabel(r"$\mathrm{E}\,\Sigma\,p^2$")
    axes.set_ylim(0.0, 1.0)
    keys_of_lines = [line_key(d, f"$n = {n:.0f}$", c) for n, (c, d) in lines.items()]
    legend_above(figure, [*keys_of_lines, limit_key(r"$n \to \infty$")], columns=3)
    return figure


def _plot_length(axes: Axes, rows: DataFrame, colour: str, dash: Dash) -> None:
    rows = rows.sort_values("x")
    axes.plot(rows["x"], rows["estimate"], color=colour, linestyle=dash, linewidth=1.5)


def pick_growth(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick by what rows need to grow to the most keys, and what a logarithm gives."""
    rows = curves[curves["curve"].eq(GROWTH_CURVE)]
    if rows.empty:
        return None
    last = rows[rows["x"].eq(rows["x"].max())].set_index("outcome")["estimate"]
    return {
        "first": float(last["entropy-1"]),
        "second": float(last["logarithm"]),
        "n": float(rows["x"].max()),
    }


def pick_concentration(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick E Σp² at the critical scale, for the fewest and the most keys."""
    rows = curves[curves["curve"].eq(CONCENTRATION_CURVE)]
    rows = rows[rows["outcome"].eq("exact")]
    if rows.empty:
        return None
    near = rows.loc[(rows["x"] - 1.0).abs().groupby(rows["n_keys"]).idxmin()]
    near = near.sort_values("n_keys")
    return {
        "first": float(near["estimate"].iloc[0]),
        "second": float(near["estimate"].iloc[-1]),
        "fewest": float(near["n_keys"].iloc[0]),
        "n": float(near["n_keys"].iloc[-1]),
    }


SCALE_GROWTH = FigureSpec(
    "scale-growth",
    build_growth,
    "how scores must grow with n so that rows stay as they are",
    caption=message(
        "By what independent normal scores must be multiplied, against $n = 4096$, so "
        r"that the entropy $H$ of a row stays at $1$ or at $3$, or "
        r"$\operatorname{E}\sum p^2$ at $0.5$ (solid lines, exact), beside $\ln n$, "
        r"$\sqrt{\ln n}$ and the rule of YaRN, which begins at $4096$ (dashed)."
    ),
    alternative=message(
        "At n = %(n)s the factor that keeps the least entropy drawn is %(first)s, "
        "where ln n would give %(second)s."
    ),
    named=("factor_for_entropy_1", "factor_of_logarithm"),
    fact=pick_growth,
)
CONCENTRATION = FigureSpec(
    "concentration-collapse",
    build_concentration,
    "how much rows concentrate, against the scale at which they begin to",
    caption=message(
        r"$\operatorname{E}\sum p^2$ of rows of $n$ independent $N(0, s^2)$ scores "
        r"against $s/\sqrt{2 \ln n}$ (exact), and its limit for large $n$. Unscaled, "
        r"$s = \sqrt{d_k}$."
    ),
    alternative=message(
        "Where s is the root of twice ln n, the expected sum of squared weights is "
        "%(first)s at n = %(fewest)s and %(second)s at n = %(n)s."
    ),
    named=("concentration_at_fewest_keys", "concentration_at_most_keys"),
    fact=pick_concentration,
)
