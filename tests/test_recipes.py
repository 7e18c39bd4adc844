"""The recipes of CONTRIBUTING.md, performed: a block of it goes where its words say.

All seven in one scratch copy, which then runs the tests that they name and makes one
report in English and in the language that is new.
"""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from tests.commands import run_python

ROOT = Path(__file__).parents[1]
COPIED = ("montecarlo", "report_templates", "tests", "docs", "README.md")
#: Above a block of code stand a file and one or more places in it.
BLOCK = re.compile(r"^(.+):\n```\w+\n((?:.*\n)*?)```$", re.MULTILINE)
FILE = re.compile(r"\b[Ii]n `([^`]+)`, (.*)")
PLACE = re.compile(r"(above|at the end)(?: of)?(?: `([^`]+)`)?")
#: Small, with what a new distribution and number format need.
CONFIGURATION = """
[grid]
d_k = [16, 64, 256]
n_keys = [128]
distributions = ["arcsine"]
distribution_d_k = [64]
distribution_n_keys = [128]
blocks = [{ d_k = [64], n_keys = [128], formats = true }]
tails = [[16, 4]]
first = 32
most = 32
first_large = 32
most_large = 32
"""
#: New words, which the catalogues of other languages lack.
WORDS = {
    "arcsine": "distribution",
    "collision entropy of a row: minus the logarithm": "quantity",
    "rows of $128$ keys have a collision entropy": "claim",
    "it is %(found)s in the mean": "finding",
    "Mean collision entropy of a row against": "figure",
}
#: The tests that recipes name, of what they added.
TOLD = (
    "tests/test_completeness.py",
    "tests/attention/test_number_formats.py",
    "tests/claims/test_catalogue.py",
    "tests/sampling/test_distributions.py",
    "tests/test_second_ways.py",
    "tests/theory/test_references.py",
)
NEW = (
    "arcsine or fourth_root or fp24 or collision or definitions or second_way or whole "
    "or every_distribution or one_place or catalogue_of_the_package or what_was_tested"
)

pytestmark = pytest.mark.slow


class Recipe(NamedTuple):
    """A block of code, its file, and its places: an anchor, and whether above it."""

    file: str
    places: tuple[tuple[bool, str], ...]
    block: str


def read_recipes():
    """The blocks of CONTRIBUTING.md, in their order."""
    text = ROOT.joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = []
    for words, block in BLOCK.findall(text):
        file, where = FILE.search(words).groups()
        places = [(side == "above", anchor) for side, anchor in PLACE.findall(where)]
        recipes.append(Recipe(file, tuple(places), block))
    assert len(recipes) == text.count("```") / 2
    return recipes


def find_end(lines, name):
    """Where the table of a name ends: an entry put there is its last."""
    start = next(i for i, line in enumerate(lines) if re.match(rf"{name}\b.* =", line))
    end = next(i for i in range(start, len(lines)) if lines[i] in {")", "}", "]"})
    return end - 1 if lines[end - 1] == "    )" else end


def put(recipe, root):
    """Put a block where its words say."""
    path = root / recipe.file
    apart = "\n\n" if path.suffix == ".py" else "\n"
    for above, anchor in recipe.places:
        lines, new = path.read_text(encoding="utf-8").split("\n"), recipe.block
        if not anchor:
            at, indented = len(lines), 0
            new = apart + new if path.suffix == ".py" else new
        elif above:
            found = [i for i, x in enumerate(lines) if x.lstrip().startswith(anchor)]
            at = found[0]
            indented = len(lines[at]) - len(lines[at].lstrip())
            new += "" if indented else apart
        else:
            at = find_end(lines, anchor)
            indented = len(lines[at - 1]) - len(lines[at - 1].lstrip())
        added = [" " * indented * bool(line) + line for line in new.split("\n")[:-1]]
        # a file ends in a line of its own
        at -= at == len(lines)
        lines[at:at] = added
        path.write_text("\n".join(lines), encoding="utf-8")


