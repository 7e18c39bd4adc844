"""What `report` and `figures` share: from options to written files.

Options override a configuration file, which overrides defaults.  Every invalid input
raises `InputError` before anything is sampled; its message is one line.
"""

import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from montecarlo.claims.catalogue import read_catalogue, validation_message
from montecarlo.claims.running import Study
from montecarlo.cli.command_line import ResultsOptions
from montecarlo.cli.options import require_defaults
from montecarlo.errors import InputError
from montecarlo.names import MOST_SEED, look_up, parse_folder
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
from montecarlo.study.presets import ERROR_RATE, PRESETS, Grid

#: Default folder and preset.
OUTPUT, PRESET = "output", "standard"
#: Options that have no effect without sampling.
OF_SAMPLING = ("seed", "preset", "jobs", "executor", "scheduler", "config", "fresh")


class Configuration(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a configuration file, of which ``grid`` replaces a preset."""

    seed: Annotated[int, Meta(ge=0, le=MOST_SEED)] = 1
    only: tuple[str, ...] = ()
    error_rate: float = ERROR_RATE
    grid: Grid | None = None


def write_or_render(  # noqa: PLR0913 - for two commands
    options: ResultsOptions,
    argv: Sequence[str],
    make: Make,
    *,
    only: Sequence[str] | None = None,
    whole: bool = True,
    with_data: bool = True,
) -> tuple[Findings, Sequence[Path]]:
    """Sample and write results as options request, or render earlier results again.

    Parameters
    ----------
    options : ResultsOptions
    argv : sequence of str
        Arguments of the command, for the record of the run.
    make : callable
        Writes the files of the report into the output folder.
    only : sequence of str, optional
        Ids of the requested claims; by default all.
    whole : bool
        Whether all files of a report are written.
    with_data : bool
        Whether the data files are written as well.

    Returns
    -------
    findings : Findings
        The results that the files show.
    paths : sequence of Path
        The written files.

    Raises
    ------
    InputError
        If an option, the configuration or the earlier results are invalid.  With
        ``--from``, also if an option of sampling is given, or if a part of the report
        would replace the whole in its folder.
    """
    output = options.output or parse_folder("output", OUTPUT)
    if options.source is not None:
        require_defaults(options, OF_SAMPLING, "--from")
        languages = choose_languages(options.lang or ())
        if not whole or only or languages:
            _require_other_folder(options.source, output)
        target = Target(output, languages, argv, only=only or ())
        return render_again(options.source, target, make, with_data=with_data)
    check_executor(options.executor, options.jobs, options.scheduler)
    study = _study_of(options, only)
    target = Target(
        output,
        choose_languages(options.lang or ("all",)),
        argv,
        options.jobs,
        options.executor,
        options.scheduler,
        quiet=options.quiet,
        fresh=options.fresh,
        only=() if study.whole_grid else [one.id for one in study.catalogue.claim],
    )
    return write_report(study, target, make=make, with_data=with_data)


def _require_other_folder(source: Path, output: Path) -> None:
    """Raise `InputError` if both folders are the same.

    Otherwise a part of a report would replace the whole of it.
    """
    if source.resolve() == output.resolve():
        raise InputError(
            f"--output must name another folder than {str(source)!r}, where files that "
            "are not written again would be lost"
        )


def _study_of(options: ResultsOptions, only: Sequence[str] | None) -> Study:
    """Return the study that a configuration file and options describe.

    Options override the file; ``--preset`` overrides its grid.  ``only`` are ids of the
    requested claims.  With None, these are the claims that the file names, or all.
    """
    settings: dict[str, Any] = {}
    if options.config is not None:
        name = f"config {str(options.config)!r}"
        settings = parse_toml(name, read_small("config", options.config))
    if options.preset is not None:
        settings.pop("grid", None)
    flags = {"seed": options.seed, "only": only}
    settings |= {name: value for name, value in flags.items() if value is not None}
    configuration = _parse_settings(settings, options.config)
    preset = "" if configuration.grid else options.preset or PRESET
    grid = configuration.grid or look_up("preset", preset, PRESETS)
    grid.points()  # raises InputError for an invalid grid
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


def _parse_settings(settings: Mapping[str, Any], file: Path | None) -> Configuration:
    """Return settings as a `Configuration`; invalid ones raise `InputError`.

    ``file`` is the file of the settings, for messages; None if there is none.
    """
    try:
        return msgspec.convert(settings, Configuration, strict=True)
    except msgspec.ValidationError as error:
        message = validation_message(error, Configuration)
        for name, value in settings.items():
            if message.endswith(f", at `{name}`"):
                message += f", got {reprlib.repr(value)}"
        if "claim" in settings:
            message = f"config must have no claims; python -m montecarlo judge {file}"
        raise InputError(f"{file}: {message}") from None
