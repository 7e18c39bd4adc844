"""From the arguments of ``python -m montecarlo observe`` to a folder of results."""

import argparse
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from montecarlo.errors import InputError
from montecarlo.execution.fingerprint import made_with
from montecarlo.names import look_up_all, parse_folder, parse_seed
from montecarlo.observation.diagnosis import STATES
from montecarlo.observation.observing import divisor_value, observe_model
from montecarlo.observation.opening import open_files
from montecarlo.report.content.observed.record import (
    read_observation,
    write_observation,
)
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.language.messages import require_complete
from montecarlo.report.observed.terminal import heads_bar, print_observed
from montecarlo.report.options import choose_languages
from montecarlo.report.render.observed import make_observed_report
from montecarlo.results.ownership import file_hash
from montecarlo.results.publishing import publishing


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, validated.

    Attributes
    ----------
    files : tuple of Path
    axes : tuple of str or None
    names : str or None
    causal : bool
    divisor : str
        As typed.
    seed : int
    languages : tuple of str
    fail_on : frozenset of str
        States of heads.
    """

    files: tuple[Path, ...]
    axes: tuple[str, ...] | None
    names: str | None
    causal: bool
    divisor: str
    seed: int
    languages: tuple[str, ...]
    fail_on: frozenset[str]


def read_request(arguments: argparse.Namespace) -> Request:
    """Validate the arguments.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    """
    states = {state: state for state in STATES}
    seed = parse_seed(arguments.seed)
    axes = None if arguments.axes is None else tuple(arguments.axes)
    divisor_value(arguments.divisor, 1)
    files = tuple(Path(file) for file in arguments.files)
    # queries and keys may be one array; sequences that count twice are no sequences
    several = [file.resolve() for file in files if file.suffix != ".npy"]
    if len(set(several)) < len(several):
        typed = ", ".join(map(str, files))
        raise InputError(f"files must be different ones, got {typed}")
    return Request(
        files,
        axes,
        arguments.names,
        arguments.causal,
        arguments.divisor,
        seed,
        choose_languages(arguments.lang or ("all",)),
        frozenset(look_up_all("fail-on", arguments.fail_on or (), states)),
    )


def observe_files(arguments: argparse.Namespace, typed: Sequence[str]) -> bool:
    """Observe files and write the report; returns whether a state is failing.

    Parameters
    ----------
    arguments : argparse.Namespace
    typed : sequence of str
        The command line, for timing.json.

    Raises
    ------
    ValueError
        If an argument, a file or the output folder is not usable.
    OSError, RuntimeError
        If the run could not finish; the previous output is as it was.
    """
    request, output = read_request(arguments), parse_folder("output", arguments.output)
    require_complete(read_language(code) for code in request.languages)
    with publishing(output, typed) as edition:
        with tempfile.TemporaryDirectory(dir=edition.folder) as scratch:
            model = open_files(
                request.files,
                Path(scratch),
                axes=request.axes,
                names=request.names,
                causal=request.causal,
            )
            divisor = divisor_value(request.divisor, model.d_k)
            with heads_bar(len(model.heads()), quiet=arguments.quiet) as advance:
                observation = observe_model(model, divisor, request.seed, advance)
        edition.note_time("observing")
        write_observation(observation, edition.folder)
        edition.record = run_record(request)
        observed = read_observation(edition.folder, edition.record)
        view = make_observed_report(observed, request.languages, edition.folder)
        edition.note_time("rendering")
    if not arguments.quiet:
        print_observed(view, edition.written)
    return any(head["state"] in request.fail_on for head in view.record["heads"])


def run_record(request: Request) -> dict[str, Any]:
    """Return what run.json says of an observation; nothing of how it ran."""
    return {
        "kind": "observation",
        "command": canonical_command(request),
        "files": [
            {
                "name": path.name,
                "bytes": path.stat().st_size,
                "sha256": file_hash(path),
            }
            for path in request.files
        ],
        "divisor": request.divisor,
        "seed": request.seed,
        "languages": list(request.languages),
        **made_with(),
    }


def canonical_command(request: Request) -> str:
    """Return what to type to make this report again."""
    words = ["python -m montecarlo observe"]
    names = [path.name for path in request.files]
    alike = len(set(names)) < len(names)
    words += [shlex.quote(str(p) if alike else p.name) for p in request.files]
    if request.axes is not None:
        words.append(f"--axes {','.join(request.axes)}")
    if request.names is not None:
        words.append(f"--names {shlex.quote(request.names)}")
    if request.causal:
        words.append("--causal")
    if request.divisor != "sqrt":
        words.append(f"--divisor {shlex.quote(request.divisor)}")
    return " ".join([*words, f"--seed {request.seed}"])
