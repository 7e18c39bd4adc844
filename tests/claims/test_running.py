"""A study gives the same bytes however it is run, and each point is its own."""

import contextlib
import math
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from montecarlo.claims import simulation, verdicts
from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.outcomes import ClaimsRecord
from montecarlo.claims.running import (
    Study,
    needed_budgets,
    run_study,
    seconds_by_claim,
    write_results,
)
from montecarlo.claims.schema import Catalogue
from montecarlo.estimation import engine
from montecarlo.estimation.summaries import columns_of
from montecarlo.sampling.cost import replicate_seconds
from montecarlo.study import table
from montecarlo.study.executors import limit_blas, make_executor
from montecarlo.study.measured import IDENTITY
from montecarlo.study.presets import Block, Grid
from tests.conftest import contents

#: A point of every kind: pairs and rows, several distributions, one without fourth
#: moments, one that may be looked at twice, large ones in d_k and in n, and what breaks
#: the premise: a planted key, matching pairs, a projection; number formats and tails.
GRID = Grid(
    d_k=(1, 16, 33),
    n_keys=(8, 32),
    distributions=("rademacher", "student_t3"),
    distribution_d_k=(16,),
    distribution_n_keys=(32,),
    blocks=(
        Block((2048,), (8,)),
        Block((4,), (2048,)),
        Block((16,), (32,), pairs=False, dependence="planted(0.5)"),
        Block((16,), dependence="pairs(1.0)"),
        Block(
            (16,), initialisation="init(kind=he_normal,norm=layer,shape=full,width=32)"
        ),
        Block((64,), (32,), pairs=False, formats=True),
        Block((16,), distribution_q="gaussian(mean=0.5)", distribution_k="laplace"),
    ),
    tails=((4, 2),),
    divisors=("none", "sqrt", "linear"),
    first=4,
    most=8,
    first_large=2,
    most_large=2,
    every_row=True,
)
#: Seconds of a batch: every replicate alone, and all of a point together.
ONE_BY_ONE, ALL_AT_ONCE = 1e-9, 1e9
SEED = 12


