r"""The sentences of a text, by line and number, and what tells each from all others.

In: the text of a Markdown file in one of five languages.  Out: its lines of prose, the
sentences of each, and fingerprints of these, which say nothing of what stands in them.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator

#: Formulas and code, within which no sentence ends.
_WHOLE = re.compile(
    r"\$\$.+?\$\$|\$[^$]+\$|\\\\\(.*?\\\\\)|\\\\\[.*?\\\\\]|\\\(.*?\\\)|\\\[.*?\\\]"
    r"|`[^`]+`"
)
_BRACKETS = {"(": ")", "[": "]", "（": "）", "［": "］", "【": "】", "〔": "〕"}
_QUOTES = {
    "de": {"„": "“", "‚": "‘", "»": "«", "«": "»"},
    "es": {"«": "»", "“": "”", "‘": "’"},
    "zh": {"“": "”", "‘": "’", "「": "」", "『": "』", "《": "》"},
    "ja": {"「": "」", "『": "』", "“": "”", "《": "》"},
    "en": {"“": "”", "‘": "’", "«": "»"},
}
#: Languages that write sentences without a space between them.
_UNSPACED = ("zh", "ja")
_FULL_WIDTH_ENDS = "。！？"
_ENDS = ".!?" + _FULL_WIDTH_ENDS
#: What stands behind an end and belongs to the sentence before it.
_AFTER_END = re.compile(rf"[{_ENDS}]*(?:\*\*|__|[\"*_)\]’”“‘»«）］】〕」』》])*")
#: A mark of a heading, a quotation or a list, before the first sentence of a line.
_MARK = re.compile(r"\s*(?:(?:#{1,6}|>|[-*+]|\d{1,3}[.)])\s+)*")
#: Words before a point that ends no sentence; any single letter is one as well.
_SHORTENED = {
    "de": {"abb", "abschn", "al", "bspw", "bzw", "ca", "dr", "evtl", "gl", "nr", "prof"}
    | {"sog", "tab", "vgl"},
    "es": {"al", "cap", "dr", "dra", "ec", "ej", "fig", "núm", "pág", "prof", "sr"}
    | {"sra", "vs"},
    "en": {"al", "cf", "dr", "eq", "fig", "mr", "mrs", "no", "prof", "sec", "vs"},
}
_LAST_WORD = re.compile(r"([^\W\d_]+)\Z")
_FENCE = re.compile(r"\s*(```|~~~|\$\$)")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*")


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that hold sentences, with their numbers from 1.

    Front matter, displayed formulas and code, rules and empty lines hold none.

    Parameters
    ----------
    text : str
    """
    lines = text.split("\n")
    closing = "---" if lines[:1] == ["---"] and "---" in lines[1:] else ""
    for number, line in enumerate(lines, start=1):
        if closing:
            if number > 1 and line.strip().startswith(closing):
                closing = ""
        elif (fence := _FENCE.match(line)) and line.count(fence[1]) == 1:
            closing = fence[1]
        elif not fence and line.strip() and not _RULE.fullmatch(line):
            yield number, line


def split_sentences(line: str, language: str) -> list[str]:
    r"""Split one line of Markdown into its sentences.

    A sentence ends at one of ``. ! ?`` and their full-width forms, never within a
    formula, brackets or quotes; what closes behind the end belongs to it.  A point
    behind a shortened word, a single letter or the number of a list ends none.

    Parameters
    ----------
    line : str
    language : str
        A code of two letters.

    Returns
    -------
    list of str
        Without the mark of a heading or list; none for a line without words.

    Examples
    --------
    >>> split_sentences("- Es gilt z. B. \\(a. B\\). Und 2.5 (ja. Ja) auch!", "de")
    ['Es gilt z. B. \\(a. B\\).', 'Und 2.5 (ja. Ja) auch!']
    """
    mark = _MARK.match(line)
    start = place = mark.end() if mark else 0
    pieces = []
    while place < len(line):
        if (end := _end_of_group(line, place, language)) is not None:
            place = end
        elif line[place] in _ENDS and _ends(line, start, place, language):
            place = _end_of_sentence(line, place, language)
            pieces.append(line[start:place])
            start = place
        else:
            place += 1
    pieces.append(line[start:])
    sentences: list[str] = []
    for piece in pieces:
        if re.search(r"\w", piece):
            sentences.append(piece)
        elif sentences:  # a colon behind a closed emphasis
            sentences[-1] += piece
    return [sentence.strip() for sentence in sentences]


def fingerprint(sentence: str) -> str:
    """Return what a sentence is known by, whatever its white space.

    Parameters
    ----------
    sentence : str

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    folded = " ".join(unicodedata.normalize("NFC", sentence).split())
    return hashlib.sha256(folded.encode()).hexdigest()[:16]


def _end_of_group(line: str, place: int, language: str) -> int | None:
    """Return where a formula, bracket or quotation that begins here ends, if it does.

    One that is never closed is none, or it would swallow the rest of the line.
    """
    if whole := _WHOLE.match(line, place):
        return whole.end()
    if line[place] == '"':
        closed = line.find('"', place + 1)
        return closed + 1 if closed >= 0 else None
    pairs = _BRACKETS | _QUOTES.get(language, _QUOTES["en"])
    closing = pairs.get(line[place])
    if closing is None:
        return None
    inside = place + 1
    while inside < len(line):
        if line[inside] == closing:
            return inside + 1
        inside = _end_of_group(line, inside, language) or inside + 1
    return None


def _ends(line: str, start: int, place: int, language: str) -> bool:
    """Tell whether the sign at a place ends the sentence that began at the start."""
    sign = line[place]
    if sign in _FULL_WIDTH_ENDS:
        return True
    rest = line[_AFTER_END.match(line, place).end() :]  # type: ignore[union-attr]
    if rest and not rest[0].isspace():
        # without a space only a sign that no number or word holds, before a new word
        return sign != "." and language in _UNSPACED and not rest[0].isascii()
    if sign != ".":
        return True
    before = line[start:place]
    if not re.search(r"[^\W\d_]", before):  # the number of a list or heading
        return False
    word = _LAST_WORD.search(before)
    short = _SHORTENED.get(language, _SHORTENED["en"])
    if word and (len(word[1]) == 1 or word[1].lower() in short):
        return not rest.strip()
    return not rest.lstrip()[:1].islower()


def _end_of_sentence(line: str, place: int, language: str) -> int:
    """Return where a sentence ends whose end stands at a place, with what closes it."""
    place = _AFTER_END.match(line, place).end()  # type: ignore[union-attr]
    if line[place : place + 1] in _BRACKETS:  # a remark that is joined to it
        return _end_of_group(line, place, language) or place
    return place