def run(scratch, *arguments):
    """Run Python in the scratch copy, which it imports."""
    paths = {"PYTHONPATH": str(scratch), "PYTHONWARNINGS": "error"}
    return run_python(*arguments, cwd=scratch, **paths)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A copy of the checkout with all recipes performed, but for translations."""
    folder = tmp_path_factory.mktemp("scratch")
    for name in (*COPIED, "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for recipe in read_recipes():
        put(recipe, folder)
    return folder


@pytest.fixture(scope="module")
def translations(scratch):
    """How `make translations` ended."""
    return run(scratch, "-m", "montecarlo.report.language.messages")


@pytest.fixture(scope="module")
def report(scratch, translations):
    """A small report of the new claim in English and in the new language."""
    assert translations.returncode == 1
    config = scratch / "small.toml"
    config.write_text(CONFIGURATION, encoding="utf-8")
    only = ("--only", "collision-entropy", "--lang", "en,fr", "--jobs", "1")
    command = ("-m", "montecarlo", "report", "--config", str(config), "--quiet")
    done = run(scratch, *command, *only, "--output", str(scratch / "out"))
    assert done.returncode == 0, done.stderr
    return scratch / "out"


def test_what_recipes_add_passes_lint(scratch):
    """As `make lint` looks at it: style, and how it is laid out."""
    pytest.importorskip("ruff")
    files = {recipe.file for recipe in read_recipes() if recipe.file.endswith(".py")}
    for command in (("check",), ("format", "--check")):
        done = run(scratch, "-m", "ruff", *command, "--no-cache", *sorted(files))
        assert done.returncode == 0, done.stdout + done.stderr


def test_translations_name_every_new_word(translations):
    """In each language that was there; the new one is started, and lacks all words."""
    assert translations.returncode == 1
    for code in ("de", "zh", "ja", "es", "fr"):
        lines = [x for x in translations.stderr.splitlines() if f"{code!r} must" in x]
        for words, kind in WORDS.items():
            assert any(words in line for line in lines), (code, kind)
        counted = re.search(rf"\({code}\): (\d+) messages", translations.stdout)[1]
        assert int(counted) == len(lines)
        assert (len(lines) > 500) == (code == "fr")


def test_what_recipes_add_stands_in_the_tables(report):
    """All were sampled; the claim was judged."""
    table = pd.read_csv(report / "measurements.csv", keep_default_na=False)
    for column, name in (
        ("distribution_q", "arcsine"),
        ("divisor", "fourth_root"),
        ("number_format", "fp24"),
        ("quantity", "collision_entropy"),
    ):
        assert table[column].eq(name).any(), name
    claims = json.loads(report.joinpath("claims.json").read_text(encoding="utf-8"))
    (claim,) = claims["claims"]
    assert (claim["id"], claim["verdict"]) == ("collision-entropy", "holds")


def test_what_recipes_add_stands_on_pages(report):
    """The figure is drawn; new words are English in both languages, marked in one."""
    assert report.joinpath("figures", "collision.svg").stat().st_size > 1000
    for code in ("en", "fr"):
        pages = [
            report.joinpath(f"{prefix}{code}.html").read_text(encoding="utf-8")
            for prefix in ("", "evidence-")
        ]
        for page in pages:
            assert f'<html lang="{code}"' in page
            assert "keys have a collision entropy" in page
            assert ('<span lang="en">' in page) == (code == "fr")
        assert any("Mean collision entropy of a row" in page for page in pages)


def test_named_tests_see_what_was_added(scratch, translations):
    """They pass, and look at what is new; one is left out here and is seen to lack."""
    assert translations.returncode == 1
    command = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", NEW)
    done = run(scratch, *command, *TOLD)
    assert done.returncode == 0, done.stdout
    path = scratch / "tests" / "second_ways.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("collision_entropy,mean,loop\n", ""), encoding="utf-8")
    lacking = run(scratch, *command, "tests/test_second_ways.py")
    path.write_text(text, encoding="utf-8")
    assert lacking.returncode == 1
    assert "collision_entropy" in lacking.stdout
