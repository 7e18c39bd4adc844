"""What can be asked for: ``--list KIND`` of every command, in words."""

import sys
from collections.abc import Callable, Sequence

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import NUMBER_FORMATS
from montecarlo.attention.pairs import PAIR_QUANTITIES
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.attention.rows import ROW_QUANTITIES
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.recorded import RECORDED
from montecarlo.estimation.summaries import offered_summaries
from montecarlo.names import look_up
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    SOURCE,
    Language,
    read_language,
)
from montecarlo.report.running import choose_languages
from montecarlo.report.terminal import make_table
from montecarlo.sampling.distributions import DISTRIBUTIONS
from montecarlo.sampling.initialisations import NORMS, SHAPES, WEIGHT_KINDS
from montecarlo.study.measured import SUMMARIES, plain_words
from montecarlo.study.presets import PRESETS
from montecarlo.study.progress import open_console

Rows = list[tuple[str, ...]]
Listing = tuple[tuple[str, ...], Rows]


def print_list(kind: str, languages: Sequence[str] | None = None) -> None:
    """Print what there is of one kind; of ``kinds``, what kinds there are.

    Words are of the first of the languages, by default English.

    Raises
    ------
    InputError
        If the kind is none of these, or a language is not known.
    """
    code, *_ = choose_languages(languages or (SOURCE,))
    _, rows = look_up("list", kind, KINDS)
    listing = rows(read_language(code))
    open_console(sys.stdout, highlight=False).print(make_table(*listing))


def _list_kinds(_: Language) -> Listing:
    rows: Rows = [(name, told) for name, (told, _) in KINDS.items() if name != "kinds"]
    return ("--list", "what it prints"), rows


def _list_presets(_: Language) -> Listing:
    rows: Rows = []
    for name, grid in PRESETS.items():
        least, most = grid.seconds()
        rows.append(
            (
                name,
                f"{grid.d_k[0]} to {max(grid.d_k)}",
                f"{grid.n_keys[0]} to {max(grid.n_keys)}",
                ", ".join(f"({d}, {n})" for d, n in grid.edges) or "-",
                str(1 + len(grid.distributions)),
                str(len(grid.points())),
                f"{grid.first} to {grid.most}",
                f"{least:.0f} to {most:.0f} s",
            )
        )
    headings = ("preset", "d_k", "n", "edges (d_k, n)", "distributions", "points")
    return (*headings, "replicates", "CPU time, about"), rows


def _list_quantities(language: Language) -> Listing:
    """List sampled quantities, then those on record, which only `judge` asks for."""
    rows: Rows = []
    for name, known in {**QUANTITIES, **RECORDED}.items():
        if known.words:
            words = plain_words(language.translate(known.words))
            asked = "judge" if name in RECORDED else "measure, judge"
            rows.append((name, words, ", ".join(_summaries(name)), asked))
    return ("quantity", "what it is", "summaries", "asked by"), rows


def _summaries(quantity: str) -> tuple[str, ...]:
    if quantity in RECORDED:
        return (RECORDED[quantity].summary,)
    if quantity in PAIR_QUANTITIES:
        return ("value",)
    known = ROW_QUANTITIES.get(quantity)
    return ("mean",) if known is None else offered_summaries(known)


def _list_distributions(language: Language) -> Listing:
    rows: Rows = [
        (
            one.name,
            plain_words(language.translate(one.words)),
            f"{one.kurtosis:g}",
            f"{one.moments:g}",
        )
        for one in DISTRIBUTIONS.values()
    ]
    shifted = ("NAME(mean=0.5,std=2)", "any of them, shifted and rescaled", "", "")
    headings = ("distribution", "what it is", "kurtosis", "finite moments below order")
    return headings, [*rows, shifted]


def _list_divisors(_: Language) -> Listing:
    rows: Rows = [(one.name, one.text) for one in DIVISORS.values()]
    own: Rows = [
        ("13.5", "a number"),
        ("2*d_k^0.6", "a factor, and powers of d_k, n and ln(n)"),
        ("sqrt(d_k*ln(n))", "roots; quote what has brackets in a shell"),
        (
            "none/sqrt",
            "the ratio of a quantity under two divisors, from the same draws",
        ),
        ("(d_k/8)", "a fraction stands in brackets"),
    ]
    return ("divisor", "what scores are divided by"), [*rows, *own]


def _list_dependences(_: Language) -> Listing:
    rows: Rows = [
        ("none", "Q and K are drawn independently"),
        ("pairs(0.5)", "query i and key i are correlated so; only such pairs count"),
        ("planted(0.5)", "each query has one key that is correlated so with it"),
    ]
    return ("dependence", "how K is drawn given Q"), rows


def _list_initialisations(_: Language) -> Listing:
    rows: Rows = [
        *(
            (f"kind={name}", f"weights {drawn}")
            for name, (_, drawn) in WEIGHT_KINDS.items()
        ),
        ("norm=", " or ".join(NORMS) + ", of the tokens"),
        ("shape=", f"{', '.join(SHAPES)}: what a weight matrix holds"),
        ("width=", "of the tokens"),
        ("for example", "init(kind=he_normal,norm=layer,shape=full,width=512)"),
    ]
    return ("initialisation", "projections of normalised tokens as q and k"), rows


#: What it is, in a few words, and a language's headings and rows.
KINDS: dict[str, tuple[str, Callable[[Language], Listing]]] = {
    "kinds": ("what can be listed", _list_kinds),
    "claims": (
        "what five texts claim",
        lambda _: (
            ("claim", "topic", "texts"),
            [
                (c.id, c.topic, ", ".join(f"{s.text} {s.section}" for s in c.source))
                for c in read_catalogue().claim
            ],
        ),
    ),
    "quantities": ("what can be measured and judged", _list_quantities),
    "divisors": ("what scores can be divided by", _list_divisors),
    "distributions": ("what entries of q and k can be drawn from", _list_distributions),
    "dependences": ("how K can depend on Q", _list_dependences),
    "initialisations": ("what can stand before q and k", _list_initialisations),
    "summaries": (
        "what can be said of a quantity over rows",
        lambda _: (
            ("summary", "what it is"),
            [
                *SUMMARIES.items(),
                ("q99, q0.5, ...", "any other percentage, of every quantity of rows"),
                ("value", "of quantities of pairs, the only one"),
            ],
        ),
    ),
    "formats": (
        "number formats that weights can be kept in",
        lambda _: (
            ("number format", "bits of the significand"),
            [(one.name, str(one.bits)) for one in NUMBER_FORMATS.values()],
        ),
    ),
    "figures": (
        "figures of the report",
        lambda _: (
            ("figure", "shows"),
            [(f.id, f.shows) for f in EVERY_FIGURE.values()],
        ),
    ),
    "languages": (
        "languages of pages",
        lambda _: (
            ("language", "tag", "name"),
            [(code, tag, name) for code, (tag, name) in LANGUAGES.items()],
        ),
    ),
    "presets": ("grids and budgets of the report", _list_presets),
}
