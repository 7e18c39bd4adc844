"""Fits of the applied scale to attention weights or outputs, and the choice of a form.

A *form* is what attention computes from a score s before softmax.  ``plain`` is λ s;
the others add something that is no scale: a bias by distance, a cap, a sink.  The
simplest form is chosen that no later one fits clearly better.  If its residual exceeds
the rounding error, no scale is determined.  The chosen fit is tested for rows with
scales of their own.

`LogWeights` and `Outputs` are the data.  Weights determine logits up to a constant of
each row: ln p_j - ln p_l = λ (s_j - s_l).  Each logarithm is weighted by its rounding
error.  Weights that are 0, which show the mask, and weights close to the least number
of their format are left out.

Outputs, softmax(λ s) V, do not show single weights.  The mask and bias are those that
were passed; where they are unknown, a few masks are tried.  A bias by position then
leaves a residual, and no scale is determined.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import least_squares
from scipy.sparse.linalg import lsmr

from montecarlo.attention.number_formats import ALL_FORMATS, NumberFormat
from montecarlo.attention.softmax import Array
from montecarlo.estimation.intervals import POINTWISE, Interval, t_quantile
from montecarlo.model.arrays import UNSEEN, Rows

#: Ratio of residuals below which a later form is clearly better.
CLEARLY = 0.8
#: F statistic that its further parameters must reach: with 20 degrees of freedom or
#: more a single one does by chance once in 10,000 heads at most.
BEYOND_CHANCE = 25.0
#: Forms that resemble each other where scores are small.
SIMPLE = ("plain", "distance", "cap")
#: Largest residual of a form that holds, over what it explains: sums in a narrower
#: format, such as a graphics card's, leave more than the rounding of their results.
MOST_LEFT = 0.01
#: Bound of the residual in rounding errors of an operation; and of the part that is
#: ascribed to rounding of scores, over what the form explains.
MOST_ROUNDING, MOST_OF_SCORES = 3.0, 0.05
#: Least degrees of freedom of a further form, in all and over its own parameters; and
#: least numbers beyond the constants of rows for any fit.
FEWEST_LEFT, PART_LEFT, FEWEST_NUMBERS = 20, 0.5, 4
#: Standard errors, over rows, from which on a form that rounding may hide widens the
#: interval of a simpler one; by chance 3 of 1,000 reach them.
HIDDEN = 3.0
#: Effective number of rows from which on their agreement is not by chance.
FEWEST_ROWS = 4
#: Least sum of squares, as a denominator.
LEAST_SQUARE = 1e-300
#: Relative spread of the scales of rows below which rows have the same: kernels that
#: sum in another order leave more than rounding, and not the same in each row.
SAME_SCALE = 1e-3
#: Relative spread below which scores are the same.
LEAST_SPREAD = 1e-6
#: Residual over what is explained below which a form leaves nearly nothing: a cap of
#: 50 leaves more of scores of 1.
NEARLY_NOTHING = 1e-4
#: Numbers by which most formats are ruled out.
FEW = 64
#: Least weight of a fit, in steps of the least number of the format.
FEWEST_STEPS = 32
#: Least rounding error of logarithms and their sums in float64.
LEAST_ROUNDING_ERROR = 2.0**-48
#: Caps that a search starts from, in standard deviations of the scores: of weights, and
#: of outputs, which take longer.
CAPS, CAPS_OF_OUTPUTS = np.geomspace(0.5, 200.0, 24), (1.0, 4.0, 16.0)
#: Scales that a search in outputs starts from, over the spread of the scores; and the
#: rows that they are tried on.
TRIED = (0.0, *np.geomspace(0.01, 100.0, 17), -0.1, -1.0, -10.0)
TRIAL_ROWS = 32
#: Logarithm of a cap from which on there is none.
MOST_LOG = 300.0
Labels = NDArray[np.intp]
#: Logits, and their derivatives by the parameters.
Terms = tuple[Array, list[Array]]


def _cap(parameters: Array, scores: Array, _: Array) -> Terms:
    """Return (c tanh(λ s / c), [its derivatives by the two parameters]) for scores s.

    ``parameters`` are λ and ln(c / λ).  All results have the shape of ``scores``.
    """
    t = math.exp(float(np.clip(parameters[1], -MOST_LOG, MOST_LOG)))
    bent = np.tanh(scores / t)
    by_t = t * bent - scores * (1.0 - bent * bent)
    return parameters[0] * t * bent, [t * bent, parameters[0] * by_t]


#: Functions of parameters, scores, and distances of key and query.
FORMS: dict[str, Callable[[Array, Array, Array], Terms]] = {
    "plain": lambda p, s, away: (p[0] * s, [s]),
    "distance": lambda p, s, away: (p[0] * s + p[1] * away, [s, away]),
    "cap": _cap,
    # the second parameter is the logit of one more key, of value 0
    "sink": lambda p, s, away: (p[0] * s, [s]),
}


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a form of logits, such as a scale alone, to the rows of a head."""

    form: str
    scale: float  # λ, the factor of scores
    std_error: float  # of the scale, over rows; at least that of rounding
    n_rows: float  # effective number of rows
    residual: float  # root mean square per degree of freedom
    degrees_of_freedom: int
    direct: float  # bound of the residual by rounding of weights or outputs
    by_scores: float  # bound by rounding of scores to the same format
    moved: float  # rounding error of a scaled score, root mean square
    is_fine: bool  # whether the residual shows that scores were not rounded
    explained: float  # root mean square that scores explain
    spread: float  # standard deviation of scores within rows
    parameter: float = math.nan  # of the form: the slope of a bias, the cap

    @property
    def rounding(self) -> float:
        """Bound of the residual by rounding of weights or outputs and of scores.

        What rounding of scores may explain is limited.
        """
        most = MOST_OF_SCORES * self.explained
        return math.hypot(self.direct, min(self.by_scores, most))

    @property
    def is_exact(self) -> bool:
        """Whether the residual is within rounding."""
        return self.residual <= self.rounding

    @property
    def holds(self) -> bool:
        """Whether the residual is small enough for the scale to be determined."""
        return self.residual <= max(self.rounding, MOST_LEFT * self.explained)

    def interval(self, error: float = POINTWISE) -> Interval:
        """Return Student's confidence interval of the scale, over rows.

        It misses the scale on each side with probability ``error``.
        """
        half = t_quantile(error, max(self.n_rows, 2.0)) * self.std_error
        return Interval(self.scale - half, self.scale + half)


