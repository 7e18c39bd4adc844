"""The report as Markdown and as JSON: what pages say, elsewhere."""

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date

import html5lib
import pytest
import yaml
from markdown_it import MarkdownIt

from montecarlo.errors import InputError
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.making import make_report
from montecarlo.report.render.contents import Post
from montecarlo.report.render.markdown import (
    FLAVOURS,
    front_matter,
    read_html,
    render_markdown_erratum,
    to_markdown,
)
from montecarlo.report.running import _read_post, report_maker
from tests.report.conftest import CODES

#: Commas and words of Latin letters, and signs that are wide.
POSTED = ("de", "zh")


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


@pytest.mark.parametrize(
    "piece",
    [
        *(f'<p class="b {name}">b</p>' for name in ("heads", "script-only", "skip")),
        '<nav class="languages"><ul><li>b</li></ul></nav>',
        '<p><span class="unseen">b</span></p>',
        "<form><p>b</p></form><script>b</script><style>b</style>",
    ],
)
def test_what_is_of_no_use_elsewhere_is_left_out(piece):
    """Heads of columns, languages, controls, and what only a reader of pages hears."""
    assert markdown(f"<p>a</p>{piece}") == "a"


def test_page_that_is_not_closed_is_refused():
    """What our templates would never write is an error, not half a post."""
    with pytest.raises(ValueError, match="close 'b'"):
        read_html("<p><b>x</p>")
    with pytest.raises(ValueError, match="close 'p'"):
        read_html("<p>x")


@pytest.mark.parametrize("code", POSTED)
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
    assert len(pictures) == len(list(report.page(code).root.iter("img"))) > 2
    assert all((written / name).is_file() for name in pictures)


@pytest.mark.parametrize("code", POSTED)
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


@pytest.mark.parametrize("code", POSTED)
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
    """What the judge wrote stands there, with words and formulas beside it."""
    found = json.loads((written / "findings.json").read_text(encoding="utf-8"))
    record = report.claims
    german = read_language("de")
    rows = set(report.results.measurements["row_id"])
    for claim, judged in zip(found["claims"], record["claims"], strict=True):
        kept = ("id", "kind", "topic", "sources", "verdict", "texts", "error_rate")
        assert {n: claim[n] for n in kept} == {n: judged[n] for n in kept}
        assert set(claim["statement"]) == set(CODES)
        assert claim["statement"]["de"] == german.translate(claim["statement"]["en"])
        assert all(set(name) == set(CODES) for name in claim["names"].values())
        assert "findings" not in claim  # the one that is said stands alone
        pairs = zip(claim["interpretations"], judged["interpretations"], strict=True)
        for one, other in pairs:
            assert one["verdict"] == other["verdict"]
            cases = [check["cases"] for check in one["checks"]]
            assert cases == [check["cases"] for check in other["checks"]]
            assert {n for c in cases for case in c for n in case["rows"]} <= rows
    said = [claim for claim in record["claims"] if claim["sources"]]
    assert sum(found["counts"].values()) == len(said)
    fact, named = report.facts["variance"], found["figures"]["variance"]
    assert named["score_variance_unscaled"] == fact["first"]
    assert named["score_variance_scaled_error"] == fact["second_error"]
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


# --- CommonMark for other sites -----------------------------------------------------

#: Set where missing tools must not pass unnoticed.
REQUIRED = "MONTECARLO_REQUIRE_DOCUMENTS"
MKDOCS = """site_name: posts
theme: {name: mkdocs}
markdown_extensions:
  - tables
  - md_in_html
  - pymdownx.arithmatex: {generic: true}
validation: {anchors: warn, unrecognized_links: warn, absolute_links: warn}
"""


def common(text):
    """Convert a piece of HTML."""
    return to_markdown(read_html(text), flavour=FLAVOURS["commonmark"]).strip()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<p>a <math><mi>n</mi></math></p>", "a $n$"),
        ("<p><math><mi>n</mi></math></p>", "$$n$$"),
        ('<h2 id="x">t</h2>', '<a id="x"></a>\n\n## t'),
        (
            '<p><a href="#x">y</a> <a href="report-de.md#x">z</a></p>',
            "[y](#x) [z](report-de.md#x)",
        ),
        ("<ul><li>a<ol><li>b</li></ol></li></ul>", "-   a\n\n    1.  b"),
        ("<dl><dt>a <b>b</b></dt><dd>c</dd></dl>", "**a b**\n\nc"),
        (
            "<details><summary>a &amp; <b>b</b></summary><p>c</p></details>",
            '<details markdown="1">\n<summary>a &amp; b</summary>\n\nc\n\n</details>',
        ),
    ],
)
def test_piece_is_written_so_that_all_read_it(text, written):
    """Formulas, names of places, lists, definitions and what is folded."""
    assert common(text) == written


def shown(written):
    """Return what a reader of CommonMark makes of a piece."""
    return html5lib.parse(MarkdownIt().render(written), namespaceHTMLElements=False)


#: Formulas with what Markdown takes for its own, and what their commands are instead.
FORMULAS = {
    r"\{a\}_{1} + \{b\}_{2}": r"\lbrace a\rbrace  _ {1} + \lbrace b\rbrace  _ {2}",
    r"\operatorname{Var}(x_1) = 5\,\%": r"\mathrm{Var}(x_1) = 5\thinspace \%",
    r"a \; b \! c \: d \\ e \ f": r"a \  b \negthinspace  c \  d \\ e \ f",
    "x*y*z < 1 & [a](b) ~~c~~ `d`": r"x\ast y\ast z \lt  1 & [a](b) ~~c~~ `d`",
    r"\lVert J\rVert_F \sigma_{x}": r"\lVert J\rVert_F \sigma_{x}",
}


