"""What the page asserts: sentences of the catalogue that hold, with their numbers."""

import re
from functools import partial

import html5lib

from montecarlo.report.language.catalogues import SOURCE, localise, read_language
from montecarlo.report.language.formulas import prose
from tests.report.conftest import words

PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")
#: What a number may be written with.
WRITTEN = r"([^A-Za-z]*?)"
COUNTS = (
    "Supported in %(yes)s of %(all)s cases, refuted in %(no)s, undecided in %(open)s."
)
#: Paragraphs of a claim that assert something.
ASSERTING = ("finding", "concedes", "right", "redo")
BRIEF = ("found", "passage")


def pattern_of(message):
    """Return what a sentence reads like, whatever its numbers."""
    language = read_language(SOURCE)
    marked = PLACEHOLDER.sub(lambda p: "\N{BULLET}" if p[1] else "%", message)
    said = html5lib.parseFragment(prose(marked, partial(localise, language)))
    pieces = (re.escape(piece) for piece in words(said).split("\N{BULLET}"))
    return re.compile(WRITTEN.join(pieces))


OPEN = "this sample does not tell, or does not reach it"
#: What is said of a claim without a finding that holds: a badge, and counts; on a line
#: those that are not 0, without the words.
COUNTED = {
    "finding": re.compile(f"^[a-z ]*( ?{pattern_of(COUNTS).pattern}|–| {OPEN})?$"),
    "found": re.compile(
        rf"^(((supported|refuted|undecided): [1-9]\d*(, |$))*|–|{OPEN})$"
    ),
}


def numbers_of(message, record, kind):
    """Return a record's numbers for a sentence, in order; errors unless it is brief."""
    names = [found[1] for found in PLACEHOLDER.finditer(message) if found[1]]
    values = [record["numbers"][name] for name in names]
    return [
        number
        for one in values
        for number in (one["value"], one["std_error"] or None)  # an error of 0 is none
        if number is not None and (kind not in BRIEF or number is one["value"])
    ]


def sentences_of(report, claims):
    """Yield each sentence that holds: claim, or passage, with its kind and record."""
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    for record in claims["claims"]:
        claim = catalogue[record["id"]]
        pairs = zip(claim.finding, record["findings"], strict=True)
        texts = []
        for one, said in pairs:
            texts.append(("finding", one.text, said))
            texts.append(("found", one.short or one.text, said))
        if claim.right is not None:
            texts.append(("right", claim.right.text, record["right"]))
            texts.append(("redo", claim.right.arithmetic, record["right"]))
        if claim.concedes is not None:
            texts.append(("concedes", claim.concedes.text, record["concedes"]))
        for kind, text, said in texts:
            if said["holds"]:
                yield f"claim-{claim.id}", kind, text, said
    passages = {passage.id: passage for passage in report.catalogue.passage}
    for record in claims["passages"]:
        if record["holds"]:
            text = passages[record["id"]].sentence.text
            yield "passage", "passage", text, record


def asserting(page):
    """Yield each element that asserts something, with its claim and its kind."""
    for element in page.elements():
        if (element.get("id") or "").startswith("claim-"):
            for inner in element.iter("p"):
                if inner.get("class") in ASSERTING:
                    yield element.get("id"), inner.get("class"), inner
        if element.get("data-claim") is not None:
            yield f"claim-{element.get('data-claim')}", "found", element
        if element.get("data-passage") is not None:
            yield "passage", "passage", element


def strays(page, report, claims):
    """Return elements that assert what neither a sentence nor a count does."""
    held = list(sentences_of(report, claims))
    found = []
    for place, kind, element in asserting(page):
        said = [one for one in held if one[:2] == (place, kind)]
        shown_words = words(element)
        if kind in COUNTED and not said and COUNTED[kind].search(shown_words):
            continue
        shown = [number.value for number in page.numbers(element)]
        if not any(
            re.search(pattern_of(text).pattern + "$", shown_words)
            and shown == numbers_of(text, record, kind)
            for *_, text, record in said
        ):
            found.append((place, kind, shown_words))
    return found


def test_no_question_stands_without_an_answer(page):
    """Where the samples of a study leave one open, it is not asked."""
    paragraphs = [one for one in page.elements() if one.tag == "p"]
    replies = [  # not the headings of the explorer
        one
        for one in paragraphs
        if one.find("b") is not None and one.get("class") != "of"
    ]
    assert all(words(one) != words(one.find("b")) for one in replies)


def test_every_assertion_is_a_sentence_that_holds(report):
    """Each sentence that is shown is one that holds, with the numbers of its record."""
    page = report.page("en")
    claims = report.claims
    kinds = [kind for _, kind, _ in asserting(page)]
    assert {"finding", "found", "right", "redo", "passage"} <= set(kinds)
    assert sum(1 for _ in sentences_of(report, claims)) > 25  # it is not empty
    assert strays(page, report, claims) == []
