"""Publishing: whole or not at all, whatever fails; nobody else's file is touched."""

import contextlib
import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from montecarlo.cli import exits
from montecarlo.cli.options import Parser
from montecarlo.errors import UnfinishedError
from montecarlo.study.folder import (
    JOURNAL,
    RUN_FILE,
    STAGING,
    TIMING_FILE,
    ResultsError,
    files_of,
    is_finished,
    read_run,
    seal,
    write_json,
)
from montecarlo.study.journal import JournalError
from montecarlo.study.publishing import KEEP_FILES, OutputError, publishing

RECIPE = {"seed": 1}
BATCH = b"a batch"
OLD = {"a.csv": "old a", "figures/one.svg": "old one", "gone.html": "old", "x/y/z": "1"}
NEW = {"a.csv": "new a", "figures/one.svg": "new one", "figures/two.svg": "new two"}


def publish(output, files=NEW, recipe=None, error=None, **options):
    """Publish files; returns the edition."""
    with publishing(output, ["--seed", "1"], recipe, **options) as edition:
        assert edition.written == ()
        edition.record = {"seed": 1}
        if recipe is not None:
            edition.journal.keep("point", 0, 1, BATCH)
        for name, text in files.items():
            path = edition.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        edition.note_time("rendering")
        if error is not None:
            raise error
    return edition