@dataclass(frozen=True)
class Numbers:
    """Data of a weighted least-squares fit, with products and sizes of them."""

    rows: Labels  # the row of each number
    weights: Array  # of the squares
    rounding_error: float  # of the numbers, relative
    spread: float  # standard deviation of the scores within rows
    n_constants: int  # constants that are fitted beside the parameters of a form
    groups: Labels  # groups of numbers with a constant each: rows, or as `_with_groups`

    def product(self, first: Array, second: Array) -> float:
        """Return the weighted sum of the products of two arrays."""
        return float((self.weights * first * second).sum())

    def size(self, values: Array) -> float:
        """Return the weighted root mean square of ``values``."""
        return math.sqrt(self.product(values, values) / float(self.weights.sum()))


#: Data with the following functions.  ``predict`` returns the residual of a form at its
#: parameters, of which the scale is the first, and derivatives of the prediction, one
#: in each column.  ``start`` returns the parameters that a search starts from.
#: ``roundings`` returns three effects on each number: of rounding it, and of rounding
#: scores, both over the relative rounding error; and of adding 1 to each score.
Evidence: TypeAlias = "LogWeights | Outputs"


class Fitted(NamedTuple):
    """A fit with its data and its residual."""

    fit: Fit
    evidence: Evidence
    residual: Array
    direction: Array  # derivative by the scale, orthogonal to that by the parameter


