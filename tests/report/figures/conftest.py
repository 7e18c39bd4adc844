"""Results of a small real study, written and read as a report would."""

import pickle

import pandas as pd
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.running import Study, run_study, write_results
from montecarlo.records.calibration import read_card
from montecarlo.report.content.findings import read_results
from montecarlo.report.content.record import with_calibration, with_studies
from montecarlo.report.figures import FIGURES, files
from montecarlo.report.figures.drawing import house_style
from montecarlo.report.figures.verdicts import with_verdicts
from montecarlo.report.language.catalogues import read_language
from montecarlo.study.executors import make_executor
from montecarlo.study.presets import Block, Grid
from tests.report.conftest import made_once

INITIALISATION = "init(kind=xavier_uniform,norm=layer,shape=fused,width=512)"
SMALL = Grid(
    d_k=(4, 16, 64),
    n_keys=(16, 32),
    distributions=("laplace", "student_t3"),
    distribution_d_k=(16,),
    distribution_n_keys=(),
    blocks=(
        Block((16, 64), (32,), pairs=False, dependence="planted(0.5)"),
        Block((64,), initialisation=INITIALISATION),
        Block((64,), (32,), pairs=False, formats=True),
        Block((64,), (128,), pairs=False),  # within the scope of the claims
    ),
    tails=((16, 4), (64, 4)),
    first=64,
    most=64,
)


def draw_all(folder):
    """Sample and judge; keep tables, drawings of all, and what matplotlib wrote."""
    with make_executor(1) as executor:
        found = run_study(Study(read_catalogue(), SMALL), executor)
    results = with_studies(with_calibration(found, read_card()))
    record = write_results(results, folder)
    read = read_results(folder, run=record)
    curves = with_verdicts(read.curves, read.claims, read.names)
    tables = with_saturated(read.measurements), curves
    compact, written = files.compact, []

    def note(text, *more, **options):
        written.append(text)
        return compact(text, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "compact", note)
        drawings = {name: files.draw(spec, *tables) for name, spec in FIGURES.items()}
    texts = dict(zip(drawings, written, strict=True))
    (folder / "kept").write_bytes(pickle.dumps((tables, drawings, texts)))


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """The same, made once for all workers."""
    folder = made_once(tmp_path_factory, "figures", draw_all)
    return pickle.loads((folder / "kept").read_bytes())  # noqa: S301 - our own


@pytest.fixture(scope="session")
def results(kept):
    """Measurements and curves of a study of a few replicates, as read from disk."""
    return kept[0]


def with_saturated(measurements):
    """Add shares of saturated rows, made up from mean largest weights, if need be."""
    if measurements["quantity"].eq("saturated").any():
        return measurements
    rows = measurements[
        measurements["quantity"].eq("weight_max") & measurements["summary"].eq("mean")
    ].assign(quantity="saturated", reference=float("nan"))
    for name in ("estimate", "ci_low", "ci_high"):
        rows[name] = (2.0 * rows[name] - 1.0).clip(0.0)
    return pd.concat([measurements, rows], ignore_index=True)


@pytest.fixture(scope="session")
def drawings(kept):
    """Every figure as it is before it has words."""
    return kept[1]


@pytest.fixture(scope="session")
def svgs(drawings):
    """The SVG text of every figure, in English."""
    english = read_language("en")
    return {name: drawing.written(english) for name, drawing in drawings.items()}


@pytest.fixture(scope="session")
def written(kept):
    """What matplotlib wrote for every figure."""
    return kept[2]


@pytest.fixture
def build(results):
    """Build a figure by name, in the house style."""

    def build_figure(name):
        with house_style():
            return FIGURES[name].build(*results)

    return build_figure
