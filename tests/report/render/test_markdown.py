"""The report as Markdown, as a fragment and as JSON: what pages say, elsewhere."""

import json
import re
from datetime import date
from pathlib import Path

import html5lib
import jinja2
import msgspec
import pytest
import yaml

from montecarlo.errors import InputError
from montecarlo.report.command import _read_post
from montecarlo.report.language.catalogues import LANGUAGES, read_language
from montecarlo.report.making import make_report
from montecarlo.report.render.flavours import front_matter
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.style import nest, stylesheet
from tests.report.conftest import CODES


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    """The report in every format but pages."""
    folder = tmp_path_factory.mktemp("formats")
    formats = ("markdown", "fragment", "json")
    with report.keep_figures():
        make_report(report.results, report.catalogue, CODES, folder, formats)
    return folder


def markdown(text, link=str):
    """Convert a piece of HTML."""
    return to_markdown(read_html(text), link).strip()


@pytest.mark.parametrize(
    ("piece", "written"),
    [
        ("<p>a *b* _c_ [d] e|f `g` &lt;h&gt;</p>", r"a \*b\* \_c\_ \[d\] e\|f \`g\`"),
        ("<p>{{ x }} {% y %} {z}</p>", r"&#123;{ x }} &#123;% y %} {z}"),
        ("<p>5 $ &amp; more</p>", "5 &#36; &amp; more"),
        ("<p>- no list</p>", r"\- no list"),
        ("<p>2017. No list</p>", r"2017\. No list"),
        ("<p><data>2017</data>. No list</p>", r"2017\. No list"),
        ("<div>- a<p>b</p>+ c</div>", "\\- a\n\nb\n\n\\+ c"),
        ("<p># no title</p>", r"\# no title"),
        ("<p><code>a_b|{{c}}</code></p>", "<code>a&#95;b&#124;&#123;&#123;c"),
        ("<pre><code>  a *b* {{c}}\n\nd</code></pre>", "~~~\n  a *b* { {c}}\n\nd\n~~~"),
        ("<p><math><mi>n</mi></math> keys</p>", "$$n$$ keys"),
        (
            r"<p><math><annotation>\|J\|_{{F}}</annotation></math></p>",
            r"$$\Vert J\Vert _{ {F} }$$",
        ),
        ('<p><a href="x.csv">y</a></p>', "[y](x.csv)"),
        ("<ul><li>a</li></ul><ul><li>b</li></ul>", "- a\n\n<!-- -->\n\n- b"),
        ("<ul><li>a<ol><li>b</li></ol></li><li>c</li></ul>", "- a\n\n  1. b\n- c"),
        ("<dl><dt>a</dt><dd>b</dd></dl>", "a\n:   b"),
        ('<section id="s"><h2>t</h2><p>u</p></section>', "## t {#s}\n\nu"),
        ('<p>a<span class="unseen">b</span><script>c</script></p>', "a"),
        (
            "<p>x</p><table><tr><th>a</th></tr><tr><td>c<br>e</td></tr></table>",
            "x\n\n| a |\n| --- |\n| c<br>e |",
        ),
    ],
)
def test_piece_is_converted(piece, written):
    """Signs of Markdown, Liquid and MathJax in a text come out as they went in."""
    assert markdown(piece).startswith(written)


def test_page_that_is_not_closed_is_refused():
    """What our templates would never write is an error, not half a post."""
    with pytest.raises(ValueError, match="close 'b'"):
        read_html("<p><b>x</p>")
    with pytest.raises(ValueError, match="close 'p'"):
        read_html("<p>x")


