"""What a reader reads off a page: numbers, their rows, and the verdicts beside them."""

import json
import math
import random
import re
from collections import Counter
from itertools import zip_longest

import msgspec
import pandas as pd
import pytest
from babel import Locale
from babel.numbers import get_decimal_symbol, get_group_symbol, parse_decimal

from montecarlo.claims.outcomes import Case, find_thresholds
from montecarlo.report.language.numbers import FROM, UP_TO
from montecarlo.report.language.numbers import KEPT as NO_BREAK
from tests.report.conftest import CODES, EVIDENCE_PAGES, judged, words

DIGIT = re.compile(r"\d")
YEAR = re.compile(r"(?<!\d)20[0-2]\d(?!\d)")
#: Elements whose digits are no measured numbers written in a language.
ANNOTATION = "{http://www.w3.org/1998/Math/MathML}annotation"
KEPT = {"math", "code", "pre", "svg", "script", "style"}


def cases_shown(page, claim):
    """Yield each case of a claim's record with what shows it.

    That is its line, its column's header and its place in the page's matrices, of which
    every check has its own, or shares one with an earlier check, or has none.
    """
    article = page.by_id[f"claim-{claim['id']}"]
    for place, check in zip(matrices(page, article), checks_of(claim), strict=True):
        if place is None:
            assert check["cases"] == []
        else:
            yield from zip(check["cases"], in_order(page, place, check), strict=True)


def verdicts_of(claim):
    """Return the verdict on a claim, and those on what texts say."""
    voting = [one["verdict"] for one in claim["interpretations"] if one["votes"]]
    return {claim["verdict"], *voting}


def checks_of(claim):
    """Return the checks behind a claim and its said sentences, in order."""
    finding = next((one for one in claim["findings"] if one["holds"]), None)
    said = [finding]
    if "fails" in verdicts_of(claim):
        said += [claim["right"], claim["concedes"]]
    if not claim["interpretations"]:
        return []
    return meant(claim) + [
        check for one in said if one and one["holds"] for check in one["checks"]
    ]


def meant(claim):
    """Return the checks of a claim's interpretations."""
    return [check for one in claim["interpretations"] for check in one["checks"]]


def matrices(page, article):
    """Yield for each check of an article its matrix, or None where it has no case."""
    details = article.find("details")  # on a page of own claims
    for element in article if details is None else details:
        tables = list(element.iter("table"))
        if element.get("class") == "exceptions":
            continue
        if tables and tables[0].get("class") == "interpretations":
            continue
        links = [e for e in element.iter("a") if (e.get("href") or "").startswith("#")]
        if tables:
            (table,) = tables
            assert table.get("class") == "cases"
            yield table
        elif links:
            (link,) = links
            table = page.by_id[link.get("href")[1:]]
            assert table.get("class") == "cases"
            assert formulas(table.find("caption")) == formulas(element)
            yield table
        elif element.tag == "p" and formulas(element):
            yield None


def local_name(element):
    """Return the name of an element without its namespace; a comment has none."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def formulas(element):
    """Return what the formulas of an element are drawn with, without their source."""
    return [
        [(local_name(e), e.text) for e in formula.iter() if e.tag != ANNOTATION]
        for formula in element.iter()
        if local_name(formula) == "math"
    ]


def in_order(page, table, check):
    """Yield a matrix's entry for each case of a check; it has no others."""
    heads = table.findall("thead/tr/th")
    columns = {tuple(values(page, head)): number for number, head in enumerate(heads)}
    lines = {}
    # what is on record has no number of keys
    first = 1 if check["cases"][0]["part"] else 2
    for line in table.findall("tbody/tr"):
        distribution, *sizes = line[:first]
        names = tuple(one for one in distribution.get("title").split(" | ") if one)
        assert len(line) == len(heads)
        place = (names, *(v for size in sizes for v in values(page, size)))
        assert place not in lines
        lines[place] = line
    filled = [e for line in lines.values() for e in line[first:] if len(e)]
    assert len(filled) == len(check["cases"])
    for case in check["cases"]:
        line = lines[names_of(case), *given(case["n_keys"])]
        number = columns[tuple(dict.fromkeys(case["d_k_range"] or ()))]
        yield line[number]


