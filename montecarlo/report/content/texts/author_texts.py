"""The author's file beside what is known of the text that was judged.

In: ``fingerprints.toml``, which knows every sentence of the texts by position and
fingerprint and holds none, and the files of ``--text KEY=FILE``.  Out: the sentences of
these that an erratum quotes.
"""

import hashlib
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import CONTROL
from montecarlo.errors import InputError
from montecarlo.names import look_up
from montecarlo.report.content.texts.positions import (
    fingerprint,
    prose_lines,
    split_sentences,
)
from montecarlo.small_files import read_small

#: Bytes that an author's file may have; the texts have about five thousand.
MOST_BYTES = 1024**2
#: Characters of a line; those of the texts have some hundred.
MOST_LINE = 10_000
#: A tab and the ends of lines are no harm.
_REFUSED = re.compile(rf"(?![\t\n\r])[{CONTROL}]")

#: Line and number of the sentence within it, both from 1.
Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class KnownText:
    """What is known of a text that was judged, without a word of it."""

    lines: int
    sha256: str  # of the text with its line ends folded
    sentences: Mapping[Position, str]  # position of each sentence to its fingerprint


@dataclass(frozen=True, slots=True)
class AuthorText:
    """An author's file: whether it is the text that was judged, and what was found."""

    differs: bool
    #: Position of each sentence of the judged text that is still in the file, as it
    #: was, to the sentence.
    found: Mapping[Position, str]

    def quotation(self, line: int, numbers: Sequence[int], language: str) -> str | None:
        """Return the sentences of a line as the file has them.

        None if one of them is not in the file as it was, or none is asked for.
        """
        sentences = [self.found.get((line, number), "") for number in numbers]
        joint = "" if language in ("zh", "ja") else " "
        return joint.join(sentences) if sentences and all(sentences) else None


def know_text(text: str, language: str) -> KnownText:
    """Return what is to be known of a text."""
    lines = _fold(text).split("\n")
    marks = {p: fingerprint(s) for p, s in _sentences(text, language).items()}
    return KnownText(len(lines), _digest(text), marks)


def read_known_texts() -> Mapping[str, KnownText]:
    """Read ``fingerprints.toml``: key of each text to what is known of it."""
    source = files("montecarlo.claims").joinpath("fingerprints.toml")
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    known = {}
    for key, text in data.items():
        marks = {}
        for name, mark in text["sentences"].items():
            line, _, number = name.partition(".")
            marks[int(line), int(number)] = mark
        known[key] = KnownText(text["lines"], text["sha256"], marks)
    return known


def compare_text(known: KnownText, text: str, language: str) -> AuthorText:
    """Look for the sentences of a judged text in an author's file.

    Each is taken from its own position if it stands there, else from wherever it
    stands.
    """
    here = _sentences(text, language)
    marks = {position: fingerprint(sentence) for position, sentence in here.items()}
    anywhere = {mark: here[position] for position, mark in marks.items()}
    found = {
        position: here[position] if marks.get(position) == mark else anywhere[mark]
        for position, mark in known.sentences.items()
        if mark in anywhere
    }
    return AuthorText(_digest(text) != known.sha256, found)


def read_author_texts(typed: Sequence[str] | None) -> dict[str, AuthorText]:
    """Read files, ``KEY=FILE`` each, and look in them for what errata quote.

    Raises
    ------
    ValueError
        If a key is not known or given twice, or a file is not usable; one line.
    """
    known = read_known_texts()
    languages = {text.key: text.language for text in read_catalogue().text}
    return {
        key: compare_text(known[key], read_author_file(key, path), languages[key])
        for key, path in text_paths(typed or (), known).items()
    }


def text_paths(typed: Sequence[str], known: Collection[str]) -> dict[str, Path]:
    """Take ``KEY=FILE`` apart.

    Raises
    ------
    ValueError
        If there is no key, no file, an unknown key, or one given twice.
    """
    paths: dict[str, Path] = {}
    for option in typed:
        key, _, path = option.partition("=")
        if not key or not path:
            raise InputError(f"text must be KEY=FILE, got {option!r}")
        look_up("text", key, dict.fromkeys(known))
        if key in paths:
            raise InputError(f"text must name each key once, got {key!r} twice")
        paths[key] = Path(path)
    return paths


def require_erratum(typed: Sequence[str] | None, languages: Collection[str]) -> None:
    """Make sure that there will be an erratum for each file of ``--text``.

    Parameters
    ----------
    typed : sequence of str or None
        As for `read_author_texts`.
    languages : collection of str
        Codes of the languages that are written; none for claims of one's own, which
        have no erratum.

    Raises
    ------
    ValueError
        If the language of a text is not written; one line.
    """
    texts = {text.key: text for text in read_catalogue().text}
    for key in text_paths(typed or (), texts):
        if texts[key].language not in languages:
            written = ", ".join(languages) or "no erratum at all"
            raise InputError(
                f"text {key!r} must have its erratum written, which is in "
                f"{texts[key].language!r}, got {written}"
            )


def read_author_file(key: str, path: Path) -> str:
    """Read a file of ``--text``.

    Raises
    ------
    ValueError
        If it cannot be read, it or a line is too long, it is no UTF-8, or holds control
        characters.
    """
    requirement = f"text {key!r} must be"
    content = read_small(f"text {key!r}", path, MOST_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{requirement} UTF-8, got {str(path)!r} with the byte "
            f"0x{content[error.start]:02x} at {error.start}"
        ) from None
    if refused := _REFUSED.search(text):
        line = _fold(text[: refused.start()]).count("\n") + 1
        raise InputError(
            f"{requirement} without control characters, got {str(path)!r} with "
            f"U+{ord(refused.group()):04X} in line {line}"
        )
    longest = max(map(len, _fold(text).split("\n")))
    if longest > MOST_LINE:
        raise InputError(
            f"{requirement} of lines of at most {MOST_LINE} characters, got "
            f"{str(path)!r} with one of {longest}"
        )
    return text


def _sentences(text: str, language: str) -> dict[Position, str]:
    return {
        (line, number): sentence
        for line, content in prose_lines(_fold(text))
        for number, sentence in enumerate(split_sentences(content, language), start=1)
    }


def _fold(text: str) -> str:
    """Return a text with one kind of line ends, and none at its end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _digest(text: str) -> str:
    return hashlib.sha256(_fold(text).encode()).hexdigest()
