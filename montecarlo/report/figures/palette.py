"""Colours and marks of figures.

Figures use names of colours; a theme (light, dark, print) gives the values.  The hues
are those of Okabe and Ito, changed to a contrast of at least 3 : 1 with the page.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from montecarlo.attention.divisors import DIVISORS
from montecarlo.claims.training import ARMS
from montecarlo.report.figures.labels import Label, message

T = TypeVar("T")
Dash = Literal["-"] | tuple[float, tuple[float, ...]]

#: Names under which colours are registered with matplotlib.
INK, MUTED, GRID, PAGE = "mc:ink", "mc:muted", "mc:grid", "mc:page"
VERMILLION, BLUE, GREEN = "mc:vermillion", "mc:blue", "mc:green"
PURPLE, OCHRE = "mc:purple", "mc:ochre"
#: Colours of verdicts, as on pages (report.css); CLAIMED fills the equivalence region.
HOLDS, PARTLY, VAGUE, FAILS = "mc:holds", "mc:partly", "mc:vague", "mc:fails"
OPEN, ASSUMED, CLAIMED = "mc:open", "mc:assumed", "mc:claimed"
#: Shades for weights from 0 to 1, evenly spaced in lightness, the first nearest to the
#: page.  INK is legible on the first half, PAGE on the second.
SHADES = tuple(f"mc:shade{number}" for number in range(10))

#: Name of a colour -> (its value on light pages, its value on dark pages).
_COLOURS = {
    INK: ("#1b1f24", "#e6e8eb"),
    MUTED: ("#6b7280", "#9aa3ad"),
    GRID: ("#d9dde2", "#343a42"),
    PAGE: ("#ffffff", "#14161a"),
    VERMILLION: ("#c44e00", "#ff8a4c"),
    BLUE: ("#0072b2", "#56b4e9"),
    GREEN: ("#00835d", "#3ecfa3"),
    PURPLE: ("#a64d8f", "#e79ac7"),
    OCHRE: ("#8a6a00", "#e3bd4d"),
    HOLDS: ("#0b6e4f", "#6fd3a8"),
    PARTLY: ("#8a5a00", "#f0c060"),
    VAGUE: ("#5b4a9e", "#b9aef0"),
    FAILS: ("#a3262a", "#ff9a94"),
    OPEN: ("#1c5d8c", "#85c5f5"),
    ASSUMED: ("#55595f", "#a9b0b8"),
    CLAIMED: ("#c9ced6", "#5b6470"),
    SHADES[0]: ("#dfe0ef", "#151725"),
    SHADES[1]: ("#c7c9e3", "#232943"),
    SHADES[2]: ("#aeb2d7", "#323c64"),
    SHADES[3]: ("#959ccd", "#425085"),
    SHADES[4]: ("#7c87c1", "#5565a4"),
    SHADES[5]: ("#6372b3", "#6b7bc0"),
    SHADES[6]: ("#495ea4", "#8592d6"),
    SHADES[7]: ("#304b91", "#a1aae5"),
    SHADES[8]: ("#13397d", "#bec3f0"),
    SHADES[9]: ("#002960", "#dbddf8"),
}
LIGHT, DARK = ({name: pair[n] for name, pair in _COLOURS.items()} for n in (0, 1))
#: For paper.  INK is not pure black, since matplotlib omits that from an SVG as the
#: default.
PRINT = LIGHT | {INK: "#010101", MUTED: "#505050", GRID: "#cccccc"}
_registered = dict(LIGHT)
THEMES: dict[str, Mapping[str, str]] = {"light": LIGHT, "dark": DARK, "print": PRINT}


def register_colours(theme: str) -> None:
    """Register the colours of a theme with matplotlib, under names such as "mc:ink".

    They stay registered, since a figure of `montecarlo.figure` is drawn only when its
    user saves it.
    """
    from matplotlib.colors import get_named_colors_mapping

    known = get_named_colors_mapping()
    for name, colour in THEMES[theme].items():
        known[name] = _registered[name] = colour


def hex_of(colour: str) -> str:
    """Return a colour such as "mc:ink" as ``#rrggbb``, in the theme registered last.

    If none was registered, in the light theme.
    """
    return _registered[colour]


#: Colours and marks of series, in order; no two series of a figure share a mark.
SERIES_COLOURS, MARKERS = (VERMILLION, BLUE, GREEN, PURPLE, OCHRE, INK), "os^Dv<>phX*P"


NO_LABEL = Label()  # for a series without an entry in a legend


@dataclass(frozen=True, slots=True)
class Look:
    """Colour, mark and dashes of a series, distinguishable also without colour."""

    colour: str
    marker: str
    dash: Dash = "-"
    label: Label = NO_LABEL
    filled: bool = True
    size: float = 5.0  # points

    @property
    def mark(self) -> dict[str, Any]:
        """Arguments of matplotlib's `plot` for colour and mark of a series, by name."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markersize": self.size,
            "markerfacecolor": self.colour if self.filled else "none",
        }


DIVISOR_LABELS = {
    "none": Label(message("undivided")),
    "sqrt": Label(message(r"divided by $\sqrt{d_k}$")),
    "2sqrt": Label(message(r"divided by $2\sqrt{d_k}$")),
    "linear": Label(message("divided by $d_k$")),
}
#: Looks of divisors, the same in every figure, in the order of `DIVISORS`.
DIVISOR_LOOKS = {
    name: Look(
        colour,
        marker,
        label=DIVISOR_LABELS.get(name, Label(symbol=f"c = {one.symbol}")),
    )
    for (name, one), colour, marker in zip(
        DIVISORS.items(), SERIES_COLOURS, MARKERS, strict=False
    )
}
#: Looks of training arms: those of their divisors; other arms are dashed and open.
ARM_LOOKS = {
    name: look if name == divisor else replace(look, dash=(0, (3, 1.5)), filled=False)
    for name, divisor in ARMS.items()
    for look in (DIVISOR_LOOKS[divisor],)
}


def keep_looks(looks: Mapping[str, T], names: Iterable[str]) -> dict[str, T]:
    """Return the looks whose names are in ``names``, in the order of ``looks``."""
    there = set(names)
    return {name: look for name, look in looks.items() if name in there}
