"""When verdicts turn, pages turn with them: nothing stays of another verdict."""

from functools import partial

import html5lib
import pytest

from montecarlo.report.content.findings import FAILING, VERDICTS, find_telling
from montecarlo.report.language.catalogues import SOURCE, localise, read_language
from montecarlo.report.language.formulas import prose
from tests.report.conftest import words


def as_shown(message):
    """Return what a message says once its formulas are set."""
    rewrite = partial(localise, read_language(SOURCE))
    return words(html5lib.parseFragment(prose(message, rewrite)))


def turned(report, shift):
    """Give claims other verdicts, and let some of the sentences hold."""
    claims = report.claims
    for number, claim in enumerate(claims["claims"]):
        # the first two alike, so that some verdict is that of a single claim
        claim["verdict"] = VERDICTS[(max(number, 1) + shift) % len(VERDICTS)]
        claim["texts"] = dict.fromkeys(claim["texts"], claim["verdict"])
        said = [*claim["findings"], claim["right"], claim["concedes"]]
        for place, one in enumerate(one for one in said if one is not None):
            one["holds"] = (number + place + shift) % 3 == 0
            one["numbers"] = {}
        for place, interpretation in enumerate(claim["interpretations"]):
            interpretation["verdict"] = VERDICTS[(shift - place) % len(VERDICTS)]
    for place, passage in enumerate(claims["passages"]):
        passage["holds"] = (place + shift) % 2 == 0
        passage["numbers"] = {}
    return claims


@pytest.fixture(scope="module")
def turns(report):
    """All claims' records and the page that they make, for each shift."""
    made = [turned(report, shift) for shift in range(len(VERDICTS))]
    return [(claims, report.render(report.with_claims(claims))) for claims in made]


def bare(message):
    """Return a sentence's words before its first number."""
    head = message.partition("%(")[0].replace("%%", "%")
    return as_shown(head) if head.count("$") % 2 == 0 else ""


def spoken(claim, record):
    """Return the finding that is said, None where none holds."""
    pairs = zip(claim.finding, record["findings"], strict=True)
    return next((finding.text for finding, one in pairs if one["holds"]), None)


def test_claim_says_the_first_finding_that_holds(turns, report):
    """And no other; without one, cases are counted."""
    catalogue = {claim.id: claim for claim in report.catalogue.claim}
    counted = said = 0
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            (finding,) = [e for e in article.iter("p") if e.get("class") == "finding"]
            assert finding.get("data-verdict") == record["verdict"]
            assert page.verdicts(finding)[1] == record["verdict"]
            claim = catalogue[record["id"]]
            text = spoken(claim, record)
            told = words(finding)
            if text is not None:
                assert bare(text) in told
                said += 1
            elif any(
                interpretation["votes"] for interpretation in record["interpretations"]
            ):
                found = [
                    case["outcome"]
                    for interpretation in record["interpretations"]
                    if interpretation["votes"]
                    for case in interpretation["cases"]
                ]
                outcomes = [
                    found.count(name) for name in ("supported", "refuted", "undecided")
                ]
                numbers = [number.value for number in page.numbers(finding)]
                assert sorted(numbers) == sorted([*outcomes, sum(outcomes)])
                counted += 1
            for other in claim.finding:
                if other.text != text and len(bare(other.text)) > 20:
                    assert bare(other.text) not in told
    assert counted > 20
    assert said > 20


def test_right_sentence_and_concession_turn(turns):
    """They stand where the claim fails and they hold, and nowhere else."""
    some = 0
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            classes = [e.get("class") for e in article.iter("p")]
            fails = record["verdict"] in FAILING
            for name, shown in (("right", 1), ("concedes", 1)):
                one = record[name]
                holds = fails and one is not None and one["holds"]
                assert classes.count(name) == shown * holds
                some += holds
            right = record["right"]
            holds = fails and right is not None and right["holds"]
            assert classes.count("redo") == holds
    assert some > 4


def test_passages_are_those_that_hold(turns, report):
    """A sentence of a section that does not hold is not there."""
    for claims, page in turns:
        shown = [e for e in page.elements() if e.get("data-passage") is not None]
        places = {one.id: one.place for one in report.catalogue.passage}
        assert len(shown) == sum(
            passage["holds"]
            for passage in claims["passages"]
            if not places[passage["id"]].startswith("evidence-")
        )


def test_interpretations_turn(turns):
    """Those that vote stand in a table, those that go beyond in a line, each tagged."""
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            voting = [r["verdict"] for r in record["interpretations"] if r["votes"]]
            beyond = [r["verdict"] for r in record["interpretations"] if not r["votes"]]
            badges = [
                page.verdicts(line.find("td"))
                for table in article.iter("table")
                if table.get("class") == "interpretations"
                for line in table.findall("tbody/tr")
            ]
            assert badges in ([], [[verdict] for verdict in voting])
            assert badges or len(voting) < 2
            lines = [e for e in article.iter("p") if e.get("class") == "beyond"]
            assert [v for line in lines for v in page.verdicts(line)] == beyond


def test_words_turn_with_the_tags(turns):
    """A badge says in words what it is tagged with."""
    badges = {}
    for _, page in turns:
        for element in page.elements():
            if element.get("class") == "verdict":
                said = badges.setdefault(element.get("data-verdict"), set())
                said.add(words(element))
    assert set(badges) == set(VERDICTS)
    assert all(len(said) == 1 for said in badges.values())
    assert len({next(iter(said)) for said in badges.values()}) == len(VERDICTS)
    assert badges["contradicted_by_record"] == {"contradicted by the record"}


def test_telling_case_agrees_with_its_verdict(turns, report):
    """What stands for a verdict fails where a claim fails, and holds where it holds."""
    wanted = {
        "supported": {"supported"},
        "refuted": {"refuted", "supported"},  # nothing refutes a shape but its words
        "tally": {"refuted", "undecided", "supported"},
        "depends": {"refuted", "supported"},
        "undecided": {"undecided", "supported"},
    }
    some = 0
    for claims, _ in turns:
        findings = report.with_claims(claims).findings
        for claim in findings.claims:
            if (told := find_telling(claim)) is None:
                continue
            check, case = told
            assert case in check.cases
            if claim.verdict in wanted:
                assert case.outcome in wanted[claim.verdict]
                some += 1
    assert some > 20


def test_what_was_tested_names_the_texts_that_mean_it(report):
    """Where some text of a claim does not, and nowhere else."""
    page, some = report.page("en"), 0
    for claim in report.claims["claims"]:
        voting = [one for one in claim["interpretations"] if one["votes"]]
        meant = {one["id"]: set() for one in voting}
        for source in claim["sources"]:
            for name in source["admits"] or meant:
                meant[name].add(source["text"])
        article = page.by_id[f"claim-{claim['id']}"]
        shown = [
            {words(key) for key in line.iter("abbr")}
            for line in article.iter("p")
            if line.get("class") == "tested"
        ]
        texts = {source["text"] for source in claim["sources"]}
        expected = [
            meant[one["id"]] if meant[one["id"]] < texts else set()
            for one in voting
            if one["tested"]
        ]
        assert shown == [set()] * bool(claim["tested"]) + expected, claim["id"]
        some += any(expected)
    assert some > 5
