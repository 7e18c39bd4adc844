"""What verdicts owe to our choices: judged again by intervals; known when stale."""

import json
import math
from functools import partial

import msgspec
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import CaseOutcome, CheckOutcome
from montecarlo.claims.recorded import Recorded
from montecarlo.claims.running import (
    Study,
    exact_value,
    run_study,
    write_results,
)
from montecarlo.claims.simulation import Simulation
from montecarlo.claims.verdicts import Verdict
from montecarlo.records.sensitivity import read_sensitivity
from montecarlo.study.executors import make_executor
from montecarlo.study.folder import write_json
from montecarlo.study.presets import PRESETS, Block, Grid
from studies import sensitivity as command
from studies.sensitivity import (
    Folder,
    as_judged,
    fingerprint,
    read_folder,
    sensitivity,
    verdicts_of,
    with_margin,
    with_one_hot,
)

#: Some claims of every kind of check, on few places.
GRID = Grid(
    d_k=(16, 64, 256, 512),
    n_keys=(128,),
    distributions=("laplace", "student_t3"),
    distribution_d_k=(64, 256),
    distribution_n_keys=(128,),
    blocks=(
        Block(
            (256,),
            (512,),
            distribution_q="gaussian(std=4.0)",
            distribution_k="gaussian(std=2.0)",
        ),
    ),
    first=32,
    most=64,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The results of a small study."""
    path = tmp_path_factory.mktemp("sensitivity")
    study = Study(read_catalogue(), GRID, seed=4)
    with make_executor(1) as executor:
        results = run_study(study, executor)
    write_json(path / "run.json", write_results(results, path))
    return read_folder(path)


@pytest.mark.slow
def test_unvaried_verdicts_are_those_of_the_study(folder):
    """What is judged again by the same regions comes out as it was judged."""
    found = verdicts_of(folder.claims, as_judged)
    for claim in folder.claims.claims:
        assert found[claim.id, ""] == claim.verdict
        for interpretation in claim.interpretations:
            assert found[claim.id, interpretation.id] == interpretation.verdict
    assert {"supported", "refuted", "degree"} <= set(found.values())


@pytest.mark.slow
def test_narrow_regions_leave_open_and_wide_ones_decide(folder):
    """A thousandth of a tolerance, and a thousandfold."""
    outcomes = {}
    for factor in (1e-3, 1.0, 1e3):
        varied = partial(with_margin, "equals", factor)
        found = verdicts_of(folder.claims, varied)
        outcomes[factor] = found["scaled-variance-one", "equals"]
    assert outcomes[1e-3] != "supported"
    assert outcomes[1e3] == "supported"
    same = verdicts_of(folder.claims, partial(with_margin, "equals", 1.0))
    assert same == verdicts_of(folder.claims, as_judged)
    slopes = verdicts_of(folder.claims, partial(with_margin, "slope_between", 1e-6))
    assert slopes != same


def check_of(**more):
    """A check of claims.json."""
    return CheckOutcome(**{"relation": "at_least", "low": 0.9, **more})


CASE = CaseOutcome(
    simultaneous_low=0.91, region_low=0.9, rows=("r",), outcome=Verdict.SUPPORTED
)


@pytest.mark.slow
def test_one_hot_is_moved(folder):
    """Bounds of the largest weight move; shares are read from their quantile."""
    claims = msgspec.structs.replace(folder.claims, simultaneous_error=0.025)
    made_up = Folder(claims, {}, {"r": (0.8, 0.0, 10)})
    moved = partial(with_one_hot, made_up, 0.85)

    assert moved(check_of(quantity="weight_max"), CASE)[1] == (0.85, math.inf)
    assert moved(check_of(quantity="entropy"), CASE) == as_judged(None, CASE)
    share = check_of(quantity="saturated", low=0.1)
    assert moved(share, CASE) == ((0.8, 0.8), (0.85, math.inf))
    below = check_of(quantity="saturated", relation="at_most", low=None, high=0.1)
    assert moved(below, CASE) == ((0.8, 0.8), (-math.inf, 0.85))
    other = check_of(quantity="saturated", low=0.3)
    assert moved(other, CASE) == as_judged(None, CASE)


@pytest.mark.slow
def test_quantile_tells_the_share(folder):
    """At the threshold counted it decides as the share did, or not at all."""
    decided = 0
    for claim in folder.claims.claims:
        for interpretation in claim.interpretations:
            for check in interpretation.checks:
                if check.quantity != "saturated" or check.low != 0.1:
                    continue
                for case in check.cases:
                    interval, (least, _) = with_one_hot(folder, 0.9, check, case)
                    if interval.low >= least or interval.high < least:
                        decided += 1
                        mine = "supported" if interval.low >= least else "refuted"
                        assert case.outcome in (mine, "undecided")
    assert decided >= 3


def now(**changed):
    """The fingerprint of the present claims on the present grid; nothing is drawn."""
    catalogue = changed.get("catalogue", read_catalogue())
    grid = changed.get("grid", PRESETS["standard"])
    study = Study(catalogue, grid)
    evidence = Recorded(catalogue, Simulation({}, (), exact_value))
    run = {"grid": msgspec.to_builtins(grid), "error_rate": study.error_rate}
    return fingerprint(Judge(evidence, 1e-6).judge(catalogue), run)


def with_tolerance(catalogue, tolerance):
    """A catalogue with another tolerance in one check."""
    replace = msgspec.structs.replace
    claim = next(c for c in catalogue.claim if c.interpretation[0].check[0].tolerance)
    first, *others = claim.interpretation
    first = replace(first, check=(replace(first.check[0], tolerance=tolerance),))
    changed = replace(claim, interpretation=(first, *others))
    claims = tuple(changed if c is claim else c for c in catalogue.claim)
    return replace(catalogue, claim=claims)


def test_table_is_not_stale():
    """It is of the present claims and grid; another tolerance or grid would be seen.

    ``python -m studies.sensitivity`` makes it anew.
    """
    kept = read_sensitivity()
    catalogue = read_catalogue()
    grid = msgspec.structs.replace(PRESETS["standard"], most=256)

    assert kept.checks == now() != now(grid=grid)
    assert now(catalogue=with_tolerance(catalogue, 0.25)) != kept.checks
    assert kept.claims == len(catalogue.claim)
    assert kept.interpretations == sum(
        len(claim.interpretation) for claim in catalogue.claim
    )
    assert [(line.varied, line.value) for line in kept.lines] == [
        ("tolerance", 2.0),
        ("tolerance", 0.5),
        ("slope", 3.0),
        ("one-hot", 0.85),
        ("one-hot", 0.95),
        ("seed", 2.0),
    ]


@pytest.mark.slow
def test_command_writes_what_the_page_reads(folder, tmp_path, monkeypatch, capsys):
    """Without folders it samples; the file it writes is read back."""
    monkeypatch.setattr(command, "sample_into", lambda *_: None)
    monkeypatch.setattr(command, "read_folder", lambda _: folder)
    path = tmp_path / "s.json"

    assert command.main(["--output", str(path)]) == 0
    kept = read_sensitivity(path)
    assert kept.checks == fingerprint(folder.claims, folder.run)
    assert not kept.lines[-1].changes  # the other seed is the same folder
    found = sensitivity(folder, folder)
    assert json.loads(path.read_text()) == json.loads(json.dumps(found))
    assert capsys.readouterr().out.startswith("tolerance 2.0")