@np.errstate(divide="ignore", invalid="ignore")  # SciPy's, of a singular step
def fit_form(
    evidence: Evidence, form: str, scale: float | None = None, name: str = ""
) -> Fitted:
    """Return the fit of a form of logits to data, with the residual.

    Parameters
    ----------
    evidence : LogWeights or Outputs
    form : str
        A key of `FORMS`.
    scale : float, optional
        Where a search in outputs starts; by default several are tried.
    name : str
        Name of the form in the result; default: ``form``.
    """
    root, parameters = np.sqrt(evidence.weights), evidence.start(form, scale)

    @lru_cache(1)  # a search needs the residual first, and then the derivatives
    def predict(*parameters: float) -> tuple[Array, Array]:
        return evidence.predict(form, np.array(parameters))

    def residual_at(parameters: Array) -> Array:
        return root * predict(*parameters)[0]

    def slopes_at(parameters: Array) -> Array:
        return -root[:, None] * predict(*parameters)[1]

    if form not in evidence.linear_forms:
        parameters = least_squares(
            residual_at,
            parameters,
            slopes_at,
            x_scale="jac",
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
            max_nfev=evidence.most_steps,
        ).x
    residual, columns = predict(*parameters)
    if form in evidence.linear_forms:
        sizes = np.maximum(np.abs(columns).max(axis=0), LEAST_SQUARE)
        scaled = columns / sizes * root[:, None]
        step = np.linalg.lstsq(scaled, residual * root)[0] / sizes
        parameters, residual = parameters + step, residual - columns @ step
    direction = columns[:, 0]
    for other in columns.T[1:]:
        square = max(evidence.product(other, other), LEAST_SQUARE)
        direction = direction - evidence.product(direction, other) / square * other
    fit = _describe(evidence, form, parameters, residual, direction)
    return Fitted(replace(fit, form=name or form), evidence, residual, direction)


def _describe(
    evidence: Evidence, form: str, parameters: Array, residual: Array, direction: Array
) -> Fit:
    """Return a `Fit` from the parameters, the residual and the direction of a fit.

    The standard error is computed over rows and over groups of numbers, and the larger
    one is used: a constant is rounded once for all numbers of its group.
    """
    own, by_scores, per_score = evidence.roundings(form, parameters)
    size, weights = evidence.size, evidence.weights
    rounding_error = evidence.rounding_error
    error, n_rows = _error_of(direction, residual, evidence.rows, weights)
    error = max(error, _error_of(direction, residual, evidence.groups, weights)[0])
    least = MOST_ROUNDING * rounding_error
    is_small = size(residual * per_score) <= least * size(own * per_score)
    is_fine = n_rows >= FEWEST_ROWS and is_small
    # few rows may agree by chance, so that the error is at least that of rounding,
    # which is uniform: its variance is a third of the square of its bound
    variances = (own**2 + (not is_fine) * by_scores**2) / 3.0
    square = evidence.product(direction, direction)
    moved = math.sqrt(float((np.square(weights * direction) * variances).sum()))
    error = max(error, rounding_error * moved / square if square else math.inf)
    scale = float(parameters[0])
    parameter = math.nan if form == "plain" else float(parameters[1])
    if form == "cap":
        parameter = abs(scale) * math.exp(min(parameter, MOST_LOG))
    nothing, _ = evidence.predict(form, np.concatenate([[0.0], parameters[1:]]))
    explained = size(nothing - residual)
    if form not in {"plain", "cap"}:  # without what a bias explains as well
        explained = min(explained, size(scale * direction))
    # sums in float64
    floor = 2.0**-50 * (abs(scale) + 1.0 / evidence.spread)
    degrees_of_freedom = max(len(residual) - evidence.n_constants - len(parameters), 1)
    scores, each = size(by_scores), size(per_score)
    return Fit(
        form,
        scale,
        math.hypot(error, floor),
        n_rows,
        residual=size(residual) * math.sqrt(len(residual) / degrees_of_freedom),
        degrees_of_freedom=degrees_of_freedom,
        direct=least * size(own),
        by_scores=least * scores,
        moved=rounding_error * scores / each if each else 0.0,
        is_fine=is_fine,
        explained=explained,
        spread=evidence.spread,
        parameter=parameter,
    )


def choose_fit(fits: Sequence[Fitted]) -> Fit:
    """Return the fit of the simplest form that no other clearly beats.

    ``fits`` are those of all forms, the simplest first.  The chosen one is tested for
    rows whose scales differ.  If they do, the form of the result is ``row``.
    """
    fit = _choose_form([one.fit for one in fits])
    (chosen,) = (one for one in fits if one.fit.form == fit.form)
    return _test_rows(fit, chosen)


