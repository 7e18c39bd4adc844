"""The command line: the options of each command, with their types.

`montecarlo.cli.options` parses them; None means that an option was not given.  The
docstring of an options class is the text of ``--help``; its first line is also the
command's line in the list of commands.
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

#: Functions that declare an option under a heading of the help.
first, sampling = partial(option_field, FIRST), partial(option_field, SAMPLING)
other = partial(option_field, OTHER)
of_row = partial(option_field, "quantity and design point")
of_arrays = partial(option_field, "layout of the arrays")
judged = partial(option_field, "evaluation")
#: Default of ``judge --fail-on``.
OF_JUDGE = "fails,open,self-check"
SELF_CHECK = "self-check, a refuted check of the simulator itself"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StudyOptions:
    """Options of commands that sample and may write pages."""

    preset: str | None = first()
    lang: Names | None = first()
    output: Folder | None = first()
    seed: Seed | None = sampling()
    jobs: Jobs | None = sampling()
    executor: str | None = sampling()
    scheduler: str | None = sampling()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResultsOptions(StudyOptions):
    """Options of `report` and `figures`, which sample or read earlier results."""

    source: Folder | None = first(
        "render the results in this folder again, without sampling", flag="--from"
    )
    config: Path | None = sampling(
        "a TOML file with seed, only, error_rate, grid; options override it"
    )
    fresh: bool = sampling("discard what an interrupted run left", default=False)
    quiet: bool = other(default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReportOptions(ResultsOptions):
    """Sample, judge the claims of five texts, write pages.

    The texts claim something about dividing attention scores by sqrt(d_k).  Each claim
    is judged on samples of Q and K.  The report is in several languages.
    """

    only: Names | None = first("ids of claims to judge (default: all)")
    format: Names | None = first(f"{DEFAULT} (default), {', '.join(FORMATS[1:])}")
    fail_on: Names | None = first(
        "outcomes that make `report` exit 1: verdicts (holds, partly, vague, fails, "
        f"open, assumed), or {SELF_CHECK}; none (default)",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FiguresOptions(ResultsOptions):
    """Draw the report's figures for documents, with captions.

    Captions and alternative texts are in captions.<lang>.md.
    """

    output: Folder = first("folder to write", Path("figures"))
    lang: Names | None = first("languages, with commas, or all (default: en)")
    only: Names | None = first("figures: python -m montecarlo --list figures")
    format: Names | None = first("svg (default), pdf, png")
    theme: str | None = first("light, dark or print (default: SVG adapts to its page)")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MeasureOptions:
    """Estimate one number, with its interval and exact value.

    It is one quantity at one design point, to a given precision.
    """

    quantity: str | None = first(
        "what to measure: python -m montecarlo --list quantities"
    )
    d_k: int = first("dimension of queries and keys", 64)
    keys: int | None = first("keys per row; omit for quantities of pairs")
    divisor: str = first(
        "none, sqrt, 13.5, d_k/8, 'd_k^0.6'; a ratio of some: none/sqrt", "sqrt"
    )
    distribution: str = first(
        "of entries of q and k, or a pair 'gaussian(std=2) * laplace'", "gaussian"
    )
    exact: bool = first("print the exact value, without sampling", default=False)
    row: str | None = first("a row_id of a report: measure it again", metavar="ID")
    source: Folder | None = first(
        "folder of the report of --row (default: output)", flag="--from"
    )
    json: bool = other(default=False)
    markdown: bool = other("print a paragraph to quote", default=False)
    lang: Names | None = other("of --markdown: en (default), de, zh, ja, es")
    dependence: str = of_row("of k on q: none, pairs(0.5), planted(0.5)", "none")
    initialisation: str = of_row("init(kind=...,...), or empty for none", "")
    normalisation: str = of_row("of each query and key: none, l2(gain=10), rms", "none")
    mask: str = of_row("on the keys: none, causal, window(128), full", "none")
    summary: str | None = of_row(
        "mean (default), median, q99, q2.5, ..., spread; first or last under a mask; "
        "share_above of a ratio"
    )
    number_format: str = of_row("of the weights, such as float16 or e4m3", "float64")
    softmax: str = of_row("shifted or naive", "shifted")
    relative_error: float | None = sampling(
        "target standard error, relative to the estimate (default: 0.01)"
    )
    absolute_error: float | None = sampling("target standard error, instead")
    most: int | None = sampling(
        "maximal number of replicates (default: 131072, or one minute of sampling)"
    )
    seed: Seed = sampling("of all random numbers", 1)
    jobs: Jobs = sampling("workers", 1)
    first: int | None = sampling(
        "replicates before the first check of the error (default: 128); if equal to "
        "--most, the exact number of replicates"
    )
    replicates: range | None = sampling(
        "only sample the replicates A to B - 1, as a report does, to investigate a "
        "failure"
    )

    @property
    def names(self) -> dict[str, str]:
        """The parts of the design point as a dict: column of the tables -> name.

        Distributions of q and k, dependence, initialisation, normalisation and mask.
        If ``distribution`` has no ``*``, it is that of q and of k.
        """
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

    With --output, write pages in several languages as well.
    """

    file: tuple[Path, ...] = first(
        "claims, in the format of docs/own-claim.toml; each file has its own error "
        "rate, and its own folder in DIR",
        flag="file",
        nargs="+",
        metavar="FILE.toml",
    )
    fail_on: Names | None = first(
        f"outcomes that make `judge` exit 1: verdicts, or {SELF_CHECK}; none: never "
        f"(default: {OF_JUDGE})",
    )
    json: bool = first(default=False)
    exact: bool = first("judge by exact values alone, without sampling", default=False)
    preset: str = first("quick, standard or full", "quick")
    output: Folder | None = first("folder to write (default: none)")
    error_rate: float = sampling("nominal, of all decisions about a file", 0.01)
    most: int | None = sampling("maximal number of replicates (default: preset's)")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ObserveOptions:
    """Look at queries and keys of your own model.

    For each head: the divisor of the scores, whether it fits, and what determines their
    variance.  Several files are further sequences.  Entries are float16, bfloat16,
    float32 or float64.
    """

    files: tuple[Path, ...] = first(
        ".npz or .pt with q, k and, for the divisor, weights, or v and outputs",
        flag="files",
        nargs="+",
        metavar="FILE",
    )
    expect: str | None = first(
        "expected divisor: config, sqrt, another name, or a number; exit 1 if the "
        "scores have another divisor, 4 if it cannot be determined",
        metavar="C",
    )
    config: Path | None = first("a config.json of transformers, for --expect config")
    causal: bool = first("queries do not attend to later keys", default=False)
    output: Folder = first("folder to write", Path("observed"))
    json: bool = first("print the applied scales as one JSON object", default=False)
    axes: Names | None = of_arrays(
        "the arrays' axes, in their order (sequence,layer,head,token,d); token and d "
        "are required; weights have keys last, and no d",
    )
    rtol: float = judged(  # equal to `montecarlo.model.answers.RTOL`
        "relative tolerance of --expect", 0.01, metavar="R"
    )
    divisor: str | None = judged(
        "divisor of the tables (default: the applied one, else sqrt)", metavar="C"
    )
    fail_on: Names | None = judged(
        "states of a head for which to exit 1: saturated, peaked, balanced, flat"
    )
    quiet: bool = other(default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ListOptions:
    """Print the names that options accept."""

    kind: str = first(
        "names to list, such as quantities; without KIND, what can be listed",
        flag="--list",
        default="kinds",
        nargs="?",
        const="kinds",
        metavar="KIND",
    )


#: Command -> its options.  Each command is a module here with a function ``work``.
COMMANDS: dict[str, type] = {
    "report": ReportOptions,
    "figures": FiguresOptions,
    "measure": MeasureOptions,
    "judge": JudgeOptions,
    "observe": ObserveOptions,
}


def purpose_of(command: str) -> str:
    """Return what a command is for, in one line: the first line of its help."""
    return str(COMMANDS[command].__doc__).partition("\n")[0]


def build_parser(command: str) -> Parser:
    """Return the parser of a command's arguments.

    If ``command`` is none of `COMMANDS`, such as "", it is the parser of ``--list``.
    """
    return Parser(command, COMMANDS.get(command, ListOptions), COMMANDS)


def build_program() -> ArgumentParser:
    """Return a parser of all commands, from which shtab makes shell completions.

    It needs shtab, which is an extra of the package.
    """
    from shtab import DIRECTORY, FILE  # an extra, needed here alone

    program = ArgumentParser("montecarlo")
    commands = program.add_subparsers()
    for name in COMMANDS:
        parser = build_parser(name)
        parser.complete({"DIR": DIRECTORY, "FILE": FILE, "FILE.toml": FILE})
        commands.add_parser(
            name, parents=[parser], add_help=False, help=purpose_of(name)
        )
    return program
