"""When verdicts turn, pages turn with them: nothing stays of another verdict."""

import pytest

from montecarlo.claims.verdicts import Outcome, Verdict
from tests.report.conftest import judged, words

VERDICTS = [verdict.value for verdict in Verdict]


def turned(report, shift):
    """Give claims other verdicts, and let some of the sentences hold."""
    claims = report.claims
    for number, claim in enumerate(claims["claims"]):
        # the first two alike, so that some verdict is that of a single claim
        claim["verdict"] = VERDICTS[(max(number, 1) + shift) % len(VERDICTS)]
        ruling = {"verdict": claim["verdict"], "reason": claim["reason"]}
        claim["texts"] = dict.fromkeys(claim["texts"], ruling)
        said = [*claim["findings"], claim["right"], claim["concedes"]]
        for place, one in enumerate(one for one in said if one is not None):
            one["holds"] = (number + place + shift + shift // len(VERDICTS)) % 3 == 0
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
    made = [turned(report, shift) for shift in range(2 * len(VERDICTS))]
    return [(claims, report.render(report.with_claims(claims))) for claims in made]


def test_verdict_of_a_claim_is_that_of_its_record(turns):
    """Where no finding holds, cases are counted, unless none says why it is open."""
    counted = 0
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            (finding,) = [e for e in article.iter("p") if e.get("class") == "finding"]
            assert finding.get("data-verdict") == record["verdict"]
            # a question of readers has none
            told = [record["verdict"]] if record["sources"] else []
            assert page.verdicts(finding)[1:2] == told
            voting = [one for one in record["interpretations"] if one["votes"]]
            if voting and not any(one["holds"] for one in record["findings"]):
                found = [case.outcome for one in voting for case in judged(one).cases]
                outcomes = [
                    found.count(name) for name in ("supported", "refuted", "undecided")
                ]
                numbers = [number.value for number in page.numbers(finding)]
                is_told = any(outcomes) and (outcomes[2] or record["verdict"] != "open")
                shown = sorted([*outcomes, sum(outcomes)]) if is_told else []
                assert sorted(numbers) == shown
                counted += 1
    assert counted > 20


def test_right_sentence_and_concession_turn(turns):
    """They stand where the claim fails and they hold, and nowhere else."""
    some = 0
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            classes = [e.get("class") for e in article.iter("p")]
            voting = [r["verdict"] for r in record["interpretations"] if r["votes"]]
            fails = "fails" in {record["verdict"], *voting}
            for name, shown in (("right", 1), ("concedes", 1)):
                one = record[name]
                holds = fails and one is not None and one["holds"]
                assert classes.count(name) == shown * holds
                some += holds
            right = record["right"]
            holds = fails and right is not None and right["holds"]
            assert classes.count("redo") == holds
    assert some > 4


def test_interpretations_turn(turns):
    """Those that vote stand in a line each, with a tag where there are several; those
    that go beyond what is said stand in the evidence alone.
    """
    for claims, page in turns:
        for record in claims["claims"]:
            article = page.by_id[f"claim-{record['id']}"]
            lines = [e for e in article.iter("p") if e.get("class") == "tested"]
            voting = [r["verdict"] for r in record["interpretations"] if r["votes"]]
            assert len(lines) == len(voting) + bool(record["tested"])
            tags = [page.verdicts(line) for line in lines]
            assert tags == [[v] for v in voting] if len(voting) > 1 else not any(tags)


def test_words_turn_with_the_tags(turns):
    """A badge says in words what it is tagged with."""
    badges = {}
    for _, page in turns:
        for element in page.elements():
            if element.get("class") == "verdict":
                said = badges.setdefault(element.get("data-verdict"), set())
                said.add(words(element))
    assert all(len(said) == 1 for said in badges.values())
    ruled = {name: badges[name] for name in VERDICTS}
    others = {outcome.value for outcome in Outcome} | {"texts"}  # which differ
    assert set(badges) - set(ruled) <= others
    assert len(set().union(*ruled.values())) == len(VERDICTS)
    assert badges["fails"] == {"wrong"}
