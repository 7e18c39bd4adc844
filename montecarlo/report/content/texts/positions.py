r"""The sentences of a text, by line and number, and what tells each from all others.

In: the text of a Markdown file in one of five languages.  Out: its lines of prose, the
sentences of each, and fingerprints of these, which say nothing of what stands in them.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence

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
#: Signs that close where an odd number of them stands before.
_EVEN_SIGNS = ("**", "__", "*", "_", '"')
#: Behind these a sentence goes on, whatever stands before them.
_GOING_ON = ":：,，、;；"
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
#: Letters before a point that are looked at: no shortened word has as many.
LONGEST_WORD = 40
_LAST_WORD = re.compile(r"([^\W\d_]+)\Z")
_FENCE = re.compile(r"\s*(```|~~~|\$\$)")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*")


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that hold sentences, with their numbers from 1.

    Front matter, displayed formulas and code, rules and empty lines hold none.
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
    groups = _ends_of_groups(line, language)
    pieces = []
    while place < len(line):
        end = None
        if (behind := groups[place]) is not None:
            # a sentence may stand in brackets as a whole
            whole = line[place] in _BRACKETS and not line[start:place].strip()
            end = behind if whole and line[behind - 2] in _ENDS else None
        elif line[place] in _ENDS:
            end = _end_of_sentence(line, start, place, language, groups)
        place = end or behind or place + 1
        if end is not None:
            pieces.append(line[start:end])
            start = end
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

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    folded = " ".join(unicodedata.normalize("NFC", sentence).split())
    return hashlib.sha256(folded.encode()).hexdigest()[:16]


def _ends_of_groups(line: str, language: str) -> list[int | None]:
    """Return where a formula, bracket or quotation that begins at each place ends.

    None where none begins, and for one that is never closed, or it would swallow the
    rest of the line.  From the right, so that each place is looked at once.
    """
    pairs = _BRACKETS | _QUOTES.get(language, _QUOTES["en"])
    ends: list[int | None] = [None] * (len(line) + 1)
    # for each sign that closes: where the first one lies that no inner group holds
    closed: dict[str, list[int | None]] = {
        sign: [None] * (len(line) + 1) for sign in {*pairs.values()} & {*line}
    }
    for place in range(len(line) - 1, -1, -1):
        if whole := _WHOLE.match(line, place):
            ends[place] = whole.end()
        elif line[place] == '"':
            quote = line.find('"', place + 1)
            ends[place] = quote + 1 if quote >= 0 else None
        elif (closing := pairs.get(line[place])) in closed and closing is not None:
            found = closed[closing][place + 1]
            ends[place] = None if found is None else found + 1
        behind = ends[place] or place + 1
        for sign, places in closed.items():
            places[place] = place if line[place] == sign else places[behind]
    return ends


def _end_of_sentence(
    line: str, start: int, place: int, language: str, groups: Sequence[int | None]
) -> int | None:
    """Return where the sentence ends that a sign may end; None if it goes on.

    What closes behind the sign belongs to the sentence, and a remark that is joined
    to it as well.
    """
    sign = line[place]
    end = _behind_closing(line, start, place, language)
    following, spaced = line[end : end + 1], not line[end : end + 1].strip()
    if following and following in _GOING_ON:
        return None
    if sign not in _FULL_WIDTH_ENDS and not spaced:
        # without a space only a sign that no number or word holds, before a new word
        new = not following.isascii() or following in _BRACKETS
        if sign == "." or language not in _UNSPACED or not new:
            return None
    if sign == "." and not _ends_with_point(line[start:place], line[end:], language):
        return None
    if following in _BRACKETS:
        return groups[end] or end
    return end


def _behind_closing(line: str, start: int, place: int, language: str) -> int:
    """Return the place behind an end and all that closes there."""
    while line[place : place + 1] and line[place] in _ENDS:
        place += 1
    quotes = _QUOTES.get(language, _QUOTES["en"])
    closing = {*_BRACKETS.values(), *quotes.values()} - set(quotes)
    while place < len(line):
        even = [sign for sign in _EVEN_SIGNS if line.startswith(sign, place)]
        if even and line.count(even[0], start, place) % 2:
            place += len(even[0])
        elif line[place] in closing:
            place += 1
        else:
            break
    return place


def _ends_with_point(before: str, behind: str, language: str) -> bool:
    """Tell whether a point ends the sentence that is before it."""
    if not re.search(r"[^\W\d_]", before):  # the number of a list or heading
        return False
    word = _LAST_WORD.search(before[-LONGEST_WORD:])
    short = _SHORTENED.get(language, _SHORTENED["en"])
    if word and (len(word[1]) == 1 or word[1].lower() in short):
        return not behind.strip()
    return not behind.lstrip()[:1].islower()
