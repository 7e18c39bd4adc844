"""The command line: what each command can be asked, as an option with its type.

`montecarlo.cli.options` reads them; None is what was not typed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from montecarlo.cli.options import (
    FIRST,
    NAMES,
    OTHER,
    SAMPLING,
    option_field,
    parse_path,
)
from montecarlo.errors import InputError
from montecarlo.names import (
    MOST_DIGITS,
    parse_decimal,
    parse_whole,
    require_error_rate,
)
from montecarlo.report.formats import DEFAULT, FORMATS

ROW, TEXTS, LOOKS = "which row", "texts and checks", "how they look"
#: Pixels an inch of PNG files.
DPI = 200


def parse_indices(name: str, typed: str) -> range:
    """Return the indices of replicates that ``A:B`` names."""
    numbers = re.fullmatch("[0-9]+:[0-9]+", typed) and len(typed) <= MOST_DIGITS
    first, _, stop = typed.partition(":")
    if not (numbers and int(first) < int(stop)):
        raise InputError(
            f"{name} must be two whole numbers A:B with A below B, got {typed!r}"
        )
    return range(int(first), int(stop))


def parse_rate(name: str, typed: str) -> float:
    """Return a nominal error rate."""
    return require_error_rate(name, parse_decimal(name, typed))


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What `report` and `figures` sample or read, and where they write."""

    preset: str | None = option_field(FIRST)
    lang: tuple[str, ...] | None = option_field(FIRST)
    output: Path | None = option_field(FIRST)
    source: Path | None = option_field(
        FIRST, "render these results again, and sample nothing", "DIR", flag="--from"
    )
    seed: int | None = option_field(SAMPLING)
    jobs: int | None = option_field(SAMPLING)
    executor: str | None = option_field(SAMPLING)
    max_seconds: float | None = option_field(
        SAMPLING,
        "end sampling after so long; what is undecided then is undecided",
        "N",
        parse=parse_decimal,
    )
    replicates_from: Path | None = option_field(
        SAMPLING,
        "a run.json: sample as many replicates as that run did, for equal bytes",
        "FILE",
        parse=parse_path,
    )
    config: Path | None = option_field(
        SAMPLING,
        "a TOML file with seed, preset, lang, only, output, jobs, executor, "
        "error_rate, grid; flags override it",
        "FILE",
    )
    fresh: bool = option_field(SAMPLING, default=False)
    quiet: bool = option_field(OTHER, default=False)


@dataclass(frozen=True, kw_only=True)
class ReportOptions(StudyOptions):
    """What report is written, or what is listed."""

    only: tuple[str, ...] | None = option_field(
        FIRST, "claims, and what they need", **NAMES
    )
    format: tuple[str, ...] | None = option_field(
        FIRST, f"{DEFAULT} (default), {', '.join(FORMATS[1:])}", **NAMES
    )
    kind: str | None = option_field(
        FIRST,
        "print what can be asked for, as quantities; alone, what can be listed",
        "KIND",
        flag="--list",
        nargs="?",
        const="kinds",
    )
    flavour: str | None = option_field(
        TEXTS,
        "of Markdown: kramdown (default), or commonmark (MkDocs, GitHub)",
        "NAME",
    )
    front_matter: tuple[str, ...] | None = option_field(
        TEXTS,
        "of Markdown: title, lang, generated, translated, KEY=VALUE; or none",
        **NAMES,
    )
    fail_on: tuple[str, ...] | None = option_field(
        TEXTS,
        "outcomes that make the command exit 1: verdicts such as refuted, or "
        "self-check, where a check of the simulator itself is refuted; none (default)",
    )
    version: bool = option_field(
        OTHER, "print the version, and stop", default=False, action="store_true"
    )


