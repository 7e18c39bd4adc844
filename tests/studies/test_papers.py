"""docs/papers.md is what the program makes, and says no more than came out."""

import math

import msgspec
import pytest

from montecarlo.estimation.estimates import Estimate
from studies import papers
from studies.paper_quantities import QUANTITIES, critical_std
from tests.conftest import remade

PAPERS = papers.read_papers()
PAGE = papers.PAGE.read_text(encoding="utf-8")
#: Quantities that are drawn.
DRAWN = {"small_jacobians", "normalised_underflow", "several_rounded"}


def calls_of(statement):
    """Every quantity that a statement's number and checks rest on."""
    names = {call["quantity"] for call in statement.value.values()}
    return names | {check.quantity for check in statement.check}


def statement(words):
    """The statement that has these words."""
    (one,) = (one for one in PAPERS.statements if words in one.statement)
    return one


def check_of(low, high, name="raised_weight", **at):
    """A check of one case."""
    return papers.Check(name, [at or {"n": 10, "gap": 5}], low, high)


@pytest.mark.parametrize(
    "one",
    [
        one
        for one in PAPERS.statements
        if not calls_of(one) & DRAWN and "causal" not in one.statement
    ],
    ids=lambda one: one.statement[:40],
)
def test_a_statement_without_drawn_numbers_is_on_the_page(one):
    """Words, numbers and verdict, made again; a causal mask takes longer."""
    assert papers.block_of(one) in PAGE


@pytest.mark.slow
@remade
def test_the_page_is_what_the_program_makes(tmp_path):
    """All of it, what is drawn included."""
    assert papers.main(["--output", str(tmp_path / "papers.md")]) == 0
    assert (tmp_path / "papers.md").read_text(encoding="utf-8") == PAGE


def test_all_that_is_named_is_there():
    """Papers and questions are those of statements, quantities those of the program."""
    questions = [one.id for one in PAPERS.questions]
    assert {one.question for one in PAPERS.statements} == set(questions)
    keys = [one.key for one in PAPERS.papers]
    assert {key for one in PAPERS.statements for key in one.paper} == set(keys)
    assert len(set(keys)) == len(keys)
    named = set().union(*map(calls_of, PAPERS.statements))
    named |= {c["quantity"] for one in PAPERS.questions for c in one.value.values()}
    assert named == set(QUANTITIES)
    assert len(PAPERS.statements) == 33


@pytest.mark.parametrize(
    ("low", "high", "came"),
    [(0.9, 1.0, "supported"), (0.0, 0.9, "refuted"), (0.95, math.inf, "refuted")],
)
def test_an_exact_value_decides(low, high, came):
    """0.943 lies there, or it does not."""
    check = check_of(low, high)
    assert papers.decide(check, check.at[0]) == came


@pytest.fixture
def half(monkeypatch):
    """Let what is drawn be one half, and know all else."""
    half = Estimate(0.5, 0.01, 1000)
    monkeypatch.setattr(
        papers, "evaluate", lambda name, _: half if name in DRAWN else 0.0
    )
    papers.one_sided_rate.cache_clear()
    yield
    papers.one_sided_rate.cache_clear()


@pytest.mark.parametrize(
    ("low", "high", "came"),
    [(0.4, 0.6, "supported"), (0.6, 1.0, "refuted"), (0.5, 1.0, "undecided")],
)
@pytest.mark.usefixtures("half")
def test_a_drawn_value_decides_by_its_interval(low, high, came):
    """An estimate of 0.5 ± 0.01 from a thousand rows."""
    assert papers.decide(check_of(low, high, "small_jacobians"), {}) == came


@pytest.mark.usefixtures("half")
def test_intervals_hold_together():
    """Each may miss on two sides: so many drawn numbers decide."""
    deciding = sum(
        len(check.at)
        for one in PAPERS.statements
        for check in one.check
        if check.quantity in DRAWN
    )
    assert deciding == 3
    assert papers.one_sided_rate() * 2 * deciding == pytest.approx(papers.ERROR_RATE)


FOR, AGAINST = check_of(0.9, 1.0), check_of(0.0, 0.1)


@pytest.mark.parametrize(
    ("quantifier", "checks", "came"),
    [
        ("always", [FOR], "holds"),
        ("always", [FOR, AGAINST], "fails"),
        ("can", [FOR, AGAINST], "holds"),
        ("can", [AGAINST], "fails"),
        ("always", [], "open"),
    ],
)
def test_verdicts_follow_the_sentence(quantifier, checks, came):
    """One counterexample, or one example, is enough; asserted checks have no vote."""
    one = msgspec.structs.replace(
        PAPERS.statements[0], quantifier=quantifier, check=checks
    )
    assert papers.verdict_of(one) == came
    silent = msgspec.structs.replace(AGAINST, asserted=True)
    one = msgspec.structs.replace(one, check=[*checks, silent])
    assert papers.verdict_of(one) == came
    one = msgspec.structs.replace(one, has_no_measure=True)
    assert papers.verdict_of(one) == "vague"


def test_nothing_is_said_that_did_not_come_out_so():
    """Neither against the verdict, nor where what is asserted fails."""
    first = PAPERS.statements[0]
    wrong = msgspec.structs.replace(first, verdict="fails")
    with pytest.raises(ValueError, match="came out as holds"):
        papers.block_of(wrong)
    silent = msgspec.structs.replace(AGAINST, asserted=True)
    wrong = msgspec.structs.replace(first, check=[*first.check, silent])
    with pytest.raises(ValueError, match="must hold at"):
        papers.block_of(wrong)


# --- What sentences say in words ------------------------------------------------------


def test_at_that_s_itself_means_at_it():
    """S is not rounded before the sum of squares is computed."""
    values = statement("For large $n$, rows concentrate").value
    assert [values[name]["times"] for name in "abcdef"] == [0.25, 0.25, 2, 2, 1, 1]
    found = papers.evaluate("concentration", {"n": 1024, "times": 1})
    exact = papers.evaluate("concentration", {"n": 1024, "std": critical_std(1024)})
    assert (found, f"{found:.4f}") == (exact, "0.2355")
