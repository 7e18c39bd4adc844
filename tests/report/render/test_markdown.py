"""The report as Markdown and as JSON: what pages say, elsewhere."""

import json
import re
from datetime import date

import html5lib
import pytest
import yaml

from montecarlo.errors import InputError
from montecarlo.report.command import _read_post
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.making import make_report
from montecarlo.report.render.markdown import front_matter, read_html, to_markdown
from tests.report.conftest import CODES


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    """The report in every format but pages."""
    folder = tmp_path_factory.mktemp("formats")
    formats = ("markdown", "json")
    with report.keep_figures():
        make_report(report.results, CODES, folder, formats)
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


def test_findings_say_what_the_record_says(written, report):
    """Verdicts and their cases are those of claims.json, in their order."""
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
    assert [claim["id"] for claim in found["claims"]] == list(record)
    said = [claim for claim in record.values() if claim["sources"]]
    assert sum(found["counts"].values()) == len(said)
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
    formats = ("markdown", "json")
    with own_report.keep_figures():
        make_report(own_report.results, ("de", "ja"), tmp_path, formats)
    text = (tmp_path / "report-ja.md").read_text(encoding="utf-8")
    assert not re.search(r"\{[{%]", text)
    found = json.loads((tmp_path / "findings.json").read_text(encoding="utf-8"))
    assert found["languages"] == ["de", "ja"]
    assert all(claim["statement"] for claim in found["claims"])
