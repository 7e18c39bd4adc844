"""Samples of everything that a table has of a point, for tests of its parts."""

from montecarlo.claims.calibration import calibrate
from montecarlo.claims.z_scores import judge_z_scores
from montecarlo.estimation.estimates import Estimate
from montecarlo.estimation.summaries import RowKey, Summaries, columns_of, every_key
from montecarlo.sampling.batches import Batch
from montecarlo.sampling.design_points import DesignPoint
from montecarlo.sampling.replicates import Columns, sample
from montecarlo.study.table import tabulate

#: What claims.json has beside what is judged: of a study that sampled nothing.
KNOWN = {
    "error_rate": 0.01,
    "simultaneous_error": 1e-6,
    "calibration": calibrate(1e-5),
    "analyses": 1,
    "z_scores": judge_z_scores(tabulate(())),
}


def every_column(point: DesignPoint, divisors: tuple[str, ...]) -> Columns:
    """Return the columns of every row of a point."""
    return columns_of(point, every_key(point, divisors))


def sample_all(
    point: DesignPoint, seed: int, start: int, stop: int, divisors: tuple[str, ...]
) -> Batch:
    """Draw some replicates of a point and reduce them to every column."""
    return sample(point, seed, start, stop, every_column(point, divisors))


def summarise(point: DesignPoint, batch: Batch, divisors: tuple[str, ...]) -> Summaries:
    """Return the estimates of replicates that `sample_all` drew."""
    return Summaries(point, batch, every_column(point, divisors))


def estimate_alone(
    point: DesignPoint, key: RowKey, seed: int, n_replicates: int
) -> Estimate:
    """Return an estimate of replicates that nothing else is asked of."""
    columns = columns_of(point, [key])
    batch = sample(point, seed, 0, n_replicates, columns)
    return Summaries(point, batch, columns).estimate(key)
