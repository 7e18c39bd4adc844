"""What can be asked for: ``--list KIND`` of every command, in words."""

import sys
from collections.abc import Callable, Iterable, Sequence

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue, summaries_named
from montecarlo.claims.recorded import RECORDED
from montecarlo.names import look_up
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.report.language.catalogues import LANGUAGES, SOURCE, read_language
from montecarlo.report.running import choose_languages
from montecarlo.sampling.design_points import NORMS, SHAPES, WEIGHT_KINDS
from montecarlo.sampling.distributions import DISTRIBUTIONS, OF_SCIPY, SCIPY
from montecarlo.study.console import make_table, open_console
from montecarlo.study.measured import SUMMARIES, plain_words
from montecarlo.study.presets import PRESETS

#: A message to its words in a language.
Words = Callable[[str], str]
Rows = Iterable[tuple[str, ...]]


def print_list(kind: str, languages: Sequence[str] | None = None) -> None:
    """Print what there is of one kind; of ``kinds``, what kinds there are.

    Words are of the first of the languages, by default English.

    Raises
    ------
    InputError
        If the kind is none of these, or a language is not known.
    """
    code, *_ = choose_languages(languages or (SOURCE,))
    language = read_language(code)
    _, headings, rows = look_up("list", kind, KINDS)
    table = rows(lambda message: plain_words(language.translate(message)))
    open_console(sys.stdout, highlight=False).print(make_table(headings, table))


OF_PRESETS = (
    *("preset", "d_k", "n", "edges (d_k, n)", "distributions", "points"),
    *("replicates", "CPU time, about"),
)


def _presets(_: Words) -> Rows:
    for name, grid in PRESETS.items():
        least, most = grid.seconds()
        yield (
            name,
            f"{grid.d_k[0]} to {max(grid.d_k)}",
            f"{grid.n_keys[0]} to {max(grid.n_keys)}",
            ", ".join(f"({d}, {n})" for d, n in grid.edges) or "-",
            str(1 + len(grid.distributions)),
            str(len(grid.points())),
            f"{grid.first} to {grid.most}",
            f"{least:.0f} to {most:.0f} s",
        )


def _quantities(words: Words) -> Rows:
    """List sampled quantities, then those on record, which only `judge` asks for."""
    told = {name: one.words for name, one in QUANTITIES.items()}
    told |= {name: one.words for name, one in RECORDED.items()}
    for name, said in told.items():
        asked = "judge" if name in RECORDED else "measure, judge"
        yield name, words(said), ", ".join(summaries_named(name)), asked


def _distributions(words: Words) -> Rows:
    for one in DISTRIBUTIONS.values():
        yield one.name, words(one.words), f"{one.kurtosis:g}", f"{one.moments:g}"
    yield "NAME(mean=0.5,std=2)", "any of them, shifted and rescaled", "", ""
    yield "scipy.gamma(a=2)", "one of scipy.stats, standardised", "", ""
    yield from ((f"{SCIPY}{name}", "likewise", "", "") for name in OF_SCIPY)


def _divisors(_: Words) -> Rows:
    yield from ((one.name, one.text) for one in DIVISORS.values())
    yield "13.5", "a number"
    yield "2*d_k^0.6", "a factor, and powers of d_k, n and ln(n)"
    yield "sqrt(d_k*ln(n))", "roots; quote what has brackets in a shell"
    yield "none/sqrt", "the ratio of a quantity under two divisors, from the same draws"
    yield "(d_k/8)", "a fraction stands in brackets"


def _dependences(_: Words) -> Rows:
    yield "none", "Q and K are drawn independently"
    yield "pairs(0.5)", "query i and key i are correlated so; only such pairs count"
    yield "planted(0.5)", "each query has one key that is correlated so with it"


def _initialisations(_: Words) -> Rows:
    yield from (
        (f"kind={name}", f"weights {x}") for name, (_, x) in WEIGHT_KINDS.items()
    )
    yield "norm=", " or ".join(NORMS) + ", of the tokens"
    yield "shape=", f"{', '.join(SHAPES)}: what a weight matrix holds"
    yield "width=", "of the tokens"
    yield "for example", "init(kind=he_normal,norm=layer,shape=full,width=512)"


def _normalisations(_: Words) -> Rows:
    yield "none", "queries and keys are multiplied as they are drawn"
    yield "l2(gain=10)", "each has the length 1; the product is multiplied by 10"
    yield "rms(gain=1)", "each has entries of mean square 1; a gain of 1 is left out"


def _summary_kinds(_: Words) -> Rows:
    yield from SUMMARIES.items()
    yield "q99, q0.5, ...", "any other percentage, of every quantity of rows"
    yield "value", "of quantities of pairs, the only one"


def _claims(_: Words) -> Rows:
    for claim in read_catalogue().claim:
        places = ", ".join(f"{one.text} {one.section}" for one in claim.source)
        yield claim.id, claim.topic, places


#: Kind to what it is, in a few words, the headings of its table, and its lines.
KINDS: dict[str, tuple[str, tuple[str, ...], Callable[[Words], Rows]]] = {
    "kinds": (
        "what can be listed",
        ("--list", "what it prints"),
        lambda _: ((name, told) for name, (told, *_) in list(KINDS.items())[1:]),
    ),
    "quantities": (
        "what can be measured and judged",
        ("quantity", "what it is", "summaries", "asked by"),
        _quantities,
    ),
    "divisors": (
        "what scores can be divided by",
        ("divisor", "what scores are divided by"),
        _divisors,
    ),
    "distributions": (
        "what entries of q and k can be drawn from",
        ("distribution", "what it is", "kurtosis", "finite moments below order"),
        _distributions,
    ),
    "dependences": (
        "how K can depend on Q",
        ("dependence", "how K is drawn given Q"),
        _dependences,
    ),
    "initialisations": (
        "what can stand before q and k",
        ("initialisation", "projections of normalised tokens as q and k"),
        _initialisations,
    ),
    "normalisations": (
        "what can be done to each query and key before the product",
        ("normalisation", "what it does"),
        _normalisations,
    ),
    "summaries": (
        "what can be said of a quantity over rows",
        ("summary", "what it is"),
        _summary_kinds,
    ),
    "formats": (
        "number formats that weights can be kept in",
        ("number format", "bits of the significand"),
        lambda _: ((one.name, str(one.bits)) for one in ALL_FORMATS.values()),
    ),
    "figures": (
        "figures of the report",
        ("figure", "shows"),
        lambda _: ((one.id, one.shows) for one in EVERY_FIGURE.values()),
    ),
    "languages": (
        "languages of pages",
        ("language", "tag", "name"),
        lambda _: ((code, tag, name) for code, (tag, name) in LANGUAGES.items()),
    ),
    "presets": (
        "grids and budgets of the report",
        OF_PRESETS,
        _presets,
    ),
    "claims": ("what five texts claim", ("claim", "topic", "texts"), _claims),
}
