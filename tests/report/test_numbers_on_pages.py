"""What a reader reads off a page: numbers, their rows, and the verdicts beside them."""

import json
import random
import re
from collections import Counter
from itertools import pairwise, zip_longest

import pandas as pd
import pytest
from babel import Locale
from babel.numbers import get_decimal_symbol, parse_decimal

DIGIT = re.compile(r"\d")
#: Elements whose digits are no measured numbers written in a language.
KEPT = {"math", "code", "pre", "svg", "script", "style"}


def cell_rows(page, claim):
    """Yield each cell of a claim's record with its line of the page's tables."""
    article = page.by_id[f"claim-{claim['id']}"]
    tables = list(article.find("details").iter("table"))
    checks = [check for reading in claim["readings"] for check in reading["checks"]]
    assert len(tables) == len(checks)
    for table, check in zip(tables, checks, strict=True):
        lines = table.findall("tbody/tr")
        assert len(lines) == len(check["cells"])
        yield from zip(check["cells"], lines, strict=True)


def values(page, element):
    """Return the raw values of the numbers in an element."""
    return [number.value for number in page.numbers(element)]


def given(*numbers):
    """Return the numbers that are there."""
    return [number for number in numbers if number is not None]


def contradictions(page, claims):
    """Return the cells whose shown numbers tell another outcome than their badge."""
    wrong = []
    for claim in claims:
        for cell, line in cell_rows(page, claim):
            if cell["estimate"] is None:
                continue
            if None in (cell["decision_low"], cell["decision_high"]):
                continue
            low, high = (number.shown for number in page.numbers(line[4]))
            ends = iter(number.shown for number in page.numbers(line[5]))
            raw = (cell["window_low"], cell["window_high"])
            shown = [None if end is None else next(ends) for end in raw]
            badge = page.verdicts(line[6])
            wrong += [
                (cell, low, high, window)
                for window in (raw, shown)
                if badge != [told(low, high, *window)]
            ]
    return wrong


def told(low, high, least, most):
    """Return the outcome that an interval and a window tell."""
    least = float("-inf") if least is None else least
    most = float("inf") if most is None else most
    if least <= low and high <= most:
        return "supported"
    if high < least or most < low:
        return "refuted"
    return "inconclusive"


def test_pages_are_about_something(report):
    """The study has every figure, all kinds of outcomes, and hundreds of numbers."""
    page = report.page("en")
    assert set(report.contents.figures) == set(report.facts)
    assert {"supported", "refuted", "inconclusive", "not_applicable"} <= set(
        page.verdicts()
    )
    assert len(page.numbers()) > 500


def test_shown_number_is_the_raw_one(any_page):
    """Read back in its language, each number is its raw value, rounded."""
    for number in any_page.numbers():
        slack = 1e-12 * abs(number.value)
        assert abs(number.shown - number.value) <= number.half_unit + slack, number


def test_no_number_is_shown_as_nothing(any_page):
    """What is not 0 is not shown as 0, unless a larger error stands beside it."""
    found = any_page.numbers()
    for number, after in zip_longest(found, found[1:]):
        if number.shown != 0.0:
            continue
        beside = (number.element.tail or "").strip() == "±"
        hidden = beside and abs(number.value) < after.value
        assert number.value == 0.0 or hidden, number


def test_number_is_the_row_it_names(page, report):
    """A number that names a row is that row's estimate, to the last bit."""
    table = report.results.measurements.set_index("row_id")["estimate"]
    named = [number for number in page.numbers() if number.row]
    assert len(named) > 100
    for number in named:
        assert number.value == table[number.row], number


def test_estimate_of_one_row_names_it(page, report):
    """Each estimate that is a row of the table says which; a slope is none."""
    for claim in report.results.claims["claims"]:
        for cell, line in cell_rows(page, claim):
            if cell["estimate"] is not None:
                row = cell["rows"][0] if len(cell["rows"]) == 1 else None
                assert page.numbers(line[3])[0].row == row


def test_numbers_are_the_same_in_every_language(page, report):
    """A translation changes no number and drops none."""
    have = Counter(number.value for number in page.numbers())
    assert have == Counter(number.value for number in report.page("en").numbers())


def test_every_digit_has_its_place(any_page):
    """Digits stand in formulas, in code, in labels, or in numbers with raw values."""
    for text, element in any_page.texts():
        if not DIGIT.search(text):
            continue
        assert any(
            inner.tag.rpartition("}")[2] in KEPT
            or inner.get("data-value")
            or inner.get("class") in {"label", "power"}
            for inner in any_page.above(element)
        ), text


def test_labels_are_section_numbers(page, report):
    """What stands as a label, digits and all, is the sections of the sources."""
    sections = {
        source["section"]
        for claim in report.results.claims["claims"]
        for source in claim["sources"]
    }
    for element in page.elements():
        if element.get("class") == "label":
            text = "".join(element.itertext())
            parts = {part.strip(" §") for part in re.split("[,、,，]", text)}
            assert {part for part in parts if DIGIT.search(part)} <= sections


