"""Planted errors: a list that fits the code, and a script that tells what sees them."""

import ast
import subprocess
import tomllib
from dataclasses import replace

import pytest

from studies import mutations
from studies.mutations import (
    ROOT,
    Clean,
    Mutation,
    UnusableError,
    changed_verdict,
    look,
    read_mutations,
    require_places,
    targets_of,
)

LISTED = read_mutations(mutations.LIST)
PARSE = {".py": ast.parse, ".toml": tomllib.loads}
HALVED = Mutation("halved", "montecarlo/one/half.py", "/ 2", "/ 3", "a half is a third")
#: A checkout: a module, its tests, and what stands for the quick study.
CHECKOUT = {
    HALVED.file: "def half(x):\n    return x / 2\n",
    "montecarlo/__init__.py": "",
    "montecarlo/one/__init__.py": "",
    "montecarlo/pytest_plugin.py": "",  # pytest asks for that of what is installed
    "montecarlo/report.py": """
import pathlib, sys
from montecarlo.one.half import half
folder = pathlib.Path(sys.argv[-1])
verdict = "supported" if half(1.0) == 0.5 else "refuted"
record = '{"self_checks": [{"id": "half", "verdict": "%s"}]}'
(folder / "claims.json").write_text(record % verdict)
""",
    "tests/one/test_half.py": """
from pathlib import Path
from montecarlo.one import half
def test_sign(): assert half.half(2.0) > 0.0
def test_text(): assert len(Path(half.__file__).read_text()) == 30
def test_value(): assert half.half(2.0) == 1.0
""",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout, which git knows, whose tests start without plugins."""
    for name, text in CHECKOUT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)  # noqa: S607
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


@pytest.mark.parametrize("mutation", LISTED, ids=lambda mutation: mutation.name)
def test_each_error_has_one_place_and_leaves_a_file_that_can_be_read(mutation):
    """The list cannot go stale: what it replaces stands in the code, once."""
    PARSE[(ROOT / mutation.file).suffix](mutation.planted(ROOT))
    assert mutation.new != mutation.old
    assert mutation.wrong
    assert [one.name for one in LISTED].count(mutation.name) == 1


@pytest.mark.parametrize("text", ["x / 4", "x / 2 / 2"])
def test_an_error_without_a_place_of_its_own_is_refused(checkout, text):
    """Neither a stale error nor one of two places is planted."""
    (checkout / HALVED.file).write_text(text)
    with pytest.raises(UnusableError, match="halved: old must be found once in"):
        HALVED.plant(checkout)
    again = replace(HALVED, name="again")
    with pytest.raises(UnusableError, match=r"halved: .*; mutation again: "):
        require_places([HALVED, again], checkout)


def test_the_nearest_tests_come_first():
    """First the module, then its folders from the inside, then the pipeline."""
    found = targets_of("montecarlo/report/language/formulas.py", ROOT)
    nearest = ["tests/report/language/test_formulas.py", "tests/report/language"]
    assert found == [*nearest, "tests/report", *mutations.PIPELINE]


@pytest.mark.slow
def test_an_error_is_seen_by_the_test_that_mirrors_its_module(checkout):
    """A test that sees any change of a file, and not what it does, is left out."""
    clean = mutations.behave([HALVED.file], checkout, jobs=1)
    test = "tests/one/test_half.py::test_"
    assert clean.text_tests == [f"{test}text"]
    assert look(HALVED, checkout, clean, 60.0).seen_by == f"{test}value"


def test_what_no_test_sees_the_study_may_see(checkout):
    """A verdict that changed tells of an error; one that changes nothing is unseen."""
    (checkout / "tests/one/test_half.py").unlink()
    clean = Clean({"/self_checks/half": "supported"})
    seen_by = look(HALVED, checkout, clean, 60.0).seen_by
    assert seen_by == "self_checks/half: supported, then refuted"
    harmless = Mutation("harmless", HALVED.file, "/ 2", "* 0.5", "nothing")
    assert look(harmless, checkout, clean, 60.0).seen_by is None


@pytest.mark.slow
def test_a_checkout_whose_tests_fail_says_nothing(checkout):
    """Where tests fail anyhow, nothing can be told from their failing."""
    (checkout / HALVED.file).write_text("def half(x):\n    return 2 * x\n")
    with pytest.raises(UnusableError, match="must pass without an error, got tests"):
        mutations.behave([HALVED.file], checkout, jobs=1)


def test_a_self_check_is_named_before_a_claim():
    """What a page itself complains of counts for more."""
    before = {"/claims/a": "supported", "/self_checks/b": "supported"}
    after = {"/claims/a": "refuted", "/self_checks/b": "undecided"}
    told = changed_verdict(before, after)
    assert told == "self_checks/b: supported, then undecided"
    assert changed_verdict(before, before) is None