@pytest.mark.parametrize(("latex", "handed_on"), FORMULAS.items())
def test_formula_comes_through_a_reader_that_knows_none(latex, handed_on):
    """As GitHub takes formulas, after Markdown; and so does MathJax, of MkDocs."""
    annotation = latex.replace("&", "&amp;").replace("<", "&lt;")
    math = f"<math><annotation>{annotation}</annotation></math>"
    written = common(f"<p>See {math}, or {math}.</p>")
    (paragraph,) = shown(written).iter("p")
    assert [*paragraph] == []
    assert paragraph.text == f"See ${handed_on}$, or ${handed_on}$."
    assert html.unescape(written) == paragraph.text


SIGNS = "a *b* _c_ [d] e|f `g` <h> ~i~ #j $k$ {l} \\m & n"


@pytest.mark.parametrize("start", ["", "- ", "+ ", "12. ", ": ", "= ", "# ", "> "])
def test_signs_arrive_as_they_were(start):
    """What begins something in Markdown is text again where it is text."""
    text = start + SIGNS
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    root = shown(common(f"<p>{escaped}</p>"))
    assert "".join(root.itertext()).strip() == text
    assert [e.tag for e in root.find("body").iter()] == ["body", "p"]


@pytest.fixture(scope="module")
def posts(report, tmp_path_factory):
    """Write the posts."""
    folder = tmp_path_factory.mktemp("posts")
    arguments = report.results, CODES, folder, ("markdown",)
    with report.keep_figures():
        make_report(*arguments, post=Post("commonmark"))
    for kind in ("*.csv", "*.json"):  # what posts link to
        for path in report.folder.glob(kind):
            shutil.copy(path, folder)
    return folder


def counts(root):
    """Count what a page has of each kind."""
    return {tag: len(list(root.iter(tag))) for tag in ("table", "tr", "img", "details")}


def on_page(report, code):
    """Count the same on the report's page, without what needs a script."""
    root = report.page(code).root
    for parent in list(root.iter()):
        for child in list(parent):
            if "script-only" in (child.get("class") or ""):
                parent.remove(child)
    return counts(root)


@pytest.mark.slow
@pytest.mark.parametrize("code", POSTED)
def test_github_reads_all_of_it(posts, report, code):
    """As CommonMark with tables: pictures, folds, formulas, the end of every link."""
    text = (posts / f"report-{code}.md").read_text(encoding="utf-8")
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    root = html5lib.parse(reader.render(text), namespaceHTMLElements=False)
    assert counts(root) == on_page(report, code)
    names = {e.get("id") for e in root.iter() if e.get("id")}
    ends = [a.get("href", "") for a in root.iter("a")]
    assert all(end[1:] in names for end in ends if end.startswith("#"))
    formulas = [html.unescape(latex) for latex in re.findall(r"\$[^$\n]+\$", text)]
    assert len(formulas) > 100
    words, place = "".join(root.itertext()), 0
    for latex in formulas:
        place = words.index(latex, place)
        assert not re.search(r"\\(?:operatorname|[^A-Za-z %])", latex)


@pytest.fixture(scope="module")
def tools():
    """Require MkDocs; skipped, or failed if required, without it."""
    needed = ("mkdocs", "pymdownx")
    if not all(map(importlib.util.find_spec, needed)):
        end = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        end(f"{', '.join(needed)} are not all installed")


def build(command, folder):
    """Run a tool, which has to end without a word; returns what it built, by file."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return {
        path.relative_to(folder / "site"): html5lib.parse(
            path.read_text(encoding="utf-8"), namespaceHTMLElements=False
        )
        for path in (folder / "site").rglob("*.html")
    }


def formulas(root, kind):
    """Return what is between the signs of formulas of a built page."""
    return [
        "".join(e.itertext()).strip()
        for e in root.iter()
        if kind in (e.get("class") or "").split()
    ]


def main_of(root):
    """Return the part of a built page that is ours."""
    return next(e for e in root.iter() if e.get("role") == "main")


@pytest.mark.slow
@pytest.mark.usefixtures("tools")
def test_mkdocs_builds_the_posts(posts, report, tmp_path):
    """Without a warning, anchors among them, and with all that the pages have."""
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)
    (tmp_path / "docs").symlink_to(posts)
    (posts / "index.md").write_text("# Posts\n")
    pages = build(["mkdocs", "build", "--strict", "--quiet"], tmp_path)
    for path, root in pages.items():
        if match := re.match(r"report-(\w\w)", str(path)):
            main = main_of(root)
            assert counts(main) == on_page(report, match[1])
            assert len(formulas(main, "arithmatex")) > 100
            words = "".join(main.itertext())
            assert not re.search(r"\*\*|\]\(|(?<!\\)\$|&#", words)


def test_errata_have_front_matter_if_it_is_asked_for(report):
    """What is pasted has none; a post of its own has the keys that were named."""
    german = read_language("de")
    (erratum,) = (one for one in report.contents.errata if one.text.key == "de")
    for keys, first in ((None, "#"), (("layout=post", "title"), "---\nlayout: post\n")):
        contents = replace(report.contents, post=Post("kramdown", keys))
        assert render_markdown_erratum(contents, german, erratum).startswith(first)


@pytest.mark.parametrize(
    ("formats", "flavour", "front", "message"),
    [
        (["html"], "commonmark", None, "--flavour must stand with --format markdown"),
        (None, None, ["title"], "--front-matter must stand with --format markdown"),
        (["markdown"], "commonmrk", None, "Did you mean 'commonmark'"),
        (["markdown"], None, ["titel"], "Did you mean 'title'"),
    ],
)
def test_what_is_no_flavour_is_refused(formats, flavour, front, message):
    """One line, before anything is sampled."""
    with pytest.raises(InputError, match=message):
        report_maker(formats, flavour, front)