def test_cells_are_those_of_the_record(page, report):
    """Every cell shows sizes, estimate, interval, window, outcome as in claims.json."""
    for claim in report.results.claims["claims"]:
        for cell, line in cell_rows(page, claim):
            law, n, d_k, *rest = line
            assert "".join(law.itertext()) == cell["law"]
            assert values(page, n) == given(cell["n_keys"])
            sizes = cell["d_k_range"] if cell["d_k"] is None else [cell["d_k"]]
            assert values(page, d_k) == sizes
            assert page.verdicts(line) == [cell["outcome"]]
            needed = given(cell["replicates_needed"])
            if cell["estimate"] is None:
                assert len(rest) == 2
                assert values(page, line) == [*values(page, n), *sizes]
                continue
            estimate, interval, window, outcome = rest
            assert values(page, estimate) == [cell["estimate"], cell["std_error"]]
            ends = given(cell["decision_low"], cell["decision_high"])
            assert values(page, interval) == ends
            ends = given(cell["window_low"], cell["window_high"])
            assert values(page, window) == ends
            inconclusive = cell["outcome"] == "inconclusive"
            assert values(page, outcome) == (needed if inconclusive else [])


def test_readings_count_their_places(page, report):
    """The table of readings counts places by outcome as claims.json has them."""
    for claim in report.results.claims["claims"]:
        article = page.by_id[f"claim-{claim['id']}"]
        tables = [t for t in article.iter("table") if t.get("class") == "readings"]
        assert len(tables) == (len(claim["readings"]) > 1)
        for table in tables:
            lines = table.findall("tbody/tr")
            for line, reading in zip(lines, claim["readings"], strict=True):
                found = Counter(place["outcome"] for place in reading["places"])
                outcomes = ("supported", "refuted", "inconclusive")
                assert values(page, line) == [found[outcome] for outcome in outcomes]
                assert page.verdicts(line) == [reading["verdict"]]


def test_self_checks_count_their_cells(page, report):
    """The self-checks show verdict and counts of claims.json."""
    for check in report.results.claims["self_checks"]:
        line = page.by_id[f"self-check-{check['id']}"]
        found = Counter(cell["outcome"] for c in check["checks"] for cell in c["cells"])
        outcomes = ("supported", "refuted", "inconclusive")
        assert values(page, line) == [found[outcome] for outcome in outcomes]
        assert page.verdicts(line) == [check["verdict"]]


def test_borders_are_those_of_the_record(page, report):
    """Each border names the sizes and the outcomes on both sides of it."""
    some = 0
    for claim in report.results.claims["claims"]:
        article = page.by_id[f"claim-{claim['id']}"]
        shown = [e for e in article.iter("span") if e.get("class") == "border"]
        borders = [b for r in claim["readings"] for b in r["borders"]]
        some += len(borders)
        for element, border in zip(shown, borders, strict=True):
            assert element.find("code").text == border["law"]
            assert values(page, element) == given(border["n_keys"], *border["d_k"])
            assert page.verdicts(element) == border["outcomes"]
    assert some


def test_verdicts_are_counted(any_page, report):
    """The list of verdicts counts the claims, and leaves out what no claim has."""
    (counts,) = [e for e in any_page.elements() if e.get("class") == "counts"]
    found = Counter(claim["verdict"] for claim in report.results.claims["claims"])
    shown = dict(zip(any_page.verdicts(counts), values(any_page, counts), strict=True))
    assert shown == found


def test_shown_interval_agrees_with_its_badge(page, report):
    """Rounding contradicts no outcome: shown ends lie where the raw ones do."""
    assert contradictions(page, report.results.claims["claims"]) == []


def hard_claims(report, seed):
    """Put intervals next to the ends of windows, where rounding would tell lies."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    claims = json.loads(json.dumps(report.results.claims))
    for claim in claims["claims"]:
        for reading in claim["readings"]:
            for check in reading["checks"]:
                for cell in check["cells"]:
                    if cell["estimate"] is not None:
                        make_hard(cell, rng)
    return claims


def make_hard(cell, rng):
    """Give a cell a window of any size, and ends a hair from the window's ends."""
    size = 10.0 ** rng.uniform(-12.0, 8.0)
    least = rng.choice((size, -size, 0.0))
    most = least + size * 10.0 ** rng.uniform(-2.0, 1.0)
    hairs = [rng.choice((-1, 1)) * size * 10.0 ** -rng.randint(2, 7) for _ in "12"]
    ends = sorted(rng.choice((least, most)) + hair for hair in hairs)
    cell["window_low"], cell["window_high"] = least, most
    cell["decision_low"], cell["decision_high"] = ends
    cell["estimate"], cell["std_error"] = sum(ends) / 2, (ends[1] - ends[0]) / 8
    cell["outcome"] = told(*ends, least, most)
    cell["replicates_needed"] = 7


@pytest.mark.parametrize("code", ["en", "de"])
def test_hard_interval_agrees_with_its_badge(report, code):
    """Also a hair from the end of a window, of whatever size, rounding tells no lie."""
    claims = hard_claims(report, seed=20)
    page = report.render(report.with_claims(claims), code)
    assert Counter(page.verdicts())["inconclusive"] > 20
    assert contradictions(page, claims["claims"]) == []


