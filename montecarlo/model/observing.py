"""A model observed: every head's quantities, what its divisor does, and what fails.

Borders are those of the claims; what is said of a head rests on that head alone.

>>> import numpy as np
>>> from montecarlo.model import observe
>>> q = np.random.default_rng(1).normal(size=(2, 16, 8))
>>> observe(q, q[::-1], axes=("sequence", "token", "d")).columns[:4].tolist()
['layer', 'head', 'quantity', 'value']
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from montecarlo.claims.verdicts import Verdict, decide
from montecarlo.claims.yardsticks import BALANCED, BALANCED_WEIGHT, NEAR_UNIFORM
from montecarlo.errors import InputError
from montecarlo.estimation.estimates import POINTWISE
from montecarlo.estimation.intervals import Interval
from montecarlo.model.arrays import Head, Model, Progress, open_arrays
from montecarlo.model.divisors import divisor_value
from montecarlo.model.quantities import (
    FACTORS,
    FEWEST,
    SHARE,
    HeadEstimate,
    Stacks,
    estimate,
    quantities,
    sum_head,
)
from montecarlo.names import require_whole

if TYPE_CHECKING:  # as long to import as all the rest
    import pandas as pd

COLUMNS = (
    "layer",
    "head",
    "quantity",
    "value",
    "std_error",
    "ci_low",
    "ci_high",
    "n_sequences",
)
#: What stands for layer and head where a row is the mean over all heads.
ALL = "all"
#: What the divisor does, from the most concentrated rows on; ``peaked`` lies between
#: balanced and one-hot.
STATES = ("saturated", "peaked", "balanced", "flat")
#: A factor of the variance that is so far from 1 is off, as in the claims.
TOLERANCE = 0.05
#: What a factor is counted as at least: its logarithm says how far off it is.
LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption of the texts on one head."""

    name: str  # one of `FACTORS`
    factor: HeadEstimate  # what it alone would multiply the variance of a score by
    verdict: Verdict  # supported if the factor is 1 up to the tolerance

    @property
    def size(self) -> float:
        """How far off the factor is, up and down alike."""
        return abs(math.log(max(self.factor.value, LEAST)))


@dataclass(frozen=True, slots=True)
class ObservedHead:
    """One head."""

    head: Head
    found: dict[str, HeadEstimate]  # quantities by name
    state: str  # one of `STATES`: what the model's divisor does
    assumptions: tuple[Assumption, ...]  # of the texts, the one farthest off first

    @property
    def failing(self) -> tuple[Assumption, ...]:
        """Assumptions that fail; with too few sequences, on the tokens at hand."""
        return tuple(f for f in self.assumptions if f.verdict is Verdict.REFUTED)


@dataclass(frozen=True, slots=True)
class Observation:
    """A model observed."""

    model: Model
    divisor: float  # the model's
    seed: int  # of the keys drawn from other sequences
    heads: tuple[ObservedHead, ...]
    overall: dict[str, HeadEstimate]  # quantities averaged over heads

    @property
    def dead(self) -> list[Head]:
        """Heads that are left out."""
        seen = {view.head for view in self.heads}
        return [head for head in self.model.heads() if head not in seen]

    @property
    def n_sequences(self) -> int:
        """Sequences, which intervals are made over."""
        return len(self.model.sequences)


def observe(  # noqa: PLR0913 - two arrays, and four options
    q: ArrayLike,
    k: ArrayLike,
    *,
    axes: Sequence[str] | None = None,
    causal: bool = False,
    divisor: str | float = "sqrt",
    seed: int = 1,
) -> "pd.DataFrame":
    """Observe queries and keys in hand.

    Parameters
    ----------
    q, k : array_like of floating-point numbers
        By default of shape (n_sequences, n_layers, n_heads, n_tokens, d_k); keys may
        have fewer heads, which then serve several heads of queries each.
    axes : sequence of str, optional
        Names of their axes, among ``sequence``, ``layer``, ``head``, ``token``, ``d``;
        the last two have to be there.
    causal : bool
        Whether a query sees only keys up to its own position.
    divisor : str or float
        What the model divides scores by: a name, such as ``sqrt``, or a number.
    seed : int
        Of the draws of keys from other sequences.

    Returns
    -------
    DataFrame
        One row per head and quantity, and for ``all`` heads their mean.  Standard
        errors and 95 % intervals are over sequences, NaN with fewer than five.

    Notes
    -----
    What softmax makes of a row, such as ``entropy``, is a mean over rows under
    ``divisor``.  Rows that see a single key, as the first causal one does, are left
    out: they have nothing to choose; so are dead heads, whose queries or keys are the
    same for every token.  Of long sequences some rows are drawn.

    Raises
    ------
    InputError
        If the arrays do not fit each other, hold something that is not finite or vary
        in no head, or an option is not usable.
    """
    require_whole("seed", seed, 0)
    model = open_arrays({"q": q, "k": k}, axes, causal=causal)
    return tidy(observe_model(model, divisor_value(divisor, model.d_k), seed))


