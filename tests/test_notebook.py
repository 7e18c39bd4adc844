"""The notebook in docs/ runs as it stands, and says what stands in it."""

import importlib.util
import os
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "ask.ipynb"
SCRIPT = NOTEBOOK.with_name("run_notebook.py")
#: Set where missing libraries must not pass unnoticed.
REQUIRED = "MONTECARLO_REQUIRE_DOCUMENTS"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nbformat():
    """Return the library of notebooks; skipped, or failed if required, without it."""
    if not all(map(importlib.util.find_spec, ("nbclient", "ipykernel", "nbformat"))):
        end = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        end("nbclient and ipykernel are not installed")
    return importlib.import_module("nbformat")


def shown(notebook):
    """Return what each cell shows: texts and tables as they are, pictures by kind."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text")})
            texts = {k: v for k, v in data.items() if k.startswith("text/")}
            found.append((output.output_type, sorted(data), texts))
    return found


def test_it_says_what_it_said(nbformat):
    """Every cell runs, and its text is the one that is kept: ``python
    docs/run_notebook.py`` makes it anew.
    """
    spec = importlib.util.spec_from_file_location("run_notebook", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = nbformat.read(NOTEBOOK, as_version=4)
    again = module.execute(nbformat.read(NOTEBOOK, as_version=4))
    assert shown(again) == shown(kept)
    assert any("image/png" in kinds for _, kinds, _ in shown(kept))
    assert not any(kind in {"error", "stderr"} for kind, _, _ in shown(kept))
    assert again.metadata == kept.metadata