def _choose_form(fits: Sequence[Fit]) -> Fit:
    """Return the first fit that no later one clearly beats.

    A fit whose residual is within the rounding of weights or outputs is not beaten: a
    gain there comes from roundings that depend on each other.  Its standard error then
    covers the scales of later forms that rows agree upon.

    If only the rounding of scores explains the residual, the standard error covers the
    scales of all simple forms with nearly the same residual: any of them may be the
    model's.
    """
    first, others = fits[0], list[Fit]()
    for one in fits[1:]:
        if first.residual > first.direct:
            first = one if _is_better(one, first) else first
        elif first.residual**2 > one.residual**2 * (1.0 + HIDDEN**2 / first.n_rows):
            others.append(one)
    if first.residual > first.direct and first.form in SIMPLE:
        most = first.residual / CLEARLY
        others = [one for one in fits if one.form in SIMPLE and one.residual <= most]
    shift = max((abs(one.scale - first.scale) for one in others), default=0.0)
    return replace(first, std_error=math.hypot(first.std_error, shift))


def _is_better(one: Fit, first: Fit) -> bool:
    """Return whether a form fits clearly better than ``first``, a simpler form."""
    if not one.residual < CLEARLY * first.residual:
        return False
    more = max(first.degrees_of_freedom - one.degrees_of_freedom, 1)
    squares = [fit.residual**2 * fit.degrees_of_freedom for fit in (first, one)]
    return squares[0] - squares[1] >= BEYOND_CHANCE * one.residual**2 * more


def _test_rows(fit: Fit, chosen: Fitted) -> Fit:
    """Return a fit after a test whether rows have scales of their own.

    If they have, its form becomes ``row``, and its scale their median.  If rounding can
    be the reason, or if scales are nearly the same, only its standard error grows, to
    cover their spread.  With too few numbers it is not changed.
    """
    evidence, direction, residual = chosen.evidence, chosen.direction, chosen.residual
    rows, weights = evidence.rows, evidence.weights
    squares = np.bincount(rows, weights * direction**2)
    some = squares > 0.0
    squares = squares[some]
    slopes = np.bincount(rows, weights * direction * residual)[some] / squares
    degrees_of_freedom = fit.degrees_of_freedom - len(slopes) + 1
    if degrees_of_freedom < max(FEWEST_LEFT, PART_LEFT * len(slopes)):
        return fit
    by_rows = float((squares * slopes**2).sum())
    rest = max(evidence.product(residual, residual) - by_rows, 0.0)
    rest *= len(residual) / float(weights.sum())
    apart = replace(
        fit,
        form="row",
        residual=math.sqrt(rest / degrees_of_freedom),
        degrees_of_freedom=degrees_of_freedom,
    )
    if not (_is_better(apart, fit) and apart.holds):
        return fit
    spread = math.sqrt(by_rows / float(squares.sum()))
    if fit.is_exact or spread <= SAME_SCALE * abs(fit.scale):
        return replace(fit, std_error=math.hypot(fit.std_error, spread))
    scale = fit.scale + float(np.median(slopes))
    return replace(apart, scale=scale, parameter=math.nan)


def _error_of(
    direction: Array, residual: Array, rows: NDArray[np.intp], weights: Array
) -> tuple[float, float]:
    """Return (jackknife error of the scale, effective number of rows).

    With fewer than two rows they are inf and 1.  ``direction`` is the derivative of the
    prediction by the scale, orthogonal to those by the other parameters.

    Notes
    -----
    Errors within a row may depend on each other, so rows are left out.  A row's
    influence is divided by one minus its leverage.  The effective number of rows is
    Satterthwaite's, for influences in proportion to leverages.
    """
    squares = np.bincount(rows, weights * direction * direction)
    slopes = np.bincount(rows, weights * direction * residual)
    total = squares.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = np.where(squares > 0.0, slopes / (total - squares), 0.0)
    n_rows = np.count_nonzero(squares)
    if n_rows < 2:
        return math.inf, 1.0
    error = float(np.sqrt(np.square(influence).sum() * (n_rows - 1) / n_rows))
    return error, float(total**2 / np.square(squares).sum())


