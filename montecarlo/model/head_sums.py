"""One head: sums over its tokens, pairs and rows, by group of sequences.

Two passes over its sequences: the first for moments and for a pool of keys, the second
for scores.  What stays in memory is one sequence, a block of scores, and the sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.attention.softmax import Array
from montecarlo.errors import InputError
from montecarlo.model.model import Head, Model
from montecarlo.model.row_values import SPECTRAL_ROWS, Rows, RowSum, sum_rows
from montecarlo.sampling.streams import keys_of_others, pooled_positions, row_positions

#: Scores that are held at once, unless one row has more.
BLOCK = 2**19
#: Groups of sequences at most: differences between them make the standard errors.
MOST_GROUPS = 64
#: Rows of a sequence that go through softmax at most, drawn at even distances.
MOST_ROWS = 256
#: Keys in a head's pool: at least so many, and so many times a row's.
POOL, POOL_TIMES = 4096, 4
#: Sums over pairs: numbers of them, powers of the centred score, and what rows vary by.
PAIR_SUMS = ("count", "s", "s2", "s3", "s4", "within")


@dataclass(frozen=True, slots=True)
class HeadSums:
    """Sums of one head; the first axis of each is the group of sequences.

    Attributes
    ----------
    d_k : int
    centre_q, centre_k : ndarray, shape (d_k,)
        What is subtracted from entries before they are multiplied.
    tokens_q, tokens_k : ndarray, shape (n_groups,)
    q, k : ndarray, shape (n_groups, d_k)
    qq, kk : ndarray, shape (n_groups, d_k, d_k)
    pairs : dict of ndarray, shape (n_groups,)
        `PAIR_SUMS` over pairs that attention forms; ``all_…``: over all pairs of a
        sequence; ``row_variance`` and ``rows``; of sequences with as many queries as
        keys, ``diagonal`` and ``diagonals``, ``rest`` and ``rests``.
    rows : dict of ndarray, shape (n_groups, 2)
        Sum and number of rows of each `RowSum`.
    """

    d_k: int
    centre_q: Array
    centre_k: Array
    tokens_q: Array
    tokens_k: Array
    q: Array
    k: Array
    qq: Array
    kk: Array
    pairs: dict[str, Array]
    rows: dict[str, Array]


@dataclass(frozen=True, slots=True)
class _Pool:
    keys: Array
    owners: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Chosen:
    rows: NDArray[np.intp]
    few: NDArray[np.intp]
    causal: bool
    divisor: float


def group_of(sequence: int, n_sequences: int) -> int:
    """Return the group of a sequence: neighbours, as even as can be."""
    groups = min(n_sequences, MOST_GROUPS)
    return sequence * groups // n_sequences


def sum_head(
    model: Model, head: Head, asked: Sequence[RowSum], divisor: float, seed: int
) -> HeadSums:
    """Read a head's queries and keys and sum what its quantities are made of."""
    n = len(model.sequences)
    groups, d_k = min(n, MOST_GROUPS), model.d_k
    first_q, first_k = model.read(head, 0)
    sums = HeadSums(
        d_k,
        first_q.mean(axis=0),
        first_k.mean(axis=0),
        tokens_q=np.zeros(groups),
        tokens_k=np.zeros(groups),
        q=np.zeros((groups, d_k)),
        k=np.zeros((groups, d_k)),
        qq=np.zeros((groups, d_k, d_k)),
        kk=np.zeros((groups, d_k, d_k)),
        pairs={},
        rows={one.name: np.zeros((groups, 2)) for one in asked},
    )
    names = (*PAIR_SUMS, *(f"all_{name}" for name in PAIR_SUMS))
    names += ("row_variance", "rows", "diagonal", "diagonals", "rest", "rests")
    for name in names:
        sums.pairs[name] = np.zeros(groups)
    observed = [one for one in asked if not one.permuted]
    permuted = [one for one in asked if one.permuted]
    pool = _first_pass(model, head, seed, sums)
    for sequence in range(n):
        q, k = model.read(head, sequence)
        group = group_of(sequence, n)
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            _sum_pairs(q, k, sums, group, causal=model.causal)
        if not np.isfinite(sums.pairs["all_s4"][group]):
            raise InputError(
                "q and k must have scores whose fourth powers float64 can hold, got "
                f"larger ones in layer {head.layer}, head {head.head}"
            )
        rows, few = row_positions(
            seed, head, sequence, len(q), [MOST_ROWS, SPECTRAL_ROWS]
        )
        chosen = _Chosen(rows, few, model.causal, divisor)
        _sum_softmax(q, k, observed, sums, group, chosen)
        if n > 1:
            drawn = keys_of_others(seed, head, sequence, pool.owners, len(k))
            _sum_softmax(q, pool.keys[drawn], permuted, sums, group, chosen)
    _require_scores(head, sums)
    return sums


