"""README and docs/: every block of code runs and shows what stands below it.

A page is run from its first block to its last in one folder, with one set of names.

=========== ==================================================================
``python``  is executed; a ``text`` block right below is what it prints
``console`` lines after ``$`` are typed into one shell, what follows is printed
``sh``      each line is typed, and ends with status 0
``bibtex``  says what CITATION.cff does
``toml``    with a title is a file of that name, ``python`` beginning with a
            comment ``# test_....py`` a file of tests, whose failures are shown
=========== ==================================================================

``...`` stands for anything.  What imports torch is run where that is installed; with
MONTECARLO_REQUIRE_TORCH=1 it has to be.
"""

import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.links import dead_links, read

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
#: Blocks of a page are run by another test, or hold what is no program.
ELSEWHERE = {
    "cluster.md": "tests/study/test_cluster.py",
    "watch.md": "tests/model/test_watch.py",
}
#: What pages need three seconds or more for.
SLOW = {
    "README.md",
    "check-a-port.md",
    "claim-in-ci.md",
    "commands.md",
    "figures-for-sites.md",
    "first-report.md",
    "normalise.md",
    "own-texts.md",
    "observe-files.md",
    "why-divide.md",
}
#: Commands that set up, with where else they are run: `.ci/run`, or an extra of it.
SET_UP = re.compile(r"^python -m (venv|pip install) |^python examples/")
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NO_BREAK = re.compile("[\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}]")
#: What commands print of their progress where a machine is slow.
PROGRESS = re.compile(r"^\w+: \d+ (% after|points, about) .*\n", re.MULTILINE)
TEST_FILE = re.compile(r"# (test_\w+\.py)\n")
#: Where a report is looked for that no block of the page has made.
REPORT = "output"


class Block(NamedTuple):
    """A block of code: its language, title and text, and what it must print."""

    kind: str
    title: str
    text: str
    prints: str | None


def blocks_of(text):
    """Return the blocks of a page, each with the ``text`` block right below it."""
    found = list(FENCE.finditer(text))
    blocks = []
    for block, after in zip_longest(found, found[1:]):
        kind, more, code = block.groups()
        if kind == "text" and blocks and blocks[-1].prints == code:
            continue  # it was taken as what the block above prints
        touches = after is not None and not text[block.end() : after.start()].strip()
        prints = after[3] if touches and after[1] == "text" else None
        title = re.search(r'title="([^"]+)"', more)
        blocks.append(Block(kind, title[1] if title else "", code, prints))
    return blocks


def matches(shown, printed):
    """Whether what was printed is what a page shows; ``...`` stands for anything."""
    shown, printed = (NO_BREAK.sub(" ", text).strip() for text in (shown, printed))
    parts = [re.escape(part) for part in shown.split("...")]
    return re.fullmatch(".*".join(parts), printed, re.DOTALL) is not None