def format_of(arrays: Sequence[Array]) -> NumberFormat:
    """Return the narrowest number format that holds all numbers exactly.

    If none does, the widest one.  The type of an array says less: weights of a bfloat16
    model are often float32.
    """
    narrow = sorted(ALL_FORMATS.values(), key=lambda one: one.bits)
    parts = [part for array in arrays for part in (array.ravel()[:FEW], array)]
    for one in narrow[:-1]:
        if all(np.array_equal(one.round(part), part) for part in parts):
            return one
    return narrow[-1]


def rounding_error_of(arrays: Sequence[Array]) -> float:
    """Return the relative rounding error of the format of some numbers.

    The format is the narrowest one that holds them all exactly, as in `format_of`.
    """
    return float(2.0 ** -format_of(arrays).bits)


# --- Weights ------------------------------------------------------------------------


@dataclass(frozen=True)
class LogWeights(Numbers):
    """Logarithms of attention weights, to be fitted with a constant for each row."""

    scores: Array
    logs: Array  # without the constants
    away: Array  # distances of key and query
    project: Callable[[Array], Array]  # subtracts the constants
    most_steps: ClassVar = 12  # evaluations of a search at most
    linear_forms: ClassVar = ("plain", "distance")  # linear in their parameters

    def predict(self, form: str, parameters: Array) -> tuple[Array, Array]:
        """Return (residual of the logarithms, derivatives of their prediction).

        Shapes (n_numbers,) and (n_numbers, n_parameters).
        """
        terms, slopes = FORMS[form](parameters, self.scores, self.away)
        columns = np.stack([self.project(one) for one in slopes], axis=1)
        return self.logs - self.project(terms), columns

    def start(self, form: str, scale: float | None) -> Array:
        """Return the parameters that a search starts from, shape (n_parameters,).

        For a cap, the best of several sizes with its best scale; 0 for other forms.
        """
        del scale  # which a linear fit finds
        if form in self.linear_forms:
            return np.zeros(1 + (form != "plain"))
        found = []
        for t in CAPS * self.spread:
            column = self.project(np.tanh(self.scores / t))
            square = max(self.product(column, column), LEAST_SQUARE)
            cap = self.product(column, self.logs) / square
            found.append((self.size(self.logs - cap * column), cap / t, math.log(t)))
        return np.array(min(found)[1:])

    def roundings(self, form: str, parameters: Array) -> tuple[Array, Array, Array]:
        """Return three effects on each logarithm, arrays of shape (n_numbers,).

        By how much it moves if its weight is rounded, if its score is rounded, both
        over the relative rounding error, and if its scaled score changes by 1.
        """
        del form  # a logarithm moves by the relative error of its weight
        ones = np.ones_like(self.logs)
        return ones, np.abs(parameters[0] * self.scores), ones


