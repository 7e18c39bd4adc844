"""The output folder: ours or not, staged, committed, whole after any interruption."""

import contextlib
import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from montecarlo.study.reading import read_run

from montecarlo.cli import exits
from montecarlo.cli.options import Parser
from montecarlo.study.folder import (
    JOURNAL,
    KEEP_FILES,
    RUN_FILE,
    SCHEMA,
    STAGING,
    TIMING_FILE,
    OutputError,
    ResultsError,
    claiming,
    commit,
    discard_staging,
    file_hash,
    files_of,
    finish_staging,
    open_staging,
    write_json,
)

OLD = {"a.csv": "old a", "figures/one.svg": "old one", "gone.html": "old", "x/y/z": "1"}
NEW = {"a.csv": "new a", "figures/one.svg": "new one", "figures/two.svg": "new two"}
TIMING = "1.0 s"


def stage(output, files, **run):
    """Stage a finished set of files."""
    staging = open_staging(output)
    for name, text in {**files, TIMING_FILE: TIMING}.items():
        path = staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    finish_staging(output, {"seed": 1, **run})


def contents(folder):
    """The text of every file below a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in files_of(folder)
    }


def written(output):
    """What a run has written: everything but run.json and the timing."""
    found = contents(output)
    return {n: t for n, t in found.items() if n not in (RUN_FILE, TIMING_FILE)}


@pytest.fixture
def output(tmp_path):
    """A folder with an earlier report."""
    folder = tmp_path / "output"
    stage(folder, OLD)
    commit(folder)
    return folder


def test_first_report(tmp_path):
    """A set that is staged and committed is there, whole, and read back."""
    output = tmp_path / "deep" / "output"
    stage(output, NEW)
    assert written(output) == {f"{STAGING}/{n}": t for n, t in NEW.items()} | {
        f"{STAGING}/{n}": contents(output)[f"{STAGING}/{n}"]
        for n in (RUN_FILE, TIMING_FILE)
    }
    paths = commit(output)

    assert written(output) == NEW
    assert not (output / STAGING).exists()
    assert [path.relative_to(output).as_posix() for path in paths] == [
        *sorted(NEW),
        RUN_FILE,
    ]
    run = read_run(output)
    assert (run["program"], run["schema"], run["seed"]) == ("montecarlo", SCHEMA, 1)
    assert set(run["sha256"]) == set(NEW)  # neither run.json nor the timing
    assert run["sha256"]["a.csv"] == file_hash(output / "a.csv")


def test_files_of_an_earlier_report_go(output):
    """What an earlier report wrote and the new one does not is removed, and what the
    user keeps there is not.
    """
    (output / "mine.txt").write_text("kept", encoding="utf-8")
    (output / ".gitkeep").touch()
    stage(output, NEW)
    commit(output)

    assert written(output) == {**NEW, "mine.txt": "kept", ".gitkeep": ""}
    assert read_run(output)["sha256"].keys() == NEW.keys()


def test_failed_run_leaves_the_old_report(output):
    """A set that is dropped before it is finished leaves everything as it was."""
    before = contents(output)
    staging = open_staging(output)
    (staging / "a.csv").write_text("half", encoding="utf-8")
    discard_staging(output)

    assert contents(output) == before
    read_run(output)
    discard_staging(output)  # nothing there: nothing to do


def test_unfinished_set_is_thrown_away(output):
    """A run that was killed before its set was finished leaves the old report, and the
    next one starts from an empty place.
    """
    (open_staging(output) / "a.csv").write_text("half", encoding="utf-8")
    assert written(output)["a.csv"] == OLD["a.csv"]
    read_run(output)

    assert list(open_staging(output).iterdir()) == []
    assert written(output) == OLD


class Killed(BaseException):
    """Stands for the end of the process."""


#: What changes the disk, one call at a time.
STEPS = ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree"), (Path, "mkdir"))


class Countdown:
    """Kills the process before one of its steps."""

    def __init__(self, monkeypatch, steps):
        self.left = steps
        for owner, name in STEPS:
            monkeypatch.setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, function):
        """Count a step before it is made."""

        def step(*args, **kwargs):
            if self.left == 0:
                raise Killed
            self.left -= 1
            return function(*args, **kwargs)

        return step


def commit_until(monkeypatch, output, steps):
    """Commit and be killed before a step; tell whether it came to that."""
    with monkeypatch.context() as patch:
        Countdown(patch, steps)
        try:
            commit(output)
        except Killed:
            return True
        return False


def count_steps(monkeypatch, tmp_path):
    """How many steps a commit over an earlier report takes."""
    output = tmp_path / "counted"
    for files in (OLD, NEW):
        stage(output, files)
        if files is OLD:
            commit(output)
    with monkeypatch.context() as patch:
        counter = Countdown(patch, 10**6)
        commit(output)
    return 10**6 - counter.left


def test_interrupted_commit_is_finished_by_the_next_run(monkeypatch, tmp_path):
    """Killed before any step of a commit, a folder says that it is unfinished or is
    whole, and the next run finishes it: all new files, nothing stale, no trace.
    """
    steps = count_steps(monkeypatch, tmp_path)
    assert steps >= len(NEW) + 3
    for step in range(steps):
        output = tmp_path / f"killed-{step}"
        stage(output, OLD)
        commit(output)
        stage(output, NEW)
        assert commit_until(monkeypatch, output, step)
        if (output / RUN_FILE).exists():  # then what it names is all there
            read_run(output)
        else:
            with pytest.raises(ResultsError):
                read_run(output)
        open_staging(output)
        discard_staging(output)

        assert written(output) == NEW, step
        assert read_run(output)["sha256"].keys() == NEW.keys()


def test_commit_interrupted_twice(monkeypatch, tmp_path):
    """Finishing may itself be interrupted, at any step, and is finished by the next."""
    steps = count_steps(monkeypatch, tmp_path)
    for first in range(steps):
        for second in range(0, steps, 2):
            output = tmp_path / f"{first}-{second}"
            stage(output, OLD)
            commit(output)
            stage(output, NEW)
            commit_until(monkeypatch, output, first)
            with monkeypatch.context() as patch:
                Countdown(patch, second)
                with contextlib.suppress(Killed):
                    open_staging(output)
            open_staging(output)
            discard_staging(output)

            assert written(output) == NEW, (first, second)
            read_run(output)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.9])
def test_killed_while_run_json_is_written(monkeypatch, output, fraction):
    """run.json of a staged set is there whole or not at all: half of one would be taken
    for a finished set.
    """
    original = Path.write_text

    def half(path, text, **options):
        original(path, text[: int(len(text) * fraction)], **options)
        raise Killed

    staging = open_staging(output)
    (staging / "a.csv").write_text("new a", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        with pytest.raises(Killed):
            finish_staging(output, {})

    assert list(open_staging(output).iterdir()) == []
    assert written(output) == OLD
    read_run(output)


def test_foreign_folders_are_refused(tmp_path):
    """A folder that holds something else is refused, names it, and is not touched."""
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        open_staging(tmp_path)

    assert contents(tmp_path) == before
    assert not (tmp_path / STAGING).exists()


@pytest.mark.parametrize(
    "text", ['{"program": "other"}', "[1]", "no json", "", '{"schema": 1}', "\x00"]
)
def test_other_programs_run_json_is_not_ours(tmp_path, text):
    """A run.json that is not ours does not make a folder ours."""
    (tmp_path / RUN_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(OutputError, match=RUN_FILE):
        open_staging(tmp_path)


def test_folders_with_keep_files_are_ours(tmp_path):
    """A new folder, an empty one and one with keep-files alone can be written."""
    for name in KEEP_FILES:
        (tmp_path / name).touch()
    assert open_staging(tmp_path).is_dir()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert open_staging(empty).is_dir()


def test_output_that_is_a_file(tmp_path):
    """A file in the place of the folder, or of one above it, is refused in one line."""
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    for output in (file, file / "below"):
        with pytest.raises(OutputError, match="output must be a folder") as caught:
            open_staging(output)
        assert "\n" not in str(caught.value)
    assert file.read_text(encoding="utf-8") == "x"


def test_output_that_cannot_be_written(monkeypatch, tmp_path):
    """What the system refuses is passed on in one line with its reason.  (Permissions
    themselves do not stop a test that is run as root.)
    """

    def refuse(path, *_args, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match=r"can be written, got .*Permission denied"):
        open_staging(tmp_path / "output")


def test_hostile_run_json_removes_nothing_outside(tmp_path):
    """An earlier run.json that names files outside the folder has them not removed."""
    precious = tmp_path / "precious.txt"
    precious.write_text("x", encoding="utf-8")
    output = tmp_path / "output"
    stage(output, OLD)
    commit(output)
    run = json.loads((output / RUN_FILE).read_text(encoding="utf-8"))
    run["sha256"] |= {"../precious.txt": "0", str(precious): "0"}
    write_json(output / RUN_FILE, run)
    stage(output, NEW)
    commit(output)

    assert precious.exists()
    assert written(output) == NEW


def test_changed_and_missing_files_are_refused(output):
    """Reading finds a file that was changed, or is gone, and names it."""
    read_run(output)
    path = output / "figures" / "one.svg"
    path.write_text("old onE", encoding="utf-8")
    with pytest.raises(ResultsError, match=r"'figures/one\.svg' .* missing or changed"):
        read_run(output)
    path.unlink()
    with pytest.raises(ResultsError, match=r"figures/one\.svg"):
        read_run(output)


def refuses(output, name, reason):
    """A new set is refused with a name and what to do, and nothing is touched."""
    before = contents(output)
    with pytest.raises(OutputError, match=reason) as caught:
        stage(output, NEW)
    assert repr(str(output / name)) in str(caught.value)
    assert "move it away, or name another folder" in str(caught.value)
    discard_staging(output)
    assert contents(output) == before


@pytest.mark.parametrize("name", ["a.csv", "gone.html", "x/y/z"])
def test_a_file_changed_by_hand_is_kept(output, name):
    """What is not as it was written is neither replaced nor removed."""
    (output / name).write_text("changed", encoding="utf-8")
    refuses(output, name, "was changed since it was written")
    (output / name).rename(output / "kept.txt")
    stage(output, NEW)
    commit(output)
    assert written(output) == {**NEW, "kept.txt": "changed"}


def test_a_file_of_the_users_own_is_kept(output):
    """One that no run has written, in the place of one that is to come."""
    (output / "figures" / "two.svg").write_text("mine", encoding="utf-8")
    refuses(output, "figures/two.svg", "was not written by an earlier run")


def test_a_file_that_came_while_moving_is_kept(monkeypatch, output):
    """A set that was half moved is not moved on over it."""
    stage(output, NEW)
    assert commit_until(monkeypatch, output, 3)
    late = output / "figures" / "two.svg"
    late.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="was not written by an earlier run"):
        open_staging(output)
    assert late.read_text(encoding="utf-8") == "mine"
    late.unlink()
    open_staging(output)
    discard_staging(output)
    assert written(output) == NEW


@pytest.mark.parametrize("digest", ["0", "", None, 1, ["x"]])
def test_a_file_that_a_foreign_record_names_is_kept(tmp_path, digest):
    """Nobody's run.json gets a file removed whose hash it does not know."""
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    record = {"program": "montecarlo", "sha256": {"thesis.tex": digest}}
    write_json(tmp_path / RUN_FILE, record)
    refuses(tmp_path, "thesis.tex", "was changed since it was written")