@pytest.mark.parametrize("code", CODES)
def test_post_is_fit_for_a_static_site(written, report, code):
    """Front matter, no tag of Liquid, tables apart from text, pictures beside it."""
    text = (written / f"report-{code}.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    keys = [line.partition(":")[0] for line in front.splitlines()]
    assert keys == ["layout", "title", "lang"]
    assert f"lang: {code}\n" in front
    (title,) = re.findall(r'^title: "([^"]+)"$', front, re.MULTILINE)
    assert title == report.page(code).root.findtext("head/title")
    assert "{{" not in text
    assert "{%" not in text
    lines = body.splitlines()
    tables = [n for n, line in enumerate(lines) if re.fullmatch(r"\|( --- \|)+", line)]
    assert len(tables) == len(list(report.page(code).root.iter("table")))
    for number in tables:
        assert lines[number - 2] == ""
        columns = lines[number].count("|")
        end = next(n for n in range(number, len(lines)) if lines[n][:1] != "|")
        rows = lines[number - 1 : end]
        assert len(rows) > 2
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {columns}
    pictures = re.findall(r"!\[[^\]]+(?:\\\][^\]]*)*\]\(([^)]+)\)", body)
    assert len(pictures) == len(list(report.page(code).root.iter("img"))) > 3
    assert all((written / name).is_file() for name in pictures)


@pytest.mark.parametrize("code", CODES)
def test_post_says_what_the_page_says(written, report, code):
    """Every number and every verdict of the page stands in the post, in its order."""
    page = report.page(code)
    text = (written / f"report-{code}.md").read_text(encoding="utf-8")
    place = 0
    for number in page.numbers():
        if _page_only(page, number.element):
            continue
        shown = (number.element.text or "").strip()
        place = text.find(shown, place)
        assert place >= 0, shown


def test_title_cannot_end_early():
    """A double quote in a title becomes a single one."""
    assert "title: \"a 'b' c\"\n" in front_matter("en", 'a "b" c', ["title"])


@pytest.mark.parametrize(
    "value",
    [
        *("Scores: why", "a # b", "'", '"x" and "y"', "- a", "[a", "{b", "*c", "&d"),
        *("!e", "%f", "@g", "`h", "> i", "| j", " k ", "", "l\nm: n", "---", "\t"),
        *("\x1b[31m", "\x85", "\u2028", "ünï 中文 😀", "C:\\x", "?", "a: b: c", ":"),
    ],
)
def test_values_of_front_matter_are_texts(value):
    """Whatever is typed: YAML that says just that."""
    text = front_matter("en", value, ["title", f"description={value}"])
    ((found, rest),) = (text.removeprefix("---\n").split("\n---\n"),)
    assert rest == "\n"
    told = yaml.safe_load(found)
    assert told == {"title": value.replace('"', "'"), "description": value}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *(("true", True), ("3", 3), ("0.5", 0.5), ("note", "note")),
        *(("2026-01-31", date(2026, 1, 31)), ("two words", "two words")),
    ],
)
def test_plain_values_stay_what_yaml_takes_them_for(value, told):
    """A number, a date, a switch: sites ask for these."""
    text = front_matter("en", "", [f"key={value}"])
    assert f"key: {value}\n" in text
    assert yaml.safe_load(text.strip("-\n")) == {"key": told}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["a b=1"], "words as keys"),
        (["=1"], "words as keys"),
        (["a: b=1"], "words as keys"),
        (["title", "title=x"], "'title' again"),
        (["titel"], "Did you mean 'title'"),
        ([""], "front-matter must be one of"),
    ],
)
def test_keys_of_front_matter_are_words(keys, said):
    """One line, before anything is sampled."""
    with pytest.raises(InputError, match=said):
        front_matter("en", "x", keys)


def test_no_front_matter_stands_alone():
    """Beside others it would say nothing."""
    assert _read_post(None, ["none"], ["markdown"]).front_matter == ()
    with pytest.raises(InputError, match="front-matter must be none alone, got 'none,"):
        _read_post(None, ["none", "title"], ["markdown"])


def test_front_matter_is_what_is_asked_for():
    """Keys in their order, those that are known with our values; none, if none is."""
    keys = ["type=note", "translated", "lang"]
    assert front_matter("de", "x", keys) == (
        "---\ntype: note\ntranslated: true\nlang: de\n---\n\n"
    )
    assert "translated: false" in front_matter("en", "x", keys)
    assert front_matter("de", "x", []) == ""


