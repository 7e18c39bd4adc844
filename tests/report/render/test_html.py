"""Pages as documents: valid, linked, labelled, self-contained, and small."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from montecarlo.report.content.curves import CURVE_FILES
from montecarlo.report.language.catalogues import LANGUAGES, read_language
from montecarlo.report.language.own_words import OWN_FILE
from tests.report.conftest import EVIDENCE, EVIDENCE_PAGES, words

#: What a page may weigh: a report, its evidence, any other.
MOST_BYTES, MOST_EVIDENCE = 700_000, 1_500_000
#: A script, most of which are the explorer and its table, of 11 kB each.
MOST_SCRIPT = 25_000
PICTURE = "data:image/svg+xml,"
DATA_FILES = {"measurements.csv", *CURVE_FILES, "claims.json", "run.json", OWN_FILE}


def name_of(element):
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def bad_links(page, report):
    """Return links that lead nowhere; other languages' pages are written as well."""
    names = [*LANGUAGES, *(f"erratum-{e.text.key}" for e in report.contents.errata)]
    texts = {f"{name}.md" for name in names if name not in LANGUAGES}
    if page.name.partition("/")[0] != "own_report":
        names += [f"{EVIDENCE}{code}" for code in LANGUAGES]
    pages_by_file = {f"{name}.html": name for name in names}
    bad = []
    for link in page.elements():
        target = link.get("href")
        if target is None:
            continue
        file, _, place = target.partition("#")
        if file in pages_by_file:
            name = pages_by_file[file]
            long = name.startswith(EVIDENCE) and name[-2:] != page.code
            name = f"{name[:-2]}en" if long else name
            found = not place or place in report.page(name).by_id
        elif file:
            there = file in DATA_FILES and (report.folder / file).exists()
            found = (there or file in texts) and not place
        else:
            found = place in page.by_id
        if not found:
            bad.append(target)
    return bad


def bad_references(page):
    """Return ids that labels and descriptions name and that are not there."""
    return [
        name
        for element in page.elements()
        for attribute in ("aria-labelledby", "aria-describedby", "headers", "for")
        for name in (element.get(attribute) or "").split()
        if name not in page.by_id
    ]


def repeated_ids(page):
    """Return ids that stand more than once."""
    ids = Counter(e.get("id") for e in page.elements() if e.get("id") is not None)
    return [name for name, count in ids.items() if count > 1 or not name.strip()]


def bad_tables(page):
    """Return what tables lack: words above them, headers of a row or a column."""
    bad = []
    for table in page.root.iter("table"):
        caption = table.find("caption")
        if caption is None or not words(caption):
            bad.append(("caption", words(table)[:60]))
        for header in table.iter("th"):
            within = {name_of(e) for e in page.above(header)}
            wanted = "col" if "thead" in within else "row"
            if header.get("scope") != wanted or not words(header):
                bad.append(("scope", words(header)))
        bad += [("td", words(e)) for e in table.findall("thead/tr/td")]
        for line in table.findall("tbody/tr"):
            if [name_of(e) for e in line].count("th") != 1 or name_of(line[0]) != "th":
                bad.append(("row header", words(line)[:60]))
    return bad


def bad_images(page):
    """Return images without words, with another source, or that repeat captions."""
    bad = []
    for image in page.root.iter("img"):
        alt = (image.get("alt") or "").strip()
        figure = page.parents[image]
        caption = figure.find("figcaption")
        if not alt or caption is None or alt == words(caption) or "$" in alt:
            bad.append(alt)
        if not image.get("src", "").startswith(PICTURE):
            bad.append(image.get("src"))
        if not (image.get("width", "").isdigit() and image.get("height", "").isdigit()):
            bad.append((image.get("width"), image.get("height")))
    return bad


def bad_headings(page):
    """Return jumps of more than one level, empty headings, and other than one h1."""
    headings = [e for e in page.elements() if re.fullmatch("h[1-6]", name_of(e))]
    levels = [int(e.tag[1]) for e in headings]
    bad = [(one, two) for one, two in pairwise(levels) if two > one + 1]
    bad += [words(e) for e in headings if not words(e)]
    return bad if levels.count(1) == 1 and levels[0] == 1 else [*bad, "h1"]


