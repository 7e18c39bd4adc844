"""What ``python -m montecarlo observe`` does: a folder of results, and lines."""

import json
import math
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from montecarlo.cli.command_line import ObserveOptions
from montecarlo.errors import InputError, reading
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.model.answers import (
    RTOL,
    Finding,
    ScaleAnswer,
    answer_scales,
    implied_divisor,
    say_answer,
    say_findings,
    say_next,
    say_without_evidence,
)
from montecarlo.model.arrays import Head
from montecarlo.model.expected import (
    Config,
    divisor_value,
    find_expected,
    read_config,
)
from montecarlo.model.files import open_files
from montecarlo.model.observing import (
    FEWEST,
    LEAST,
    MOST_ROWS,
    SPECTRAL_ROWS,
    STATES,
    Observation,
    ObservedHead,
    observe_model,
    tidy,
)
from montecarlo.model.scales import describe, find_scales, scales_table
from montecarlo.names import look_up_all, require_number
from montecarlo.plain_text import on_one_line, printable
from montecarlo.printing import print_lines
from montecarlo.report.figures.applied_scale import draw_scales, write_figure
from montecarlo.report.figures.files import FORMATS
from montecarlo.small_files import require_writable
from montecarlo.study.console import make_table, open_console
from montecarlo.study.fingerprint import made_with
from montecarlo.study.folder import file_hash, publishing, write_json
from montecarlo.study.progress import open_bar

TABLE, RECORD = "observation.csv", "observation.json"
#: Where weights or outputs were given.
SCALES = "applied-scale.csv"
#: Heads that the terminal lists, and failing assumptions in the line of each.
MOST_LINES, MOST_CAUSES = 12, 3
#: Quantities in the line of a head.
SHOWN = ("score_variance", "score_row_variance", "scaled_row_variance", "unit_divisor")


def observe_files(
    options: ObserveOptions, typed: Sequence[str]
) -> tuple[bool, str | None]:
    """Observe files, write tables, record and figure, and print the answer.

    Returns whether a head is in a state named by ``--fail-on``, and the answer of
    `montecarlo.model.answers.answer_scales`, if ``--expect`` was typed.

    Raises
    ------
    ValueError
        If an argument, a file or the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    if options.divisor is not None:
        divisor_value(options.divisor, 1)
    config = check_expected(options)
    check_figure(options)
    require_number("rtol", options.rtol, 0.0, 1.0, ends=False)
    require_different(options.files)
    quiet = options.quiet or options.json
    states = {state: state for state in STATES}
    failing = look_up_all("fail-on", options.fail_on or (), states)
    with publishing(options.output, typed) as edition:
        with tempfile.TemporaryDirectory(dir=edition.folder) as folder:
            model = open_files(
                options.files,
                Path(folder),
                axes=options.axes,
                names=options.names,
                causal=options.causal,
            )
            if options.figure and model.source is None:
                raise InputError(
                    "figure must be of divisors, which need weights, or v and outputs: "
                    "got neither"
                )
            n_heads = len(model.heads())
            with _bar("applied scale", n_heads, quiet=quiet) as progress:
                scales = find_scales(model, progress)
            expected = find_expected(
                options.expect,
                config,
                (),
                layers=model.layers,
                d_k=model.d_k,
                n_heads=scales.n_heads,
            )
            told = answer_scales(scales, expected, options.rtol)
            named = options.divisor or implied_divisor(scales)
            divisor = divisor_value(named, model.d_k)
            with _bar("observing", n_heads, quiet=quiet) as progress:
                observation = observe_model(model, divisor, options.seed, progress)
        edition.note_time("observing")
        write_observation(observation, told, edition.folder)
        edition.note_time("writing")
        edition.record = {
            "kind": "observation",
            "command": canonical_command(options),
            "files": [
                {"name": f.name, "bytes": f.stat().st_size, "sha256": file_hash(f)}
                for f in (*options.files, *([options.config] if options.config else []))
            ],
            "divisor": named,
            "seed": options.seed,
            **made_with(),
        }
    if options.figure:
        write_figure(told, options.figure)
    if options.json:
        text = json.dumps(_finite(record_scales(told)), indent=2)
        # what stands for the bracket in JSON: a CI runner obeys it within a line
        print_lines(text.replace("##[", r"##\u005b"))
    elif not options.quiet:
        print_observation(observation, told, edition.written)
    found = {one.state for one in observation.heads}
    is_asked = options.expect is not None or config is not None
    return bool(found & set(failing)), told.answer if is_asked else None


def check_expected(options: ObserveOptions) -> Config | None:
    """Check what is expected before anything is read; returns the configuration."""
    config = None if options.config is None else read_config(options.config)
    find_expected(options.expect, config, (), layers=(), d_k=1, n_heads=1)
    return config


def check_figure(options: ObserveOptions) -> None:
    """Check where the figure is to be written, and as what."""
    if options.figure is None:
        return
    if options.figure.suffix.removeprefix(".") not in FORMATS:
        raise InputError(
            f"figure must end in .{', .'.join(FORMATS)}, got {str(options.figure)!r}"
        )
    require_writable("figure", options.figure)


def require_different(files: Sequence[Path]) -> None:
    """Refuse files that are not there, or are given twice, but queries as keys."""
    for file in files:
        with reading("file", file):
            file.stat()
    # sequences that count twice are no sequences
    several = [file.resolve() for file in files if file.suffix != ".npy"]
    if len(set(several)) < len(several):
        raise InputError(
            f"files must be different ones, got {', '.join(map(str, files))}"
        )


@contextmanager
def _bar(name: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show a bar; yields what is told how many are done."""
    with open_bar(name, quiet=quiet) as update:
        update(total=total)
        yield lambda done: update(completed=done)


