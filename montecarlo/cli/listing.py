"""What can be asked for: ``python -m montecarlo --list KIND``, in words."""

from collections.abc import Callable, Iterable, Sequence

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue, summaries_named
from montecarlo.claims.recorded import RECORDED
from montecarlo.cli.command_line import ListOptions
from montecarlo.cli.exits import DONE
from montecarlo.names import look_up
from montecarlo.report.figures import EVERY_FIGURE
from montecarlo.sampling.design_points import NORMS, SHAPES, WEIGHT_KINDS
from montecarlo.sampling.distributions import DISTRIBUTIONS, OF_SCIPY, SCIPY
from montecarlo.study.console import print_table
from montecarlo.study.measured import plain_words

Rows = Iterable[tuple[str, ...]]


def work(options: ListOptions, _: Sequence[str]) -> int:
    """Print what there is of one kind; of ``kinds``, what kinds there are."""
    _, headings, rows = look_up("list", options.kind, KINDS)
    print_table(headings, (map(plain_words, row) for row in rows()))
    return DONE


def _quantities() -> Rows:
    """List sampled quantities, then those on record, which only `judge` asks for."""
    told = {name: one.words for name, one in QUANTITIES.items()}
    told |= {name: one.words for name, one in RECORDED.items()}
    for name, said in told.items():
        asked = "judge" if name in RECORDED else "measure, judge"
        yield name, said, ", ".join(summaries_named(name)), asked


def _distributions() -> Rows:
    for one in DISTRIBUTIONS.values():
        yield one.name, one.words, f"{one.kurtosis:g}", f"{one.moments:g}"
    yield "NAME(mean=0.5,std=2)", "any of them, shifted and rescaled", "", ""
    yield "scipy.gamma(a=2)", "one of scipy.stats, standardised", "", ""
    yield from ((f"{SCIPY}{name}", "likewise", "", "") for name in OF_SCIPY)


def _divisors() -> Rows:
    yield from ((one.name, one.text) for one in DIVISORS.values())
    yield "13.5", "a number"
    yield "2*d_k^0.6", "a factor, and powers of d_k, n and ln(n)"
    yield "sqrt(d_k*ln(n))", "roots; quote what has brackets in a shell"
    yield "none/sqrt", "the ratio of a quantity under two divisors, from the same draws"
    yield "(d_k/8)", "a fraction stands in brackets"


def _initialisations() -> Rows:
    yield from (
        (f"kind={name}", f"weights {x}") for name, (_, x) in WEIGHT_KINDS.items()
    )
    yield "norm=", " or ".join(NORMS) + ", of the tokens"
    yield "shape=", f"{', '.join(SHAPES)}: what a weight matrix holds"
    yield "width=", "of the tokens"
    yield "for example", "init(kind=he_normal,norm=layer,shape=full,width=512)"


def _claims() -> Rows:
    for claim in read_catalogue().claim:
        places = ", ".join(f"{one.text} {one.section}" for one in claim.source)
        yield claim.id, claim.topic, places


#: Kind to what it is, in a few words, the headings of its table, and its lines.
KINDS: dict[str, tuple[str, tuple[str, ...], Callable[[], Rows]]] = {
    "kinds": (
        "what can be listed",
        ("--list", "what it prints"),
        lambda: ((name, told) for name, (told, *_) in list(KINDS.items())[1:]),
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
    "initialisations": (
        "what can stand before q and k",
        ("initialisation", "projections of normalised tokens as q and k"),
        _initialisations,
    ),
    "formats": (
        "number formats that weights can be kept in",
        ("number format", "bits of the significand"),
        lambda: ((one.name, str(one.bits)) for one in ALL_FORMATS.values()),
    ),
    "figures": (
        "figures of the report",
        ("figure", "shows"),
        lambda: ((one.id, one.shows) for one in EVERY_FIGURE.values()),
    ),
    "claims": ("what five texts claim", ("claim", "topic", "texts"), _claims),
}