def names_of(case):
    """Return a place's distributions and context, or its initialisation alone."""
    if case["part"]:  # of what is on record
        return (f"{case['part']} {case['initialisation']}".strip(),)
    if case["initialisation"]:
        return (case["initialisation"],)
    dependence = case["dependence"].removeprefix("none")
    beside = case["arithmetic"] or dependence
    return tuple(name for name in (case["distribution"], beside) if name)


def values(page, element):
    """Return the raw values of the numbers in an element."""
    return [number.value for number in page.numbers(element)]


def given(*numbers):
    """Return the numbers that are there."""
    return [number for number in numbers if number is not None]


def entry(page, element, case):
    """Return estimate, interval, and what stands below it: an exact value that decided,
    replicates needed.
    """
    assert [e.tag for e in element if e.tag in {"b", "small"}][:1] == ["b"]
    below = [number for e in element.iter("small") for number in page.numbers(e)]
    found = page.numbers(element)
    found = found[: len(found) - len(below)]
    count = len(estimate_shown(case))
    return found[:count], found[count:], below


def estimate_shown(case):
    """Return the numbers of an estimate: none of a bin, one beside a wide interval."""
    if case["estimate"] is None:
        return []
    outcome = msgspec.convert(case, Case)
    if outcome.is_binned and not outcome.limit:
        return []
    if outcome.is_wide and outcome.rows:
        return [case["estimate"]]
    return given(case["estimate"], case["std_error"] or None)


def contradictions(page, claims):
    """Return the cases whose shown interval tells another outcome than their badge.

    A matrix has no region: the raw one decides, and so does the one that is shown with
    the smallest counterexample.
    """
    wrong = []
    for claim in claims:
        for case, element in cases_shown(page, claim):
            if case["estimate"] is None:
                continue
            if None in (case["simultaneous_low"], case["simultaneous_high"]):
                continue
            _, interval, _ = entry(page, element, case)
            low, high = (number.shown for number in interval)
            region = (case["region_low"], case["region_high"])
            if case["by_theory"]:
                low = high = case["exact"]
            if page.verdicts(element) != [told(low, high, *region)]:
                wrong.append((case, low, high, region))
    return wrong


def told(low, high, least, most):
    """Return the outcome that an interval and a region tell."""
    least = float("-inf") if least is None else least
    most = float("inf") if most is None else most
    if least <= low and high <= most:
        return "supported"
    if high < least or most < low:
        return "refuted"
    return "undecided"


def test_pages_are_about_something(report):
    """The study has every figure, all kinds of outcomes, and hundreds of numbers."""
    page, evidence = report.page("en"), report.page("evidence-en")
    assert set(report.contents.figures) == set(report.facts)
    assert len(evidence.numbers()) > 500
    assert {"supported", "refuted", "undecided", "not_applicable"} <= set(
        evidence.verdicts()
    )
    assert len(page.numbers()) > 300


#: What stands before a bound on one side.
BOUNDS = (f"{UP_TO}{NO_BREAK}", f"{FROM}{NO_BREAK}")


def before(page, element):
    """Return the text that stands directly before an element of a page."""
    parent = page.parents[element]
    siblings = list(parent)
    place = siblings.index(element)
    return (siblings[place - 1].tail if place else parent.text) or ""


def test_shown_number_is_the_raw_one(any_page):
    """Read back in its language, each number is its raw value, rounded.

    What is not 0 is not shown as 0, unless a larger error stands beside it.  Ends of
    intervals are rounded outwards, by less than a unit.
    """
    found = any_page.numbers()
    for number, after in zip_longest(found, found[1:]):
        slack = 1e-12 * abs(number.value)
        tail = number.element.tail or ""
        is_end = tail.startswith(("]", f",{NO_BREAK}", f";{NO_BREAK}"))
        is_end = is_end or before(any_page, number.element).endswith(BOUNDS)
        most = (2.0 if is_end else 1.0) * number.half_unit
        assert abs(number.shown - number.value) <= most + slack, number
        if number.shown != 0.0:
            continue
        beside = (number.element.tail or "").strip() == "±"
        hidden = beside and abs(number.value) < after.value
        assert number.value == 0.0 or hidden, number