def canonical_command(options: ObserveOptions) -> str:
    """Return what to type to observe the same again."""
    names = [path.name for path in options.files]
    alike = len(set(names)) < len(names)
    words = ["python -m montecarlo observe"]
    words += [shlex.quote(str(path) if alike else path.name) for path in options.files]
    if options.axes:
        words.append(f"--axes {shlex.quote(','.join(options.axes))}")
    for name in ("names", "causal", "expect", "config", "rtol", "divisor"):
        value = getattr(options, name)
        if value is True:
            words.append(f"--{name}")
        elif value and (name, value) != ("rtol", RTOL):
            told = value.name if name == "config" else str(value)
            words.append(f"--{name} {shlex.quote(told)}")
    return " ".join([*words, f"--seed {options.seed}"])


def write_observation(
    observation: Observation, told: ScaleAnswer, folder: Path
) -> None:
    """Write tables, record and figure into an existing folder."""
    tables = {TABLE: tidy(observation)}
    if told.scales.heads:
        tables[SCALES] = scales_table(told.scales)
        draw_scales(told, folder)
    for name, table in tables.items():
        table.to_csv(folder / name, index=False, lineterminator="\n")
    record = record_observation(observation) | {"applied": record_scales(told)}
    write_json(folder / RECORD, _finite(record))


