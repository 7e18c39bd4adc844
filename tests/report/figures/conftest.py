"""The figures of the one report that all tests of reports share."""

import pandas as pd
import pytest

from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing import house_style
from montecarlo.report.language.catalogues import read_language


@pytest.fixture(scope="session")
def results(report):
    """Measurements and curves that figures are drawn from."""
    _, (_, curves) = report.contents.drawings["texts"]
    return report.results.measurements, curves


@pytest.fixture(scope="session")
def tables(report):
    """What each figure is drawn from: the rows that it names, and curves."""
    return {name: report.contents.drawings[name][1] for name in FIGURES}


@pytest.fixture(scope="session")
def drawings(report):
    """Every figure as it is before it has words."""
    figures = report.contents.figures
    return {name: figures[name] for name in FIGURES}


@pytest.fixture(scope="session")
def svgs(drawings):
    """The SVG text of every figure, in English."""
    english = read_language("en")
    return {name: drawing.svg_in(english) for name, drawing in drawings.items()}


@pytest.fixture
def build(tables):
    """Build a figure by name, in the house style."""

    def build_figure(name):
        with house_style():
            return FIGURES[name].build(*tables[name])

    return build_figure


def measured(cells: dict[tuple[int, int], float], **values) -> pd.DataFrame:
    """Rows of measurements.csv of Gaussian rows: (d_k, n) to estimate."""
    plain = {
        "distribution_q": "gaussian",
        "distribution_k": "gaussian",
        "normalisation": "none",
        "dependence": "none",
    }
    plain |= {"initialisation": None, "number_format": "float64", "softmax": "shifted"}
    return pd.DataFrame(
        {
            **plain,
            **values,
            "d_k": d_k,
            "n_keys": n_keys,
            "estimate": estimate,
            "ci_low": 0.99 * estimate,
            "ci_high": 1.01 * estimate,
            "reference": estimate,
        }
        for (d_k, n_keys), estimate in cells.items()
    )