@pytest.mark.parametrize("name", ["figures", "x/y", "a.csv", "gone.html"])
def test_nothing_is_written_through_a_link(output, tmp_path, name):
    """A link in the place of a folder or a file is refused, where it leads is not."""
    elsewhere = tmp_path / "elsewhere"
    (output / name).rename(elsewhere)
    (output / name).symlink_to(elsewhere)
    refuses(output, name, "is a link")


@pytest.mark.parametrize("name", [STAGING, JOURNAL, RUN_FILE])
def test_our_own_names_are_no_links(output, tmp_path, name):
    """Nor are the places that a run works in."""
    elsewhere = tmp_path / "elsewhere"
    if name == RUN_FILE:
        (output / name).rename(elsewhere)
    (output / name).symlink_to(elsewhere)
    with pytest.raises(OutputError, match="is a link"):
        open_staging(output)


@pytest.mark.parametrize("name", ["a.csv", "gone.html", "figures/two.svg"])
def test_a_folder_in_the_place_of_a_file(output, name):
    """It is refused by name before anything is moved."""
    (output / name).unlink(missing_ok=True)
    (output / name).mkdir()
    refuses(output, name, "is no file")


def test_a_file_in_the_place_of_a_folder(output):
    """The same the other way round."""
    shutil.rmtree(output / "figures")
    (output / "figures").write_text("mine", encoding="utf-8")
    refuses(output, "figures", "is no folder")