def _finite(value: Any) -> Any:  # noqa: ANN401 - any data
    """Return data for JSON, which has no infinity and no NaN: null."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    is_number = not isinstance(value, float) or math.isfinite(value)
    return value if is_number else None


def record_observation(observation: Observation) -> dict[str, Any]:
    """Return what an observation says, as data."""
    model = observation.model
    heads = []
    for one in observation.heads:
        assumptions = []
        for each in one.assumptions:
            low, high = each.factor.interval(POINTWISE)
            named = {"name": each.name, "verdict": str(each.verdict)}
            found = {"factor": each.factor.value, "low": low, "high": high}
            assumptions.append(named | found)
        place = {"layer": one.head.layer, "head": one.head.head}
        heads.append({**place, "state": one.state, "assumptions": assumptions})
    return {
        "d_k": model.d_k,
        "layers": model.layers,
        "heads_per_layer": len(model.head_labels),
        "key_heads_per_layer": len(set(model.key_heads.values())),
        "n_sequences": observation.n_sequences,
        "intervals": observation.n_sequences >= FEWEST,
        "most_keys": model.most_tokens,
        "most_rows": MOST_ROWS,
        "spectral_rows": SPECTRAL_ROWS,
        "causal": model.causal,
        "divisor": observation.divisor,
        "seed": observation.seed,
        "heads": heads,
        "dead": observation.dead,
    }


def record_scales(told: ScaleAnswer) -> dict[str, Any]:
    """Return what is said of the applied scale, as data: heads, and what is alike."""
    heads = told.scales.heads
    return {
        "expected": told.expected.typed,
        "expected_divisor": told.expected.value,
        "expected_by": told.expected.said or None,
        "source": heads[0].source if heads else None,
        "rtol": told.rtol,
        "answer": told.answer,
        "heads": [describe(one) for one in heads],
        "findings": [_record_finding(one) for one in told.findings],
    }


def _record_finding(found: Finding) -> dict[str, Any]:
    first = found.first
    known = [one.name for one in first.known]
    return {
        "places": found.places,
        "outcome": first.outcome,
        "answer": found.answer,
        "divisor": found.divisor,
        "half_width": found.half_width,
        "within": known if first.is_known else [],
        "nearest": known,
        "ratio": found.ratio,
        "hints": found.hints,
        "form": first.form,
        "parameter": first.parameter,
        "mask": first.mask.mask,
        "window": first.mask.window,
        "sums": first.mask.sums,
        "row_sum": first.mask.row_sum,
    }


def print_observation(
    observation: Observation, told: ScaleAnswer, written: Sequence[Path]
) -> None:
    """Print the applied scale, the heads farthest off, and the paths written.

    First the arrays, if any, that are in files and were not read.
    """
    model = observation.model
    if model.unread:
        more = ", ..." if len(model.unread) > MOST_LINES else ""
        print_lines(
            f"not read: {on_one_line(', '.join(model.unread[:MOST_LINES]))}{more} "
            "(--names tells what arrays are: of attention weights, or of values and "
            "outputs together)"
        )
    print_lines(say_answer(told))
    print_lines(say_next(told))
    if told.scales.heads:
        for found in say_findings(told):
            print_lines(f"  {found}")
    else:
        size = math.sqrt(observation.overall["score_variance"].value / model.d_k)
        print_lines(f"  {say_without_evidence(size)}")
    if observation.dead:
        print_lines(
            "left out, since queries or keys are the same for every token (layer, "
            f"head): {_list(observation.dead)}"
        )
    console = open_console(sys.stdout, highlight=False)
    headings = ["layer", "head", "Var(q.k)", "within rows", "divided", "right divisor"]
    more_headings = ("state", "what fails, and the factor it alone makes")
    divisors = {
        one.head: "-" if math.isnan(one.divisor) else f"{one.divisor:.4g}"
        for one in told.scales.heads
    }
    headings += ["applied divisor"] * bool(divisors)
    rows = [
        _row(one, [divisors[one.head]] if divisors else [])
        for one in sorted(observation.heads, key=_closeness)[:MOST_LINES]
    ]
    console.print(make_table((*headings, *more_headings), rows, right=len(headings)))
    counts = Counter(one.state for one in observation.heads)
    states = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    console.print(
        printable(
            f"{len(observation.heads)} heads, d_k = {model.d_k}, "
            f"divisor {observation.divisor:.4g}: {states}"
        )
    )
    if observation.n_sequences < FEWEST:
        console.print("fewer than 5 sequences: these tokens are described, no more")
    for path in written:
        print_lines(path)


def _closeness(one: ObservedHead) -> float:
    """Sort heads by how far the divisor is off, those farthest off first."""
    return -abs(math.log(max(one.found["scaled_row_variance"].value, LEAST)))


def _row(one: ObservedHead, divisor: Sequence[str]) -> tuple[str, ...]:
    causes = ", ".join(
        f"{each.name} {each.factor.value:.3g}" for each in one.failing[:MOST_CAUSES]
    )
    numbers = (f"{one.found[name].value:.4g}" for name in SHOWN)
    return (*map(str, one.head), *numbers, *divisor, one.state, causes or "-")


def _list(heads: Iterable[Head]) -> str:
    named = [f"({head.layer}, {head.head})" for head in heads]
    return " ".join(named[:MOST_LINES]) + " ..." * (len(named) > MOST_LINES)
