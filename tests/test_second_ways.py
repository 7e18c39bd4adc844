"""Every estimated quantity is found a second time, by a way that shares no code.

The table is `second_ways.csv`: a line for each quantity and summary of the presets, and
its ways, each of which is walked here.

``loop``: a textbook's formula in float64, row by row and with J written out, from the
matrices that were drawn; then sorted, averaged or left out one by one.  ``reference``:
an exact value, which the estimate is within FAR standard errors of; Student's t with
REPLICATES - 1 degrees of freedom is beyond that with probability 1e-9, and 20 numbers
are looked at.
"""

import csv
import math
from collections import defaultdict
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import scipy.special
import scipy.stats

from montecarlo.attention.quantities import ROW_QUANTITIES
from montecarlo.estimation.summaries import RowKey, every_key, has_row
from montecarlo.sampling.design_points import parse_point, stream
from montecarlo.sampling.matrices import draw_matrices
from montecarlo.study.presets import PRESETS
from montecarlo.theory.references import reference
from tests.samples import estimate_alone, sample_all, summarise

FAR, REPLICATES = 6.5, 100
#: Relative precision of what is computed from float32 scores of size 20.
SINGLE = 2e-5
SEED, N = 21, 4

PAIRS = parse_point("gaussian", "gaussian(std=2.0)", 16)
ROWS = parse_point("gaussian", "gaussian", 64, 24, formats=True)
PLANTED = parse_point("gaussian", "gaussian", 16, 32, "planted(0.5)")
#: Where theory knows rows; points of the loops have too few replicates.
KNOWN = parse_point("gaussian", "gaussian", 16, 16)


