"""The command line: what each command can be asked, as options with types.

`montecarlo.cli.options` reads them; None is what was not typed.  The first line of a
docstring is what the list of commands says, the whole of it what ``--help`` does.
"""

from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

from montecarlo.cli.options import (
    FIRST,
    OTHER,
    SAMPLING,
    Folder,
    Jobs,
    Names,
    Parser,
    Rate,
    Seed,
    option_field,
)
from montecarlo.report.formats import DEFAULT, FORMATS

ROW, ARRAYS, JUDGED = "which row", "how the arrays lie", "what is judged"
OF_JUDGE = "fails,open,self-check"
SELF_CHECK = "self-check, where a check of the simulator itself is refuted"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StudyOptions:
    """What is sampled, by whom, and where pages of it go."""

    preset: str | None = option_field(FIRST)
    lang: Names | None = option_field(FIRST)
    output: Folder | None = option_field(FIRST)
    seed: Seed | None = option_field(SAMPLING)
    jobs: Jobs | None = option_field(SAMPLING)
    executor: str | None = option_field(SAMPLING)
    scheduler: str | None = option_field(SAMPLING)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResultsOptions(StudyOptions):
    """What `report` and `figures` sample, or read."""

    source: Folder | None = option_field(
        FIRST, "render these results again, and sample nothing", flag="--from"
    )
    max_seconds: float | None = option_field(
        SAMPLING, "end sampling after so long; what is undecided then is undecided"
    )
    replicates_from: Path | None = option_field(
        SAMPLING, "a run.json: as many replicates as that run had, for equal bytes"
    )
    config: Path | None = option_field(
        SAMPLING,
        "a TOML file with seed, only, error_rate, grid; options go before it",
    )
    fresh: bool = option_field(
        SAMPLING, "drop what an interrupted run left in the folder", default=False
    )
    quiet: bool = option_field(OTHER, default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReportOptions(ResultsOptions):
    """Sample, judge the claims of five texts, write pages.

    What they claim about dividing attention scores by sqrt(d_k) is judged on samples of
    Q and K, and the report is in several languages.
    """

    only: Names | None = option_field(FIRST, "claims, and what they need")
    format: Names | None = option_field(
        FIRST, f"{DEFAULT} (default), {', '.join(FORMATS[1:])}"
    )
    fail_on: Names | None = option_field(
        FIRST,
        "outcomes that make `report` exit 1: verdicts (holds, partly, vague, fails, "
        f"open, assumed), or {SELF_CHECK}; none (default)",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FiguresOptions(ResultsOptions):
    """Draw the report's figures for documents, with captions.

    They are in a language (default: en), with captions and alternative texts in
    captions.<lang>.md.
    """

    output: Folder = option_field(
        FIRST, "folder to write (default: figures)", default=Path("figures")
    )
    only: Names | None = option_field(
        FIRST, "these figures: python -m montecarlo --list figures"
    )
    format: Names | None = option_field(FIRST, "svg (default), pdf, png")
    theme: str | None = option_field(
        FIRST, "light, dark or print; left out, an SVG suits itself to its page"
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MeasureOptions:
    """Estimate one number, with its interval and exact value.

    It is one quantity at one design point, to a wanted precision.
    """

    quantity: str | None = option_field(
        FIRST, "what to measure: python -m montecarlo --list quantities"
    )
    d_k: int = option_field(FIRST, "length of a query (default: 64)", default=64)
    keys: int | None = option_field(
        FIRST, "keys of a row; left out for quantities of pairs"
    )
    divisor: str = option_field(
        FIRST,
        "none (default), sqrt, 13.5, 'd_k^0.6', 'sqrt(d_k*ln(n))', or the ratio of "
        "two, none/sqrt",
        default="none",
    )
    distribution: str = option_field(
        FIRST,
        "of q and k (default: gaussian), or of each: 'gaussian(std=2) * laplace'",
        default="gaussian",
    )
    exact: bool = option_field(
        FIRST, "what theory gives, and sample nothing", default=False
    )
    row: str | None = option_field(
        FIRST, "a row_id of a report, measured again, alone", metavar="ID"
    )
    source: Folder | None = option_field(
        FIRST, "read that report from here (default: output)", flag="--from"
    )
    json: bool = option_field(OTHER, default=False)
    markdown: bool = option_field(OTHER, "print a paragraph to quote", default=False)
    lang: Names | None = option_field(
        OTHER, "of --markdown: en (default), de, zh, ja, es"
    )
    dependence: str = option_field(
        ROW, "of k on q: none (default), pairs(0.5), planted(0.5)", default="none"
    )
    initialisation: str = option_field(
        ROW, "init(kind=...,...), or nothing", default=""
    )
    normalisation: str = option_field(
        ROW, "of each query and key: none (default), l2(gain=10), rms", default="none"
    )
    summary: str | None = option_field(
        ROW, "mean (default), median, q99, q0.1, ..., spread"
    )
    number_format: str = option_field(
        ROW, "of weights, as float16 or e4m3 (default: float64)", default="float64"
    )
    softmax: str = option_field(ROW, "shifted (default) or naive", default="shifted")
    relative_error: float | None = option_field(
        SAMPLING, "wanted standard error, as a part of the estimate (default: 0.01)"
    )
    absolute_error: float | None = option_field(
        SAMPLING, "wanted standard error, instead"
    )
    most: int | None = option_field(
        SAMPLING, "replicates at most (default: 131072, and what a minute samples)"
    )
    seed: Seed = option_field(SAMPLING, default=1)
    jobs: Jobs = option_field(SAMPLING, "workers (default: 1)", default=1)
    replicates: range | None = option_field(
        SAMPLING,
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
        }

    @property
    def parts(self) -> dict[str, str | None]:
        """What names a row of it."""
        return {
            "divisor": self.divisor,
            "quantity": self.quantity,
            "summary": self.summary,
            "number_format": self.number_format,
            "softmax": self.softmax,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JudgeOptions(StudyOptions):
    """Judge claims of your own, also in CI.

    With --output there are pages for readers in several languages.
    """

    file: tuple[Path, ...] = option_field(
        FIRST,
        "claims, in the format of docs/own-claim.toml; each of several files has an "
        "error rate, and a folder in DIR, of its own",
        flag="file",
        nargs="+",
        metavar="FILE.toml",
    )
    fail_on: Names | None = option_field(
        FIRST,
        f"outcomes that make `judge` exit 1: verdicts, or {SELF_CHECK}; none: never "
        f"(default: {OF_JUDGE})",
    )
    json: bool = option_field(FIRST, default=False)
    exact: bool = option_field(
        FIRST, "by what theory gives alone; nothing is sampled", default=False
    )
    preset: str = option_field(
        FIRST, "quick (default), standard or full", default="quick"
    )
    output: Folder | None = option_field(FIRST, "folder to write (default: none)")
    error_rate: Rate = option_field(
        SAMPLING, "of the whole file (default: 0.01)", default=0.01
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ObserveOptions:
    """Look at queries and keys of your own model.

    What are scores divided by, does that fit, head by head, and if not, which
    assumption of the texts fails?  Several .npz are further sequences; .npy are q and
    k, then weights, or v and outputs.  Files are memory-mapped, or unpacked a piece at
    a time; nothing is unpickled.  Entries are float16, bfloat16, float32 or float64.
    """

    files: tuple[Path, ...] = option_field(
        FIRST,
        ".npz, .npy or .safetensors with q, k and what tells the applied scale: "
        "weights, or v and outputs",
        flag="files",
        nargs="+",
        metavar="FILE",
    )
    expect: str | None = option_field(
        FIRST,
        "end with status 1 if scores are divided by something else, 4 if that cannot "
        "be told: config, sqrt, another by its name, a number",
        metavar="C",
    )
    config: Path | None = option_field(
        FIRST, "a config.json of transformers, for --expect config"
    )
    causal: bool = option_field(FIRST, "a query sees no later keys", default=False)
    output: Folder = option_field(
        FIRST, "folder to write (default: observed)", default=Path("observed")
    )
    figure: Path | None = option_field(
        FIRST, "write the one figure to a file of its own as well: .svg, .pdf or .png"
    )
    json: bool = option_field(
        FIRST, "print the applied scales as one JSON object", default=False
    )
    axes: Names | None = option_field(
        ARRAYS,
        "of the arrays' axes, in their order (sequence,layer,head,token,d); token and "
        "d have to be there; weights have keys last, and no d",
    )
    names: str | None = option_field(
        ARRAYS,
        "of arrays in .npz: of q and of k, weights=NAME, v=NAME, outputs=NAME; of "
        "tensors in .safetensors: {side} stands for q, query, k, key, weights, v, "
        "value or outputs; {layer}, {head}, {sequence} are counted ({side})",
        metavar="PATTERN",
    )
    rtol: float = option_field(  # as `montecarlo.model.answers` has it
        JUDGED,
        "how far off what is expected may be, as a part (default: 0.01)",
        default=0.01,
        metavar="R",
    )
    divisor: str | None = option_field(
        JUDGED, "what tables divide by (default: what is told, else sqrt)", metavar="C"
    )
    fail_on: Names | None = option_field(
        JUDGED, "end with status 1 if a head is saturated, peaked, balanced or flat"
    )
    seed: Seed = option_field(SAMPLING, "of keys drawn anew (default: 1)", default=1)
    quiet: bool = option_field(OTHER, default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ListOptions:
    """Print what can be asked for."""

    kind: str = option_field(
        FIRST,
        "print what can be asked for, as quantities; alone, what can be listed",
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