@pytest.fixture(scope="module", autouse=True)
def hope():
    """Undecided places are looked at again, although few replicates give no hope."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "UNREACHABLE", math.inf)
        patch.setattr(verdicts, "MOST_BUDGETS", math.inf)
        yield


def results_of(grid, executor, **more):
    """The results of a study on a grid."""
    return run_study(Study(read_catalogue(), grid, SEED, **more), executor)


def written(results, folder):
    """The bytes of every file that is written, by name."""
    folder.mkdir()
    write_results(results, folder)
    return contents(folder)


def rows_of(results):
    """The rows of the table as text, by row id."""
    lines = results.measurements.to_csv(index=False).splitlines()[1:]
    return {line.rsplit(",", 1)[1]: line for line in lines}


@pytest.fixture(scope="module")
def workers():
    """One worker, two threads and two processes, started once."""
    with contextlib.ExitStack() as stack:
        yield {
            "one": stack.enter_context(make_executor(1)),
            "threads": stack.enter_context(
                ThreadPoolExecutor(2, initializer=limit_blas)
            ),
            "processes": stack.enter_context(make_executor(2)),
        }


@pytest.fixture(scope="module")
def plain(workers):
    """The study as it is run by default."""
    return results_of(GRID, workers["one"])


@pytest.fixture(scope="module")
def expected(plain, tmp_path_factory):
    """What the study writes as it is run by default."""
    return written(plain, tmp_path_factory.mktemp("plain") / "results")


def backwards(grid):
    """The same points, named in the opposite order."""
    names = ("d_k", "n_keys", "blocks", "distributions")
    names += ("distribution_d_k", "distribution_n_keys")
    turned = {name: getattr(grid, name)[::-1] for name in names}
    return msgspec.structs.replace(grid, **turned)


@pytest.mark.parametrize(
    ("kind", "seconds", "turned"),
    [("threads", ONE_BY_ONE, False), ("processes", ALL_AT_ONCE, True)],
)
def test_same_bytes(  # noqa: PLR0917 - each is a fixture or a parameter
    workers, expected, tmp_path, monkeypatch, kind, seconds, turned
):
    """Workers, batches and the order of the grid change no byte of any file."""
    monkeypatch.setattr(engine, "BATCH_SECONDS", seconds)
    grid = backwards(GRID) if turned else GRID
    results = results_of(grid, workers[kind])

    assert written(results, tmp_path / "results") == expected


#: Without second analyses: how many replicates a point gets depends on all checks.
FIXED = msgspec.structs.replace(GRID, first=4, most=4)


@pytest.fixture(scope="module")
def fixed(workers):
    """The rows of the grid with a fixed number of replicates."""
    return rows_of(results_of(FIXED, workers["one"]))


def test_other_points_change_no_row(workers, fixed):
    """What is taken out of the grid, or added to it, changes no other row."""
    change = {"blocks": GRID.blocks[2:], "n_keys": (8, 32, 128), "divisors": ("sqrt",)}
    change["distributions"] = ("rademacher", "uniform")
    other = msgspec.structs.replace(FIXED, **change)
    found = rows_of(results_of(other, workers["one"]))

    shared = found.keys() & fixed.keys()
    assert len(shared) > 50
    assert found.keys() != fixed.keys()
    assert {id_: found[id_] for id_ in shared} == {id_: fixed[id_] for id_ in shared}


def test_tables_are_read_back_as_they_were(plain, tmp_path):
    """Numbers in the files are those of the study, to the last digit."""
    write_results(plain, tmp_path)
    read = pd.read_csv(tmp_path / "measurements.csv")

    for column in ("estimate", "std_error", "ci_low", "ci_high", "reference"):
        pd.testing.assert_series_equal(
            read[column], plain.measurements[column], check_exact=True
        )
    content = (tmp_path / "claims.json").read_bytes()
    assert msgspec.json.decode(content, type=ClaimsRecord) == plain.claims
    assert not read.duplicated([one for one in IDENTITY if one in read]).any()


def test_only_what_the_claims_need():
    """Only points that their checks look at are sampled, or none."""
    catalogue = read_catalogue().only(("scaled-variance-one",))
    study = Study(catalogue, GRID, SEED, whole_grid=False)
    needed = needed_budgets(study)

    assert {point.n_keys for point in needed} == {None}
    assert needed_budgets(Study(catalogue, GRID, SEED)) == GRID.budgets()
    empty = dict.fromkeys(("distributions", "blocks", "tails"), ())
    rows = msgspec.structs.replace(FIXED, d_k=(2,), **empty)
    nothing = read_catalogue().only(("unscaled-few-positions",))
    with ThreadPoolExecutor(1) as executor:
        results = run_study(Study(nothing, rows, whole_grid=False), executor)
    assert results.measurements.empty
    assert results.claims.claims[0].verdict == "open"


def test_the_cost_of_each_claim_is_named():
    """Claims that share a point share its cost; together they cost what all does."""
    catalogue = read_catalogue()
    study = Study(catalogue, GRID, SEED)
    replicates = {point.name: 4 for point in study.rows}
    seconds = seconds_by_claim(study, replicates)
    all_of_it = sum(
        4 * replicate_seconds(point, len(columns_of(point, keys).divisors))
        for point, keys in study.rows.items()
    )
    assert seconds.keys() <= {"", *(claim.id for claim in catalogue.claim)}
    assert "scaled-variance-one" in seconds
    assert sum(seconds.values()) == pytest.approx(all_of_it, abs=1e-3 * len(seconds))


def test_exact_values_do_not_depend_on_the_cores(monkeypatch):
    """They are found with BLAS on one thread, however many it may have elsewhere."""
    threads = set()

    def look(_point, _key):
        threads.update(
            one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
        )

    monkeypatch.setattr(table, "find_reference", look)
    one = msgspec.structs.replace(
        FIXED, d_k=(16,), distributions=(), blocks=(), tails=()
    )
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as executor:
        run_study(Study(Catalogue(), one), executor)
    assert threads == {1}


def test_two_analyses_are_one_long_one(workers, fixed):
    """The rows are those of all replicates at once."""
    twice = results_of(msgspec.structs.replace(FIXED, first=2, most=4), workers["one"])
    same = set(twice.measurements.row_id[twice.measurements.n_replicates == FIXED.most])
    found = rows_of(twice)

    assert len(same) > 50
    assert {id_: found[id_] for id_ in same} == {id_: fixed[id_] for id_ in same}