@pytest.mark.parametrize("name", ["en", "ja", *EVIDENCE_PAGES])
def test_number_is_the_row_it_names(report, name):
    """A number that names a row is that row's estimate, to the last bit."""
    table = report.results.measurements.set_index("row_id")["estimate"]
    named = [number for number in report.page(name).numbers() if number.row]
    assert len(named) > 50
    for number in named:
        assert number.value == table[number.row], number


@pytest.mark.parametrize("name", [*CODES[1:], EVIDENCE_PAGES[1]])
def test_numbers_are_the_same_in_every_language(report, name):
    """A translation changes no number and drops none."""
    have, wanted = (
        Counter(number.value for number in report.page(one).numbers())
        for one in (name, f"{name[:-2]}en")
    )
    assert have == wanted


def test_every_digit_has_its_place(any_page):
    """Digits stand in formulas, in code, in labels, or in numbers with raw values.

    Years stand in the text.
    """
    for text, element in any_page.texts():
        if not DIGIT.search(YEAR.sub("", text)):
            continue
        assert any(
            inner.tag.rpartition("}")[2] in KEPT
            or inner.get("value")
            or inner.get("class") in {"label", "power"}
            for inner in any_page.above(element)
        ), text


def test_cases_are_those_of_the_record(evidence, report):
    """Estimate, error, interval, outcome; its line and column are its place."""
    kinds = Counter()
    for claim in report.claims["claims"]:
        for case, element in cases_shown(evidence, claim):
            assert evidence.verdicts(element) == [case["outcome"]]
            context = case["initialisation"] or case["dependence"]
            kinds[context.partition("(")[0], case["d_k"] is None] += 1
            estimate, interval, below = entry(evidence, element, case)
            if case["estimate"] is None:
                assert evidence.numbers(element) == []
                continue
            wanted = estimate_shown(case)
            assert [number.value for number in estimate] == wanted
            row = case["rows"][0] if len(case["rows"]) == 1 else None  # a slope is none
            assert [number.row for number in estimate] == [row, None][: len(wanted)]
            ends = given(case["simultaneous_low"], case["simultaneous_high"])
            assert [number.value for number in interval] == ends
            undecided = case["outcome"] == "undecided"
            wanted = [case["exact"]] if case["by_theory"] else []
            wanted += given(case["replicates_needed"]) if undecided else []
            assert [number.value for number in below] == wanted
    plain = {("none", False), ("none", True)}
    assert plain | {("planted", False), ("init", False)} <= set(kinds)


def test_same_check_stands_once(evidence, report):
    """A check of the same cases has one matrix; other checks have another one."""
    checks, matrix_of = 0, {}
    for claim in report.claims["claims"]:
        article = evidence.by_id[f"claim-{claim['id']}"]
        records = checks_of(claim)
        for table, check in zip(matrices(evidence, article), records, strict=True):
            if table is not None:
                matrix_of.setdefault(report.key_of(check), set()).add(table.get("id"))
                checks += 1
    assert all(len(names) == 1 for names in matrix_of.values())
    assert len({name for names in matrix_of.values() for name in names}) == len(
        matrix_of
    )
    assert len(matrix_of) < checks  # some are shared
    tables = [
        table
        for claim in report.claims["claims"]
        for table in evidence.by_id[f"claim-{claim['id']}"].iter("table")
        if table.get("class") == "cases"
    ]
    assert len(tables) == len(matrix_of)