def run_shell(script, folder):
    """Type lines into a shell; returns what each printed and its status."""
    lines = ["exec 2>&1"]
    for at, line in enumerate(script):
        lines += [line, f'status=$?; echo "@{at} $status"; (exit $status)']
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    done = subprocess.run(  # noqa: S603 - our own pages
        ["bash", "-c", "\n".join(lines)],  # noqa: S607 - that of the system
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.split(r"^@\d+ (\d+)\n", done.stdout, flags=re.MULTILINE)
    return list(zip(found[::2], map(int, found[1::2]), strict=False))


def run_console(block, folder):
    """Type what stands after ``$`` and compare what is printed."""
    typed = [
        part.partition("\n") for part in block.text.removeprefix("$ ").split("\n$ ")
    ]
    printed = run_shell([line for line, *_ in typed], folder)
    for (line, _, shown), (told, _) in zip(typed, printed, strict=True):
        assert matches(shown, PROGRESS.sub("", told)), f"$ {line}\n{told}"


def run_lines(block, folder):
    """Type each line; what sets up is run by .ci/run."""
    lines = [line for line in block.text.splitlines() if not SET_UP.match(line)]
    for line, (told, status) in zip(lines, run_shell(lines, folder), strict=True):
        assert status == 0, f"$ {line}\n{told}"


def has_torch():
    """Whether torch is there; failed without it where it is required."""
    there = importlib.util.find_spec("torch") is not None
    if not there and os.environ.get("MONTECARLO_REQUIRE_TORCH"):
        pytest.fail("torch is not installed")
    return there


def run_tests(block, name, folder):
    """Run a file of tests, which must fail as shown."""
    if "import torch" in block.text and not has_torch():
        return
    (folder / name).write_text(block.text, encoding="utf-8")
    command = f"python -m pytest -q -n 0 -p no:cacheprovider {name}"
    ((told, status),) = run_shell([command], folder)
    assert status == (block.prints is not None), told
    assert not block.prints or block.prints.strip() in told, told


def run_python(block, names, page):
    """Execute a block in the page's names and compare what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, page, "exec"), names)  # noqa: S102 - our own pages
    if block.prints is not None:
        assert matches(block.prints, printed.getvalue()), printed.getvalue()


def assert_cited(entry):
    """Require that an entry says what CITATION.cff does."""
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    known = dict(re.findall(r'^([\w-]+): "?(.*?)"?$', cited, re.MULTILINE))
    fields = dict(re.findall(r"(\w+) = \{(.*)\}", entry.replace(r"\_", "_")))
    assert fields["title"] == known["title"]
    assert fields["version"] == known["version"]
    assert fields["year"] == known["date-released"][:4]
    (author,) = re.findall("- name: (.*)", cited)
    assert fields["author"] == f"{{{author}}}"


def run_page(page, folder):
    """Run every block of a page, in a folder with what pages speak of."""
    names = {"__name__": page.name}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        imports = block.kind == "python" and "import torch" in block.text
        if imports and not TEST_FILE.match(block.text) and not has_torch():
            pytest.skip("torch is not installed")
        match block.kind:
            case "python" if test := TEST_FILE.match(block.text):
                run_tests(block, test[1], folder)
            case "python":
                run_python(block, names, page.name)
            case "console":
                run_console(block, folder)
            case "sh":
                run_lines(block, folder)
            case "toml" if block.title:
                (folder / block.title).write_text(block.text, encoding="utf-8")
            case "bibtex":
                assert_cited(block.text)
            case "yaml":
                assert block.text == (DOCS / block.title).read_text(encoding="utf-8")
            case kind:
                pytest.fail(f"{page.name}: a block of {kind} is run by nobody")


def marked(page):
    """Return the page as a parameter, slow where that is so."""
    marks = [pytest.mark.slow] if page.name in SLOW else []
    needs = "-torch" if "import torch" in page.read_text(encoding="utf-8") else ""
    return pytest.param(page, marks=marks, id=f"{page.name}{needs}")


@pytest.mark.parametrize(
    "page", [marked(page) for page in PAGES if page.name not in ELSEWHERE]
)
def test_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch, request):
    """What a reader types does what the page says."""
    text = page.read_text(encoding="utf-8")
    shutil.copy(DOCS / "own-claim.toml", tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCS / "own-claim.toml", tmp_path / "docs")
    if f"--from {REPORT}" in text:
        (tmp_path / REPORT).symlink_to(request.getfixturevalue("standard_report"))
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


WRONG = {
    "print": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    "raise": "```python\n1 / 0\n```\n",
    "console": "```console\n$ echo one\ntwo\n```\n",
    "status": "```sh\nfalse\n```\n",
    "kind": "```perl\n1\n```\n",
    "passes": "```python\n# test_x.py\ndef test_x():\n    assert True\n```\n\n"
    "```text\nE   assert False\n```\n",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_blocks_are_seen(wrong, tmp_path):
    """A page that shows what is not printed fails; so does what cannot run."""
    page = tmp_path / "page.md"
    page.write_text(wrong, encoding="utf-8")
    with pytest.raises((AssertionError, ZeroDivisionError, pytest.fail.Exception)):
        run_page(page, tmp_path)


def test_no_link_is_dead():
    """Of any Markdown file of the repository, where that is read without the site."""
    folders = ("docs", "tests", "studies", "examples", "report_templates", "montecarlo")
    nested = [path for name in folders for path in (ROOT / name).rglob("*.md")]
    followed, dead = dead_links(ROOT, [*ROOT.glob("*.md"), *nested], ["docs/report/"])
    assert followed > 100
    assert not dead


@pytest.mark.parametrize(
    "target", ["no.md", "b.md#no", "#no", "../a.md", "http://x.org", "https://x", "/x"]
)
def test_dead_links_are_seen(target, tmp_path):
    """A file or an anchor that is not there, a way out, an address of a wrong form."""
    text = "# A b\n[b](b.md#b-c) [a](#a-b) [c](https://x.org/) "
    (tmp_path / "b.md").write_text("# `B` c\n", encoding="utf-8")
    for more, dead in (("", []), (f"[no]({target})", [f"a.md: {target}"])):
        page = tmp_path / "a.md"
        page.write_text(text + more, encoding="utf-8")
        read.cache_clear()
        assert dead_links(tmp_path, [page]) == (3 + bool(dead), dead)


def test_generated_pages_say_what_stands_there():
    """Where they are read in the repository: in a sentence, and how to make it."""
    marked = [page for page in PAGES if "<!-- generated: " in page.read_text("utf-8")]
    assert len(marked) > 10
    for page in marked:
        text = page.read_text(encoding="utf-8")
        for words in re.findall(
            r"<!-- generated: [\w ]+ -->(.*?)<!--", text, re.DOTALL
        ):
            assert "made by `make docs`" in words, page.name


def test_every_page_is_in_the_navigation():
    """A page that nobody can find is none."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert f": {page.name}\n" in navigation, page.name


def program(name):
    """Import a program of docs/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_traced_claim_is_fresh():
    """`python docs/make_trace.py`; ten stops at most, and from the draw to the page no
    room is entered again.
    """
    trace = program("make_trace")
    stops = trace.trace()
    table = trace.tabulate(stops)
    assert table in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(stops) <= 10
    order = [*program("make_house").ROOMS]
    rooms = [stop.file.split("/")[1] for stop in stops]
    drawn = [order.index(room) for room in rooms[rooms.index("sampling") :]]
    assert drawn == sorted(drawn)
    assert len({*rooms}) <= 6


def test_picture_of_the_house_is_fresh():
    """It shows the imports of today: `make house`."""
    module = program("make_house")
    imports = module.read_imports(ROOT / "montecarlo")
    assert module.PICTURE.read_text(encoding="utf-8") == module.draw(imports)
    rooms = list(module.ROOMS)
    assert sum(map(len, imports.values())) <= 30  # more, and nobody sees the house
    for room, others in imports.items():
        assert all(rooms.index(other) < rooms.index(room) for other in others), room
    without = imports | {"cli": imports["cli"] - {"report"}}
    assert module.draw(without) != module.draw(imports)


def test_stories_of_a_port_are_short():
    """Each is under forty lines; what is tried and seen stands behind them."""
    page = (DOCS / "check-a-port.md").read_text(encoding="utf-8")
    stories = page.split("\n## ")[1:4]
    assert max(len(one.rstrip().splitlines()) for one in stories) < 40
