"""Publishing: whole or not at all, whatever fails; nobody else's file is touched."""

import contextlib
import errno
import gc
import json
import os
import shutil
from pathlib import Path

import pytest

from montecarlo.cli import exits
from montecarlo.cli.options import Parser
from montecarlo.errors import InputError, UnfinishedError
from montecarlo.study.folder import (
    DIGEST,
    JOURNAL,
    LOCK,
    RUN_FILE,
    STAGING,
    TIMING_FILE,
    digest,
    files_of,
    publishing,
    read_run,
    write_json,
)
from tests.conftest import NOTHING

RECIPE = {"seed": 1}
OLD = {"a.csv": "old a", "figures/one.svg": "old one", "gone.html": "old", "x/y/z": "1"}
NEW = {"a.csv": "new a", "figures/one.svg": "new one", "figures/two.svg": "new two"}


def publish(output, files=NEW, recipe=None, error=None, **options):
    """Publish files; returns the edition."""
    with publishing(output, ["--seed", "1"], recipe, **options) as edition:
        edition.record = {"seed": 1}
        if recipe is not None:
            (edition.journal / "batch").write_bytes(b"")
        for name, text in files.items():
            path = edition.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        edition.end_part("rendering")
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
    assert paths == [*sorted(NEW), TIMING_FILE, RUN_FILE]
    assert read_run(output)["sha256"].keys() == NEW.keys()
    timing = json.loads((output / TIMING_FILE).read_bytes())
    assert timing["command"] == ["--seed", "1"]
    assert timing["seconds"]["rendering"] >= 0.0
    assert not {STAGING, JOURNAL, LOCK} & {path.name for path in output.iterdir()}


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
        assert f"1 finished batches are kept in {str(output)!r}; " in str(caught.value)
    publish(output, NEW, recipe)
    assert written(output) == NEW


def test_the_folder_is_locked_meanwhile(output):
    """Another edition is refused, with or without a journal of its own, fresh or not;
    afterwards it is not.
    """
    before = contents(output)
    with publishing(output, []) as edition:
        for options in ({}, {"recipe": RECIPE}, {"fresh": True}):
            with pytest.raises(UnfinishedError, match="in use") as caught:
                publish(output, **options)
            assert "\n" not in str(caught.value)
        now = contents(output)
        assert {name: now[name] for name in before} == before
        edition.record = {}
    publish(output)


class Killed(BaseException):
    """Stands for the end of the process."""


class Failing:
    """Lets a step that changes the disk fail, before it is made."""

    #: One call at a time; and the same for a text, which is written in part.
    STEPS = ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree"), (Path, "mkdir"))

    def __init__(self, patch, step, error):
        self.left, self.error, self.failed = step, error, False
        for owner, name in (*self.STEPS, (Path, "write_text")):
            patch.setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, function):
        """Count a step, and fail in the place of one."""

        def step(path, *args, **options):
            if not (options.get("ignore_errors") or {JOURNAL, LOCK} & {*path.parts}):
                self.left -= 1
            if self.left == -1:
                self.failed = True
                if function.__name__ == "write_text":
                    function(path, args[0][: len(args[0]) // 2], **options)
                raise self.error
            return function(path, *args, **options)

        return step


def test_a_kill_at_any_step_is_mended(monkeypatch, tmp_path):
    """Killed before any step, and before any second one, a folder is whole, or without
    run.json, and the same command makes it whole.
    """
    for first in range(99):
        output, failed = tmp_path / f"killed-{first}", []
        publish(output, OLD)
        for second in (first, first % 3):
            with monkeypatch.context() as patch, contextlib.suppress(Killed):
                failing = Failing(patch, second, Killed())
                publish(output, recipe=RECIPE)
            failed.append(failing.failed)
            gc.collect()  # the lock of what was killed, which its traceback keeps
            if (output / RUN_FILE).exists():  # then what it names is all there
                read_run(output)
        publish(output, recipe=RECIPE)
        assert written(output) == NEW, first
        read_run(output)
        if not failed[0]:
            break
    assert first >= 2 * len(NEW) + 3


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails(monkeypatch, tmp_path, code):
    """Whichever write, rename or removal of publishing fails: the status is 3 (2 where
    nothing was begun) with one line that has the reason; and the same command finishes.
    """
    for step in range(99):
        output, lines = tmp_path / str(step), []
        publish(output, OLD)
        with monkeypatch.context() as patch:
            failing = Failing(patch, step, OSError(code, os.strerror(code)))
            patch.setattr(
                exits, "print_lines", lambda line, _, to=lines: to.append(line)
            )
            work = lambda *_, to=output: publish(to) and 0  # noqa: E731
            status = exits.run_work(Parser("x", NOTHING), work, [])
        if not failing.failed:
            break
        assert status in (2, 3)
        (line,) = lines
        assert os.strerror(code) in line
        if (output / RUN_FILE).exists():
            read_run(output)
        publish(output)
        assert written(output) == NEW
    assert status == 0
    assert step > len(NEW) + 5


def refuses(output, reason="is a link, or not as an earlier run wrote it"):
    """A new set is refused in one line, and nothing is touched."""
    before = contents(output)
    with pytest.raises(InputError, match=reason) as caught:
        publish(output)
    assert "\n" not in str(caught.value)
    assert contents(output) == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thesis.tex", "x"),
        *(
            (RUN_FILE, text)
            for text in ('{"program": "other"}', "[1]", "no json", "", '{"sha256": 1}')
        ),
    ],
)
def test_foreign_folders_are_refused(tmp_path, name, text):
    """A folder that holds something else is not touched; nor does a run.json that is
    not ours make it ours.
    """
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert name in refuses(tmp_path, "must be empty or hold")