def test_table_of_initialisations_shows_rows_of_the_table(evidence, report):
    """Variances of entries and of scores, and what follows for the number of keys."""
    rows = report.results.measurements.set_index("row_id")
    initialisations = [
        b["initialisation"]
        for b in report.results.run["grid"]["blocks"]
        if b["initialisation"]
    ]
    lines = evidence.by_id["table-audit"].findall("tbody/tr")
    assert [
        "".join(line.findall("th/code")[-1].itertext()) for line in lines
    ] == initialisations
    wanted = (("entry_variance_q", "none"), ("score_variance", "sqrt"))
    for line, initialisation in zip(lines, initialisations, strict=True):
        for case, (quantity, divisor) in zip(line[1:3], wanted, strict=True):
            row = row_of(evidence, case, rows)
            assert (row["initialisation"], row["quantity"]) == (
                initialisation,
                quantity,
            )
            assert (row["d_k"], row["divisor"]) == (64, divisor)
        assert values(evidence, line[3]) == [math.exp(0.5 * row["estimate"])]


#: What the head of a column of saturated rows holds for each of these.
IN_HEADS = {
    "jacobian_trace": "tr",
    "jacobian_frobenius": "F",
    "gradient_query": "λ",
    "mean": "E",
    "median": "Q",
}


def test_table_of_saturated_rows_stands_under_its_heads(evidence, report):
    """Each cell is a row of the table of what its column's head says."""
    rows = report.results.measurements.set_index("row_id")
    table = evidence.by_id["table-saturated"]
    heads = ["".join(cell.itertext()) for cell in table.iter("th")][4:10]
    lines = table.findall("tbody/tr")
    assert len(lines) > 3
    for line in lines:
        for head, cell in zip(heads, line[4:], strict=True):
            if not (shown := evidence.numbers(cell)):
                continue
            row = rows.loc[shown[0].row]
            gradient = row["quantity"].partition("_saturated")[0]
            for name in (gradient, row["summary"]):
                assert IN_HEADS[name] in head
            assert row["d_k"] == values(evidence, line[0])[0]


def test_shares_that_theory_knows_are_exact_in_prose(report):
    """The short answer has the exact share of saturated rows, not the one drawn."""
    rows = report.results.measurements
    known = set(rows.loc[rows["quantity"].eq("saturated"), "reference"].dropna())
    page = report.page("en")
    (line,) = (
        element
        for element in page.elements()
        if element.get("data-passage") is not None
        if "has at least nine tenths" in words(element)
        if len(page.numbers(element)) == 1
    )
    (share,) = page.numbers(line)
    assert share.value in known
    assert share.shown == pytest.approx(0.395, abs=1e-12)  # (d_k, n) = (64, 128)


def row_of(page, element, rows):
    """Return the row that an element shows: its estimate, error and exact value.

    One that is known to a bin is shown as its interval, which several
    rows may have.
    """
    first, *others = page.numbers(element)
    if first.row is None:
        (high, *_) = others
        ends = rows["ci_low"].eq(first.value) & rows["ci_high"].eq(high.value)
        return rows[ends & rows["std_error"].isna()].iloc[0]
    row = rows.loc[first.row]
    exact = [] if pd.isna(row["reference"]) else [row["reference"]]
    shown = [first.value, *(number.value for number in others)]
    assert shown == [row["estimate"], row["std_error"], *exact]
    return row


def test_table_of_overflows_shows_rows_of_the_table(evidence, report):
    """Probabilities by d_k and number format are those of measurements.csv."""
    rows = report.results.measurements.set_index("row_id")
    table = evidence.by_id["table-tails"]
    formats = [code.text for code in table.find("thead").iter("code")]
    lines = table.findall("tbody/tr")
    sizes = [d_k for d_k, _ in report.results.run["grid"]["tails"]]
    assert [values(evidence, line[0]) for line in lines] == [[d_k] for d_k in sizes]
    for line, d_k in zip(lines, sizes, strict=True):
        for name, case in zip(formats, line[1:], strict=True):
            row = row_of(evidence, case, rows)
            assert row["quantity"] == "overflow_probability"
            assert (row["number_format"], row["d_k"]) == (name, d_k)


def test_table_of_models_shows_the_record(evidence, report):
    """Sizes of published models are those of claims.json."""
    lines = evidence.by_id["table-models"].findall("tbody/tr")
    for line, model in zip(lines, report.claims["models"], strict=True):
        assert line.find("th/code").text == model["name"]
        sizes = [model["d_model"], model["heads"], model["d_k"]]
        assert values(evidence, line) == sizes