def read_table():
    """The ways of each quantity and summary."""
    path = Path(__file__).with_name("second_ways.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    table = {(quantity, summary): ways.split() for quantity, summary, ways in rows}
    assert len(table) == len(rows)
    return table


TABLE = read_table()


def walked(way):
    """The quantities and summaries that have a way."""
    return [name for name, ways in TABLE.items() if way in ways]


def summary_of(key):
    """How the table calls the summary of a row."""
    return f"ratio of {key.summary}s" if "/" in key.divisor else key.summary


@cache
def presets_rows():
    """Every quantity and summary that the presets estimate."""
    names = set()
    for preset in PRESETS.values():
        for point in preset.points():
            keys = every_key(point, preset.divisors)
            names |= {(key.quantity, summary_of(key)) for key in keys}
    return names


def lacking(table, wanted):
    """What has no second way, or one that nobody walks."""
    bare = {name for name in wanted if not set(table.get(name, ())) & set(WAYS)}
    unknown = {name for name, ways in table.items() if not set(ways) <= set(WAYS)}
    return bare | unknown


def test_every_quantity_and_summary_has_a_second_way():
    """Of each preset, and none is listed that no preset has."""
    assert not lacking(TABLE, presets_rows())
    assert set(TABLE) <= presets_rows()


# --- Estimates ------------------------------------------------------------------------


@cache
def estimates(point, n=N):
    """What the program makes of some replicates."""
    divisors = ("none", "sqrt")
    batch = sample_all(point, SEED, 0, n, divisors)
    return summarise(point, batch, divisors)


def point_of(quantity):
    """Where a quantity is looked at."""
    if quantity.startswith("planted"):
        return PLANTED
    return PAIRS if quantity in PAIR_FORMULAS else ROWS


def keys_of(point, name):
    """The rows of a point that a line of the table speaks of."""
    keys = every_key(point, ("none", "sqrt"))
    return [key for key in keys if (key.quantity, summary_of(key)) == name]


# --- Textbook loops -------------------------------------------------------------------

#: How many rows of a replicate are looked at, where not all are.
FIRST = {"jacobian_spectral": 16, "element_gradient": 8, "gradient_query": 64}
LEVELS = {"q10": 0.1, "median": 0.5, "q90": 0.9}
LEAST_LARGEST = {"saturated": 0.9, "saturated_99": 0.99, "saturated_999": 0.999}
#: What is a difference of numbers of size 1, or a mean of such.
NEAR_ZERO = {"score_mean", "score_excess_kurtosis", "entropy_identity"}
#: Width of a bin of the grid that quantiles are read from.
BINS = defaultdict(lambda: 10.0 ** (1 / 64))
BINS |= dict.fromkeys(
    ("weight_max", "effective_keys", "planted_weight"), 10.0 ** (1 / 512)
)


def row_formulas(q, keys, v, number, divisor):
    """All of one row from its query, by the definitions."""
    x = keys @ q / divisor
    p = np.exp(x - x.max())
    p /= p.sum()
    jacobian = np.diag(p) - np.outer(p, p)
    gradient = jacobian @ v / divisor
    entropy = -sum(w * math.log(w) for w in p if w > 0.0)
    log_partition = math.log(sum(math.exp(s - x.max()) for s in x)) + x.max()
    to_query = np.linalg.norm(keys.T @ gradient)
    found = {
        "score_row_variance": x.var(ddof=1),
        "score_max": x.max(),
        "weight_max": p.max(),
        "weight_second": sorted(p)[-2],
        "log_partition": log_partition,
        "entropy": entropy,
        "effective_keys": math.exp(entropy),
        "inverse_participation": (p**2).sum(),
        "output_variance": sum(w * w for w in p),
        "jacobian_trace": np.trace(jacobian),
        "jacobian_frobenius": np.linalg.norm(jacobian),
        "jacobian_frobenius_squared": (jacobian**2).sum(),
        "jacobian_spectral": np.linalg.norm(jacobian, 2),
        "gradient_query": to_query,
        "gradient_query_undivided": np.linalg.norm(keys.T @ jacobian @ v),
        "gradient_query_squared": to_query**2,
        "element_gradient": np.diag(jacobian),
        "entropy_identity": entropy
        - log_partition
        + q @ q / divisor**2 * np.trace(jacobian),
        **{name: float(p.max() >= least) for name, least in LEAST_LARGEST.items()},
    }
    if number is not None:  # the query's own key
        found["planted_weight"] = p[number]
        found["planted_rank_first"] = float(p.argmax() == number)
    return found


@cache
def row_values(point, divisor):
    """Values of all rows by quantity, and of each replicate: lists of N lists."""
    number = {"none": 1.0, "sqrt": math.sqrt(point.d_k)}[divisor]
    values = defaultdict(list)
    for index in range(N):
        q, k = (x.astype(np.float64) for x in draw_matrices(point, SEED, index))
        v = stream(SEED, point, index, "v").standard_normal(len(k))
        planted = point.dependence.kind != "none"
        rows = [
            row_formulas(one, k, v, i if planted else None, number)
            for i, one in enumerate(q)
        ]
        for name in rows[0]:
            base = name.removesuffix("_squared").removesuffix("_undivided")
            first = FIRST.get(base, len(rows))
            values[name].append([row[name] for row in rows[:first]])
        for name in ("jacobian_trace", "jacobian_frobenius", "gradient_query"):
            for given in LEAST_LARGEST:
                pairs = zip(rows, values[name][-1], strict=False)
                some = [value for row, value in pairs if row[given]]
                values[f"{name}_{given}"].append(some)
    return values


def leave_one_out(function, n=N):
    """The jackknife's estimate of a function of the replicates that are kept."""
    everything = list(range(n))
    without = [function([i for i in everything if i != one]) for one in everything]
    return n * function(everything) - (n - 1) * np.mean(without)


def quantile(values, level):
    """The least value that a part of the rows does not exceed."""
    ordered = np.sort(np.concatenate([np.ravel(rows) for rows in values]))
    return ordered[math.ceil(level * len(ordered)) - 1]


def by_loop(point, key):
    """The value of a row, found by textbook formulas."""
    divisors = key.divisor.split("/")
    if point.n_keys is None:
        number = {"none": 1.0, "sqrt": math.sqrt(point.d_k)}[key.divisor]
        return leave_one_out(partial(pair_value, point, key.quantity, number))
    if key.quantity.startswith("format_"):
        named = key.quantity, key.number_format, key.softmax
        return np.mean(format_values(point, key.divisor)[named])
    roots = {"output_std": "output_variance"}
    quantity = roots.get(key.quantity, key.quantity)
    parts = [row_values(point, one)[quantity] for one in divisors]
    if key.summary == "mean" and quantity != key.quantity:
        parts = [[[math.sqrt(mean_of_rows(parts[0]))]]]
    if key.summary == "mean":
        return ratio_of_means(*parts) if "/" in key.divisor else mean_of_rows(parts[0])
    if key.summary == "share_above":
        return np.mean(np.ravel(parts[0]) > np.mean(parts[1]))
    if key.summary in LEVELS:
        levels = [quantile(part, LEVELS[key.summary]) for part in parts]
        return levels[0] / levels[1] if "/" in key.divisor else levels[0]
    spreads = [quantile(part, 0.9) / quantile(part, 0.1) for part in parts]
    return spreads[0] / spreads[1] if "/" in key.divisor else spreads[0]


def mean_of_rows(part):
    """The mean over all rows, of which a replicate may have more than another."""
    sums, rows = (np.array([one(rows) for rows in part]) for one in (np.sum, np.size))
    if np.ptp(rows) == 0:
        return sums.sum() / rows.sum()
    return leave_one_out(lambda kept: sums[kept].sum() / rows[kept].sum())


def ratio_of_means(*parts):
    """The ratio of the means under two divisors."""
    over, under = (np.array([np.mean(rows) for rows in part]) for part in parts)
    return leave_one_out(lambda kept: over[kept].sum() / under[kept].sum())


def allowed(key):
    """How far a loop may be from the estimate, relatively."""
    if key.summary in LEVELS:
        powers = 2 if "/" in key.divisor else 1
        return BINS[key.quantity] ** powers - 1.0
    if key.summary == "spread":
        powers = 4 if "/" in key.divisor else 2
        return BINS[key.quantity] ** powers - 1.0
    return SINGLE


def share_in_a_bin(point, key):
    """The rows whose side of the border the grid may not tell."""
    over, under = (
        row_values(point, one)["jacobian_frobenius"] for one in key.divisor.split("/")
    )
    border, width = np.mean(under), BINS[key.quantity]
    return np.mean(
        (np.ravel(over) > border / width) & (np.ravel(over) < border * width)
    )


@pytest.mark.parametrize("name", walked("loop"), ids=" ".join)
def test_loop(name):
    """An estimate is that of a textbook's loop; a quantile, to a bin of its grid."""
    point = point_of(name[0])
    keys = keys_of(point, name)
    assert keys
    for key in keys:
        expected = by_loop(point, key)
        found = estimates(point).estimate(key).value
        small = SINGLE if key.quantity in NEAR_ZERO else 1e-15
        if key.summary == "share_above":
            small = share_in_a_bin(point, key)
        assert found == pytest.approx(expected, rel=allowed(key), abs=small), key


BEYOND = [
    (name, summary)
    for name, quantity in ROW_QUANTITIES.items()
    for summary in ("median", "q99", "q2.5")
    if has_row(ROWS, RowKey("none", name, summary))
    and summary not in quantity.summaries
    and not (quantity.needs == "planted keys" or quantity.given)
]


@pytest.mark.parametrize(("name", "summary"), BEYOND)
@pytest.mark.parametrize("divisor", ["none", "sqrt"])
def test_quantiles_beyond_the_table(name, summary, divisor):
    """Those of a loop, to a bin."""
    key = RowKey(divisor, name, summary)
    level = {"median": 0.5, "q99": 0.99, "q2.5": 0.025}[summary]
    expected = quantile(row_values(ROWS, divisor)[name], level)
    width = 10.0 ** (1.0 / 512) - 1.0

    assert has_row(ROWS, key)
    assert estimate_alone(ROWS, key, SEED, N).value == pytest.approx(
        expected, rel=width
    )


@pytest.mark.parametrize("name", ["score_max", "log_partition", "gradient_query"])
@pytest.mark.parametrize("divisor", ["none", "sqrt"])
def test_error_of_a_mean_is_that_between_replicates(name, divisor):
    """The spread of replicates' means, not of rows."""
    key = RowKey(divisor, name, "mean")
    means = [np.mean(rows) for rows in row_values(ROWS, divisor)[name]]
    expected = math.sqrt(sum((m - np.mean(means)) ** 2 for m in means) / (N * (N - 1)))

    found = estimates(ROWS).estimate(key).std_error
    assert found == pytest.approx(expected, rel=1e-3)


#: Indicators that no row of some point has, with the rows of a replicate.
NO_ROW = [
    (ROWS, RowKey("sqrt", "saturated_999", "mean"), 128),
    (PLANTED, RowKey("sqrt", "saturated_999", "mean"), 32),
    (ROWS, RowKey("sqrt", "format_overflow", "mean", "float32", "shifted"), 16),
]


@pytest.mark.parametrize(("point", "key", "rows"), NO_ROW)
def test_rows_of_a_share_are_those_that_were_looked_at(point, key, rows):
    """Where no row is one, the interval of a share ends at 1 - error**(1/rows), with
    the rows of all replicates.
    """
    found = estimates(point).estimate(key)
    end = 1.0 - 0.2 ** (1.0 / (N * rows))

    assert found.value == 0.0
    assert found.interval(0.2).high == pytest.approx(end, rel=1e-9)


PAIR_FORMULAS = {
    "entry_variance_q": lambda q, k, s, c, sd: q.var(),
    "entry_variance_k": lambda q, k, s, c, sd: k.var(),
    "score_mean": lambda q, k, s, c, sd: s.mean() / c,
    "score_variance": lambda q, k, s, c, sd: (s / c).var(),
    "score_std": lambda q, k, s, c, sd: (s / c).std(),
    "score_variance_ratio": lambda q, k, s, c, sd: (
        s.var() / (q.shape[-1] * q.var() * k.var())
    ),
    "score_abs": lambda q, k, s, c, sd: np.abs(s / c).mean(),
    "score_excess_kurtosis": lambda q, k, s, c, sd: scipy.stats.kurtosis(s.ravel()),
    "score_distribution_gap": lambda q, k, s, c, sd: (
        (s / sd <= 0.742).mean() - scipy.special.ndtr(0.742)
    ),
}


@cache
def pair_blocks(point):
    """Entries and scores of all replicates, in float64."""
    drawn = [draw_matrices(point, SEED, index) for index in range(N)]
    q, k = (np.array(one, dtype=np.float64) for one in zip(*drawn, strict=True))
    return q, k, q @ k.transpose(0, 2, 1)


def pair_value(point, quantity, number, kept):
    """A quantity of pairs over the replicates that are kept."""
    q, k, s = (one[kept] for one in pair_blocks(point))
    spread = 2.0 * math.sqrt(point.d_k)  # keys have standard deviation 2
    return PAIR_FORMULAS[quantity](q, k, s, number, spread)


# --- Number formats, one number at a time ---------------------------------------------

#: Digits, exponent of the least normal number, exponent of what is too large.
FORMATS = {
    "float16": (11, -14, 16),
    "bfloat16": (8, -126, 128),
    "float32": (24, -126, 128),
}


def nearest(x, number_format):
    """The nearest number of a format, of two that are as near the even one."""
    if number_format not in FORMATS or not math.isfinite(x):
        return x
    digits, least, most = FORMATS[number_format]
    unit = 2.0 ** (max(math.frexp(x)[1] - 1, least) - digits + 1)
    rounded = round(x / unit) * unit
    return rounded if abs(rounded) < 2.0**most else math.copysign(math.inf, x)


def weights_in(scores, number_format, softmax):
    """Weights of one row, every operation rounded; NaN where it overflowed."""
    kept = partial(nearest, number_format=number_format)
    x = [kept(s) for s in scores]
    if softmax.startswith("shifted"):
        x = [kept(s - max(x)) for s in x]
    e = [kept(math.exp(s)) for s in x]
    total = 0.0
    for one in e:
        total = total + one if softmax.endswith("_wide") else kept(total + one)
    total = kept(total)
    with np.errstate(invalid="ignore"):
        return [kept(float(np.float64(one) / total)) for one in e]


@cache
def format_values(point, divisor):
    """Values of the first 16 rows by quantity, format and way of softmax."""
    number = {"none": 1.0, "sqrt": math.sqrt(point.d_k)}[divisor]
    values = defaultdict(list)
    for index in range(N):
        q, k = draw_matrices(point, SEED, index)
        raw = q[:16].astype(np.float64) @ k.T.astype(np.float64)
        for scores in (raw / number).tolist():
            exact = weights_in(scores, "float64", "shifted_wide")
            for fmt in (*FORMATS, "float64"):
                for way in ("naive", "naive_wide", "shifted", "shifted_wide"):
                    row = weights_in(scores, fmt, way)
                    lost = not all(map(math.isfinite, row)) or not any(row)
                    off = sum(abs(a - b) for a, b in zip(row, exact, strict=True)) / 2
                    other = {w if math.isfinite(w) else 0.0 for w in row}
                    values["format_overflow", fmt, way].append(lost)
                    values["format_distinct_share", fmt, way].append(
                        len(other) / len(row)
                    )
                    values["format_error", fmt, way].append(
                        1.0 if lost else min(off, 1.0)
                    )
    return values


# --- References -----------------------------------------------------------------------


@pytest.mark.parametrize("name", walked("reference"), ids=" ".join)
def test_reference(name):
    """An estimate lies within its noise of the exact value, which is less than half of
    it, or than 0.5 where 0 is expected: what is lost or counted twice shows.
    """
    quantity, summary = name
    point = PAIRS if quantity in PAIR_FORMULAS else KNOWN
    key = keys_of(point, name)[-1]  # divided by sqrt(d_k), where anything is
    exact = reference(quantity, point, key.divisor, summary)
    found = estimates(point, REPLICATES).estimate(key)
    error = math.hypot(found.std_error, exact.error, 1e-6 * exact.value)

    assert abs(found.value - exact.value) <= FAR * error
    assert FAR * error < (0.5 * abs(exact.value) or 0.5)


WAYS = {"loop": test_loop, "reference": test_reference}