def observe_model(
    model: Model, divisor: float, seed: int = 1, progress: Progress = lambda done: None
) -> Observation:
    """Observe every head of a model but dead ones.

    These are heads whose queries or keys are the same for every token.

    ``progress`` is told how many are done.
    """
    heads = model.heads()
    views = []
    varied = np.zeros(2, dtype=bool)
    total: Stacks = {}
    with threadpool_limits(limits=1, user_api="blas"):
        for done, head in enumerate(heads, start=1):
            varies = _vary(model, head)
            varied |= varies
            if varies.all():
                sums = sum_head(model, head, divisor, seed)
                found = quantities(sums, divisor)
                for name, stack in found.items():
                    total[name] = total.get(name, 0.0) + stack
                estimates = {name: estimate(stack) for name, stack in found.items()}
                checked = check_assumptions(estimates)
                views.append(
                    ObservedHead(head, estimates, state_of(estimates), checked)
                )
            progress(done)
    if not views:
        sides = [name for name, some in zip("qk", varied, strict=True) if not some]
        raise InputError(
            f"{sides[0] if sides else 'q and k'} must vary from token to token, got "
            "zero variance in every head"
        )
    return Observation(
        model,
        divisor,
        seed,
        tuple(views),
        {name: estimate(stack / len(views)) for name, stack in total.items()},
    )


def check_assumptions(found: Mapping[str, HeadEstimate]) -> tuple[Assumption, ...]:
    """Judge the assumptions of the texts on a head, the one farthest off first."""
    checked = []
    for name in FACTORS:
        factor = found.get(f"factor_{name}")
        if factor is None or math.isnan(factor.value):
            continue
        interval = factor.interval(POINTWISE)
        if factor.n_groups < FEWEST:
            interval = Interval(factor.value, factor.value)
        region = (1.0 - TOLERANCE, 1.0 + TOLERANCE)
        checked.append(Assumption(name, factor, decide(interval, region)))
    checked.sort(key=lambda one: -one.size)
    return tuple(checked)


def state_of(found: Mapping[str, HeadEstimate]) -> str:
    """Say what the divisor makes of a head's rows, by the borders of the claims."""
    share, largest = found[SHARE].value, found["weight_max"].value
    # a median of at least 0.9: at least half of the rows
    if found["saturated_rows"].value >= 0.5:
        return "saturated"
    if share >= NEAR_UNIFORM:
        return "flat"
    if share >= BALANCED and largest <= BALANCED_WEIGHT:
        return "balanced"
    return "peaked"


def _vary(model: Model, head: Head) -> NDArray[np.bool_]:
    """Tell whether queries, and keys, are not the same for every token."""
    firsts = [entries[0] for entries in model.read(head, 0)]
    found = np.zeros(2, dtype=bool)
    for sequence in range(len(model.sequences)):
        for side, entries in enumerate(model.read(head, sequence)):
            found[side] |= (entries != firsts[side]).any()
        if found.all():
            break
    return found


def tidy(observation: Observation) -> "pd.DataFrame":
    """Return the quantities as a tidy table, with the columns `COLUMNS`."""
    heads = {one.head: one.found for one in observation.heads}
    count = observation.n_sequences
    rows = [
        (*place, name, one.value, one.std_error, *one.interval(POINTWISE), count)
        for place, found in [((ALL, ALL), observation.overall), *heads.items()]
        for name, one in found.items()
    ]
    import pandas as pd

    return pd.DataFrame.from_records(rows, columns=list(COLUMNS))