def test_interpretations_count_their_places(evidence, report):
    """The table of interpretations counts places by outcome as claims.json has them.

    Not where it is vague: outcomes are of bounds of ours then.
    """
    for claim in report.claims["claims"]:
        article = evidence.by_id[f"claim-{claim['id']}"]
        tables = [
            t for t in article.iter("table") if t.get("class") == "interpretations"
        ]
        assert len(tables) == bool(claim["interpretations"])
        for table in tables:
            lines = table.findall("tbody/tr")
            for line, interpretation in zip(
                lines, claim["interpretations"], strict=True
            ):
                found = Counter(
                    str(case.outcome) for case in judged(interpretation).cases
                )
                outcomes = ("supported", "refuted", "undecided")
                counts = [v for case in line[1:] for v in values(evidence, case)]
                judged_by_text = interpretation["verdict"] != "vague"
                expected = [found[outcome] for outcome in outcomes]
                assert counts == (expected if judged_by_text else [])
                assert evidence.verdicts(line[1]) == [interpretation["verdict"]]


def test_claims_are_numbered_as_they_stand(report):
    """From 1 on, down the page, those that are said in one line after each other."""
    findings = report.contents.findings
    lines = [line for topic in findings.topics for line in findings.lines(topic)]
    in_order = [claim for line in lines for claim in line]
    said = [findings.number(claim) for claim in in_order if claim.sources]
    asked = [findings.number(claim) for claim in in_order if not claim.sources]
    assert said == list(range(1, len(said) + 1))
    assert asked == list(range(1, len(asked) + 1))
    assert len(in_order) == len(findings.claims) > len(lines)
    ids = (element.get("id") or "" for element in report.page("en").elements())
    shown = [name for name in ids if name.startswith("claim-")]
    assert shown == [f"claim-{claim.id}" for claim in in_order]


def test_self_checks_count_their_cases(evidence, report):
    """The self-checks show outcome and counts of claims.json."""
    for check in report.claims["self_checks"]:
        line = evidence.by_id[f"self-check-{check['id']}"]
        found = Counter(case["outcome"] for c in check["checks"] for case in c["cases"])
        outcomes = ("supported", "refuted", "undecided")
        assert values(evidence, line) == [found[outcome] for outcome in outcomes]
        assert evidence.verdicts(line) == [check["outcome"]]


def test_z_scores_are_those_of_the_record(evidence, report):
    """The self-check of z-scores shows outcome, numbers and limits of claims.json."""
    record = report.claims["z_scores"]
    line = evidence.by_id["self-check-z-scores"]
    assert evidence.verdicts(line) == [record["outcome"]]
    outcomes = ("supported", "refuted", "undecided")
    assert values(evidence, line) == [record["outcome"] == one for one in outcomes]
    shown = set(values(evidence, evidence.by_id["z-scores-judged"]))
    assert shown == {
        number for name, number in record.items() if name not in ("outcome", "points")
    }


def test_error_rate_is_that_of_the_record(evidence, report):
    """The page says the nominal rate, that of an interval, and what trials told."""
    names = ("error_rate", "simultaneous_error")
    said = {report.claims[name] for name in names}
    shown = set(values(evidence, evidence.by_id["error-rate"]))
    trials = report.claims["calibration"]
    paid = max(trials["divided_by"].values())
    assert shown == said | {trials["rate"], trials["times"], paid}


def test_borders_are_those_of_the_record(evidence, report):
    """Each border names the sizes and the outcomes on both sides of it."""
    some = 0
    for claim in report.claims["claims"]:
        article = evidence.by_id[f"claim-{claim['id']}"]
        shown = [e for e in article.iter("span") if e.get("class") == "border"]
        meanings = [r for r in claim["interpretations"] if r["verdict"] != "vague"]
        borders = [b for r in meanings for b in find_thresholds(judged(r).cases)]
        some += len(borders)
        for element, (before, after) in zip(shown, borders, strict=True):
            numbers = values(evidence, element)
            sizes = given(before.n_keys)
            assert numbers[: len(sizes)] == sizes
            assert numbers[-2:] == [before.d_k, after.d_k]
            assert evidence.verdicts(element) == [before.outcome, after.outcome]
    assert some


