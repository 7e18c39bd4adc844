"""The command line: what each command can be asked, as options with types.

`montecarlo.cli.options` reads them; None is what was not typed.  The first line of a
docstring is what the list of commands says, the whole of it what ``--help`` does.
"""

from argparse import ArgumentParser
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from montecarlo.cli.options import (
    FIRST,
    OTHER,
    SAMPLING,
    Folder,
    Jobs,
    Names,
    Parser,
    Seed,
    option_field,
)
from montecarlo.report.formats import DEFAULT, FORMATS

#: A field under each heading of the help.
first, sampling = partial(option_field, FIRST), partial(option_field, SAMPLING)
other = partial(option_field, OTHER)
of_row = partial(option_field, "which row")
of_arrays = partial(option_field, "how the arrays lie")
judged = partial(option_field, "what is judged")
#: What makes `judge` exit 1 if nothing is said.
OF_JUDGE = "fails,open,self-check"
SELF_CHECK = "self-check, where a check of the simulator itself is refuted"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StudyOptions:
    """What is sampled, by whom, and where pages of it go."""

    preset: str | None = first()
    lang: Names | None = first()
    output: Folder | None = first()
    seed: Seed | None = sampling()
    jobs: Jobs | None = sampling()
    executor: str | None = sampling()
    scheduler: str | None = sampling()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResultsOptions(StudyOptions):
    """What `report` and `figures` sample, or read."""

    source: Folder | None = first(
        "render these results again, and sample nothing", flag="--from"
    )
    config: Path | None = sampling(
        "a TOML file with seed, only, error_rate, grid; options go before it"
    )
    fresh: bool = sampling(
        "drop what an interrupted run left in the folder", default=False
    )
    quiet: bool = other(default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReportOptions(ResultsOptions):
    """Sample, judge the claims of five texts, write pages.

    What they claim about dividing attention scores by sqrt(d_k) is judged on samples of
    Q and K, and the report is in several languages.
    """

    only: Names | None = first("claims, and what they need")
    format: Names | None = first(f"{DEFAULT} (default), {', '.join(FORMATS[1:])}")
    fail_on: Names | None = first(
        "outcomes that make `report` exit 1: verdicts (holds, partly, vague, fails, "
        f"open, assumed), or {SELF_CHECK}; none (default)",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FiguresOptions(ResultsOptions):
    """Draw the report's figures for documents, with captions.

    They are in a language (default: en), with captions and alternative texts in
    captions.<lang>.md.
    """

    output: Folder = first("folder to write", Path("figures"))
    only: Names | None = first("these figures: python -m montecarlo --list figures")
    format: Names | None = first("svg (default), pdf, png")
    theme: str | None = first(
        "light, dark or print; left out, an SVG suits itself to its page"
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MeasureOptions:
    """Estimate one number, with its interval and exact value.

    It is one quantity at one design point, to a wanted precision.
    """

    quantity: str | None = first(
        "what to measure: python -m montecarlo --list quantities"
    )
    d_k: int = first("length of a query", 64)
    keys: int | None = first("keys of a row; left out for quantities of pairs")
    divisor: str = first(
        "none, sqrt, 13.5, 'd_k/8', 'sqrt(d_k*ln(n))', or a ratio: none/sqrt", "sqrt"
    )
    distribution: str = first(
        "of q and k, or of each: 'gaussian(std=2) * laplace'", "gaussian"
    )
    exact: bool = first("what theory gives, and sample nothing", default=False)
    row: str | None = first("a row_id of a report, measured again, alone", metavar="ID")
    source: Folder | None = first(
        "read that report from here (default: output)", flag="--from"
    )
    json: bool = other(default=False)
    markdown: bool = other("print a paragraph to quote", default=False)
    lang: Names | None = other("of --markdown: en (default), de, zh, ja, es")
    dependence: str = of_row("of k on q: none, pairs(0.5), planted(0.5)", "none")
    initialisation: str = of_row("init(kind=...,...), or nothing", "")
    normalisation: str = of_row("of each query and key: none, l2(gain=10), rms", "none")
    mask: str = of_row("on keys: none, causal, window(128), full", "none")
    summary: str | None = of_row("mean (default), median, q99, q0.1, ..., spread")
    number_format: str = of_row("of weights, as float16 or e4m3", "float64")
    softmax: str = of_row("shifted or naive", "shifted")
    relative_error: float | None = sampling(
        "wanted standard error, as a part of the estimate (default: 0.01)"
    )
    absolute_error: float | None = sampling("wanted standard error, instead")
    most: int | None = sampling(
        "replicates at most (default: 131072, and what a minute samples)"
    )
    seed: Seed = sampling("of all random numbers", 1)
    jobs: Jobs = sampling("workers", 1)
    first: int | None = sampling(
        "replicates at first (default: 128); with as many for --most: so many, "
        "whatever the error"
    )
    replicates: range | None = sampling(
        "only sample the replicates A to B - 1, as a report does; for looking into one "
        "that failed",
    )

    @property
    def names(self) -> dict[str, str]:
        """What names a point, beside its sizes."""
        q, several, k = self.distribution.partition("*")
        return {
            "distribution_q": q.strip(),
            "distribution_k": (k if several else q).strip(),
            "dependence": self.dependence,
            "initialisation": self.initialisation,
            "normalisation": self.normalisation,
            "mask": self.mask,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JudgeOptions(StudyOptions):
    """Judge claims of your own, also in CI.

    With --output there are pages for readers in several languages.
    """

    file: tuple[Path, ...] = first(
        "claims, in the format of docs/own-claim.toml; each of several files has an "
        "error rate, and a folder in DIR, of its own",
        flag="file",
        nargs="+",
        metavar="FILE.toml",
    )
    fail_on: Names | None = first(
        f"outcomes that make `judge` exit 1: verdicts, or {SELF_CHECK}; none: never "
        f"(default: {OF_JUDGE})",
    )
    json: bool = first(default=False)
    exact: bool = first("by what theory gives alone; nothing is sampled", default=False)
    preset: str = first("quick, standard or full", "quick")
    output: Folder | None = first("folder to write (default: none)")
    error_rate: float = sampling("of the whole file", 0.01)
    most: int | None = sampling("replicates at most (default: those of the preset)")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ObserveOptions:
    """Look at queries and keys of your own model.

    What are scores divided by, does that fit, head by head, and what makes their
    variance?  Several files are further sequences; .pt hold a dict of tensors, which
    torch reads as weights only.  Entries are float16, bfloat16, float32 or float64.
    """

    files: tuple[Path, ...] = first(
        ".npz or .pt with q, k and what tells the applied scale: "
        "weights, or v and outputs",
        flag="files",
        nargs="+",
        metavar="FILE",
    )
    expect: str | None = first(
        "end with status 1 if scores are divided by something else, 4 if that cannot "
        "be told: config, sqrt, another by its name, a number",
        metavar="C",
    )
    config: Path | None = first("a config.json of transformers, for --expect config")
    causal: bool = first("a query sees no later keys", default=False)
    output: Folder = first("folder to write", Path("observed"))
    json: bool = first("print the applied scales as one JSON object", default=False)
    axes: Names | None = of_arrays(
        "of the arrays' axes, in their order (sequence,layer,head,token,d); token and "
        "d have to be there; weights have keys last, and no d",
    )
    names: str | None = of_arrays(
        "of arrays in .npz and .pt: of q and of k, weights=NAME, v=NAME, outputs=NAME",
        metavar="NAMES",
    )
    rtol: float = judged(  # as `montecarlo.model.answers` has it
        "how far off what is expected may be, as a part", 0.01, metavar="R"
    )
    divisor: str | None = judged(
        "what tables divide by (default: what is told, else sqrt)", metavar="C"
    )
    fail_on: Names | None = judged(
        "end with status 1 if a head is saturated, peaked, balanced or flat"
    )
    quiet: bool = other(default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ListOptions:
    """Print what can be asked for."""

    kind: str = first(
        "what can be asked for, as quantities; alone, what can be listed",
        flag="--list",
        default="kinds",
        nargs="?",
        const="kinds",
        metavar="KIND",
    )


#: Each is a module of `montecarlo.cli` with a function ``work``.
COMMANDS: dict[str, type] = {
    "report": ReportOptions,
    "figures": FiguresOptions,
    "measure": MeasureOptions,
    "judge": JudgeOptions,
    "observe": ObserveOptions,
}


def purpose_of(command: str) -> str:
    """Say in a line what a command is for."""
    return str(COMMANDS[command].__doc__).partition("\n")[0]


def build_parser(command: str) -> Parser:
    """Build the parser of a command; without a name, that of ``--list``."""
    return Parser(command, COMMANDS.get(command, ListOptions))


def build_program() -> ArgumentParser:
    """Build one parser of all commands, for shtab to complete what is typed."""
    from shtab import DIRECTORY, FILE  # an extra, which alone asks for this

    program = ArgumentParser("montecarlo")
    commands = program.add_subparsers()
    for name in COMMANDS:
        parser = build_parser(name)
        parser.complete({"DIR": DIRECTORY, "FILE": FILE, "FILE.toml": FILE})
        commands.add_parser(
            name, parents=[parser], add_help=False, help=purpose_of(name)
        )
    return program
