"""What papers differ on: how scores must grow with n, and where rows concentrate."""

from dataclasses import replace

from pandas import DataFrame

from montecarlo.claims.papers import CONCENTRATION_CURVE, GROWTH_CURVE, LIMIT
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import (
    BLUE,
    GREEN,
    INK,
    OCHRE,
    PURPLE,
    VERMILLION,
    Look,
)
from montecarlo.report.figures.specs import Fact, FigureSpec, of_curve

KEYS_OF_ROW = Label(message("keys of a row"), "n")
LONG, SHORT, MIXED = (0, (5, 1.6)), (0, (1.4, 1.2)), (0, (5, 1.6, 1.2, 1.6))
#: What is held, and the laws.
GROWTHS = {
    "entropy-1": Look(BLUE, "", label=Label(message("entropy held"), "H = 1")),
    "entropy-3": Look(GREEN, "", label=Label(message("entropy held"), "H = 3")),
    "concentration-0.5": Look(
        PURPLE, "", label=Label(message("sum of squares held"), r"\Sigma p^2 = 1/2")
    ),
    "logarithm": Look(VERMILLION, "", LONG, Label(symbol=r"\ln n")),
    "root": Look(OCHRE, "", SHORT, Label(symbol=r"\sqrt{\ln n}")),
    "extension": Look(
        INK, "", MIXED, Label(message("YaRN"), r"(0.1\,\ln(n/4096) + 1)^2")
    ),
}
#: Numbers of keys, from the fewest on, and the limit.
LENGTHS = (
    Look(VERMILLION, "", SHORT),
    Look(OCHRE, "", MIXED),
    Look(GREEN, "", LONG),
    Look(BLUE, ""),
    Look(PURPLE, "", (0, (3, 1, 1, 1, 1, 1))),
)
ENDLESS = Look(INK, "", draw.LIMIT_DASH, Label(message("limit"), r"n \to \infty"))


def build_growth(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build the factor that scores must grow by against n."""
    rows = of_curve(curves, GROWTH_CURVE)
    if rows.empty:
        return None
    picture = Picture((1,), (175.0,))
    (panel,) = picture.panels
    for name, look in GROWTHS.items():
        draw.plot_named(picture, rows[rows["outcome"].eq(name)], look, 1.5)
    draw.powers_of_two(panel.axes, rows["x"], columns=1)
    draw.few_ticks(panel.axes.yaxis)
    panel.x = KEYS_OF_ROW
    panel.y = Label(message("Factor of the scores"), "s(n)/s(4096)")
    return picture


def build_concentration(_: DataFrame, curves: DataFrame) -> Picture | None:
    """Build the concentration of rows against the scale of their scores."""
    rows = of_curve(curves, CONCENTRATION_CURVE)
    if rows.empty:
        return None
    picture = Picture((1,), (175.0,))
    (panel,) = picture.panels
    exact = rows[rows["outcome"].eq("exact")]
    keys = sorted(set(exact["n_keys"]))
    for n_keys, look in zip(keys, LENGTHS, strict=False):
        named = replace(look, label=Label(symbol=f"n = {n_keys:.0f}"))
        mine = exact[exact["n_keys"].eq(n_keys)]
        draw.plot_named(picture, mine, named, 1.5)
    limit = rows[rows["outcome"].eq(LIMIT)]
    draw.plot_named(picture, limit, ENDLESS, 1.1, 1.7)
    panel.axes.set_xscale("log", base=2)
    draw.mark_ticks(panel.axes.xaxis, (0.5, 1.0, 2.0, 4.0), "{:g}")
    panel.axes.set_ylim(0.0, 1.0)
    draw.few_ticks(panel.axes.yaxis)
    panel.x = Label(message("scale over the critical one"), r"s/\sqrt{2\,\ln n}")
    panel.y = Label(message("Concentration of a row"), r"\operatorname{E} \Sigma p^2")
    return picture


def pick_growth(_: DataFrame, curves: DataFrame) -> Fact | None:
    """Pick by what rows need to grow to the most keys, and what a logarithm gives."""
    rows = of_curve(curves, GROWTH_CURVE)
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
    rows = of_curve(curves, CONCENTRATION_CURVE)
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
        "By what factor independent normal scores must grow with $n$ so that a row "
        "keeps its shape (solid, exact), beside three laws (dashed); all are $1$ at "
        "$n = 4096$."
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
        r"Rows of $n$ independent $N(0, s^2)$ scores begin to concentrate near "
        r"$s = \sqrt{2\ln n}$ (exact). Unscaled, $s = \sqrt{d_k}$."
    ),
    alternative=message(
        "Where s is the root of twice ln n, the expected sum of squared weights is "
        "%(first)s at n = %(fewest)s and %(second)s at n = %(n)s."
    ),
    named=("concentration_at_fewest_keys", "concentration_at_most_keys"),
    fact=pick_concentration,
)