def test_verdicts_are_counted(report):
    """Each line that opens a table counts its claims; questions of readers are none."""
    page = report.page("en")
    shown = Counter()
    for section in page.root.iter("section"):
        for counts in (e for e in section.iter() if e.get("class") == "counts"):
            verdicts = page.verdicts(counts)
            total, *numbers = values(page, counts)
            assert total == sum(numbers)
            shown.update(dict(zip(verdicts, numbers, strict=True)))
    said = [claim for claim in report.claims["claims"] if claim["sources"]]
    assert shown == Counter(claim["verdict"] for claim in said)


def test_shown_interval_agrees_with_its_badge(evidence, report):
    """Rounding contradicts no outcome: shown ends lie where the raw ones do."""
    assert contradictions(evidence, report.claims["claims"]) == []


def hard_claims(report, seed):
    """Put intervals next to the ends of regions, where rounding would tell lies."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    claims = report.claims
    made = {}
    for claim in claims["claims"]:
        for check in meant(claim):
            same = report.key_of(check)  # shown once, so it stays the same
            for case in check["cases"] if same not in made else ():
                if case["estimate"] is not None and case["limit"] is None:
                    make_hard(case, rng)
            check["cases"] = made.setdefault(same, check["cases"])
    for claim in claims["claims"]:
        for check in checks_of(claim):  # those of sentences, which may stand before
            check["cases"] = made.get(report.key_of(check), check["cases"])
    return claims


def make_hard(case, rng):
    """Give a case a region of any size, and ends a hair from the region's ends."""
    size = 10.0 ** rng.uniform(-12.0, 8.0)
    least = rng.choice((size, -size, 0.0))
    most = least + size * 10.0 ** rng.uniform(-2.0, 1.0)
    hairs = [rng.choice((-1, 1)) * size * 10.0 ** -rng.randint(2, 7) for _ in "12"]
    ends = sorted(rng.choice((least, most)) + hair for hair in hairs)
    case["region_low"], case["region_high"] = least, most
    case["simultaneous_low"], case["simultaneous_high"] = ends
    case["estimate"], case["std_error"] = sum(ends) / 2, (ends[1] - ends[0]) / 8
    case["outcome"] = told(*ends, least, most)
    case["replicates_needed"], case["by_theory"] = 7, False


@pytest.mark.parametrize("code", ["en", "de"])
def test_hard_interval_agrees_with_its_badge(report, code):
    """Also a hair from the end of a region, of whatever size, rounding tells no lie."""
    claims = hard_claims(report, seed=20)
    page = report.render(report.with_claims(claims), code, evidence=True)
    assert Counter(page.verdicts())["undecided"] > 20
    assert contradictions(page, claims["claims"]) == []


def test_contradiction_is_seen(report):
    """A badge that its numbers do not bear out would not pass."""
    claims = report.claims
    claim = next(c for c in claims["claims"] if c["id"] == "variance-equals-dimension")
    claim["interpretations"][0]["checks"][0]["cases"][0]["outcome"] = "refuted"
    page = report.render(report.with_claims(claims), evidence=True)
    assert len(contradictions(page, [claim])) == 1


def test_topic_tables_show_rows_of_the_table(evidence, report):
    """Estimates, errors and exact values are those of measurements.csv."""
    rows = report.results.measurements.set_index("row_id")
    for topic in ("variance", "weights", "gradients"):
        table = evidence.by_id[f"table-{topic}"]
        lines = table.findall("tbody/tr")
        sizes = [values(evidence, line[0])[0] for line in lines]
        assert sizes == sorted(set(sizes)) != []
        for line in lines:
            (d_k,) = values(evidence, line[0])
            assert len(line) > 3
            for case in line[1:]:
                row = row_of(evidence, case, rows[rows["d_k"].eq(d_k)])
                assert row["distribution_k"] == "gaussian"


