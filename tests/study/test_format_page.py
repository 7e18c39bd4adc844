"""docs/results-folder.md says what readers check, to the field."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def made():
    """The script that makes the page."""
    path = DOCS / "make_results_folder.py"
    spec = importlib.util.spec_from_file_location("make_results_folder", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_and_schema_are_those_of_the_types(made):
    """A field that was changed is changed on the page: python docs/make_...py."""
    assert (DOCS / made.PAGE).read_text(encoding="utf-8") == made.page()
    assert (DOCS / made.SCHEMA_FILE).read_text(encoding="utf-8") == made.schema()


def test_every_field_is_explained(made):
    """No line of a table is without words, and every file of types has its place."""
    rows = [r for r in made.page().splitlines() if r.startswith("| `") and "|  |" in r]
    assert not [row for row in rows if row.endswith("|  |")]
