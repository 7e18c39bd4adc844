"""An author's file beside the fingerprints of the text that was judged."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.content.texts.author_texts import (
    MOST_BYTES,
    compare_text,
    know_text,
    read_author_file,
    read_author_texts,
    read_known_texts,
    require_erratum,
    text_paths,
)

ROOT = Path(__file__).parents[4]
TEXTS = ROOT.parent / "shared" / "texts"
MADE_UP = "---\ntitle: Nichts.\n---\n\nEins ist da. Zwei auch.\n\n- Drei fehlt nie.\n"


@pytest.fixture
def known():
    """What is known of the made-up text."""
    return know_text(MADE_UP, "de")


def test_own_file_has_every_sentence(known):
    """The judged text itself does not differ, whatever its line ends and white space
    at its end.
    """
    assert list(known.sentences) == [(5, 1), (5, 2), (7, 1)]
    for text in (MADE_UP, MADE_UP.replace("\n", "\r\n"), MADE_UP.rstrip("\n")):
        author = compare_text(known, text, "de")
        assert not author.differs
        assert author.quotation(5, (1, 2), "de") == "Eins ist da. Zwei auch."
        assert author.quotation(7, (1,), "de") == "Drei fehlt nie."


def test_sentence_is_found_where_it_has_moved(known):
    """Lines that have moved are found by their fingerprints, and the file differs."""
    author = compare_text(known, "Drei  fehlt nie. Vier.\n\nZwei auch.", "de")
    assert author.differs
    assert author.quotation(7, (1,), "de") == "Drei  fehlt nie."
    assert author.quotation(5, (2,), "de") == "Zwei auch."
    assert author.quotation(5, (1,), "de") is None
    assert author.quotation(5, (1, 2), "de") is None


def test_sentence_that_was_changed_is_not_quoted(known):
    """A sentence with another sign is not the one that was judged."""
    author = compare_text(known, MADE_UP.replace("Eins", "Keins"), "de")
    assert author.differs
    assert author.quotation(5, (1,), "de") is None
    assert author.quotation(5, (2,), "de") == "Zwei auch."


def test_position_goes_before_another_place():
    """Of two sentences that differ in white space alone, each is its own."""
    text = "Eins  da.\n\nEins da."
    author = compare_text(know_text(text, "de"), text, "de")
    assert author.quotation(1, (1,), "de") == "Eins  da."
    assert author.quotation(3, (1,), "de") == "Eins da."


def test_sentences_are_joined_as_their_language_does():
    """Chinese and Japanese have no space between sentences."""
    text = "一。二。"
    author = compare_text(know_text(text, "zh"), text, "zh")
    assert author.quotation(1, (1, 2), "zh") == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\xffb", r"be .*UTF-8, got .* with the byte 0xff at 1"),
        (b"a\nb\x1b[2J", r"be .*without control characters, got .* U\+001B in line 2"),
        ("a\u202eb".encode(), r"be .*U\+202E in line 1"),
        (b"\x00", r"be .*U\+0000"),
        (
            b"a" * (MOST_BYTES + 1),
            f"have at most {MOST_BYTES} bytes, got more",
        ),
    ],
)
def test_file_that_is_no_text_is_refused(tmp_path, content, message):
    """What is no UTF-8, too long or holds control characters is told in one line."""
    path = tmp_path / "text.md"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^text 'de' must {message}") as error:
        read_author_file("de", path)
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_file_as_long_as_may_be_is_read(tmp_path):
    """The limit itself, a byte order mark, tabs and line ends are no harm."""
    path = tmp_path / "text.md"
    lines = (b"b" * 9999 + b"\n") * (MOST_BYTES // 10_000)
    rest = MOST_BYTES - 7 - len(lines)
    path.write_bytes(b"\xef\xbb\xbf\ta\r\n" + lines + b"b" * rest)
    assert read_author_file("de", path).startswith("\ta\r\nb")


def test_long_lines_are_refused(tmp_path):
    """A line that no text has would take long to split."""
    path = tmp_path / "text.md"
    path.write_text(f"a\n{'b' * 10_001}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"at most 10000 characters, got .* 10001$"):
        read_author_file("de", path)


def test_missing_file_is_told(tmp_path):
    """A file that cannot be read, or is a folder, is told with the reason."""
    for path in (tmp_path / "none.md", tmp_path):
        with pytest.raises(ValueError, match="text 'ja' must be a readable file, got"):
            read_author_file("ja", path)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["de"], "text must be KEY=FILE, got 'de'"),
        (["=x"], "text must be KEY=FILE, got '=x'"),
        (["de="], "text must be KEY=FILE, got 'de='"),
        (["fr=x"], "text must be one of de, zh-chat, zh-post, ja, es; got 'fr'"),
        (["de=x", "de=y"], "text must name each key once, got 'de' twice"),
    ],
)
def test_option_that_is_wrong_is_told(typed, message):
    """The option, what it must be, and what came."""
    with pytest.raises(ValueError, match=re.escape(message)):
        read_author_texts(typed)


def test_path_may_hold_the_sign_between():
    """All behind the first sign is the file."""
    assert text_paths(["de=a=b.md"], ("de",)) == {"de": Path("a=b.md")}


def test_erratum_must_be_written():
    """A file whose erratum is not written is refused before anything is sampled."""
    require_erratum(["zh-post=x"], ("de", "zh"))
    require_erratum(None, ())
    with pytest.raises(ValueError, match="text 'ja' must have its erratum written"):
        require_erratum(["ja=x"], ("de", "zh"))
    with pytest.raises(ValueError, match="got no erratum at all"):
        require_erratum(["ja=x"], ())


def test_repository_holds_fingerprints_and_no_sentence():
    """Every entry is a position and sixteen hexadecimal digits, for every text."""
    source = ROOT / "montecarlo" / "claims" / "fingerprints.toml"
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    assert list(data) == [text.key for text in read_catalogue().text]
    for text in data.values():
        assert set(text) == {"lines", "sha256", "sentences"}
        assert re.fullmatch("[0-9a-f]{64}", text["sha256"])
        assert len(text["sentences"]) > 20
        for position, mark in text["sentences"].items():
            line, number = map(int, re.fullmatch(r"(\d+)\.(\d+)", position).groups())
            assert 1 <= line <= text["lines"]
            assert number >= 1
            assert re.fullmatch("[0-9a-f]{16}", mark)


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the judged texts are not here")
def test_fingerprints_are_those_of_the_texts():
    """The data is what the five texts give, to the last sentence."""
    contents = [p.read_bytes().decode() for p in TEXTS.glob("*.txt")]
    by_digest = {
        hashlib.sha256(text.replace("\r\n", "\n").rstrip("\n").encode()).hexdigest(): (
            text
        )
        for text in contents
    }
    languages = {text.key: text.language for text in read_catalogue().text}
    for key, known in read_known_texts().items():
        assert know_text(by_digest[known.sha256], languages[key]) == known