#: Powers of ten in plain text, as a parser reads them.
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
LOWERED = dict(zip(map(ord, RAISED), "-0123456789", strict=True))


def figure_of(report, code, name):
    """Return a figure, on whichever page of a language it stands."""
    pages = (report.page(f"{kind}{code}") for kind in ("", "evidence-"))
    return next(p.by_id[f"figure-{name}"] for p in pages if f"figure-{name}" in p.by_id)


@pytest.mark.parametrize("code", ["en", "de"])
def test_alternative_texts_name_the_facts(report, code):
    """The numbers of an alternative text are those of its figure, in its language."""
    locale = Locale.parse(code)
    assert report.facts
    for name, fact in report.facts.items():
        pictures = figure_of(report, code, name).iter()
        told = (one.get("alt") or one.get("aria-label") for one in pictures)
        bare = re.sub(r"d_k|√", "", next(filter(None, told)))
        bare = re.sub(r"float\d+", "", bare)  # names of formats
        bare = bare.translate(LOWERED)
        pieces = re.findall(r"(\N{MINUS SIGN}?\d(?:[\d.,]*\d)?)(?:×10(-?\d+))?", bare)
        shown = []
        for piece, power in pieces:
            number = parse_decimal(piece.replace("\N{MINUS SIGN}", "-"), locale)
            scale = 10.0 ** int(power or 0)
            shown.append((float(number) * scale, piece, int(power or 0)))
        facts = {k: v for k, v in fact.items() if not k.endswith("_error")}
        facts["saturated"] = 90.0  # per cent: what counts as saturated
        for number, written, power in shown:
            parts = re.split(r"[.,]", written)
            decimals = len(parts[1]) if power or (number % 1 and len(parts) > 1) else 0
            half = 0.5 * 10.0 ** (power - decimals) * (1.0 + 1e-9)
            assert any(abs(number - value) <= half for value in facts.values()), written
        for key in ("first", "second"):
            assert any(
                abs(number - fact[key])
                # three digits, or two of the error, are shown
                <= max(5e-3 * abs(fact[key]), 0.06 * fact.get(f"{key}_error", 0.0))
                + 1e-12
                for number, *_ in shown
            ), (name, key)


def test_facts_are_rows_of_the_results(report):
    """A fact about two rows is at the largest d_k that a domain has, or a usual one."""
    rows = report.results.measurements.query(
        "distribution_q == 'gaussian' and distribution_k == 'gaussian' and "
        "divisor == 'none' and dependence == 'none' and initialisation.isna()"
    )
    fact = report.facts["variance"]
    wanted = rows.query("quantity == 'score_variance' and d_k == 256")["estimate"]
    assert (fact["d_k"], [fact["first"]]) == (256, wanted.tolist())
    assert report.facts["weights"]["d_k"] == 64


def intervals_beside_estimates(found):
    """Yield every simultaneous interval of claims.json, with the estimate it is of."""
    parts = found.values() if isinstance(found, dict) else found
    if isinstance(found, dict) and found.get("estimate") is not None:
        ends = (found.get("simultaneous_low"), found.get("simultaneous_high"))
        if ends != (None, None):
            low, high = ends
            low = -math.inf if low is None else low
            yield low, found["estimate"], math.inf if high is None else high
    for part in parts:
        if isinstance(part, dict | list):
            yield from intervals_beside_estimates(part)


def require_intervals(folder, fewest):
    """Make sure that every interval of a report's files holds its estimate."""
    claims = json.loads((folder / "claims.json").read_bytes())
    found = list(intervals_beside_estimates(claims))
    rows = pd.read_csv(folder / "measurements.csv").dropna(
        subset=["estimate", "ci_low"]
    )
    found += rows[["ci_low", "estimate", "ci_high"]].itertuples(index=False)
    assert len(found) >= fewest
    assert [one for one in found if not one[0] <= one[1] <= one[2]] == []


def test_every_interval_holds_its_estimate(report):
    """Of all levels: of claims, passages and self-checks, and lines of tables."""
    require_intervals(report.folder, 850)


