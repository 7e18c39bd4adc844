"""Which planted errors are seen, by the tests or by the quick study.

Run as ``python -m studies.mutations [--jobs N] [NAME...]``.  In: the errors of
``mutations.toml``.  Each is planted alone in a copy of the checkout, where the tests
that mirror its module run, then those of its package, a few of the whole pipeline, and
the quick study.  Out: a table of what saw each first.

Exit status: 0 at most one in twenty came through; 1 more did; 2 a list or a checkout
that cannot be used: an error has no place of its own, or tests fail without one.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from studies.program import HERE, ROOT, run_program

LIST = HERE / "mutations.toml"
#: Tests of several stages together, by rising cost.
PIPELINE = (
    "tests/study/test_measurement.py",
    "tests/test_second_ways.py",
    "tests/study/test_tails.py",
    "tests/claims/test_running.py",
    "tests/claims/test_z_scores.py",
    "tests/test_example.py",
)
STUDY = ("-m", "montecarlo.report", "--preset", "quick", "--lang", "en", "--quiet")
#: Seconds for all that looks at one error: what is not seen by then came through.
#: Without an error, the tests of a folder have three times as many.
SECONDS = 1200.0
#: One of so many may come through.
ALLOWED = 20
#: What changes the text of a file and nothing else.
NOTHING = {".py": "\n# Nothing.\n", ".toml": "\n# Nothing.\n", ".j2": "{# Nothing. #}"}
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
Verdicts = dict[str, str]


class UnusableError(ValueError):
    """A list or a checkout that says nothing of the tests."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """An error to plant.

    Attributes
    ----------
    name : str
    file : str
        From the checkout's root.
    old, new : str
        What stands in the file exactly once, and what is put in its place.
    wrong : str
        What becomes wrong by it.
    known : bool
        Whether it came through once.
    """

    name: str
    file: str
    old: str
    new: str
    wrong: str
    known: bool = False

    def plant(self, root: Path) -> None:
        """Put the error into a checkout; raises as `planted` does."""
        (root / self.file).write_text(self.planted(root), encoding="utf-8")

    def planted(self, root: Path) -> str:
        """Return the file's text with the error in it.

        Raises
        ------
        UnusableError
            If the old text is not there exactly once.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if (found := text.count(self.old)) != 1:
            raise UnusableError(
                f"mutation {self.name}: old must be found once in {self.file}, "
                f"got {found} times"
            )
        return text.replace(self.old, self.new)


