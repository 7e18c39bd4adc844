"""CommonMark for other sites: their tools read it, and nothing is lost."""

import html
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import html5lib
import pytest
from markdown_it import MarkdownIt

from montecarlo.errors import InputError
from montecarlo.report.command import report_maker
from montecarlo.report.making import make_report
from montecarlo.report.render.contents import Post
from montecarlo.report.render.markdown import FLAVOURS, read_html, to_markdown
from tests.report.conftest import CODES

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


def piece(text):
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
    assert piece(text) == written


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
    written = piece(f"<p>See {math}, or {math}.</p>")
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
    root = shown(piece(f"<p>{escaped}</p>"))
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
@pytest.mark.parametrize("code", CODES)
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


@pytest.mark.slow
def test_errata_have_front_matter_if_it_is_asked_for(report, tmp_path):
    """What is pasted has none; a post of its own has the keys that were named."""
    for keys, first in ((None, "#"), (("layout=post", "title"), "---")):
        post = Post("kramdown", keys)
        with report.keep_figures():
            make_report(
                report.results,
                ("de",),
                tmp_path,
                ("markdown",),
                post=post,
            )
        text = (tmp_path / "erratum-de.md").read_text(encoding="utf-8")
        assert text.startswith(first)
        assert ("layout: post" in text) == (keys is not None)


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