def bad_code(page):
    """Return what the policy would block: scripts, styles and handlers of elements."""
    bad = [name_of(e) for e in page.elements() if name_of(e) in {"script", "iframe"}]
    return bad + [
        name
        for element in page.elements()
        for name in element.attrib
        if str(name) == "style" or str(name).startswith("on")
    ]


TEMPLATE = re.compile(r"\{\{|\}\}|\{%|%\}|\$|%\(|\bNone\b|\bnan\b")


def test_page_is_valid(any_page):
    """The page parses without any error of syntax, and lacks nothing: links lead
    somewhere, tables, images and headings say what they are, what scrolls takes the
    keyboard and has a name.  No brace of a template, no dollar of a formula, no None is
    in its text; its head has charset, title and what phones need; it can be mailed.
    """
    assert any_page.errors == []
    assert bad_links(any_page, any_page.home) == []
    assert bad_references(any_page) == []
    assert bad_tables(any_page) == []
    assert bad_images(any_page) == []
    assert bad_headings(any_page) == []
    for text, element in any_page.texts():
        if "annotation" not in {name_of(e) for e in any_page.above(element)}:
            assert not TEMPLATE.search(text), text
    for element in any_page.elements():
        if element.get("class") == "scroll":
            assert element.get("tabindex") == "0"
            assert element.get("role") in {"region", "group"}
            named = element.get("aria-labelledby")
            name = words(any_page.by_id[named]) if named else element.get("aria-label")
            assert (name or "").strip()
    head = any_page.root.find("head")
    assert head[0].get("charset") == "utf-8"
    assert (head.find("title").text or "").strip()
    names = {e.get("name"): e.get("content") for e in head.iter("meta")}
    assert "width=device-width" in names["viewport"]
    assert names["color-scheme"] == "light dark"
    assert "\ufffd" not in any_page.text
    alone = any_page.name.startswith((EVIDENCE, "own_report"))
    most = MOST_EVIDENCE if alone else MOST_BYTES
    assert len(any_page.text.encode()) < most


TAGS = {"en": "en", "de": "de", "zh": "zh-Hans", "ja": "ja", "es": "es"}
IN_LANGUAGES = [*TAGS, *EVIDENCE_PAGES]


@pytest.mark.parametrize("name", IN_LANGUAGES)
def test_language_is_said(report, name):
    """The page says its language, and links to the others in theirs."""
    page, code = report.page(name), name[-2:]
    prefix, tag = name[:-2], TAGS[code]
    assert page.root.get("lang") == tag
    current = [e for e in page.elements() if e.get("aria-current") == "page"]
    assert [e.get("lang") for e in current] == [tag]
    links = {e.get("href"): e for e in page.root.iter("a") if e.get("hreflang")}
    assert set(links) == {f"{prefix}{c}.html" for c in LANGUAGES if c != code}
    for other in set(LANGUAGES) - {code}:
        link = links[f"{prefix}{other}.html"]
        assert link.get("lang") == link.get("hreflang") == TAGS[other]
        assert link.text == LANGUAGES[other][1]


def test_index_offers_every_language(report):
    """The index is in English and links every page in its own language's name."""
    page = report.page("index")
    assert page.root.get("lang") == "en"
    links = [e for e in page.root.iter("a") if e.get("hreflang")]
    assert [e.find("b").text for e in links] == [name for _, name in LANGUAGES.values()]
    assert {name_of(e) for e in page.by_id["figure-attention"]} >= {"svg", "figcaption"}


@pytest.mark.parametrize("name", IN_LANGUAGES)
def test_ids_are_unique_and_the_same(report, name):
    """Ids stand once; a link to a place works in every language."""
    page = report.page(name)
    assert repeated_ids(page) == []
    assert list(page.by_id) == list(report.page(f"{name[:-2]}en").by_id)
    for claim in report.catalogue.claim:
        assert f"claim-{claim.id}" in page.by_id


def test_claim_and_its_evidence_lead_to_each_other(evidence, report):
    """Each claim of the report links its evidence, which links it back."""
    page = report.page(evidence.code)
    for here, there in ((page, evidence), (evidence, page)):
        for claim in report.catalogue.claim:
            place = f"#claim-{claim.id}"
            article = here.by_id[place[1:]]
            links = {e.get("href") for e in article.iter("a")}
            assert f"{there.name}.html{place}" in links