def read_mutations(path: Path) -> list[Mutation]:
    """Read a list of errors."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
    return [Mutation(**entry) for entry in entries]


def require_places(mutations: Iterable[Mutation], root: Path) -> None:
    """Raise `UnusableError` with all errors that cannot be planted."""
    complaints = []
    for mutation in mutations:
        try:
            mutation.planted(root)
        except UnusableError as error:
            complaints.append(str(error))
    if complaints:
        raise UnusableError("; ".join(complaints))


def copy_checkout(root: Path, folder: Path) -> Path:
    """Copy the files of a checkout that git does not ignore, as they are now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True)  # noqa: S603
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (source := root / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


@dataclass(frozen=True, slots=True)
class Outcome:
    """What saw an error first, None if nothing did, and after how many seconds."""

    seen_by: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Clean:
    """How a checkout without an error behaves.

    Attributes
    ----------
    verdicts : dict
        Of the quick study.
    text_tests : list of str
        Tests that fail as soon as any text of a file differs, so that they see an
        error without seeing what it does: they are left out.
    """

    verdicts: Verdicts
    text_tests: list[str] = field(default_factory=list)


def targets_of(file: str, root: Path) -> list[str]:
    """Name the tests to run for an error in a file: the nearest first."""
    path = Path(file)
    package = Path("tests", *path.parts[1:-1])
    mirrored = [package / f"test_{path.stem}.py"]
    mirrored += [one for one in (package, *package.parents) if len(one.parts) > 1]
    if path.parts[0] == "report_templates":
        mirrored = [Path("tests/report")]
    found = [one.as_posix() for one in mirrored] + list(PIPELINE)
    return [name for name in dict.fromkeys(found) if (root / name).exists()]


def run(root: Path, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Run Python in a checkout; return its status, None for too slow, and its output.

    The checkout comes first on the path of all that it starts, wherever that works.
    Options that the environment gives to pytest are the caller's, and not for this.
    """
    environment = {
        name: value for name, value in os.environ.items() if "PYTEST" not in name
    } | {"PYTHONPATH": str(root)}
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, *arguments],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=max(0.0, seconds))
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None, ""
            raise
    return process.returncode, output


def failing_tests(
    root: Path, target: str, options: Sequence[str], seconds: float
) -> list[str] | None:
    """Run tests and name those that fail; None if there was not the time."""
    quiet = ("-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-n", "0")
    status, output = run(root, ("-m", "pytest", *quiet, *options, target), seconds)
    if status is None:
        return None
    found = _FAILED.findall(output)
    return found if status in (0, 5) or found else [f"{target}: exit status {status}"]


def study_verdicts(root: Path, seconds: float) -> tuple[int | None, Verdicts]:
    """Run the quick study; return its exit status and all of its verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        status, _ = run(root, (*STUDY, "--output", folder), seconds)
        if status != 0:
            return status, {}
        text = (Path(folder) / "claims.json").read_text(encoding="utf-8")
    return status, dict(_verdicts(json.loads(text), ""))


def _verdicts(node: object, place: str) -> Iterator[tuple[str, str]]:
    """Yield every verdict of a record, by the ids or numbers on the way there."""
    if isinstance(node, dict):
        if isinstance(node.get("verdict"), str):
            yield place, node["verdict"]
        for name, value in node.items():
            yield from _verdicts(value, f"{place}/{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            name = value.get("id", number) if isinstance(value, dict) else number
            yield from _verdicts(value, f"{place}/{name}")


def changed_verdict(before: Verdicts, after: Verdicts) -> str | None:
    """Name the first verdict that changed, a self-check's if any did."""
    changed = [
        f"{name.strip('/')}: {before.get(name, 'none')}, then {after.get(name, 'none')}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    return min(
        changed, key=lambda told: not told.startswith("self_checks"), default=None
    )


def look(
    mutation: Mutation, root: Path, clean: Clean, seconds: float = SECONDS
) -> Outcome:
    """Plant an error in a copy of a checkout, and find what sees it first."""
    begun = time.monotonic()

    def left() -> float:
        return seconds - (time.monotonic() - begun)

    def seen() -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            copy = copy_checkout(root, Path(folder))
            mutation.plant(copy)
            options = ["-x", *(f"--deselect={test}" for test in clean.text_tests)]
            for target in targets_of(mutation.file, copy):
                failing = failing_tests(copy, target, options, left())
                if failing is None:
                    return None
                if failing:
                    return failing[0]
                options.append(f"--ignore={target}")  # it need not run again
            status, verdicts = study_verdicts(copy, left())
        if status is None:
            return None
        if status:
            return f"the study's exit status {status}"
        return changed_verdict(clean.verdicts, verdicts)

    return Outcome(seen(), time.monotonic() - begun)


def behave(
    files: Sequence[str], root: Path, jobs: int, seconds: float = SECONDS
) -> Clean:
    """Run all tests that looking for errors in some files takes, without an error.

    Raises `UnusableError` if one fails, or the study does.
    """
    names = dict.fromkeys(name for file in files for name in targets_of(file, root))
    targets = [
        name for name in names if not any(f"{other}/" in name for other in names)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as other,
        ThreadPoolExecutor(jobs) as pool,
    ):
        pristine = copy_checkout(root, Path(folder))
        edited = copy_checkout(root, Path(other))
        for file in dict.fromkeys(files):
            with (edited / file).open("a", encoding="utf-8") as end:
                end.write(NOTHING[Path(file).suffix])
        found = pool.map(lambda t: failing_tests(edited, t, (), 3 * seconds), targets)
        suspects = []
        for target, failing in zip(targets, found, strict=True):
            if failing is None:
                raise UnusableError(f"{target} must end within {3 * seconds:.0f} s")
            suspects += failing
        for test in suspects:
            if failing_tests(pristine, test, (), seconds) != []:
                raise UnusableError(f"tests must pass without an error, got {test}")
        status, verdicts = study_verdicts(pristine, seconds)
    if status != 0 or not verdicts:
        raise UnusableError(f"the study must exit with 0 and verdicts, got {status}")
    return Clean(verdicts, suspects)


def main(argv: Sequence[str] | None = None) -> int:
    """Plant errors one at a time, and print what saw each."""
    parser = argparse.ArgumentParser("python -m studies.mutations")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--jobs", type=int, default=1, help="errors at a time")
    options = parser.parse_args(argv)
    mutations = read_mutations(LIST)
    if unknown := set(options.names) - {mutation.name for mutation in mutations}:
        parser.error(f"NAME must be in the list, got {', '.join(sorted(unknown))}")
    chosen = [m for m in mutations if not options.names or m.name in options.names]
    begun = time.monotonic()
    try:
        require_places(chosen, ROOT)
        files = [mutation.file for mutation in chosen]
        clean = behave(files, ROOT, options.jobs)
    except UnusableError as error:
        print(f"studies.mutations: {error}", file=sys.stderr)
        return 2
    print(f"Without an error: all passed in {time.monotonic() - begun:.0f} s")
    for test in clean.text_tests:
        print(f"Left out, sees the text of files: {test}")
    print("\n| name | caught by | s |\n|---|---|--:|", flush=True)
    survivors, by_verdict = [], 0
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda m: look(m, ROOT, clean), chosen)
        for mutation, outcome in zip(chosen, outcomes, strict=True):
            print(_line(mutation, outcome), flush=True)
            if outcome.seen_by is None:
                survivors.append(mutation)
            by_verdict += (outcome.seen_by or "").startswith("claims/")
    print(f"\n{len(survivors)} of {len(chosen)} came through")
    print(f"{by_verdict} more changed the verdict of a claim, which nobody may notice")
    for mutation in survivors:
        print(f"- {mutation.name}: {mutation.wrong}")
    return 1 if len(survivors) * ALLOWED > len(chosen) else 0


def _line(mutation: Mutation, outcome: Outcome) -> str:
    nothing = "nothing" if outcome.seconds < SECONDS else "nothing in time"
    seen_by = outcome.seen_by or f"**{nothing}**"
    return f"| {mutation.name} | {seen_by} | {outcome.seconds:.0f} |"


if __name__ == "__main__":
    raise SystemExit(run_program("mutations", main))