def test_contradiction_is_seen(report):
    """A badge that its numbers do not bear out would not pass."""
    claims = json.loads(json.dumps(report.results.claims))
    claim = next(c for c in claims["claims"] if c["verdict"] == "supported")
    claim["readings"][0]["checks"][0]["cells"][0]["outcome"] = "refuted"
    page = report.render(report.with_claims(claims))
    assert len(contradictions(page, claims["claims"])) == 2  # raw and shown window


def test_topic_tables_show_rows_of_the_table(page, report):
    """Estimates, errors and exact values are those of measurements.csv."""
    rows = report.results.measurements.set_index("row_id")
    for topic in ("variance", "weights", "gradients"):
        table = page.by_id[f"table-{topic}"]
        lines = table.findall("tbody/tr")
        assert lines
        for line in lines:
            (d_k,) = values(page, line[0])
            assert len(line) > 3
            for cell in line[1:]:
                first, *others = page.numbers(cell)
                row = rows.loc[first.row]
                assert row["d_k"] == d_k
                exact = [] if pd.isna(row["reference"]) else [row["reference"]]
                assert [first.value, *(n.value for n in others)] == [
                    row["estimate"],
                    row["std_error"],
                    *exact,
                ]


@pytest.mark.parametrize("code", ["en", "de", "zh", "ja", "es"])
def test_alternative_texts_name_the_facts(report, code):
    """The numbers of an alternative text are those of its figure, in its language."""
    page = report.page(code)
    locale = Locale.parse(code)
    assert report.facts
    for name, fact in report.facts.items():
        (image,) = page.by_id[f"figure-{name}"].iter("img")
        bare = re.sub(r"d_k|√", "", image.get("alt"))
        pieces = re.findall(r"\N{MINUS SIGN}?\d[\d.,]*\d|\N{MINUS SIGN}?\d", bare)
        shown = [
            (float(parse_decimal(p.replace("\N{MINUS SIGN}", "-"), locale)), p)
            for p in pieces
        ]
        facts = {k: v for k, v in fact.items() if not k.endswith("_error")}
        for number, written in shown:
            decimals = len(re.split(r"[.,]", written)[1]) if number % 1 else 0
            half = 0.5 * 10.0**-decimals * (1.0 + 1e-9)
            assert any(abs(number - value) <= half for value in facts.values()), written
        for key in ("first", "second"):
            assert any(
                abs(number - fact[key]) <= 2e-3 * abs(fact[key]) + 1e-12
                for number, _ in shown
            ), (name, key)


def test_facts_are_rows_of_the_results(report):
    """Each fact about two rows is at the largest d_k that a domain has."""
    table = report.results.measurements
    rows = table[(table["law_k"] == "gaussian") & (table["d_k"] == 256)]
    fact = report.facts["weight-max"]
    wanted = rows[
        (rows["quantity"] == "weight_max")
        & (rows["summary"] == "median")
        & (rows["n_keys"] == fact["n"])
    ].set_index("divisor")
    assert fact["d_k"] == 256
    assert fact["first"] == wanted.loc["none", "estimate"]
    assert fact["second"] == wanted.loc["sqrt", "estimate"]
    part = report.facts["effective-keys"]
    wanted = rows[
        (rows["quantity"] == "effective_keys")
        & (rows["summary"] == "mean")
        & (rows["n_keys"] == part["n"])
    ].set_index("divisor")
    assert part["first"] == pytest.approx(wanted.loc["none", "estimate"] / part["n"])


def test_formulas_have_the_decimal_sign(page):
    """Numbers in formulas are written as those beside them are."""
    signs = Counter()
    for element in page.elements():
        if element.tag.rpartition("}")[2] == "math":
            drawn = "".join("".join(e.itertext()) for e in element[0][:1])
            signs.update(re.findall(r"\d([.,])\d", drawn))
    assert set(signs) == {get_decimal_symbol(Locale.parse(page.code))}
    assert sum(signs.values()) > 10


def test_sizes_rise_down_a_table(report):
    """Lines of a topic's table are ordered by d_k."""
    page = report.page("en")
    for topic in ("variance", "weights", "gradients"):
        lines = page.by_id[f"table-{topic}"].findall("tbody/tr")
        sizes = [values(page, line[0])[0] for line in lines]
        assert all(one < two for one, two in pairwise(sizes))


def test_legend_names_the_laws_that_are_drawn(report):
    """The legend of laws lists those that have measured variances, each once."""
    page = report.page("en")
    table = report.results.measurements
    drawn = table[
        (table["quantity"] == "score_variance") & (table["divisor"] == "none")
    ]
    drawn = drawn.dropna(subset=["std_error"])
    legends = [
        e
        for e in page.by_id["figure-variance"].iter("ul")
        if e.get("class") == "legend"
    ]
    assert len(legends[-1]) == drawn["law_k"].nunique()