def fit_weights(blocks: Sequence[Rows], *, is_quick: bool = False) -> Fit | None:
    """Return the fit of the scale to attention weights; None with too few numbers.

    None, too, if scores do not vary within rows.  With ``is_quick``, a scale alone that
    leaves nearly no residual is returned at once.  Else it is compared with other
    forms, which may widen its interval.
    """
    number_format = format_of([block.weights for block in blocks])
    rounding_error = max(2.0**-number_format.bits, LEAST_ROUNDING_ERROR)
    least = 2.0 ** (number_format.least_exponent - number_format.bits + 1)
    longest = max(block.scores.shape[1] for block in blocks)
    parts = []
    n_rows = n_keys = 0
    for block in blocks:
        row, key = np.nonzero(block.weights >= FEWEST_STEPS * least)
        p = block.weights[row, key]
        # the variance of rounding to multiples of the least number is added
        square = rounding_error**2
        counts = square / (square + (least / p) ** 2 / 4.0)
        offsets, places = block.offsets[row, key], block.places[row] * longest + key
        labels = row + n_rows, offsets, key + n_keys, places
        parts.append((block.scores[row, key], np.log(p), counts, *labels))
        n_rows, n_keys = n_rows + len(block.weights), n_keys + block.weights.shape[1]
    scores, logs, weights, rows, offsets, keys, places = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    totals = np.bincount(rows, weights)
    n_rows = int(np.count_nonzero(totals))
    if len(scores) - n_rows < FEWEST_NUMBERS:
        return None

    def within(values: Array) -> Array:
        """Return values minus their weighted mean over the row, shape (n_numbers,)."""
        with np.errstate(invalid="ignore"):
            means = np.bincount(rows, weights * values) / totals
        return np.asarray(values - means[rows])

    spread, size = (
        math.sqrt(float((weights * one**2).sum() / weights.sum()))
        for one in (within(scores), scores)
    )
    if not LEAST_SPREAD * size < spread < math.inf:
        return None
    more = scores, within(logs), np.abs(offsets).astype(float), within
    pairs = LogWeights(rows, weights, rounding_error, spread, n_rows, rows, *more)
    # keys are those of a sequence, pairs of positions are common to all sequences
    plain = fit_form(pairs, "plain")
    least = max(plain.fit.direct, NEARLY_NOTHING * plain.fit.explained)
    if is_quick and plain.fit.residual <= least:
        return choose_fit([plain])
    groups = {"offset": offsets, "key": keys, "pair": places}
    return choose_fit([plain, *_other_fits(pairs, plain, groups)])


def _other_fits(
    pairs: LogWeights, plain: Fitted, groups: dict[str, Labels]
) -> list[Fitted]:
    """Return fits of the forms other than ``plain``, the simplest first.

    Only forms for which there are enough numbers.  ``groups`` maps each form with a
    free bias to labels of the logarithms, equal where the bias is the same.  Such forms
    are left out once a residual is within rounding.
    """
    free, fits = len(pairs.logs) - pairs.n_constants, list[Fitted]()
    if free - 2 >= FEWEST_LEFT:
        fits = [fit_form(pairs, form) for form in ("distance", "cap")]
    for form, labels in groups.items():
        if any(one.fit.is_exact for one in (plain, *fits)):
            break
        _, numbers = np.unique(labels, return_inverse=True)
        n_more = int(numbers.max()) + 1
        if free - n_more >= max(FEWEST_LEFT, PART_LEFT * n_more):
            fits.append(fit_form(_with_groups(pairs, numbers), "plain", name=form))
    return fits


def _with_groups(pairs: LogWeights, groups: Labels) -> LogWeights:
    """Return the data with constants of groups subtracted, too, besides those of rows.

    ``groups`` has the number of the group of each logarithm, from 0.  In the result a
    fit has a free constant for each row and for each group.
    """
    n, n_groups, n_rows = len(groups), int(groups.max()) + 1, int(pairs.rows.max()) + 1
    root = np.sqrt(pairs.weights)
    places = np.concatenate([pairs.rows, n_rows + groups])
    design = sparse.csr_array(
        (np.tile(root, 2), (np.tile(np.arange(n), 2), places)),
        shape=(n, n_rows + n_groups),
    )
    sizes = np.sqrt(np.maximum(design.power(2).sum(axis=0), LEAST_SQUARE))
    design = design @ sparse.diags_array(1.0 / sizes)

    def project(values: Array) -> Array:
        rest = values
        for _ in range(2):  # refined once
            found = lsmr(design, rest * root, atol=1e-14, btol=1e-14, maxiter=2000)[0]
            rest = rest - (design @ found) / root
        return rest

    n_constants, logs = pairs.n_constants + n_groups - 1, project(pairs.logs)
    return replace(
        pairs, n_constants=n_constants, groups=groups, logs=logs, project=project
    )


# --- Outputs ------------------------------------------------------------------------

MASKS: dict[str, Callable[[Rows], NDArray[np.bool_]]] = {
    "none": lambda block: np.ones(block.scores.shape, bool),
    "causal": lambda block: block.offsets <= 0,
    "causal_start": lambda block: block.offsets <= -block.shift,
}
#: The name of the mask that was passed.
GIVEN = "given"