@pytest.mark.parametrize("code", CODES)
def test_kramdown_understands_the_post(kramdown, written, report, code):
    """Every table, picture and formula arrives; no sign of Markdown is left over."""
    text = (written / f"report-{code}.md").read_text(encoding="utf-8")
    made, warnings = kramdown(text)
    assert warnings.strip() == ""
    root = html5lib.parse(made, namespaceHTMLElements=False)
    page = report.page(code)
    for tag in ("table", "tr", "img", "details", "summary"):
        shown = [e for e in page.root.iter(tag) if not _script_only(page, e)]
        assert len(list(root.iter(tag))) == len(shown) > 0, tag
    for code_piece in root.iter("code"):
        code_piece.text = ""
        code_piece[:] = []
    words = "".join(root.find("body").itertext())
    assert not re.search(r"\$\$|\*\*|(?<!\\)\\[*_|]|\]\(|<!--", words)
    inside = text.count("$$") // 2
    assert words.count("\\(") + words.count("\\[") == inside > 100
    names = {e.get("id") for e in root.iter() if e.get("id")}
    for link in root.iter("a"):
        target = link.get("href", "")
        if target.startswith("#"):
            assert target[1:] in names, target


def test_kramdown_sees_a_broken_table(kramdown):
    """Without the empty line before it a table is none (a negative control)."""
    table = "| a | b |\n| --- | --- |\n| c | d |\n"
    assert "<table" in kramdown(f"x\n\n{table}")[0]
    assert "<table" not in kramdown(f"x\n{table}")[0]


def _page_only(page, element):
    """Tell what a post has not: what needs a script, and references to the evidence."""
    kinds = {(e.get("class") or "") for e in page.above(element)}
    return "more" in kinds or _script_only(page, element)


def _script_only(page, element):
    return any("script-only" in (e.get("class") or "") for e in page.above(element))


@pytest.mark.parametrize("code", CODES)
def test_fragment_is_one_element_without_a_head(written, code):
    """A fragment has no head, no script, and a style that touches nothing outside."""
    text = (written / f"fragment-{code}.html").read_text(encoding="utf-8")
    assert not re.search(r"<(?:!doctype|html|head|body|meta|title|script)\b", text)
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    found = parser.parseFragment(text)
    assert parser.errors == []
    (outer,) = list(found)
    assert outer.get("class") == "montecarlo"
    assert outer.get("lang") == LANGUAGES[code][0]
    (style,) = outer.iter("style")
    assert style.text.strip().startswith(".montecarlo {")
    assert style.text.strip().endswith("}")
    assert not re.search(r"\bbody\b|:root|\bhtml\b|@font-face", style.text)
    ids = [e.get("id") for e in outer.iter() if e.get("id")]
    assert len(set(ids)) == len(ids)
    targets = [a.get("href") for a in outer.iter("a")]
    assert not {f"{name}.html" for name in CODES} & set(targets)
    assert all(t[1:] in ids for t in targets if t.startswith("#"))


#: What begins a tag of Jinja, Liquid, Hugo, Handlebars or ERB, and a text with each.
TAG = r"\{[{%#]|<%|\$\{|#\{"
TAGS = "{{ 7*7 }} {% raw %} {# gone #} {{< x >}} {{{ y }}} ${z} #{w} <%= v %>"


def test_fragment_has_no_tag_of_a_template(own_report, tmp_path):
    """Whatever a claim says: an engine leaves the file as it is, and a reader sees the
    same characters.
    """
    claims = own_report.catalogue.claim
    mine = msgspec.structs.replace(
        claims[0], statement={"de": TAGS.replace("$", r"\$")}
    )
    catalogue = msgspec.structs.replace(own_report.catalogue, claim=(mine, *claims[1:]))
    with own_report.keep_figures():
        make_report(own_report.results, catalogue, ("de",), tmp_path, ("fragment",))
    text = (tmp_path / "fragment-de.html").read_text(encoding="utf-8")
    assert not re.search(TAG, text)
    rendered = jinja2.Environment(autoescape=True, keep_trailing_newline=True)
    assert rendered.from_string(text).render() == text
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    assert TAGS in "".join(parser.parseFragment(text).itertext())
    assert parser.errors == []


def test_nested_style_closes_what_it_opens():
    """Taken inside one rule, the style has as many rules as before but for the font."""
    style, inside = stylesheet(), nest(stylesheet())
    assert inside.count("{") == inside.count("}")
    assert inside.count("{") == style.count("{") - style.count("@font-face") - 1 + 1


