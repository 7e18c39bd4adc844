"""One program: its commands, what each says of itself, and how options are spelt."""

import argparse
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

import montecarlo
from montecarlo.__main__ import COMMANDS, main
from montecarlo.cli.options import FIRST, SHARED, split_names
from montecarlo.names import PROJECT

#: Lines of a command's first group, its heading among them.
MOST_LINES = 12


@pytest.fixture(params=COMMANDS)
def parser(request) -> argparse.ArgumentParser:
    """The parser of each command."""
    return import_module(f"montecarlo.cli.{request.param}").build_parser()


def options(parser):
    """Return what a parser takes, without its help."""
    return [one for one in parser._actions if one.dest != "help"]


def test_commands_are_listed_with_a_line_each(capsys):
    """Without a command: the list, as a complaint; with `--help` as an answer."""
    assert main([]) == 2
    told = capsys.readouterr()
    assert main(["--help"]) == 0
    asked = capsys.readouterr()
    assert (told.out, asked.err) == ("", "")
    assert told.err == asked.out
    for name, purpose in COMMANDS.items():
        (line,) = (
            one for one in asked.out.splitlines() if one.startswith(f"  {name} ")
        )
        assert line.endswith(purpose)
        assert len(line) <= 79


@pytest.mark.parametrize(
    ("typed", "said"),
    [("mesure", "Did you mean 'measure'?"), ("--preset", "command must be one of")],
)
def test_unknown_command_is_refused(typed, said, capsys):
    """One line with what there is, status 2."""
    assert main([typed, "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("montecarlo: ")
    assert said in line


def test_version_is_printed(capsys):
    """The version is that of the package, which has it as well."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"montecarlo {version(PROJECT)}\n"
    assert montecarlo.__version__ == version(PROJECT)


def test_both_ways_to_the_report_are_one():
    """``python -m montecarlo.report`` is what ``python -m montecarlo report`` is."""
    told = [
        subprocess.run(  # noqa: S603 - commands of our own
            [sys.executable, "-m", *words, "--version"],
            capture_output=True,
            check=True,
        ).stdout
        for words in (["montecarlo", "report"], ["montecarlo.report"])
    ]
    assert told[0] == told[1]
    assert b"montecarlo " in told[0]


def test_library_is_there_and_the_package_light():
    """Names of the library are functions, imported when they are asked for."""
    code = (
        "import sys, montecarlo\n"
        "assert not {'numpy', 'importlib.metadata'} & set(sys.modules)\n"
        "from montecarlo import grid, judge, measure, observe\n"
        "import montecarlo.study.presets, montecarlo.cli.judge, montecarlo.model\n"
        "assert all(map(callable, (grid, judge, measure, observe)))\n"
        "assert montecarlo.judge is judge and montecarlo.grid is grid\n"
        "assert set(montecarlo.__all__) <= set(montecarlo._LIBRARY)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        montecarlo.mesure  # noqa: B018 - that it raises is what is tested


# --- Help -----------------------------------------------------------------------------


def test_help_begins_with_what_most_people_need(parser, monkeypatch):
    """Every option stands under a heading; the first group is short enough."""
    monkeypatch.setenv("COLUMNS", "80")
    _, *groups = parser.format_help().split("\n\n")
    headed = [group for group in groups if group.partition("\n")[0].endswith(":")]
    assert headed[0].startswith(f"{FIRST}:\n")
    assert len(headed[0].splitlines()) <= MOST_LINES
    assert len(headed) > 2 or len(options(parser)) < 8
    headings = {group.partition(":")[0] for group in headed}
    assert not headings & {"options", "positional arguments"}
    assert all(action.help for action in parser._actions)


def test_shared_options_are_the_same_everywhere(parser):
    """An option that several commands have takes the same of each."""
    for action in options(parser):
        for flag in action.option_strings:
            if flag in SHARED:
                settings = SHARED[flag]
                assert action.type is settings.get("type"), flag
                assert action.nargs == (0 if "action" in settings else None) or (
                    settings["action"] == "extend"
                )


@pytest.mark.parametrize(
    "typed",
    [["--lang", "de,en"], ["--lang", "de", "--lang", "en"], ["--lang=de , en"]],
)
def test_lists_have_one_spelling(parser, typed):
    """Commas, or the option again: the same list for each option that takes one."""
    for action in options(parser):
        if action.type is not split_names:
            assert not (action.metavar or "").endswith("S"), action.metavar
            continue
        flag = action.option_strings[-1]
        words = [word.replace("--lang", flag) for word in typed]
        needed = ["x"] * sum(not one.option_strings for one in parser._actions)
        found = parser.parse_args([*needed, *words])
        assert getattr(found, action.dest) == ["de", "en"]


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (["report", "--list", "divisors", "--seed", "3"], "--list .* --seed"),
        (["report", "--list", "--only", "x"], "--list .* --only"),
        (["report", "--version", "--quiet"], "--version .* --quiet"),
        (["--list", "divisors", "--lang", "de", "--preset", "x"], "--list .* --preset"),
        (["figures", "--list", "--only", "x"], "--list .* --only"),
        (["figures", "--list", "--output", "x"], "--list .* --output"),
    ],
)
def test_what_would_do_nothing_is_refused(typed, named, capsys):
    """An option beside one that only prints something: one line, status 2."""
    assert main(typed) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(named, line)


def test_a_list_has_a_language(capsys):
    """That of its words."""
    assert main(["--list", "divisors", "--lang", "de"]) == 0
    assert capsys.readouterr().out
