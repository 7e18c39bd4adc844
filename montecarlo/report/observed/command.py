"""From the arguments of ``python -m montecarlo observe`` to a folder of results."""

import argparse
import json
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from montecarlo.errors import InputError, reading
from montecarlo.model.diagnosis import STATES
from montecarlo.model.heads import apply_model
from montecarlo.model.model import Head, Model
from montecarlo.model.observing import divisor_value, observe_model
from montecarlo.model.rows import sample_row
from montecarlo.model.steps import WARNINGS, judge_steps
from montecarlo.model.telling import (
    RTOL,
    JudgedScales,
    implied_divisor,
    judge_applied,
    require_rtol,
)
from montecarlo.model.usual import EXPECTED, expected_divisor
from montecarlo.names import look_up_all, parse_decimal, parse_folder, parse_seed
from montecarlo.printing import print_lines
from montecarlo.report.figures.applied_scale import draw_scales
from montecarlo.report.observed.record import record_applied, write_observation
from montecarlo.report.observed.stepping import (
    measure_earlier,
    measure_step,
    open_step,
    order_files,
)
from montecarlo.report.observed.terminal import print_observed
from montecarlo.study.fingerprint import made_with
from montecarlo.study.folder import file_hash
from montecarlo.study.progress import open_bar
from montecarlo.study.publishing import publishing


def read_files(typed: Sequence[str]) -> tuple[Path, ...]:
    """Return paths of files; none but queries and keys in one array is given twice."""
    files = tuple(map(Path, typed))
    for file in files:
        with reading("file", file):
            file.stat()
    # sequences that count twice are no sequences
    several = [file.resolve() for file in files if file.suffix != ".npy"]
    if len(set(several)) < len(several):
        raise InputError(
            f"files must be different ones, got {', '.join(map(str, files))}"
        )
    return files


@dataclass(frozen=True, slots=True)
class Told:
    """What an observation says to whoever asked.

    Attributes
    ----------
    failing : bool
        Whether a head is in a state that is named as failing.
    answer : str or None
        Whether scores are divided by what is expected, if that was asked.
    """

    failing: bool
    answer: str | None


def observe_files(arguments: argparse.Namespace, typed: Sequence[str]) -> Told:
    """Observe files, write tables, record and figure, and print the answer.

    Raises
    ------
    ValueError
        If an argument, a file or the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    seed = parse_seed(arguments.seed)
    if arguments.divisor is not None:
        divisor_value(arguments.divisor, 1)
    expected_divisor(arguments.expect or EXPECTED, 1, 1)
    rtol = parse_rtol(arguments.rtol)
    files, quiet = read_files(arguments.files), arguments.quiet or arguments.json
    steps = order_files(files) if arguments.steps else []
    states = {state: state for state in (*STATES, *(WARNINGS if steps else ()))}
    failing = look_up_all("fail-on", arguments.fail_on or (), states)
    output = parse_folder("output", arguments.output)
    with publishing(output, typed) as edition:
        with tempfile.TemporaryDirectory(dir=edition.folder) as scratch:
            lines = []
            if steps:
                with open_bar("earlier steps", quiet=quiet) as update:
                    update(total=len(steps))
                    folder = Path(scratch)
                    lines = measure_earlier(
                        arguments, steps, folder, lambda done: update(completed=done)
                    )
            last = [steps[-1][1]] if steps else files
            model = open_step(arguments, last, Path(scratch) / "last")
            with open_bar("applied scale", quiet=quiet) as update:
                update(total=len(model.heads()))
                applied = apply_model(model, lambda done: update(completed=done))
            if steps:
                lines += measure_step(*steps[-1], model, applied, arguments.divisor)
            asked = arguments.expect or EXPECTED
            expected = expected_divisor(asked, model.d_k, applied.n_heads)
            judged = judge_applied(applied, expected, rtol)
            row = sample_row(model, first_head(judged, model))
            named = arguments.divisor or implied_divisor(applied)
            divisor = divisor_value(named, model.d_k)
            with open_bar("observing", quiet=quiet) as update:
                update(total=len(model.heads()))
                observation = observe_model(
                    model, divisor, seed, lambda done: update(completed=done)
                )
        edition.note_time("observing")
        judged_steps = judge_steps(lines) if steps else None
        write_observation(observation, judged, row, edition.folder, judged_steps)
        if applied.heads:
            draw_scales(judged, edition.folder)
        edition.note_time("writing")
        edition.record = run_record(arguments, files, seed, named)
    warned = [name for name in failing if name in WARNINGS]
    if arguments.json:
        print_lines(json.dumps(record_applied(judged), indent=2))
    elif not arguments.quiet:
        print_observed(observation, judged, judged_steps, edition.written)
    return Told(
        any(view.diagnosis.state in failing for view in observation.heads)
        or bool(judged_steps and any(judged_steps.warnings[name] for name in warned)),
        judged.answer if arguments.expect is not None else None,
    )


def first_head(judged: JudgedScales, model: Model) -> Head:
    """Return the head whose row is shown: one of what is said first."""
    return judged.findings[0].first.head if judged.findings else model.heads()[0]


def parse_rtol(typed: str) -> float:
    """Return how far a divisor may be off, as a part of it."""
    return require_rtol(parse_decimal("rtol", typed))


def run_record(
    arguments: argparse.Namespace,
    files: Sequence[Path],
    seed: int,
    divisor: str,
) -> dict[str, Any]:
    """Return what run.json says of an observation; nothing of how it ran."""
    return {
        "kind": "observation",
        "command": canonical_command(arguments, files, seed),
        "files": [
            {"name": path.name, "bytes": path.stat().st_size, "sha256": file_hash(path)}
            for path in files
        ],
        "divisor": divisor,
        "seed": seed,
        **made_with(),
    }


def canonical_command(
    arguments: argparse.Namespace, files: Sequence[Path], seed: int
) -> str:
    """Return what to type to observe the same again."""
    words = ["python -m montecarlo observe"]
    names = [path.name for path in files]
    alike = len(set(names)) < len(names)
    words += [shlex.quote(str(p) if alike else p.name) for p in files]
    if arguments.axes is not None:
        words.append(f"--axes {','.join(arguments.axes)}")
    if arguments.names is not None:
        words.append(f"--names {shlex.quote(arguments.names)}")
    if arguments.causal:
        words.append("--causal")
    if arguments.steps:
        words.append("--steps")
    if arguments.expect is not None:
        words.append(f"--expect {shlex.quote(arguments.expect)}")
    if arguments.rtol != str(RTOL):
        words.append(f"--rtol {arguments.rtol}")
    if arguments.divisor is not None:
        words.append(f"--divisor {shlex.quote(arguments.divisor)}")
    return " ".join([*words, f"--seed {seed}"])