@pytest.mark.parametrize("there", ["deep", "deep/output", ""])
def test_a_failed_block_leaves_no_new_folder(tmp_path, there):
    """Only folders that the block made go, and only if they are empty."""
    output = tmp_path / "deep" / "output"
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(Killed), claiming(output):
        assert output.is_dir()
        raise Killed
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert found == {one for one in ("deep", "deep/output") if there.startswith(one)}
    with contextlib.suppress(Killed), claiming(output):
        (output / JOURNAL).touch()
        raise Killed
    assert (output / JOURNAL).exists()


#: What a disk may answer, and after how much of a text.
FAULTS = [(errno.ENOSPC, 0.0), (errno.EIO, 0.0), (errno.ENOSPC, 0.5), (errno.EIO, 1.0)]


class Faulty:
    """Lets a step of publishing fail as a disk fails; of writing, after a part."""

    def __init__(self, monkeypatch, step, code, fraction):
        self.left, self.failed = step, False
        self.error = OSError(code, os.strerror(code))
        self.fraction = fraction
        write = Path.write_text
        monkeypatch.setattr(Path, "write_text", self.wrap(write, self.partly(write)))
        for owner, name in STEPS:
            if name != "rmtree":  # failing to clean up is passed over
                function = getattr(owner, name)
                monkeypatch.setattr(owner, name, self.wrap(function, self.fail))

    def wrap(self, function, instead):
        """Count a step, and do something else in the place of one."""

        def step(*args, **kwargs):
            self.left -= 1
            return (instead if self.left == -1 else function)(*args, **kwargs)

        return step

    def fail(self, *_args, **_kwargs):
        """Fail without having done anything."""
        self.failed = True
        raise self.error

    def partly(self, write):
        """Write a part, and fail."""

        def half(path, text, **options):
            write(path, text[: int(len(text) * self.fraction)], **options)
            self.fail()

        return half