def test_findings_say_what_the_record_says(written, report):
    """Verdicts and their cases are those of claims.json, worst news first."""
    found = json.loads((written / "findings.json").read_text(encoding="utf-8"))
    record = {claim["id"]: claim for claim in report.claims["claims"]}
    assert {c["id"]: c["verdict"] for c in found["claims"]} == {
        name: claim["verdict"] for name, claim in record.items()
    }
    rows = set(report.results.measurements["row_id"])
    german = read_language("de")
    for claim in found["claims"]:
        assert set(claim["statement"]) == set(CODES)
        assert claim["statement"]["de"] == german.translate(claim["statement"]["en"])
        interpretations = record[claim["id"]]["interpretations"]
        assert [r["verdict"] for r in claim["interpretations"]] == [
            r["verdict"] for r in interpretations
        ]
        cases = [
            case
            for r in claim["interpretations"]
            for c in r["checks"]
            for case in c["cases"]
        ]
        assert len(cases) == sum(
            len(c["cases"]) for r in interpretations for c in r["checks"]
        )
        assert {row for case in cases for row in case["rows"]} <= rows
        kept = ("kind", "topic", "sources", "verdict", "texts", "error_rate")
        assert {name: claim[name] for name in kept} == {
            name: record[claim["id"]][name] for name in kept
        }
        assert set(claim["names"]) >= set(claim["texts"])
        assert all(set(name) == set(CODES) for name in claim["names"].values())
        assert "outcome" not in claim
        assert "findings" not in claim
    order = [c["verdict"] for c in found["claims"]]
    assert order == [c.verdict for c in report.contents.findings.by_weight()]
    assert sum(found["counts"].values()) == len(record)
    fact, named = report.facts["variance"], found["figures"]["variance"]
    assert named["score_variance_unscaled"] == fact["first"]
    assert named["score_variance_scaled_error"] == fact["second_error"]
    assert (named["d_k"], "n" in named) == (int(fact["d_k"]), False)
    assert "score_max_asymptotic_error" not in found["figures"]["largest-score"]
    names = {name for numbers in found["figures"].values() for name in numbers}
    assert not {name for name in names if name.startswith(("first_e", "second"))}
    assert "first" not in names
    assert "python -m montecarlo report" in found["command"]


@pytest.mark.slow
def test_own_claims_are_written_in_every_format(own_report, tmp_path):
    """A user's own texts come through, in all formats, without a tag of Liquid."""
    formats = ("markdown", "fragment", "json")
    with own_report.keep_figures():
        make_report(
            own_report.results, own_report.catalogue, ("de", "ja"), tmp_path, formats
        )
    text = (tmp_path / "report-ja.md").read_text(encoding="utf-8")
    assert not re.search(r"\{[{%]", text)
    found = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert found["languages"] == ["de", "ja"]
    assert all(claim["statement"] for claim in found["claims"])


INCLUDE = Path(__file__).parents[3] / "docs" / "jekyll" / "claim.html"


@pytest.mark.parametrize("code", CODES)
def test_a_post_quotes_a_claim(liquid, written, report, code):
    """The include puts sentence, finding, figure and source into a post."""
    data = json.loads((written / f"quotations-{code}.json").read_bytes())
    page = report.page(code)
    assert set(data["claims"]) == {claim["id"] for claim in report.claims["claims"]}
    values = {"site": {"data": {f"quotations-{code}": data}}}
    asked = {"claim": "linear-variance", "lang": code, "figure": "variance"}
    made = liquid(INCLUDE.read_text(encoding="utf-8"), {**values, "include": asked})
    root = html5lib.parse(made, namespaceHTMLElements=False)
    (article,) = (
        e for e in page.root.iter("article") if e.get("id") == "claim-linear-variance"
    )
    (found,) = (e for e in article.iter("p") if e.get("class") == "finding")
    text = "".join(root.itertext())
    for number in found.iter("data"):
        assert (number.text or "").strip() in text
    (image,) = root.iter("img")
    assert image.get("src") == "/figures/variance.svg"
    assert image.get("alt") == data["figures"]["variance"]["alternative"]
    (cite,) = root.iter("cite")
    assert "python -m montecarlo report" in cite.text
    verdicts = {claim["id"]: claim["verdict"] for claim in report.claims["claims"]}
    (outer,) = (e for e in root.iter("figure"))
    assert outer.get("data-verdict") == verdicts["linear-variance"]
    plain = liquid(
        INCLUDE.read_text(encoding="utf-8"),
        {**values, "include": {"claim": "linear-variance", "lang": code}},
    )
    assert "<img" not in plain
    assert "<blockquote>" in plain
