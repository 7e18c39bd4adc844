"""The report as Markdown: what pages say, elsewhere."""

import html
import re
import shutil
from copy import deepcopy

import html5lib
import pytest
from markdown_it import MarkdownIt

from montecarlo.report.making import make_report
from montecarlo.report.render.markdown import read_html, to_markdown
from tests.report.conftest import CODES

#: Commas and words of Latin letters, and signs that are wide.
POSTED = ("de", "zh")


def markdown(text, link=str):
    """Convert a piece of HTML."""
    return to_markdown(read_html(text), link).strip()


@pytest.mark.parametrize(
    ("piece", "written"),
    [
        ("<p>5 $ &amp; {more}|</p>", "5 &#36; &amp; &#123;more&#125;&#124;"),
        ("<p>2017. No list</p>", r"2017\. No list"),
        ("<p><data>2017</data>. No list</p>", r"2017\. No list"),
        ("<div>- a<p>b</p>+ c</div>", "&#45; a\n\nb\n\n&#43; c"),
        ("<p><code>a_b|c</code></p>", "<code>a&#95;b&#124;c"),
        ("<pre><code>  a *b* {{c}}\n\nd</code></pre>", "~~~\n  a *b* {{c}}\n\nd\n~~~"),
        ("<p>a <math><mi>n</mi></math></p>", "a $n$"),
        ("<p><math><mi>n</mi></math></p>", "$$n$$"),
        (
            r"<p>a <math><annotation>\|J\|_F | b</annotation></math></p>",
            r"a $\Vert J\Vert  _ F \vert  b$",
        ),
        ('<h2 id="x">t</h2>', '<a id="x"></a>\n\n## t'),
        ('<section id="s"><h2>t</h2><p>u</p></section>', '<a id="s"></a>\n\n## t\n\nu'),
        (
            '<p><a href="#x">y</a> <a href="report-de.md#x">z</a></p>',
            "[y](#x) [z](report-de.md#x)",
        ),
        ("<ul><li>a</li></ul><ul><li>b</li></ul>", "-   a\n\n<!-- -->\n\n-   b"),
        ("<ul><li>a<ol><li>b</li></ol></li></ul>", "-   a\n\n    1.  b"),
        ("<dl><dt>a <b>b</b></dt><dd>c</dd></dl>", "**a b**\n\nc"),
        (
            "<details><summary>a &amp; <b>b</b></summary><p>c</p></details>",
            '<details markdown="1">\n<summary>a &amp; b</summary>\n\nc\n\n</details>',
        ),
        ('<p>a<span class="unseen">b</span><script>c</script></p>', "a"),
        (
            "<p>x</p><table><tr><th>a</th></tr><tr><td>c<br>e</td></tr></table>",
            "x\n\n| a |\n| --- |\n| c<br>e |",
        ),
    ],
)
def test_piece_is_written_so_that_all_read_it(piece, written):
    """Signs of Markdown, formulas, lists, places that links name, tables and folds."""
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


def shown(written):
    """Return what a reader of CommonMark makes of a piece."""
    return html5lib.parse(MarkdownIt().render(written), namespaceHTMLElements=False)


#: Formulas with what Markdown takes for its own, and what their commands are instead.
FORMULAS = {
    r"\{a\}_{1} + \{b\}_{2}": r"\lbrace a\rbrace  _ {1} + \lbrace b\rbrace  _ {2}",
    r"\operatorname{Var}(x_1) = 5\,\%": r"\mathrm{Var}(x_1) = 5\thinspace \%",
    r"a \; b \! c \: d \\ e \ f": r"a \  b \negthinspace  c \  d \\ e \ f",
    "x*y*z < 1 & [a](b) ~~c~~ `d`": (
        r"x\ast y\ast z \lt  1 & \lbrack a\rbrack (b) ~~c~~ `d`"
    ),
    r"\lVert J\rVert_F \sigma_{x}": r"\lVert J\rVert_F \sigma_{x}",
}


@pytest.mark.parametrize(("latex", "handed_on"), FORMULAS.items())
def test_formula_comes_through_a_reader_that_knows_none(latex, handed_on):
    """As GitHub takes formulas, after Markdown; and so does MathJax, of MkDocs."""
    annotation = latex.replace("&", "&amp;").replace("<", "&lt;")
    math = f"<math><annotation>{annotation}</annotation></math>"
    written = markdown(f"<p>See {math}, or {math}.</p>")
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
    root = shown(markdown(f"<p>{escaped}</p>"))
    assert "".join(root.itertext()).strip() == text
    assert [e.tag for e in root.find("body").iter()] == ["body", "p"]


@pytest.fixture(scope="module")
def posts(report, tmp_path_factory):
    """Write the posts."""
    folder = tmp_path_factory.mktemp("posts")
    with report.keep_figures():
        make_report(report.results, CODES, folder, None, ("markdown",))
    for kind in ("*.csv", "*.json"):  # what posts link to
        for path in report.folder.glob(kind):
            shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize("code", POSTED)
def test_post_says_what_the_page_says(posts, report, code):
    """Every number and every verdict of the page stands in the post, in its order."""
    page = report.page(code)
    text = (posts / f"report-{code}.md").read_text(encoding="utf-8")
    place = 0
    for number in page.numbers():
        if _page_only(page, number.element):
            continue
        shown = (number.element.text or "").strip()
        place = text.find(shown, place)
        assert place >= 0, shown


def _page_only(page, element):
    """Tell what a post has not: what needs a script, references to the evidence, and
    what is written around the picture, which is a file there.
    """
    kinds = {(e.get("class") or "") for e in page.above(element)}
    only = {"more", "drawn", "claims standing", "explorer"}
    return bool(only & kinds) or any("script-only" in kind for kind in kinds)


def counts(root):
    """Count what a page has of each kind."""
    return {tag: len(list(root.iter(tag))) for tag in ("table", "tr", "img", "details")}


def on_page(report, code):
    """Count the same on the report's page: no script, nor a list of contents.

    The picture of weights is drawn on the page, and is a file in a post.
    """
    root = deepcopy(report.page(code).root)
    for parent in list(root.iter()):
        for child in list(parent):
            if set((child.get("class") or "").split()) & {
                *("script-only", "explorer", "where"),
            }:
                parent.remove(child)
    found = counts(root)
    return found | {"img": found["img"] + 1}


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
    assert {end[1:] for end in ends if end.startswith("#")} <= names
    formulas = [html.unescape(latex) for latex in re.findall(r"\$[^$\n]+\$", text)]
    assert len(formulas) > 100
    words, place = "".join(root.itertext()), 0
    for latex in formulas:
        place = words.index(latex, place)
        assert not re.search(r"\\(?:operatorname|[^A-Za-z %])", latex)