def test_images_are_the_figures(any_page):
    """Each picture is its figure in the words of the page; the file is in English."""
    for image in any_page.root.iter("img"):
        name = any_page.parents[image].get("id").removeprefix("figure-")
        drawn = any_page.home.contents.figures[name]
        said = drawn.svg_in(read_language(any_page.code))
        assert plain_tree(picture(image.get("src"))) == plain_tree(said)
        file = (any_page.home.folder / "figures" / f"{name}.svg").read_text()
        assert file == drawn.svg_in(read_language("en"))


def picture(source):
    """Return the SVG that a data URI holds, as a browser reads it."""
    assert source.startswith(PICTURE)
    assert "#" not in source  # what follows would not belong to it
    return unquote(source.removeprefix(PICTURE), errors="strict")


def plain_tree(svg):
    """Return every element with its attributes and text, quotes and spaces alike."""
    return [
        (e.tag, e.attrib, " ".join((e.text or "").replace('"', "'").split()))
        for e in ET.fromstring(svg).iter()  # noqa: S314 - our own
    ]


def policy_of(page):
    """Return the directives of a page's policy."""
    (meta,) = [
        e
        for e in page.root.find("head")
        if e.get("http-equiv") == "Content-Security-Policy"
    ]
    parts = (part.split() for part in meta.get("content").split(";") if part.strip())
    return {name: sources for name, *sources in parts}


def digest_of(text):
    """Return the digest that a policy names a style or script by."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_policy_allows_this_style_alone(any_page):
    """The policy allows no request, and of styles and scripts the page's own."""
    (style,) = any_page.root.iter("style")
    digest = digest_of(style.text)
    scripts = [digest_of(script.text) for script in any_page.root.iter("script")]
    assert policy_of(any_page) == {
        "default-src": ["'none'"],
        "img-src": ["data:"],
        "font-src": ["data:"],
        "style-src": [f"'sha256-{digest}'"],
        "script-src": [f"'sha256-{found}'" for found in scripts] or ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    # before the first style: a policy rules what comes after it
    head = [name_of(e) for e in any_page.root.find("head")]
    metas = [e.get("http-equiv") for e in any_page.root.find("head")]
    assert metas.index("Content-Security-Policy") < head.index("style")


def test_page_is_whole_without_its_script(any_page):
    """One script at most, no handler; what only it can use is hidden, and no more."""
    scripts = list(any_page.root.iter("script"))
    report = any_page.code == any_page.name and not any_page.home.results.own
    assert len(scripts) == (report or any_page.name.endswith("index"))
    assert bad_code(any_page) == ["script"] * len(scripts)
    for script in scripts:
        assert script.attrib == {}
        assert len(script.text) < MOST_SCRIPT
        assert not re.search(r"fetch|XMLHttp|eval|innerHTML|https?:", script.text)
    for element in any_page.elements():
        only = "script-only" in (element.get("class") or "").split()
        assert (element.get("hidden") is not None) == only
        if only:
            assert name_of(element) in {"form", "div"}


def test_nothing_is_fetched(any_page):
    """No address stands on the page; in figures only names of namespaces do."""
    sources = [image.get("src") for image in any_page.root.iter("img")]
    assert len(set(sources)) == any_page.text.count(PICTURE)
    bodies = [re.sub(f'"{re.escape(PICTURE)}[^"]*"', "", any_page.text)]
    bodies += [re.sub(r"\sxmlns(:\w+)?='[^']*'", "", picture(s)) for s in sources]
    for body in bodies:
        assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", body, re.IGNORECASE)
        assert not re.search(r"@import|url\((?!.?data:|.?#)", body)


def test_run_can_be_repeated(report):
    """Seed, in full, command and versions stand in code."""
    findings = report.contents.findings
    seed = 2**63 - 1
    run = {**findings.run, "seed": seed}
    contents = replace(report.contents, findings=replace(findings, run=run))
    page = report.render(contents, evidence=True)
    facts = next(e for e in page.elements() if e.get("class") == "facts")
    assert words(facts.findall("dd")[0]) == str(seed)
    codes = ["".join(e.itertext()) for e in page.root.iter("code")]
    assert any("montecarlo report" in c and f"--seed {seed}" in c for c in codes)
    assert {f"{name} {one}" for name, one in run["versions"].items()} <= {*codes}
    assert {str(seed), run["kernel"]} <= {*codes}
