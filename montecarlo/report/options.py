"""What a user asked for: flags over a configuration file over defaults, validated.

Every problem is an `InputError` of one line, found before anything is sampled.
"""

import argparse
import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.execution.executors import check_executor
from montecarlo.names import (
    MOST_JOBS,
    MOST_SEED,
    decimal_number,
    jobs_number,
    look_up,
    named_folder,
    seed_number,
)
from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.results.reading import read_record
from montecarlo.small_files import read_small
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
class Options:
    """Validated options of one run."""

    catalogue: Catalogue  # with the claims of ``only`` alone, where there are any
    grid: Grid
    preset: str  # the preset that the grid is; empty for a grid of the user's own
    seed: int  # as in `Configuration`
    error_rate: float
    jobs: int | None
    executor: str | None
    languages: tuple[str, ...]
    only: tuple[str, ...]
    output: Path
    max_seconds: float | None = None  # of sampling
    #: As in `montecarlo.study.running.Study`, like the next.
    replicates: Mapping[str, int] | None = None
    time_limit_reached: bool = False


def read_options(arguments: argparse.Namespace) -> Options:
    """Validate what the command line and the configuration file ask for.

    Parameters
    ----------
    arguments : argparse.Namespace
        With ``seed``, ``preset``, ``lang``, ``only``, ``output``, ``jobs``,
        ``executor``, ``max_seconds`` and ``config`` as typed, None where not.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    """
    settings = dict(_read_file(arguments.config)) if arguments.config else {}
    if arguments.preset is not None:
        settings.pop("grid", None)
    settings |= _typed(arguments)
    configuration = configured(settings, arguments.config)
    preset = "" if configuration.grid else configuration.preset
    grid = configuration.grid or look_up("preset", preset, PRESETS)
    seconds = arguments.max_seconds
    options = _options(configuration, grid, preset)
    return replace(options, max_seconds=None if seconds is None else _seconds(seconds))


def repeated_options(arguments: argparse.Namespace) -> Options:
    """Take from a run.json what was sampled, and from the arguments how to sample it.

    Parameters
    ----------
    arguments : argparse.Namespace
        As for `read_options`; ``replicates_from`` names the file.

    Raises
    ------
    ValueError
        One line: name, requirement, what came.
    """
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
    configuration = configured(settings | _typed(arguments), str(path))
    if configuration.grid is None:
        raise InputError(f"replicates-from must hold a grid, got {str(path)!r}")
    return replace(
        _options(configuration, configuration.grid, record["preset"]),
        replicates=record["replicates"],
        time_limit_reached=bool(record.get("time_limit_reached")),
    )


def _typed(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what the command line says itself."""
    settings: dict[str, object] = {}
    if arguments.seed is not None:
        settings["seed"] = seed_number(arguments.seed)
    if arguments.jobs is not None:
        settings["jobs"] = jobs_number(arguments.jobs)
    for name in ("preset", "lang", "only", "output", "executor"):
        typed = getattr(arguments, name)
        if typed is not None:
            settings[name] = typed
    return settings


def _seconds(typed: str) -> float:
    seconds = decimal_number("max-seconds", typed)
    if not seconds > 0.0:
        raise InputError(f"max-seconds must be more than 0, got {typed}")
    return seconds


def _options(configuration: Configuration, grid: Grid, preset: str) -> Options:
    grid.points()
    catalogue = read_catalogue()
    if configuration.only:
        catalogue = catalogue.only(configuration.only)
    return Options(
        catalogue,
        grid,
        preset,
        configuration.seed,
        configuration.error_rate,
        configuration.jobs,
        configuration.executor,
        choose_languages(configuration.lang),
        tuple(dict.fromkeys(configuration.only)),
        named_folder("output", configuration.output),
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


def _read_file(path: str) -> dict[str, object]:
    content = read_small("config", Path(path))
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"config must be TOML, got {path!r}: {error}") from None


def configured(settings: dict[str, object], path: str | None = None) -> Configuration:
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