def keys_seen(block: Rows, mask: str = GIVEN) -> NDArray[np.bool_]:
    """Return which keys each row sees, as booleans of shape (n_rows, n_keys).

    ``mask`` is a key of `MASKS`, or `GIVEN` for the mask that was passed to attention.
    All are True if that is not known.
    """
    if mask != GIVEN or block.added is None:
        return MASKS.get(mask, MASKS["none"])(block)
    return np.asarray(block.added > UNSEEN)


def see_keys(block: Rows) -> NDArray[np.bool_]:
    """Return which rows see any key, booleans of shape (n_rows,), by the passed mask.

    All are True if the mask that was passed to attention is not known.
    """
    return np.asarray(np.any(keys_seen(block), axis=1))


class Prediction(NamedTuple):
    """The outputs and weights that a form of logits predicts for a block of rows."""

    outputs: Array  # shape (n_rows, d_v)
    weights: Array  # shape (n_rows, n_keys)
    values: Array  # shape (n_keys, d_v)
    terms: list[Array]  # derivatives of the logits by the parameters
    sink: Array | float  # the weight of the sink, shape (n_rows, 1)

    def moved(self, added: Array) -> Array:
        """Return the first-order change of outputs, (n_rows, d_v), if logits change.

        ``added`` is the change of the logits, shape (n_rows, n_keys).
        """
        weighted = self.weights * added
        change: Array = weighted @ self.values
        change -= weighted.sum(axis=1)[:, None] * self.outputs
        return change

    def slopes(self, form: str) -> list[Array]:
        """Return derivatives of the outputs by each parameter, each (n_rows, d_v)."""
        sink = [-self.sink * self.outputs] if form == "sink" else []
        return [self.moved(term) for term in self.terms] + sink


def make_outputs(form: str, parameters: Array, block: Rows, mask: str) -> Prediction:
    """Return the `Prediction` of a form of logits for a block of rows, under a mask.

    ``mask`` is a key of `MASKS`, or `GIVEN` for the mask that was passed to attention,
    with its bias; then all keys are visible if it is not known.  Results are NaN for a
    row that sees no key.
    """
    terms, slopes = FORMS[form](parameters, block.scores, block.distances)
    if mask == GIVEN and block.added is not None:
        terms = terms + block.added
    shown = np.where(keys_seen(block, mask), terms, -np.inf)
    largest = shown.max(axis=1, keepdims=True)
    if form == "sink":
        largest = np.maximum(largest, parameters[1])
    e = np.exp(shown - largest)
    extra = np.exp(parameters[1] - largest) if form == "sink" else 0.0
    total = e.sum(axis=1, keepdims=True) + extra
    weights = e / total
    outputs = weights @ block.values
    return Prediction(outputs, weights, block.values, slopes, extra / total)


