"""Captures of several steps of training, one file each, read in their order."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from montecarlo.errors import InputError
from montecarlo.model.heads import Applied, apply_model
from montecarlo.model.model import Model
from montecarlo.model.observing import divisor_value
from montecarlo.model.opening import open_files
from montecarlo.model.steps import FEWEST_STEPS, describe_step
from montecarlo.model.telling import implied_divisor

_NUMBER = re.compile(r"(\d{1,18})(?=\D*$)")
#: Lines of `montecarlo.model.steps.describe_step`.
Lines = list[tuple[object, ...]]


def order_files(files: Sequence[Path]) -> list[tuple[int, Path]]:
    """Return files with their steps: the last number in their names, or their place.

    A shell puts step-1000 before step-200.
    """
    if len(files) < FEWEST_STEPS:
        raise InputError(
            f"--steps must have a file for each of at least {FEWEST_STEPS} steps, got "
            f"{len(files)}"
        )
    found = [_NUMBER.search(path.stem) for path in files]
    numbers = [int(match[1]) for match in found if match is not None]
    if len(set(numbers)) < len(files):
        return list(enumerate(files))
    return sorted(zip(numbers, files, strict=True))


def open_step(arguments: argparse.Namespace, files: Sequence[Path], to: Path) -> Model:
    """Open files as the options say how they lie."""
    to.mkdir()
    return open_files(
        files,
        to,
        axes=arguments.axes,
        names=arguments.names,
        causal=arguments.causal,
    )


def measure_step(
    step: int, path: Path, model: Model, applied: Applied, typed: str | None
) -> Lines:
    """Return the lines of a step; ``typed`` is the divisor, if one was."""
    divisor = divisor_value(typed or implied_divisor(applied), model.d_k)
    return describe_step(step, path.name, model, applied, divisor)


def measure_earlier(
    arguments: argparse.Namespace,
    steps: Sequence[tuple[int, Path]],
    scratch: Path,
    progress: Callable[[int], object],
) -> Lines:
    """Return the lines of all steps but the last."""
    lines: Lines = []
    for done, (step, path) in enumerate(steps[:-1], start=1):
        model = open_step(arguments, [path], scratch / f"step-{done}")
        lines += measure_step(step, path, model, apply_model(model), arguments.divisor)
        progress(done)
    return lines
