"""When verdicts turn, sentences turn with them: nothing stays of another verdict."""

import json
from collections import Counter

import html5lib
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.formulas import prose
from montecarlo.report.language import read_language
from montecarlo.report.pages import render_erratum
from montecarlo.report.views import BY_WEIGHT, VERDICTS

#: Verdicts that a claim has a sentence for; of the others the page says nothing more.
CORRECTED = ("refuted", "conditional")
SPOKEN = ("supported", "refuted", "conditional", "inconclusive")


def plain_text(element):
    """Return what an element says, with single spaces."""
    return " ".join("".join(element.itertext()).split())


def as_shown(message):
    """Return what a message says once its formulas are set."""
    return plain_text(html5lib.parseFragment(prose(message)))


def turned(report, shift):
    """Give claims and readings other verdicts; six shifts give a claim every one."""
    claims = json.loads(json.dumps(report.results.claims))
    for number, claim in enumerate(claims["claims"]):
        # the first two alike, so that some verdict is that of a single claim
        claim["verdict"] = VERDICTS[(max(number, 1) + shift) % len(VERDICTS)]
        if claim["right"] is not None:
            claim["right"]["verdict"] = VERDICTS[(number // 2 + shift) % len(VERDICTS)]
        for place, reading in enumerate(claim["readings"]):
            reading["verdict"] = VERDICTS[(shift - place) % len(VERDICTS)]
    return claims


def turned_as_asked(report, number=0):
    """Make each claim conditional, its readings as its sentence of a number asks."""
    claims = json.loads(json.dumps(report.results.claims))
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    for claim in claims["claims"]:
        if catalogue[claim["id"]].sentences is not None:
            claim["verdict"] = "conditional"
            for when in catalogue[claim["id"]].sentences.when[number : number + 1]:
                for reading in claim["readings"]:
                    asked = when.readings.get(reading["id"], reading["verdict"])
                    reading["verdict"] = asked
    return claims


@pytest.fixture(scope="module")
def turns(report):
    """All claims' records and the page that they make, for each shift, and for each
    sentence that asks for readings.
    """
    asking = max(len(c.sentences.when) for c in report.catalogue.claim if c.sentences)
    made = [turned(report, shift) for shift in range(len(VERDICTS))]
    made += [turned_as_asked(report, number) for number in range(asking)]
    return [(claims, report.render(report.with_claims(claims))) for claims in made]


def header_verdicts(article):
    """Return the elements of an article that are tagged with its claim's verdict."""
    own = [p for p in article.findall("p") if p.get("class") != "right"]
    return [e for p in own for e in p.iter() if e.get("data-verdict")]


def true_sentences(claim, record):
    """Return the sentences of a claim that are true, the first of which is said."""
    if claim.note is not None:
        return [claim.note]
    if record["verdict"] not in SPOKEN:
        return []
    found = [getattr(claim.sentences, record["verdict"])]
    came_out = {reading["id"]: reading["verdict"] for reading in record["readings"]}
    if record["verdict"] == "conditional":
        for when in reversed(claim.sentences.when):
            if all(came_out[name] == asked for name, asked in when.readings.items()):
                found.insert(0, when.sentence)
    return found


def all_sentences(claim):
    """Return every sentence that a page may say of a claim."""
    if claim.note is not None:
        return [claim.note]
    spoken = [getattr(claim.sentences, verdict) for verdict in SPOKEN]
    return [*spoken, *(when.sentence for when in claim.sentences.when)]


def has_right(record):
    """Tell whether a page says what would be right."""
    return record["right"] is not None and record["verdict"] in CORRECTED


def test_every_verdict_is_turned_to(turns):
    """The turns below give every claim every verdict."""
    given = {(c["id"], c["verdict"]) for claims, _ in turns for c in claims["claims"]}
    assert len(given) == len(VERDICTS) * len(turns[0][0]["claims"])


def test_article_says_what_its_verdict_says(turns, report):
    """Badge and sentence of a claim are those of its verdict and its readings; no other
    one stands.
    """
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    given = set()
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            verdict = record["verdict"]
            tagged = header_verdicts(article)
            assert {e.get("data-verdict") for e in tagged} == {verdict}
            claim = catalogue[record["id"]]
            said = [plain_text(e) for e in tagged if e.get("class") is None]
            sentences = true_sentences(claim, record)[:1]
            assert said == [as_shown(sentence) for sentence in sentences]
            whole = plain_text(article)
            for other in set(all_sentences(claim)) - set(sentences):
                assert as_shown(other) not in whole
            given.update((claim.id, sentence) for sentence in sentences)
    assert given == {(c.id, s) for c in catalogue.values() for s in all_sentences(c)}


@pytest.mark.parametrize(
    ("claim", "when"),
    [(c, w) for c in read_catalogue().claim if c.sentences for w in c.sentences.when],
    ids=lambda value: getattr(value, "id", ""),
)
def test_sentence_asks_for_each_of_its_readings(report, claim, when):
    """A sentence of readings' verdicts is not said once one of them is another."""
    claims = turned_as_asked(report, claim.sentences.when.index(when))
    (record,) = [r for r in claims["claims"] if r["id"] == claim.id]
    asked = [r for r in record["readings"] if r["id"] in when.readings]
    assert len(asked) == len(when.readings)
    for reading in asked:
        for verdict in VERDICTS:
            reading["verdict"] = verdict
            contents = report.with_claims({**claims, "claims": [record]})
            said = contents.findings.claim(claim.id).sentence
            assert said == true_sentences(claim, record)[0]
            assert (said == when.sentence) == (verdict == when.readings[reading["id"]])
        reading["verdict"] = when.readings[reading["id"]]


def test_right_sentence_has_a_verdict_of_its_own(turns, report):
    """What would be right stands where the claim fails, with the verdict it has."""
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    given = set()
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            right = catalogue[record["id"]].right
            shown = [p for p in article.findall("p") if p.get("class") == "right"]
            assert len(shown) == has_right(record)
            for paragraph in shown:
                assert page.verdicts(paragraph) == [record["right"]["verdict"]]
                assert as_shown(right.sentence) in plain_text(paragraph)
                redo = article[list(article).index(paragraph) + 1]
                assert as_shown(right.arithmetic) in plain_text(redo)
                given.add((record["verdict"], record["right"]["verdict"]))
            if not shown and right is not None:
                assert as_shown(right.sentence) not in plain_text(article)
                assert as_shown(right.arithmetic) not in plain_text(article)
    assert len(given) > len(VERDICTS)


def test_errata_turn(turns, report):
    """An erratum has the claims of its text that fail, and no other claim."""
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    for claims, _ in turns[:2]:
        contents = report.with_claims(claims)
        assert len(contents.errata) == len(report.catalogue.text)
        for erratum in contents.errata:
            failing = {
                (record["id"], record["verdict"])
                for record in claims["claims"]
                if record["verdict"] in CORRECTED
                and any(s.text == erratum.key for s in catalogue[record["id"]].source)
            }
            text = render_erratum(contents, erratum, read_language(erratum.language))
            page = type(report.page("en"))(text, erratum.language)
            articles = [e for e in page.elements() if e.tag == "article"]
            assert len(articles) == len(failing) > 0
            for article in articles:
                (verdict,) = {e.get("data-verdict") for e in header_verdicts(article)}
                assert (article.get("data-claim"), verdict) in failing


def test_short_answer_says_what_verdicts_say(turns, report):
    """A paragraph of the answer is tagged with its claim's verdict, and is its own; of
    the claims that depend on readings it says what their sentences say.
    """
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    texts = {}
    for claims, page in turns:
        records = {record["id"]: record for record in claims["claims"]}
        answers = [e for e in page.elements() if e.get("class") == "answer"]
        for paragraph in answers:
            claim = paragraph.find("a").get("href").removeprefix("#claim-")
            assert page.verdicts(paragraph) == [records[claim]["verdict"]]
            (sentence, *_) = true_sentences(catalogue[claim], records[claim])
            key = (claim, records[claim]["verdict"], sentence)
            said = texts.setdefault(key, plain_text(paragraph))
            assert said == plain_text(paragraph)
            if catalogue[claim].sentences.when and key[1] == "conditional":
                assert as_shown(sentence) in said
    assert Counter(claim for claim, *_ in texts) == {
        claim: len(all_sentences(catalogue[claim]))
        for claim in (
            "scaled-variance-one",
            "unscaled-one-hot",
            "unscaled-gradient-vanishes",
        )
    }
    assert {verdict for _, verdict, _ in texts} == set(SPOKEN)
    assert len(set(texts.values())) == len(texts)


def test_table_of_claims_turns(turns):
    """The table shows every claim with its verdict, worst news first."""
    for claims, page in turns:
        verdicts = {record["id"]: record["verdict"] for record in claims["claims"]}
        (table,) = [t for t in page.elements() if t.get("class") == "claims"]
        lines = table.findall("tbody/tr")
        assert len(lines) == len(verdicts)
        shown = []
        for line in lines:
            link = next(line.iter("a"))
            claim = link.get("href").removeprefix("#claim-")
            # the badge, and the sentence where there is one
            assert set(page.verdicts(line)) == {verdicts[claim]}
            assert f"v-{verdicts[claim]}" in line.get("data-tags").split()
            shown.append(BY_WEIGHT.index(verdicts[claim]))
        assert shown == sorted(shown)


def test_counts_turn(turns):
    """The counts are those of the turned verdicts."""
    for claims, page in turns:
        (counts,) = [e for e in page.elements() if e.get("class") == "counts"]
        numbers = [number.value for number in page.numbers(counts)]
        shown = dict(zip(page.verdicts(counts), numbers, strict=True))
        assert shown == Counter(record["verdict"] for record in claims["claims"])


def test_no_other_verdict_stands_anywhere(turns, report):
    """Every tag is a claim's, a reading's, a cell's, a border's or a self-check's.

    The sentence that would be right has one more; a matrix is shown once a page.
    """
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    for claims, page in turns:
        matrices = {}
        want = Counter(check["verdict"] for check in claims["self_checks"])
        for record in claims["claims"]:
            sentences = true_sentences(catalogue[record["id"]], record)
            want[record["verdict"]] += 2 + 2 * bool(sentences)
            if has_right(record):
                want[record["right"]["verdict"]] += 1
            several = len(record["readings"]) > 1
            for reading in record["readings"]:
                want[reading["verdict"]] += several
                for border in reading["borders"]:
                    want.update(border["outcomes"])
                for check in reading["checks"]:
                    outcomes = [cell["outcome"] for cell in check["cells"]]
                    assert (
                        matrices.setdefault(report.key_of(check), outcomes) == outcomes
                    )
        want.update(outcome for matrix in matrices.values() for outcome in matrix)
        want.update({record["verdict"] for record in claims["claims"]})  # the counts
        placed = {
            *(e for e in page.elements() if e.get("class") in {"answer", "lead"}),
            *page.by_id["table-family"].iter(),
            *page.by_id["gradients"].findall("p"),
        }
        found = Counter(
            e.get("data-verdict")
            for e in page.elements()
            if e.get("data-verdict") and e not in placed
        )
        assert found == want


def test_words_turn_with_the_tags(turns):
    """A badge says in words what it is tagged with."""
    words = {}
    for _, page in turns:
        for element in page.elements():
            if (element.get("class") or "").startswith("verdict"):
                said = words.setdefault(element.get("data-verdict"), set())
                said.add(plain_text(element))
    assert words == {verdict: {verdict.replace("_", " ")} for verdict in VERDICTS}


@pytest.mark.parametrize(
    ("mean", "median"),
    [
        ("refuted", "supported"),
        ("refuted", "refuted"),
        ("supported", "supported"),
        ("inconclusive", "supported"),
        ("not_measured", "conditional"),
        ("not_applicable", "inconclusive"),
    ],
)
def test_family_turns_with_its_readings(report, mean, median):
    """The gradient family shows its readings' verdicts and says what follows."""
    claims = json.loads(json.dumps(report.results.claims))
    family = next(c for c in claims["claims"] if "gradient-vanishes" in c["id"])
    for reading in family["readings"]:
        reading["verdict"] = median if reading["id"].endswith("-median") else mean
    page = report.render(report.with_claims(claims))
    lines = page.by_id["table-family"].findall("tbody/tr")
    assert [page.verdicts(line) for line in lines] == [[mean, median, mean]] * 4
    said = " ".join(plain_text(p) for p in page.by_id["gradients"].findall("p"))
    assert ("wrong about the mean" in said) == (
        (mean, median) == ("refuted", "supported")
    )
    assert ("carries the factor" in said) == (mean == "refuted")


def test_telling_cell_agrees_with_its_verdict(turns, report):
    """What stands for a verdict fails where a claim fails, and holds where it holds."""
    wanted = {
        "supported": {"supported"},
        "refuted": {"refuted", "supported"},  # nothing refutes a shape but its words
        "conditional": {"refuted", "inconclusive", "supported"},
        "inconclusive": {"inconclusive", "supported"},
    }
    some = 0
    for claims, _ in turns:
        findings = report.with_claims(claims).findings
        for claim in findings.claims:
            cells = [
                cell
                for reading in claim.readings
                for check in reading.checks
                for cell in check.cells
            ]
            outcomes = {cell.outcome for cell in cells}
            if claim.telling is None:
                assert "supported" not in outcomes
                continue
            check, cell = claim.telling
            assert cell in check.cells
            assert cell.estimate is not None
            if claim.verdict in wanted:
                assert cell.outcome in wanted[claim.verdict]
            if claim.verdict in CORRECTED and "refuted" in outcomes:
                assert (check, cell) == claim.counterexample
                some += 1
    assert some > 20
