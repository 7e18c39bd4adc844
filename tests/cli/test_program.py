"""One program: its commands, what each says of itself, and how options are spelt."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import montecarlo
from montecarlo.__main__ import main
from montecarlo.cli.command_line import COMMANDS, purpose_of
from montecarlo.names import PROJECT
from tests.commands import run_python


def test_commands_are_listed_with_a_line_each(capsys):
    """Without a command: the list, as a complaint; with `--help` as an answer."""
    assert main([]) == 2
    told = capsys.readouterr()
    assert main(["--help"]) == 0
    asked = capsys.readouterr()
    assert (told.out, asked.err, told.err) == ("", "", asked.out)
    for name in COMMANDS:
        assert f"  {name:<10} {purpose_of(name)}\n" in asked.out
    assert max(map(len, asked.out.splitlines())) <= 79


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("mesure x", "'measure'"),
        ("--preset x", "command"),
        ("--list quantitys", "'quantities'"),
        ("measure --dk 4", "'--d-k'"),
        ("figures --themee x", "'--theme'"),
        ("judge x --fail-no y", "'--fail-on'"),
        ("observe x --expct y", "'--expect'"),
        ("measure entropy", "must follow its option"),
        ("measure --seed", "--seed"),
        ("measure --quantity max_weight", "'weight_max'?"),
        ("judge", "FILE.toml"),
        ("judge .", "type judge claims.toml, if it has one, or report --from ."),
        ("grid --d-k 64", "from montecarlo import grid"),
        ("judge --list", "--list must stand alone"),
        ("report --row x", "It is one of measure"),
        ("measure --quantity entropy --keys 1", " keys must"),
        ("measure --quantity n_keys", "; got 'n_keys'."),
        ("--list divisors --seed 3", "--seed"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(typed, named, capsys):
    """One line, status 2, with the argument or what was meant."""
    assert main(typed.split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert named in line


def test_version_is_printed(capsys):
    """The version is that of the package, which has it as well."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"montecarlo {version(PROJECT)}\n"
    assert montecarlo.__version__ == version(PROJECT)


def test_the_report_has_a_program_of_its_own():
    """``python -m montecarlo.report`` is what ``python -m montecarlo report`` is."""
    done = run_python("-m", "montecarlo.report", "--langg", "de")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("montecarlo report: error: option must be listed")


@pytest.mark.parametrize("program", ["montecarlo", "montecarlo.report"])
def test_interrupted_imports_end_quietly(program, tmp_path):
    """Ctrl-C before there is a command: its status, and no traceback."""
    (tmp_path / "shlex.py").write_text("raise KeyboardInterrupt\n")
    done = run_python("-m", program, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (130, "")


def test_library_is_there_and_the_package_light():
    """Names of the library are functions, imported when they are asked for."""
    code = (
        "import sys, montecarlo\n"
        "assert not {'numpy', 'importlib.metadata'} & set(sys.modules)\n"
        "from montecarlo import grid, judge, measure, observe\n"
        "import montecarlo.study.presets, montecarlo.cli.judge, montecarlo.model\n"
        "assert all(map(callable, (grid, judge, measure, observe)))\n"
        "assert montecarlo.judge is judge and montecarlo.grid is grid\n"
        "assert set(montecarlo.__all__) <= set(montecarlo._MODULES)\n"
        "assert {*montecarlo.__all__, '__version__'} <= set(dir(montecarlo))\n"
    )
    run_python("-c", code, check=True)
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        montecarlo.mesure  # noqa: B018 - that it raises is what is tested


# --- Help -----------------------------------------------------------------------------


def test_help_and_refusals_are_quick_and_light():
    """They come at once: nothing that computes, draws or renders is imported."""
    code = (
        "import sys, montecarlo.__main__ as m\n"
        "for typed in (['report', '--help'], ['measure', '--dk', '4']):\n"
        "    try: print(m.main(typed))\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'matplotlib', 'jinja2', 'babel', 'bs4',"
        " 'msgspec', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    seconds = []
    for _ in range(3):  # of its processor's: the machine may be busy with other things
        begun = os.times()
        done = run_python("-c", code, check=True)
        ended = os.times()
        seconds.append(sum(ended[2:4]) - sum(begun[2:4]))
    *shown, status, heavy = done.stdout.splitlines()
    assert (status, heavy) == ("2", "[]")
    assert "--preset NAME" in "\n".join(shown)
    assert min(seconds) < 0.5


# --- Completion -----------------------------------------------------------------------

#: Prints what bash completes the words of a command line with.
COMPLETED = r"""
eval "$(python -m shtab --shell=bash montecarlo.cli.command_line.build_program)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shtab_montecarlo; printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (("mea",), {"measure"}),
        (("judge", "--error"), {"--error-rate"}),
        (("measure", "--exact", "--quan"), {"--quantity"}),
        (("report", "--config", "stu"), {"study.toml"}),
    ],
)
def test_a_shell_completes_what_is_typed(typed, found, tmp_path):
    """Commands, their options, and files where an option names one."""
    (tmp_path / "study.toml").touch()
    done = subprocess.run(  # noqa: S603 - our own
        ["/bin/bash", "-c", COMPLETED, "bash", "montecarlo", *typed],
        cwd=tmp_path,
        env=os.environ
        | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == found