def contents(folder):
    """The text of every file below a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode(errors="replace")
        for path in files_of(folder)
    }


def written(output):
    """What a run has written: everything but run.json and the timing."""
    found = contents(output)
    return {n: t for n, t in found.items() if n not in (RUN_FILE, TIMING_FILE)}


@pytest.fixture
def output(tmp_path):
    """A folder with an earlier report."""
    publish(tmp_path / "output", OLD)
    return tmp_path / "output"


@pytest.mark.parametrize("recipe", [None, RECIPE])
def test_an_edition_is_moved_into_place(output, recipe):
    """Files, record and timing are there at the end, what an earlier run wrote and the
    new one does not is gone, and what the user keeps there is not.
    """
    (output / "mine.txt").write_text("kept", encoding="utf-8")
    edition = publish(output, recipe=recipe)
    assert written(output) == {**NEW, "mine.txt": "kept"}
    paths = [path.relative_to(output).as_posix() for path in edition.written]
    assert paths == [*sorted(NEW), RUN_FILE]
    assert read_run(output)["sha256"].keys() == NEW.keys()
    timing = json.loads((output / TIMING_FILE).read_bytes())
    assert timing["command"] == ["--seed", "1"]
    assert timing["seconds"]["rendering"] >= 0.0
    assert not {STAGING, JOURNAL} & {path.name for path in output.iterdir()}


@pytest.mark.parametrize("recipe", [None, RECIPE])
@pytest.mark.parametrize("error", [OSError("planted"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old(output, recipe, error):
    """Whatever ends it; what a run has sampled is kept, and it says so."""
    before = contents(output)
    told = UnfinishedError if isinstance(error, OSError) else type(error)
    with pytest.raises(told) as caught:
        publish(output, NEW, recipe, error)
    assert (output / JOURNAL).exists() == (recipe is not None)
    after = contents(output)
    assert {name: after[name] for name in after if JOURNAL not in name} == before
    if recipe and isinstance(error, KeyboardInterrupt):
        assert "1 finished batches are kept" in str(caught.value)
    publish(output, NEW, recipe)
    assert written(output) == NEW


def test_an_interruption_while_the_staging_folder_is_made(monkeypatch, tmp_path):
    """A signal is heard after the call in which it came: the folder is there."""
    make = Path.mkdir

    def make_and_hear(path, *args, **kwargs):
        make(path, *args, **kwargs)
        if path.name == STAGING:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", make_and_hear)
    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "output")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("there", ["deep", "deep/output", ""])
def test_a_first_edition_that_fails_leaves_no_new_folder(tmp_path, there):
    """Only folders that were made for it go."""
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    with pytest.raises(UnfinishedError, match="planted"):
        publish(tmp_path / "deep" / "output", error=OSError("planted"))
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert found == {one for one in ("deep", "deep/output") if there.startswith(one)}


def test_the_folder_is_locked_meanwhile(output):
    """Another edition is refused, with or without a journal of its own, fresh or not;
    afterwards it is not.
    """
    before = contents(output)
    with publishing(output, []) as edition:
        for options in ({}, {"recipe": RECIPE}, {"fresh": True}):
            with pytest.raises(JournalError, match="in use"):
                publish(output, **options)
        now = contents(output)
        assert {name: now[name] for name in before} == before
        edition.record = {}
    publish(output)


class Killed(BaseException):
    """Stands for the end of the process."""


#: What changes the disk while files are moved, one call at a time.
STEPS = ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree"), (Path, "mkdir"))


class Failing:
    """Lets a step fail, before it is made; a text is written in part then.

    ``moving``: only steps of a set that is complete are counted.
    """

    def __init__(self, patch, step, error, part=0.0, *, moving=None):
        self.left, self.error, self.failed, self.moving = step, error, False, moving
        write = Path.write_text

        def half(path, text, **options):
            write(path, text[: int(len(text) * part)], **options)
            self.fail()

        for owner, name in STEPS:
            patch.setattr(owner, name, self.wrap(getattr(owner, name), self.fail))
        patch.setattr(Path, "write_text", self.wrap(write, half))

    def fail(self, *_, **__):
        """Fail without having done anything."""
        self.failed = True
        raise self.error

    def wrap(self, function, instead):
        """Count a step, and do something else in the place of one."""

        def step(*args, **options):
            if self.moving and not is_finished(self.moving):
                return function(*args, **options)
            if options.get("ignore_errors") or JOURNAL in str(args[0]):
                return function(*args, **options)
            self.left -= 1
            return (instead if self.left == -1 else function)(*args, **options)

        return step


def publish_killed(monkeypatch, output, step):
    """Publish and be killed before a step of moving; tell whether it came to that."""
    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        failing = Failing(patch, step, Killed(), moving=output)
        publish(output, recipe=RECIPE)
    return failing.failed


def test_a_kill_while_files_are_moved_is_mended(monkeypatch, tmp_path):
    """Killed before any step, and again before any second one, a folder says that it is
    unfinished or is whole, and the next run finishes it.
    """
    for first in range(99):
        output = tmp_path / f"killed-{first}"
        publish(output, OLD)
        if not publish_killed(monkeypatch, output, first):
            break
        if (output / RUN_FILE).exists():  # then what it names is all there
            read_run(output)
        else:
            with pytest.raises(ResultsError, match="the same command goes on"):
                read_run(output)
        for second in range(0, 9, 4):
            again = tmp_path / f"{first}-{second}"
            shutil.copytree(output, again)
            publish_killed(monkeypatch, again, second)
            publish(again, recipe=RECIPE)
            assert written(again) == NEW, (first, second)
            read_run(again)
    assert first >= len(NEW) + 3


@pytest.mark.parametrize(
    ("code", "part"),
    [(errno.EIO, 0.0), (errno.ENOSPC, 0.5)],
)
def test_a_disk_that_fails(monkeypatch, tmp_path, code, part):
    """Whichever write, rename or removal of publishing fails: the status is 3 (2 where
    nothing was begun) with one line that has the reason; the earlier report is whole,
    or the folder says that it is not; and the same command finishes it.
    """
    for step in range(99):
        output, lines = tmp_path / str(step), []
        publish(output, OLD)
        with monkeypatch.context() as patch:
            error = OSError(code, os.strerror(code))
            failing = Failing(patch, step, error, part)
            patch.setattr(
                exits, "print_lines", lambda line, _, to=lines: to.append(line)
            )
            work = lambda *_, to=output: publish(to) and 0  # noqa: E731
            status = exits.run(Parser("x", ""), work, [])
        if not failing.failed:
            break
        assert status in (2, 3)
        (line,) = lines
        assert os.strerror(code) in line
        assert "\n" not in line
        if (output / RUN_FILE).exists():
            there = {n: t for n, t in written(output).items() if STAGING not in n}
            assert there == OLD or set(NEW.items()) <= set(there.items())
            read_run(output)
        else:
            with pytest.raises(ResultsError, match="the same command goes on"):
                read_run(output)
        publish(output)
        assert written(output) == NEW
    assert status == 0
    assert step > len(NEW) + 5


def refuses(output, name, reason="is a link, or not as an earlier run wrote it"):
    """A new set is refused with a name and what to do, and nothing is touched."""
    before = contents(output)
    with pytest.raises(OutputError, match=reason) as caught:
        publish(output)
    assert str(output / name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(output) == before


@pytest.mark.parametrize(
    "text",
    [None, '{"program": "other"}', "[1]", "no json", "", '{"schema": 1}', "\x00"],
)
def test_foreign_folders_are_refused(tmp_path, text):
    """A folder that holds something else is not touched; nor does a run.json that is
    not ours make it ours.
    """
    name = "thesis.tex" if text is None else RUN_FILE
    (tmp_path / name).write_text(text or "x", encoding="utf-8")
    with pytest.raises(OutputError, match=f"must be empty or hold .*{name}"):
        publish(tmp_path)
    assert contents(tmp_path) == {name: text or "x"}


def test_folders_with_keep_files_are_ours(tmp_path):
    """They stay where they are; a link to a folder is one."""
    for name in KEEP_FILES:
        (tmp_path / name).touch()
    link = tmp_path.with_name("link")
    link.symlink_to(tmp_path)
    publish(link)
    assert written(tmp_path) == {**NEW, **dict.fromkeys(KEEP_FILES, "")}


def test_output_that_is_a_file(tmp_path):
    """A file in the place of the folder, or of one above it, is refused in one line."""
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    for output in (file, file / "below"):
        with pytest.raises(OutputError, match="output must be a folder") as caught:
            publish(output)
        assert "\n" not in str(caught.value)
    assert file.read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("named", ["../precious.txt", "/precious.txt", "output.txt"])
@pytest.mark.parametrize("digest", ["0", None, 1, ["x"]])
def test_a_file_that_a_foreign_record_names_is_kept(output, named, digest):
    """Nobody's run.json gets a file removed that lies outside, or whose hash it does
    not know.
    """
    precious = output / named.lstrip("/")
    precious.write_text("x", encoding="utf-8")
    run = json.loads((output / RUN_FILE).read_bytes())
    run["sha256"][named if named[0] != "/" else str(precious)] = digest
    write_json(output / RUN_FILE, seal(run))
    with contextlib.suppress(OutputError):
        publish(output)
    assert precious.read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("name", ["a.csv", "gone.html", "x/y/z", "figures/two.svg"])
@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_what_is_not_ours_is_kept(output, tmp_path, name, what):
    """Changed by hand, or in the place of a file to come: neither replaced nor removed,
    and not written through; moved away it is in nobody's way.
    """
    path = output / name
    path.unlink(missing_ok=True)
    if what == "file":
        path.write_text("changed", encoding="utf-8")
    elif what == "folder":
        path.mkdir()
    else:
        (tmp_path / "elsewhere").write_text("mine", encoding="utf-8")
        path.symlink_to(tmp_path / "elsewhere")
    refuses(output, name)
    path.rename(output / "kept.txt")
    publish(output)
    assert {n: t for n, t in written(output).items() if n != "kept.txt"} == NEW
    assert (output / "kept.txt").exists()


@pytest.mark.parametrize("name", ["figures", "x/y", STAGING, JOURNAL, RUN_FILE])
def test_nothing_is_written_through_a_link(output, tmp_path, name):
    """Nor is a file taken for a folder."""
    elsewhere = tmp_path / "elsewhere"
    if (output / name).exists():
        (output / name).rename(elsewhere)
    (output / name).symlink_to(elsewhere)
    with pytest.raises(OutputError, match="is a link"):
        publish(output)
    if name == "figures":
        (output / name).unlink()
        (output / name).write_text("mine", encoding="utf-8")
        refuses(output, name)


def test_a_file_that_came_while_moving_is_kept(monkeypatch, output):
    """A set that was half moved is not moved on over it."""
    assert publish_killed(monkeypatch, output, 3)
    late = output / "figures" / "two.svg"
    late.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="not as an earlier run wrote it"):
        publish(output)
    assert late.read_text(encoding="utf-8") == "mine"
    late.unlink()
    publish(output, recipe=RECIPE)
    assert written(output) == NEW


def test_a_record_may_be_long(output):
    """One of half a megabyte takes the place of a short one, and gives it up again."""
    long = {f"{number:0100}.csv": "1" for number in range(2500)}
    publish(output, long)
    assert (output / RUN_FILE).stat().st_size > 2**18
    assert written(output) == long
    publish(output)
    assert written(output) == NEW


def test_results_with_a_pipe_are_refused(output):
    """Not waited for."""
    (output / "a.csv").unlink()
    os.mkfifo(output / "a.csv")
    with pytest.raises(ResultsError, match=r"a\.csv"):
        read_run(output)


@pytest.mark.parametrize("name", [RUN_FILE, JOURNAL])
@pytest.mark.parametrize("beside", [JOURNAL, STAGING])
def test_folders_in_the_place_of_our_files_are_refused(tmp_path, name, beside):
    """What is in them is not deleted, whatever else is there."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("kept", encoding="utf-8")
    if beside == STAGING:
        (tmp_path / beside).mkdir()
    elif name != beside:
        (tmp_path / beside).touch()
    refuses(tmp_path, name)
    assert (tmp_path / name / "mine").read_text(encoding="utf-8") == "kept"