@pytest.mark.parametrize("recipe", [None, RECIPE])
def test_a_file_that_was_changed_is_refused_before_anything_is_sampled(output, recipe):
    """Its hash is compared when the folder is claimed, not when files are moved."""
    (output / "a.csv").write_text("edited by hand", encoding="utf-8")
    before = contents(output)
    with (
        pytest.raises(InputError, match=r"a\.csv.*not as an earlier run wrote it"),
        publishing(output, [], recipe),
    ):
        pytest.fail("a folder that somebody changed was taken")
    assert contents(output) == before


def test_output_that_is_a_file(tmp_path):
    """A file in the place of the folder, or of one above it, is refused in one line."""
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    for output in (file, file / "below"):
        with pytest.raises(InputError, match="output must be a folder") as caught:
            publish(output)
        assert "\n" not in str(caught.value)
    assert file.read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("named", ["../precious.txt", "/precious.txt", "output.txt"])
@pytest.mark.parametrize("hash_of", ["right", "0", None, ["x"]])
def test_a_file_that_a_foreign_record_names_is_kept(output, named, hash_of):
    """Nobody's run.json gets a file removed or replaced that lies outside, even with
    its hash, or one within whose hash it does not know.
    """
    precious = output / named.lstrip("/")
    precious.write_text("x", encoding="utf-8")
    right = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    run = json.loads((output / RUN_FILE).read_bytes())
    name = str(precious) if named[0] == "/" else named
    run["sha256"][name] = right if hash_of == "right" else hash_of
    write_json(output / RUN_FILE, {**run, DIGEST: digest(run)})
    with contextlib.suppress(InputError):
        publish(output)
    within = named == "output.txt" and hash_of == "right"  # then it was written by us
    assert precious.exists() != within
    assert within or precious.read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("name", ["a.csv", "gone.html", "figures/two.svg"])
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
    assert str(path) in refuses(output)
    path.rename(output / "kept.txt")
    publish(output)
    assert {n: t for n, t in written(output).items() if n != "kept.txt"} == NEW


@pytest.mark.parametrize("name", ["figures", "x/y", STAGING, JOURNAL, LOCK, RUN_FILE])
def test_nothing_is_written_through_a_link(output, tmp_path, name):
    """Wherever it leads to."""
    elsewhere = tmp_path / "elsewhere"
    if (output / name).exists():
        (output / name).rename(elsewhere)
    (output / name).symlink_to(elsewhere)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="is a link"):
        publish(output, recipe=RECIPE)
    assert contents(tmp_path) == before