def keep_line(lines, line, _stream):
    """Note what would be printed."""
    lines.append(line)


@pytest.mark.parametrize(("code", "fraction"), FAULTS)
def test_a_disk_that_fails(monkeypatch, tmp_path, code, fraction):
    """Whichever write, rename or removal of publishing fails: the status is 3 (2 where
    nothing was begun) with one line that has the reason; the earlier report is whole,
    or the folder says that it is not; and the same command finishes it.
    """
    for step in range(99):
        output = tmp_path / str(step)
        stage(output, OLD)
        commit(output)

        def publish(output=output):
            with claiming(output):
                try:
                    stage(output, NEW)
                except BaseException:
                    discard_staging(output)
                    raise
                commit(output)
            return 0

        with monkeypatch.context() as patch:
            faulty = Faulty(patch, step, code, fraction)
            lines = []
            patch.setattr(
                exits, "print_lines", lambda line, _, to=lines: to.append(line)
            )
            status = exits.run(Parser("x", ""), lambda *_: publish(), [])
        if not faulty.failed:
            assert status == 0
            break
        assert status in (2, 3)
        (line,) = lines
        assert os.strerror(code) in line
        assert "\n" not in line
        if (output / RUN_FILE).exists():
            found = written(output)
            there = {n: t for n, t in found.items() if not n.startswith(STAGING)}
            assert there == OLD or set(NEW.items()) <= set(there.items())
            read_run(output)
        else:
            with pytest.raises(ResultsError, match="the same command goes on"):
                read_run(output)
        assert publish() == 0
        assert written(output) == NEW
    assert step > len(NEW) + 5


def test_timing_may_differ(output):
    """What may differ between equal runs is not held against its hash."""
    (output / TIMING_FILE).write_text("2.0 s", encoding="utf-8")

    read_run(output)


def test_other_schema_is_refused(output):
    """Results of another schema are refused with both numbers."""
    run = json.loads((output / RUN_FILE).read_text(encoding="utf-8"))
    write_json(output / RUN_FILE, {**run, "schema": SCHEMA + 1})

    with pytest.raises(ResultsError, match=f"schema {SCHEMA}, got {SCHEMA + 1}"):
        read_run(output)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"schema": 1}', '{"schema": 1, "sha256": [1]}', "{"],
)
def test_unreadable_run_json(tmp_path, text):
    """A run.json that is no record is refused in one line."""
    (tmp_path / RUN_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ResultsError, match=r"readable run\.json"):
        read_run(tmp_path)


def test_no_results(tmp_path):
    """A folder without results, or none at all, is refused in one line."""
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ResultsError, match=r"readable run\.json"):
            read_run(folder)


def test_json_has_no_infinity(tmp_path):
    """Equal data give equal bytes, in the order given; NaN and infinity are refused."""
    path = tmp_path / "one.json"
    write_json(path, {"b": 1, "a": "é"})
    assert path.read_bytes() == '{\n "b": 1,\n "a": "é"\n}\n'.encode()
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": float("inf")})