@pytest.mark.slow
def test_every_interval_of_a_standard_report_holds_its_estimate(standard_report):
    """Some 1,750 of claims, and as many of tables."""
    require_intervals(standard_report, 3_000)


def rows_of_table(report, **values):
    """Return lines of measurements.csv with such values, by divisor."""
    rows = pd.read_csv(report.folder / "measurements.csv", dtype=str)
    wanted = {"distribution_q": "gaussian", "distribution_k": "gaussian"} | values
    there = rows[[*wanted]].eq(pd.Series(wanted).astype(str)).all(axis=1)
    return rows[there].set_index("divisor").to_dict("index")


def test_facts_have_the_units_of_their_words(report):
    """Shares in per cent, 100 times the table's, and their errors; weights, keys and
    ratios as they are; of the rows that are drawn the mean of their largest.
    """

    def require(fact, name, line, factor):
        assert fact[name] == pytest.approx(factor * float(line["estimate"])), name
        if f"{name}_error" in fact:
            wanted = pytest.approx(factor * float(line["std_error"]))
            assert fact[f"{name}_error"] == wanted, name

    facts = report.facts
    usual = {"normalisation": "none", "dependence": "none", "initialisation": "none"}
    usual |= {"summary": "mean", "number_format": "float64"}

    def sizes(fact):
        return {"d_k": int(fact["d_k"]), "n_keys": int(fact["n"])}

    asked = usual | sizes(facts["weights"])
    rows = rows_of_table(report, **asked, quantity="effective_keys")
    require(facts["weights"], "first", rows["none"], 1.0)
    require(facts["weights"], "second", rows["sqrt"], 1.0)
    rows = rows_of_table(report, **asked, quantity="saturated")
    require(facts["weights"], "share", rows["none"], 100.0)
    drawn = pd.read_csv(report.folder / "curves/example_weight.csv")
    for called, divisor in (("first", "none"), ("second", "sqrt")):
        lines = drawn[drawn["divisor"].eq(divisor)].sort_values("weight_number")
        n_keys = lines["n_keys"].iloc[0]
        largest = lines["weight"].to_numpy().reshape(-1, n_keys).max(axis=1)
        mean = pytest.approx(100.0 * largest.mean())
        assert facts["attention"][called] == mean
    passed = usual | {"quantity": "gradient_query_undivided", "summary": "median"}
    fact = facts["gradients"]
    for called, size in (("first", "d_k"), ("second", "most")):
        there = {"d_k": int(fact[size]), "n_keys": int(fact["n"])}
        rows = rows_of_table(report, **passed | there)
        require(fact, called, rows["none/sqrt"], 1.0)
    formats = usual | sizes(facts["formats"]) | {"quantity": "format_overflow"}
    formats |= {"number_format": "float16"}
    for called, way in (("first", "naive"), ("second", "shifted")):
        rows = rows_of_table(report, **formats, softmax=way)
        assert facts["formats"][called] == 100.0 * float(rows["none"]["estimate"])


def test_formulas_have_the_decimal_sign(evidence):
    """Numbers in formulas are written as those beside them are."""
    group = get_group_symbol(Locale.parse(evidence.code))
    signs = Counter(s for e in evidence.elements() for s in decimal_signs(e, group))
    assert set(signs) == {get_decimal_symbol(Locale.parse(evidence.code))}
    assert sum(signs.values()) > 10


def decimal_signs(element, group):
    """Yield the decimal signs of a part of a formula; a comma in a list has a space.

    The sign between groups of a long number is none.
    """
    if local_name(element) == "mn":
        yield from re.findall(r"\d([.,])\d", element.text or "")
    for before, sign, after in zip(element, element[1:], element[2:], strict=False):
        names = [local_name(e) for e in (before, sign, after)]
        if names == ["mn", "mo", "mn"] and sign.get("rspace") == "0":
            sizes = (len(before.text), len(after.text))
            if sign.text == group and sizes in {(2, 3), (3, 3)}:
                continue
            yield from re.findall("^[.,]$", sign.text or "")
