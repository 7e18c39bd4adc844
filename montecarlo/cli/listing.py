"""``python -m montecarlo --list KIND``: the names that options accept."""

from collections.abc import Callable, Iterable, Sequence

from montecarlo.attention.divisors import DIVISORS
from montecarlo.attention.number_formats import ALL_FORMATS
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import read_catalogue, summaries_of
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
    """Print the names of a kind, or the kinds of names; return the exit status, 0."""
    _, headings, rows = look_up("list", options.kind, KINDS)
    print_table(headings, (map(plain_words, row) for row in rows()))
    return DONE


def _quantities() -> Rows:
    """Yield (name, description, summaries, commands) of each quantity.

    Sampled quantities come first, then recorded ones, which only `judge` accepts.
    """
    described = {name: one.words for name, one in (QUANTITIES | RECORDED).items()}
    for name, words in described.items():
        commands = "judge" if name in RECORDED else "measure, judge"
        yield name, words, ", ".join(summaries_of(name)), commands


def _distributions() -> Rows:
    """Yield (name, description, kurtosis, order) of each distribution, as texts.

    Moments below the order are finite.  Further lines show how a mean and a standard
    deviation are given, and distributions of SciPy; their last two texts are empty.
    """
    for one in DISTRIBUTIONS.values():
        yield one.name, one.words, f"{one.kurtosis:g}", f"{one.moments:g}"
    yield "NAME(mean=0.5,std=2)", "any of these, shifted and rescaled", "", ""
    yield "scipy.gamma(a=2)", "of scipy.stats, standardised", "", ""
    yield from ((f"{SCIPY}{name}", "likewise", "", "") for name in OF_SCIPY)


def _divisors() -> Rows:
    """Yield (name, description) of each divisor, and of examples of formulas."""
    yield from ((one.name, one.text) for one in DIVISORS.values())
    yield "13.5", "a number"
    yield "2*d_k^0.6", "a factor times powers of d_k, n and ln(n)"
    yield "sqrt(d_k*ln(n))", "a root; in a shell, quote what has brackets, * or ^"
    yield "none/sqrt", "the ratio of a quantity under two divisors, from the same draws"
    yield "(d_k/8)", "a fraction, in brackets"


def _initialisations() -> Rows:
    """Yield (parameter of an initialisation, its possible values), as texts."""
    yield from ((f"kind={k}", f"weights {x}") for k, (_, x) in WEIGHT_KINDS.items())
    yield "norm=", " or ".join(NORMS) + ", of the tokens"
    yield "shape=", f"{', '.join(SHAPES)}: contents of a weight matrix"
    yield "width=", "of the tokens"
    yield "for example", "init(kind=he_normal,norm=layer,shape=full,width=512)"


def _claims() -> Rows:
    """Yield (id, topic, places in the texts) of each claim of the five texts."""
    for claim in read_catalogue().claim:
        places = ", ".join(f"{one.text} {one.section}" for one in claim.source)
        yield claim.id, claim.topic, places


#: Kind of names -> its description, the headings of its table, and its lines.
KINDS: dict[str, tuple[str, tuple[str, ...], Callable[[], Rows]]] = {
    "kinds": (
        "what can be listed",
        ("--list", "prints"),
        lambda: ((name, words) for name, (words, *_) in list(KINDS.items())[1:]),
    ),
    "quantities": (
        "quantities that can be measured and judged",
        ("quantity", "description", "summaries", "commands"),
        _quantities,
    ),
    "divisors": (
        "divisors of the scores",
        ("divisor", "description"),
        _divisors,
    ),
    "distributions": (
        "distributions of the entries of q and k",
        ("distribution", "description", "kurtosis", "finite moments below order"),
        _distributions,
    ),
    "initialisations": (
        "initialisations of the projections to q and k",
        ("initialisation", "q and k as projections of normalised tokens"),
        _initialisations,
    ),
    "formats": (
        "number formats of the weights",
        ("number format", "bits of the significand"),
        lambda: ((one.name, str(one.bits)) for one in ALL_FORMATS.values()),
    ),
    "figures": (
        "figures of the report",
        ("figure", "shows"),
        lambda: ((one.id, one.shows) for one in EVERY_FIGURE.values()),
    ),
    "claims": ("claims of five texts", ("claim", "topic", "texts"), _claims),
}