@dataclass(frozen=True, kw_only=True)
class FiguresOptions(StudyOptions):
    """What figures are drawn, and how."""

    output: Path = option_field(
        FIRST, "folder to write (default: figures)", default=Path("figures")
    )
    only: tuple[str, ...] | None = option_field(FIRST, "these figures", **NAMES)
    format: tuple[str, ...] | None = option_field(
        FIRST, "svg (default), pdf, png", **NAMES
    )
    list: bool = option_field(
        FIRST,
        "print what figures there are, and stop",
        default=False,
        action="store_true",
    )
    dpi: int | None = option_field(
        LOOKS, f"pixels an inch of PNG files (default: {DPI})", "N", parse=parse_whole
    )
    theme: str | None = option_field(
        LOOKS,
        "light, dark or print; left out, an SVG suits itself to its page",
        "NAME",
    )
    decimal: str = option_field(
        LOOKS, "decimal sign: point (default) or comma", "NAME", default="point"
    )


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """What is measured: an option for every column that identifies a row."""

    quantity: str | None = option_field(
        FIRST, "what to measure: python -m montecarlo --list quantities", "NAME"
    )
    d_k: int = option_field(
        FIRST, "length of a query (default: 64)", "N", default=64, parse=parse_whole
    )
    keys: int | None = option_field(
        FIRST, "keys of a row; left out for quantities of pairs", "N", parse=parse_whole
    )
    divisor: str = option_field(
        FIRST,
        "none (default), sqrt, 13.5, 'd_k^0.6', 'sqrt(d_k*ln(n))', or the ratio of "
        "two, none/sqrt",
        "NAME",
        default="none",
    )
    distribution: str = option_field(
        FIRST,
        "distribution of q and k (default: gaussian)",
        "NAME",
        default="gaussian",
    )
    row: str | None = option_field(
        FIRST, "a row_id of a report, measured again, alone", "ID"
    )
    source: Path | None = option_field(
        FIRST, "read that report from here (default: output)", "DIR", flag="--from"
    )
    json: bool = option_field(FIRST, default=False)
    distribution_q: str | None = option_field(
        ROW, "distribution of q, where it differs", "NAME"
    )
    distribution_k: str | None = option_field(
        ROW, "distribution of k, where it differs", "NAME"
    )
    dependence: str = option_field(
        ROW, "none (default), planted(0.5), ...", "NAME", default="none"
    )
    initialisation: str = option_field(
        ROW, "init(kind=...,...), or nothing", "NAME", default=""
    )
    summary: str | None = option_field(
        ROW, "mean (default), median, q99, q0.1, ..., spread", "NAME"
    )
    number_format: str = option_field(
        ROW,
        "what weights are kept in, as float16 (default: float64)",
        "NAME",
        default="float64",
    )
    softmax: str = option_field(
        ROW, "shifted (default) or naive", "NAME", default="shifted"
    )
    relative_error: float | None = option_field(
        SAMPLING,
        "wanted standard error, as a part of the estimate (default: 0.01)",
        "X",
        parse=parse_decimal,
    )
    absolute_error: float | None = option_field(
        SAMPLING, "wanted standard error, instead", "X", parse=parse_decimal
    )
    most: int | None = option_field(
        SAMPLING,
        "replicates at most (default: 131072, and what a minute samples)",
        "N",
        parse=parse_whole,
    )
    seed: int = option_field(SAMPLING, default=1)
    jobs: int = option_field(SAMPLING, "workers (default: 1)", "N", default=1)
    replicates: range | None = option_field(
        SAMPLING,
        "only sample the replicates A to B - 1, as a report does; for looking into one "
        "that failed",
        "A:B",
        parse=parse_indices,
    )

    @property
    def both(self) -> tuple[str, str]:
        """The distributions of q and of k."""
        return (
            self.distribution_q or self.distribution,
            self.distribution_k or self.distribution,
        )


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What claims are judged, and how."""

    file: tuple[Path, ...] = option_field(
        FIRST,
        "claims, in the format of docs/own-claim.toml; each of several files has an "
        "error rate, and a folder in DIR, of its own",
        "FILE.toml",
        flag="file",
        nargs="+",
        parse=parse_path,
    )
    fail_on: tuple[str, ...] | None = option_field(
        FIRST,
        "outcomes that make the command exit 1: verdicts, or self-check, where a check "
        "of the simulator itself is refuted; none: never (default: "
        "refuted,undecided,self-check)",
    )
    output: Path | None = option_field(
        FIRST, "folder to write pages and data to (default: none)"
    )
    lang: tuple[str, ...] | None = option_field(FIRST)
    json: bool = option_field(FIRST, default=False)
    preset: str = option_field(
        SAMPLING,
        "grid and budgets: quick (default), standard or full",
        default="quick",
    )
    seed: int = option_field(SAMPLING, default=1)
    error_rate: float = option_field(
        SAMPLING,
        "of the whole file (default: 0.01)",
        "X",
        default=0.01,
        parse=parse_rate,
    )
    jobs: int | None = option_field(SAMPLING)
    executor: str | None = option_field(SAMPLING)
