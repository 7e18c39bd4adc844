"""What `report` and `figures` ask for, from options to files on disk.

Flags stand over a configuration file, which stands over defaults.  Every problem is an
`InputError` of one line, found before anything is sampled.
"""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, require_replicates
from montecarlo.cli.command_line import ResultsOptions
from montecarlo.cli.options import require_defaults
from montecarlo.errors import InputError
from montecarlo.names import MOST_JOBS, MOST_SEED, look_up, parse_folder
from montecarlo.report.content.findings import Findings
from montecarlo.report.render.contents import page_rows
from montecarlo.report.running import (
    Make,
    Target,
    choose_languages,
    render_again,
    write_report,
)
from montecarlo.small_files import parse_toml, read_small
from montecarlo.study.executors import check_executor
from montecarlo.study.folder import read_record
from montecarlo.study.presets import ERROR_RATE, PRESETS, Grid

Seed = Annotated[int, Meta(ge=0, le=MOST_SEED)]
Jobs = Annotated[int, Meta(ge=1, le=MOST_JOBS)]
#: Where a report is written if nothing is said.
OUTPUT = "output"
#: Options that a configuration file may have as well.
FLAGS = ("preset", "lang", "output", "seed", "jobs", "executor", "scheduler")
#: Options that do not act where nothing is sampled, and where a run.json says what is.
OF_SAMPLING = (
    *("seed", "preset", "jobs", "executor", "scheduler", "config"),
    *("max_seconds", "replicates_from", "fresh"),
)
SAID_BY_RUN = ("seed", "preset", "config", "max_seconds")
#: What a run.json says in the place of options, and all that is needed of one.
REPEATED = ("seed", "error_rate", "only", "grid")
RECORDED = (*REPEATED, "preset", "languages", "replicates")


class Configuration(Struct, frozen=True, forbid_unknown_fields=True):
    """What a configuration file may say; ``grid`` takes the place of a preset."""

    seed: Seed = 1
    preset: str = "standard"
    lang: Annotated[tuple[str, ...], Meta(min_length=1)] = ("all",)
    only: tuple[str, ...] = ()
    output: str = OUTPUT
    jobs: Jobs | None = None
    executor: str | None = None
    scheduler: str | None = None
    error_rate: float = ERROR_RATE
    grid: Grid | None = None


def write_or_render(  # noqa: PLR0913 - for two commands
    options: ResultsOptions,
    typed: Sequence[str],
    make: Make,
    *,
    only: Sequence[str] | None = None,
    whole: bool = True,
    with_data: bool = True,
) -> tuple[Findings, Sequence[Path]]:
    """Sample and write what options ask for, or render earlier results again.

    ``make`` writes the report; ``only`` are the claims that were asked for, where not
    all are; ``whole`` and ``with_data`` tell whether all of a report is written, and
    whether results stand beside it.  Returns the results and the files.
    """
    if options.source is not None:
        require_defaults(options, OF_SAMPLING, "--from")
        languages = choose_languages(options.lang or ())
        output = options.output or parse_folder("output", OUTPUT)
        if not whole or only or languages:
            _require_other_folder(options.source, output)
        target = Target(output, languages, typed, only=only or ())
        return render_again(options.source, target, make, with_data=with_data)
    settings: dict[str, Any] = {
        name: value for name in FLAGS if (value := getattr(options, name)) is not None
    }
    if options.output is not None:
        settings["output"] = str(options.output)
    if only is not None:
        settings["only"] = only
    if options.replicates_from is None:
        study, configuration = _configured(settings, options.config)
    else:
        require_defaults(options, SAID_BY_RUN, "--replicates-from")
        if only is not None:
            raise InputError("--replicates-from must stand without --only")
        study, configuration = _repeated(settings, options.replicates_from)
    if options.max_seconds is not None and not options.max_seconds > 0.0:
        raise InputError(f"max-seconds must be more than 0, got {options.max_seconds}")
    target = Target(
        parse_folder("output", configuration.output),
        choose_languages(configuration.lang),
        typed,
        configuration.jobs,
        configuration.executor,
        configuration.scheduler,
        quiet=options.quiet,
        fresh=options.fresh,
        max_seconds=options.max_seconds,
        only=tuple(dict.fromkeys(configuration.only)),
    )
    require_replicates(study)
    return write_report(study, target, make=make, with_data=with_data)


def _require_other_folder(source: Path, output: Path) -> None:
    """Refuse to write a part of a report where the whole of it is."""
    if source.resolve() == output.resolve():
        raise InputError(
            f"--output must name another folder than {str(source)!r}, which loses what "
            "is not written anew"
        )


def _configured(
    flags: Mapping[str, Any], file: Path | None
) -> tuple[Study, Configuration]:
    """Return the study of flags over a configuration file."""
    settings: dict[str, Any] = {}
    if file is not None:
        settings = parse_toml(f"config {str(file)!r}", read_small("config", file))
    if "preset" in flags:
        settings.pop("grid", None)
    configuration = configure(settings | dict(flags), file)
    preset = "" if configuration.grid else configuration.preset
    grid = configuration.grid or look_up("preset", preset, PRESETS)
    return _study(configuration, grid, preset), configuration


def _repeated(flags: Mapping[str, Any], file: Path) -> tuple[Study, Configuration]:
    """Return the study of a run.json, with its replicates."""
    record = read_record(file)
    if "own_claims" in record:
        raise InputError(
            "replicates-from must be the run.json of a report on the five texts, got "
            f"one on claims of one's own: {str(file)!r}"
        )
    if missing := set(RECORDED) - set(record):
        raise InputError(f"replicates-from must hold {min(missing)!r}")
    settings = {name: record[name] for name in REPEATED} | {"lang": record["languages"]}
    configuration = configure(settings | dict(flags), file)
    if configuration.grid is None:
        raise InputError(f"replicates-from must hold a grid, got {str(file)!r}")
    study = replace(
        _study(configuration, configuration.grid, record["preset"]),
        replicates=record["replicates"],
        time_limit_reached=bool(record.get("time_limit_reached")),
    )
    return study, configuration


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
        page_rows,
        whole_grid=not configuration.only,
    )


def configure(settings: Mapping[str, Any], file: Path | None = None) -> Configuration:
    """Validate settings, of a file where one is given; a refusal says where."""
    try:
        configuration = msgspec.convert(settings, Configuration, strict=True)
    except msgspec.ValidationError as error:
        message = str(error).replace(" - at `$.", ", at `").replace("`$`", "it")
        where = f"{file}: " if file else ""
        for name, value in settings.items():
            if message.endswith(f", at `{name}`"):
                message += f", got {reprlib.repr(value)}"
        raise InputError(f"{where}{message}") from None
    check_executor(configuration.executor, configuration.jobs, configuration.scheduler)
    return configuration
