"""Errors to plant, as data, and planting one in a copy of a checkout.

In: a list of errors, each a text of a file and what is put in its place.
"""

import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


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
        """Put the error into a checkout.

        Raises
        ------
        UnusableError
            If the old text is not there exactly once.
        """
        path = root / self.file
        path.write_text(self.planted(root), encoding="utf-8")

    def planted(self, root: Path) -> str:
        """Return the file's text with the error in it; raises as `plant` does."""
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
    """See that each error can be planted; raises `UnusableError` with all that cannot.

    Parameters
    ----------
    mutations : iterable of Mutation
    root : Path
        A checkout.
    """
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