def _require_scores(head: Head, sums: HeadSums) -> None:
    """Refuse a head whose queries meet no key: its shares of nothing mean nothing."""
    for prefix in ("", "all_"):
        count, first, second = (
            sums.pairs[prefix + name].sum() for name in ("count", "s", "s2")
        )
        if not second > first**2 / count:
            raise InputError(
                f"q and k must have scores that vary, got the same for every pair in "
                f"layer {head.layer}, head {head.head}"
            )


def _first_pass(model: Model, head: Head, seed: int, sums: HeadSums) -> _Pool:
    """Sum the moments of entries, and keep some keys of each sequence."""
    n = len(model.sequences)
    size = max(POOL, POOL_TIMES * model.most_tokens)
    pool, owners = [], []
    for sequence in range(n):
        q, k = model.read(head, sequence)
        group = group_of(sequence, n)
        for entries, centre, counts, first, second in (
            (q, sums.centre_q, sums.tokens_q, sums.q, sums.qq),
            (k, sums.centre_k, sums.tokens_k, sums.k, sums.kk),
        ):
            with np.errstate(over="ignore", invalid="ignore"):
                moved = entries - centre
                counts[group] += len(moved)
                first[group] += moved.sum(axis=0)
                second[group] += moved.T @ moved
        if n > 1:
            kept = pooled_positions(seed, head, sequence, len(k), -(-size // n))
            pool.append(k[kept])
            owners.append(np.full(len(kept), sequence))
    if n == 1:
        return _Pool(np.empty((0, sums.d_k)), np.empty(0, dtype=np.intp))
    return _Pool(np.concatenate(pool), np.concatenate(owners))


def _sum_pairs(q: Array, k: Array, sums: HeadSums, group: int, *, causal: bool) -> None:
    """Add the scores of a sequence, a block of rows at a time."""
    shift = float(sums.centre_q @ sums.centre_k)
    step = max(1, BLOCK // len(k))
    for start in range(0, len(q), step):
        scores = q[start : start + step] @ k.T - shift
        seen = np.full(len(scores), len(k))
        variance = _add_pairs(scores, seen, sums.pairs, "all_", group)
        if causal:
            seen = start + 1 + np.arange(len(scores))
            variance = _add_pairs(scores, seen, sums.pairs, "", group)
        sums.pairs["row_variance"][group] += variance[seen > 1].sum()
        sums.pairs["rows"][group] += (seen > 1).sum()
        if len(q) == len(k):
            numbers = np.arange(len(scores))
            own = scores[numbers, start + numbers]
            visible = np.arange(len(k)) < seen[:, np.newaxis]
            for name, value in (
                ("diagonal", own.sum()),
                ("diagonals", len(own)),
                ("rest", (scores * visible).sum() - own.sum()),
                ("rests", seen.sum() - len(own)),
            ):
                sums.pairs[name][group] += value
    if not causal:
        for name in PAIR_SUMS:
            sums.pairs[name][group] = sums.pairs[f"all_{name}"][group]


def _add_pairs(
    scores: Array,
    seen: NDArray[np.intp],
    pairs: dict[str, Array],
    prefix: str,
    group: int,
) -> Array:
    """Add the pairs that rows see; returns each row's variance, n - 1 below."""
    visible = np.arange(scores.shape[1]) < seen[:, np.newaxis]
    kept = scores if visible.all() else scores * visible
    squares = kept * kept
    away = scores - (kept.sum(axis=1) / seen)[:, np.newaxis]
    within = (np.square(away) * visible).sum(axis=1)
    for name, value in (
        ("count", seen.sum()),
        ("s", kept.sum()),
        ("s2", squares.sum()),
        ("s3", (squares * kept).sum()),
        ("s4", (squares * squares).sum()),
        ("within", within.sum()),
    ):
        pairs[prefix + name][group] += value
    variance: Array = within / np.maximum(seen - 1, 1)
    return variance


def _sum_softmax(  # noqa: PLR0913, PLR0917 - a sequence, what to sum, and where to
    q: Array,
    k: Array,
    asked: Sequence[RowSum],
    sums: HeadSums,
    group: int,
    chosen: _Chosen,
) -> None:
    """Add what softmax makes of some rows of a sequence."""
    step = max(1, BLOCK // len(k))
    for start in range(0, len(chosen.rows), step):
        numbers = chosen.rows[start : start + step]
        seen = numbers + 1 if chosen.causal else np.full(len(numbers), len(k))
        rows = Rows(q[numbers] @ k.T, seen, chosen.divisor)
        found = sum_rows(rows, asked, np.isin(numbers, chosen.few))
        for name, added in found.items():
            sums.rows[name][group] += added
