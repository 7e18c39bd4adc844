"""What dividing does to weights: effective keys and saturated rows."""

from collections.abc import Iterator, Sequence

from pandas import DataFrame

from montecarlo.report.content.curves import Curves
from montecarlo.report.content.reading import every_row, gaussian_points
from montecarlo.report.content.tables import N_KEYS, of_key_counts, with_interval
from montecarlo.report.figures import drawing as draw
from montecarlo.report.figures.drawing import Note, Panel, Picture
from montecarlo.report.figures.labels import Label, message
from montecarlo.report.figures.palette import DIVISOR_LOOKS
from montecarlo.report.figures.specs import (
    HEAD_SIZE,
    LEAST_D_K,
    MOST_D_K,
    PRACTICE_D_K,
    Fact,
    FigureSpec,
    at_nearest,
    pick_two,
)
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.study.rows import Row

#: By quantity: what stands above a panel.
SHARES = {
    "effective_keys": Label(message("Effective keys, of %(symbol)s")),
    "saturated": Label(
        message("Queries with $90\\,\\%%$ or more on one key, in per cent")
    ),
}
#: In practice, undivided and divided: so few keys, part of all; so many; saturated.
FEW, MANY, HARDLY = 0.1, 0.5, 0.01
ANSWERED = message(
    "Undivided, a few keys take most of the weight; divided, many share it"
)
ASKED = message("How many keys share the weight of a query")


def name_weights(points: Sequence[DesignPoint]) -> Iterator[Row]:
    """Name effective keys and saturated rows of Gaussian entries, for one n."""
    rows = [
        point
        for point in gaussian_points(points, with_rows=True)
        if LEAST_D_K <= point.d_k <= MOST_D_K
    ]
    rows = of_key_counts(rows, [N_KEYS], 1)
    return every_row(rows, SHARES, ["mean"], ["none", "sqrt"])


def build_weights(measurements: DataFrame, _: Curves) -> Picture | None:
    """Build effective keys and saturated rows beside each other, against d_k."""
    if with_interval(measurements).empty:
        return None
    n_keys = float(measurements["n_keys"].iloc[0])

    def plot(panel: Panel, rows: DataFrame) -> None:
        draw.plot_series(panel.axes, rows, "divisor", DIVISOR_LOOKS)
        draw.powers_of_two(panel.axes, measurements["d_k"], columns=2)
        panel.x = HEAD_SIZE
        if rows["quantity"].eq("saturated").all():
            draw.percent(panel.axes)
        else:
            panel.axes.set_ylim(-0.03 * n_keys, 1.05 * n_keys)
            draw.mark_ticks(panel.axes.yaxis, (0.0, n_keys / 2.0, n_keys))
        for divisor, mine in rows.groupby("divisor"):
            look, last = DIVISOR_LOOKS[str(divisor)], mine.nlargest(1, "d_k")
            x, y = (float(last[name].iloc[0]) for name in ("d_k", "estimate"))
            panel.notes.append(Note(look.label, x, y, "end", 4.0, 11.0, look.colour))

    first = SHARES["effective_keys"]._replace(symbol=f"{n_keys:.0f}")
    picture = draw.grid(
        measurements, "quantity", {**SHARES, "effective_keys": first}, 94.0, plot
    )
    picture.headline = Label(ANSWERED if _few_and_many(measurements) else ASKED)
    return picture


def _few_and_many(rows: DataFrame) -> bool:
    """Tell whether few keys share the weight undivided, and many divided."""
    rows = rows[rows["d_k"].ge(PRACTICE_D_K)]
    keys, saturated = (rows[rows["quantity"].eq(name)] for name in SHARES)
    part = keys["estimate"] / keys["n_keys"]
    divided = keys["divisor"].eq("sqrt")
    few = part[~divided].le(FEW).all() and part[divided].ge(MANY).all()
    hardly = saturated["estimate"][saturated["divisor"].eq("sqrt")].le(HARDLY).all()
    return bool(few and hardly)


def pick_saturated(measurements: DataFrame, _: Curves) -> Fact | None:
    """Pick effective keys under two divisors, and undivided rows that are saturated."""
    rows = with_interval(at_nearest(measurements, "d_k", PRACTICE_D_K))
    keys, saturated = (rows[rows["quantity"].eq(name)] for name in SHARES)
    fact = pick_two(keys, "divisor", "none", "sqrt")
    mine = saturated[saturated["divisor"].eq("none")]
    if fact is None or mine.empty:
        return None
    share, error = (
        100.0 * float(mine[name].iloc[0]) for name in ("estimate", "std_error")
    )
    return {**fact, "share": share, "share_error": error}


WEIGHTS = FigureSpec(
    "weights",
    build_weights,
    name_weights,
    "effective keys and saturated rows against d_k",
    section="weights",
    on_report=True,
    caption=message(
        "A row is the weights of a query; effective keys: mean of $e^H$, $H$ the "
        r"entropy of a row. Gaussian entries; bars: $95\,\%%$ intervals."
    ),
    alternative=message(
        "At d_k = %(d_k)s and n = %(n)s, %(first)s effective keys share the weight of "
        "a query undivided and %(second)s divided by √d_k; %(share)s %% of undivided "
        "rows are saturated."
    ),
    fact=pick_saturated,
)
