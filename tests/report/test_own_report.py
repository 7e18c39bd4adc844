"""A report of a user's own claims: the same pages, without what is about the texts."""

import pytest

from montecarlo.report.figures.drawing import house_style
from montecarlo.report.figures.verdicts import CASES, case_rows, drawn_checks
from montecarlo.report.making import select_figures
from tests.report.conftest import CODES, words


@pytest.fixture(params=["de", "zh"])
def own_page(own_report, request):
    """The report of own claims in each language."""
    return own_report.page(request.param)


def test_sections_are_those_of_the_claims(own_page):
    """Each section of the contents is there, in order, and has something to say."""
    sections = list(own_page.root.iter("section"))
    (contents,) = [e for e in own_page.root.iter("nav") if e.get("class") == "contents"]
    links = [e.get("href") for e in contents.iter("a")]
    places = [f"#{section.get('id')}" for section in sections]
    places.append("#reproduce")  # a part of the one before, and worth a link
    assert links == places
    assert "reproduce" in own_page.by_id
    for section in sections:
        headings = [words(e) for e in section if e.tag in {"h2", "h3"}]
        assert len(words(section)) > sum(map(len, headings)) + 20
    for table in own_page.root.iter("table"):
        assert table.findall("tbody/tr")
    for items in (*own_page.root.iter("ul"), *own_page.root.iter("ol")):
        assert list(items)


def test_claims_are_those_of_the_file(own_page, own_report):
    """Every claim of the file has its verdict in the list and in its section."""
    for record in own_report.claims["claims"]:
        article = own_page.by_id[f"claim-{record['id']}"]
        assert own_page.verdicts(article)[0] == record["verdict"]
        (section,) = [e for e in own_page.above(article) if e.tag == "section"]
        assert section.get("id") == record["topic"]
    articles = [e.get("id") for e in own_page.root.iter("article")]
    assert len(articles) == len(own_report.claims["claims"])


def test_nothing_is_said_of_the_texts(own_report, report):
    """Neither title nor paragraphs of the other report."""
    own, other = own_report.page("en"), report.page("en")
    for page, there in ((own, False), (other, True)):
        classes = {e.get("class") for e in page.elements()}
        assert ("opening" in classes) == there
        assert ("halves" in classes) == there
        assert ("scope" in classes) == there
        assert ("five texts" in words(page.root)) == there
    assert own.root.find("head/title").text != other.root.find("head/title").text
    assert own_report.contents.errata == []


def test_claim_is_judged_by_its_kind(own_report):
    """A measured claim is measured, though a shape of the catalogue has its id."""
    claims = {c["id"]: c for c in own_report.claims["claims"]}
    measured = claims["product-shape"]
    assert measured["interpretations"][0]["checks"][0]["cases"]
    assert measured["verdict"] == measured["interpretations"][0]["verdict"]


def test_interpretations_choose_the_sentence(own_report):
    """The one for an interpretation's verdict, in its language."""
    article = own_report.page("es").by_id["claim-scaled-variance-one"]
    assert "Depende de" in words(article)
    assert "Teils" not in words(article)


def test_figures_are_those_that_there_are_data_for(own_report):
    """Each figure of a page was drawn, stands once, and shows more than one size."""
    page = own_report.page("en")
    shown = [e.get("id") for e in page.root.iter("figure")]
    assert {f"figure-{name}" for name in own_report.contents.figures} == set(shown)
    assert len(set(shown)) == len(shown) > 4
    first = own_report.results.only(own_report.catalogue.only(("scaled-variance-one",)))
    assert select_figures(first) == ["cases", "variance"]  # a page has no other


def test_own_claims_have_a_picture(own_report):
    """Each case once, with its interval; the caption names each panel's check."""
    claims = own_report.results.claims
    rows = case_rows(claims)
    cases = [
        case
        for *_, check in drawn_checks(claims)
        for case in check.cases
        if case.estimate is not None
    ]
    assert len(rows) == len(cases) > 2
    assert rows.estimate.tolist() == [case.estimate for case in cases]
    with house_style():
        figure = CASES.build(rows, rows)
    panels = [panel.axes for panel in figure.panels]
    points = sum(len(bar[0].get_xdata()) for axes in panels for bar in axes.containers)
    assert points == len(cases)
    for axes, (*_, check) in zip(panels, drawn_checks(claims), strict=True):
        low, high = axes.get_ylim()
        assert all(
            low <= case.estimate <= high for case in check.cases if case.estimate
        )
    for code in CODES:
        page = own_report.page(code)
        picture = page.by_id["figure-cases"]
        assert len(picture.findall(".//ol/li")) == len(panels)
        assert picture.find(".//b").text.strip()
    assert CASES.build(rows.iloc[:0], rows) is None