@dataclass(frozen=True)
class Outputs(Numbers):
    """Entries of the outputs of rows, to be fitted under a mask."""

    blocks: Sequence[Rows]
    mask: str  # a key of `MASKS`, or `GIVEN`
    most_steps: ClassVar = 60
    linear_forms: ClassVar[tuple[str, ...]] = ()

    def predict(self, form: str, parameters: Array) -> tuple[Array, Array]:
        """Return (residual of the outputs, derivatives of their prediction).

        Shapes (n_entries,) and (n_entries, n_parameters), for the entries of all
        blocks.
        """
        made = [make_outputs(form, parameters, b, self.mask) for b in self.blocks]
        pairs = zip(self.blocks, made, strict=True)
        slopes = zip(*(one.slopes(form) for one in made), strict=True)
        columns = np.stack([joined(one) for one in slopes], axis=1)
        return joined(block.outputs - one.outputs for block, one in pairs), columns

    def start(self, form: str, scale: float | None) -> Array:
        """Return parameters that a search starts from, shape (n_parameters,).

        Of several that are tried, they fit a few rows best.  If ``scale`` is given, it
        is the first parameter.
        """
        n_rows = TRIAL_ROWS // len(self.blocks) + 1
        few = [
            b.some(slice(None, None, -(-len(b.places) // n_rows))) for b in self.blocks
        ]
        scales = [one / self.spread for one in TRIED] if scale is None else [scale]
        more = [[0.0] * (form != "plain")]
        if form == "cap":
            more = [[math.log(cap * self.spread)] for cap in CAPS_OF_OUTPUTS]
        starts = [np.array([one, *rest]) for one in scales for rest in more]

        def size(parameters: Array) -> float:
            """Return the sum of squared residuals in a few rows."""
            made = [make_outputs(form, parameters, b, self.mask).outputs for b in few]
            left = [b.outputs - one for b, one in zip(few, made, strict=True)]
            return math.fsum(float(np.square(one).sum()) for one in left)

        return min(starts, key=size)

    def roundings(self, form: str, parameters: Array) -> tuple[Array, Array, Array]:
        """Return three effects on each entry, arrays of shape (n_entries,).

        By how much it moves if what it is computed from is rounded, if scores are
        rounded, both over the relative rounding error, and if each scaled score changes
        by 1.  Changes are independent; the results are root mean squares.
        """
        parts = []
        for block in self.blocks:
            made = make_outputs(form, parameters, block, self.mask)
            squares, terms = np.square(made.weights), parameters[0] * block.scores
            if block.added is not None:
                seen = keys_seen(block, self.mask)
                terms = np.where(seen, terms + block.added, 0.0)
            own = np.sqrt(np.square(made.outputs) + squares @ np.square(block.values))
            by_scores = _size_of_changes(squares * terms**2, made)
            parts.append((own, by_scores, _size_of_changes(squares, made)))
        own, by_scores, per_score = map(joined, zip(*parts, strict=True))
        return own, by_scores, per_score


def joined(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return the entries of all arrays in one array with one axis."""
    return np.concatenate([one.ravel() for one in parts])


def fit_outputs(
    blocks: Sequence[Rows], forms: Sequence[str] = tuple(FORMS)
) -> tuple[Fit, str] | None:
    """Return (fit of the scale to outputs, name of the mask); None if there is no fit.

    The mask is a key of `MASKS`, or `GIVEN` if the rows have the mask that was passed
    to attention.  There is no fit if there are too few numbers, or if all scores are
    the same.  ``forms`` are tried in their order, ``plain`` being the first.
    """
    variances = [float(block.scores.var(axis=1).mean()) for block in blocks]
    spread = math.sqrt(math.fsum(variances) / len(variances))
    size = max(float(np.sqrt(np.square(b.scores).mean())) for b in blocks)
    count = sum(block.outputs.size for block in blocks)
    if not LEAST_SPREAD * size < spread < math.inf or count < FEWEST_NUMBERS:
        return None
    rounding_error = rounding_error_of([block.outputs for block in blocks])
    masks = [GIVEN]
    if blocks[0].added is None:
        masks = [
            name
            for name, seen in MASKS.items()
            if all(seen(block).any(axis=1).all() for block in blocks)
            and (name != "causal_start" or any(block.shift for block in blocks))
        ]
    n_rows = sum(len(block.places) for block in blocks)
    rows = np.repeat(np.arange(n_rows), blocks[0].outputs.shape[1])
    common = rows, np.ones(count), rounding_error, spread, 0, rows, blocks
    plain = [fit_form(Outputs(*common, mask), "plain") for mask in masks]
    best = min(range(len(masks)), key=lambda i: plain[i].fit.residual)
    found = plain[best]
    more = forms[1:] if found.fit.degrees_of_freedom > FEWEST_LEFT else ()
    scale = found.fit.scale if found.fit.holds else None
    fits = [found, *(fit_form(found.evidence, form, scale) for form in more)]
    return choose_fit(fits), masks[best]


def _size_of_changes(squares: Array, prediction: Prediction) -> Array:
    """Return the root mean square change of outputs, (n_rows, d_v), if scores change.

    The changes of scores are independent.  ``squares`` are their mean squares times the
    squared weights: the derivative of an output by a score is weight * (value -
    output).
    """
    values = prediction.values
    found: Array = (
        squares @ np.square(values)
        - 2.0 * prediction.outputs * (squares @ values)
        + squares.sum(axis=1, keepdims=True) * np.square(prediction.outputs)
    )
    return np.sqrt(np.maximum(found, 0.0))
