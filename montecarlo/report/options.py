"""What a user asked for: flags over a configuration file over defaults, validated.

Every problem is an `InputError` of one line, found before anything is sampled.
"""

import argparse
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study
from montecarlo.errors import InputError
from montecarlo.names import (
    MOST_JOBS,
    MOST_SEED,
    look_up,
    parse_decimal,
    parse_folder,
    parse_jobs,
    parse_seed,
)
from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.small_files import parse_toml, read_small
from montecarlo.study.executors import check_executor
from montecarlo.study.folder import read_record
from montecarlo.study.presets import ERROR_RATE, PRESETS, Grid

Seed = Annotated[int, Meta(ge=0, le=MOST_SEED)]
Jobs = Annotated[int, Meta(ge=1, le=MOST_JOBS)]
Rate = Annotated[float, Meta(gt=0.0, lt=0.5)]


class Configuration(Struct, frozen=True, forbid_unknown_fields=True):
    """What a configuration file may say; ``grid`` takes the place of a preset."""

    seed: Seed = 1
    preset: str = "standard"
    lang: Annotated[tuple[str, ...], Meta(min_length=1)] = ("all",)
    only: tuple[str, ...] = ()
    output: str = "output"
    jobs: Jobs | None = None
    executor: str | None = None
    error_rate: Rate = ERROR_RATE
    grid: Grid | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where a report is written, in which languages, by whom, and by which command."""

    output: Path
    languages: Sequence[str]
    typed: Sequence[str]  # the command line, for timing.json
    jobs: int | None
    executor: str | None = None  # kind of the workers, None: by their number
    quiet: bool = False  # whether to show no progress
    fresh: bool = False  # whether to drop what an interrupted run left
    max_seconds: float | None = None  # after which sampling ends, whatever is undecided
    only: Sequence[str] = ()  # the claims that were asked for, if not all


def read_options(
    arguments: argparse.Namespace, typed: Sequence[str]
) -> tuple[Study, Target]:
    """Validate what the command line and the configuration file ask for.

    Parameters
    ----------
    arguments : argparse.Namespace
        With ``seed``, ``preset``, ``lang``, ``only``, ``output``, ``jobs``,
        ``executor``, ``max_seconds`` and ``config`` as typed, None where not; where
        ``replicates_from`` names a run.json, that says what is sampled.
    typed : sequence of str
        The command line, for timing.json.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    """
    if arguments.replicates_from is not None:
        return _repeat(arguments, typed)
    settings: dict[str, object] = {}
    if arguments.config:
        content = read_small("config", Path(arguments.config))
        settings |= parse_toml(f"config {arguments.config!r}", content)
    if arguments.preset is not None:
        settings.pop("grid", None)
    configuration = configure(settings | _read_typed(arguments), arguments.config)
    preset = "" if configuration.grid else configuration.preset
    grid = configuration.grid or look_up("preset", preset, PRESETS)
    return _study(configuration, grid, preset), _target(configuration, arguments, typed)


def _repeat(
    arguments: argparse.Namespace, typed: Sequence[str]
) -> tuple[Study, Target]:
    """Take from a run.json what was sampled, from the arguments how to sample it."""
    for name in ("seed", "preset", "only", "config", "max_seconds"):
        if getattr(arguments, name) is not None:
            raise InputError(
                f"--replicates-from must stand without --{name.replace('_', '-')}: "
                "run.json says it"
            )
    path = Path(arguments.replicates_from)
    record = read_record(path)
    if "own_claims" in record:
        raise InputError(
            "replicates-from must be the run.json of a report on the five texts, got "
            f"one on claims of one's own: {str(path)!r}"
        )
    taken = ("seed", "error_rate", "only", "grid", "preset", "languages", "replicates")
    if missing := set(taken) - set(record):
        raise InputError(f"replicates-from must hold {min(missing)!r}")
    settings = {name: record[name] for name in taken[:4]}
    settings["lang"] = record["languages"]
    configuration = configure(settings | _read_typed(arguments), str(path))
    if configuration.grid is None:
        raise InputError(f"replicates-from must hold a grid, got {str(path)!r}")
    study = replace(
        _study(configuration, configuration.grid, record["preset"]),
        replicates=record["replicates"],
        time_limit_reached=bool(record.get("time_limit_reached")),
    )
    return study, _target(configuration, arguments, typed)


def _read_typed(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what the command line says itself."""
    names = ("preset", "lang", "only", "output", "executor", "seed", "jobs")
    numbers = {"seed": parse_seed, "jobs": parse_jobs}
    return {
        name: numbers[name](typed) if name in numbers else typed
        for name in names
        if (typed := getattr(arguments, name)) is not None
    }


def _study(configuration: Configuration, grid: Grid, preset: str) -> Study:
    grid.points()
    catalogue = read_catalogue()
    if configuration.only:
        catalogue = catalogue.only(configuration.only)
    return Study(
        catalogue,
        grid,
        configuration.seed,
        configuration.error_rate,
        preset,
        whole_grid=not configuration.only,
    )


def _target(
    configuration: Configuration, arguments: argparse.Namespace, typed: Sequence[str]
) -> Target:
    languages = choose_languages(configuration.lang)
    output = parse_folder("output", configuration.output)
    seconds = None
    if arguments.max_seconds is not None:
        seconds = parse_decimal("max-seconds", arguments.max_seconds)
        if not seconds > 0.0:
            raise InputError(
                f"max-seconds must be more than 0, got {arguments.max_seconds}"
            )
    return Target(
        output,
        languages,
        typed,
        configuration.jobs,
        configuration.executor,
        quiet=arguments.quiet,
        fresh=arguments.fresh,
        max_seconds=seconds,
        only=tuple(dict.fromkeys(configuration.only)),
    )


def choose_languages(asked: Sequence[str]) -> tuple[str, ...]:
    """Return codes of languages in the order of `LANGUAGES`; ``all`` stands for all.

    Raises
    ------
    ValueError
        If a language is not known.
    """
    known = {**LANGUAGES, "all": ("", "")}
    for code in asked:
        look_up("language", code, known)
    return tuple(code for code in LANGUAGES if code in asked or "all" in asked)


def configure(settings: dict[str, object], path: str | None = None) -> Configuration:
    """Validate settings, of a file where a path is given.

    Raises
    ------
    ValueError
        One line: the file, what was expected, and where.
    """
    try:
        configuration = msgspec.convert(settings, Configuration, strict=True)
    except msgspec.ValidationError as error:
        message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
        where = f"{path}: " if path else ""
        for name, value in settings.items():
            if message.endswith(f", at `{name}`"):
                message += f", got {reprlib.repr(value)}"
        raise InputError(f"{where}{message}") from None
    if configuration.executor is not None:
        check_executor(configuration.executor, configuration.jobs)
    return configuration
