"""Examples in docstrings give what stands below them."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "montecarlo"
MODULES = [path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text("utf-8")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_examples_of_docstrings(path):
    """``...`` stands for anything."""
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = import_module(name.removesuffix(".__init__"))
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed
