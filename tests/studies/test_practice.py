"""What to divide by: exact rows by a second way, factors that hold, draws that tell."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from montecarlo.report.content.practice import read_practice
from montecarlo.theory.query_gradients import expect_along_query
from studies import practice, practice_rows
from studies.practice import D_K, FEWER, KEPT, MORE, Spec
from studies.practice_rows import expect, normal_nodes

RECORD = read_practice()
#: A few rows of so many keys, drawn so often: what is wrong by a factor is seen.
KEYS, OFTEN = 64, 200
#: Standard errors that two ways may differ by: of the values here, once in a million.
FAR = 5.5
#: What stands beside the scores of each kind in rows of two or three keys.
BESIDE = {"softmax": 0.0, "unit": 0.0, "rms": 0.0, "sink": 0.7, "sigmoid": -1.1}


def values_of(kind, scores, directions, beside, scale):
    """Values of rows, shape (rows, 4), their Jacobians written out.

    ``directions`` has E k_i·k_j over what is not known of the keys, given the scores.
    """
    eye = np.eye(scores.shape[1])
    if kind == "sigmoid":
        p = special.expit(scores + beside)
        jacobian = (p * (1.0 - p))[:, np.newaxis] * eye
    else:
        extra = np.full((len(scores), 1), beside if kind == "sink" else -np.inf)
        p = special.softmax(np.hstack([scores, extra]), axis=1)[:, :-1]
        jacobian = p[:, np.newaxis] * eye - p[:, np.newaxis] * p[..., np.newaxis]
    square = np.einsum("aij,ajk,aik->a", jacobian, directions, jacobian)
    rest = p.sum(axis=1) if kind == "sigmoid" else 1.0 - p.sum(axis=1)
    entropy = stats.entropy(p, axis=1)
    return np.stack([entropy, p.max(axis=1), scale**2 * square, rest], axis=1)


def by_quadrature(kind, n, d_k, factor, points):
    """Average the rows of n keys over a product grid of the scores, and over |q|."""
    cosines = kind in ("unit", "rms")
    if cosines:
        x, weight = special.roots_gegenbauer(points, 0.5 * d_k - 1.0)
        halves, masses = np.ones(1), np.ones(1)
    else:
        x, weight = special.roots_hermitenorm(points)
        # |q|²/2 has the density of a gamma variable
        halves, masses = special.roots_genlaguerre(10, 0.5 * d_k - 1.0)
    z = np.array(list(itertools.product(x, repeat=n)))
    weight = np.prod(list(itertools.product(weight / weight.sum(), repeat=n)), axis=1)
    total = np.zeros(4)
    for half, mass in zip(halves, masses / masses.sum(), strict=True):
        if cosines:  # across q, where other keys are independent of one another
            scores, scale = math.sqrt(d_k) * factor * z, factor / math.sqrt(1 - 2 / d_k)
            directions = (1.0 - z * z)[:, np.newaxis] * np.eye(n)
        else:
            scale = factor / math.sqrt(d_k)
            scores = scale * math.sqrt(2.0 * half) * z
            directions = z[:, np.newaxis] * z[..., np.newaxis] + (d_k - 1) * np.eye(n)
        rows = values_of(kind, scores, directions, BESIDE[kind], scale)
        total += mass * weight @ rows
    total[2] = math.sqrt(total[2])
    return total


@pytest.mark.parametrize(
    ("kind", "n", "points"), [*((kind, 2, 64) for kind in BESIDE), ("sink", 3, 24)]
)
def test_rows_of_few_keys_are_those_of_a_grid(kind, n, points):
    """Gauss quadrature over each score, the Jacobian as a matrix."""
    found = expect(kind, n, 6, 1.3, BESIDE[kind])
    other = by_quadrature(kind, n, 6, 1.3, points)
    # the largest weight has a corner where scores are equal
    assert found.largest == pytest.approx(other[1], rel=0.015)
    smooth = [0, 2, 3] if kind in ("sink", "sigmoid") else [0, 2]
    assert np.array(found)[smooth] == pytest.approx(other[smooth], rel=1e-4)


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0])
def test_gradients_along_the_query_are_those_of_theory(s):
    """E ‖J z‖² of a softmax, by integrals that theory has in another form."""
    z, probability = normal_nodes()
    k = practice_rows.kernels(z, probability, s, FEWER, -math.inf)
    found = practice_rows.along(k, FEWER)
    assert found == pytest.approx(expect_along_query(s, FEWER).value, rel=1e-9)


def test_a_planted_key_without_correlation_is_one_of_n():
    """And with it, in rows of two, that of a grid."""
    found = practice_rows.planted_weight(FEWER, 64, 8.0, 0.0)
    assert found == pytest.approx(1.0 / FEWER, rel=1e-9)
    x, weight = special.roots_hermitenorm(60)
    halves, masses = special.roots_genlaguerre(40, 2.0)
    square = 2.0 * halves[:, np.newaxis, np.newaxis]
    right = 0.5 * square + math.sqrt(0.75 * 1.0) * np.sqrt(square) * x[:, np.newaxis]
    gap = (right - np.sqrt(square) * x) / 2.0
    weights = masses[:, np.newaxis, np.newaxis] * weight[:, np.newaxis] * weight
    mean = (weights * special.expit(gap)).sum() / weights.sum()
    assert practice_rows.planted_weight(2, 6, 2.0, 0.5) == pytest.approx(mean, rel=1e-6)


def drawn_z(monkeypatch, kind, spec):
    """Return the z-scores of a spec against the exact values of a kind, factor 1.5."""
    monkeypatch.setitem(practice.REPLICATES, KEYS, OFTEN)
    (rows,) = practice.draw(f"test {kind}", [spec], KEYS, D_K[0])
    exact = expect(kind, KEYS, D_K[0], 1.5, BESIDE[kind])
    return [one.z for one in practice.check_row(exact, rows).values()]


@pytest.mark.parametrize("kind", BESIDE)
def test_drawn_rows_tell_what_is_wrong(monkeypatch, kind):
    """They agree; with d_k for √d_k, or the variance for the deviation, they do not."""
    right = Spec(kind, 1.5, BESIDE[kind])
    assert max(map(abs, drawn_z(monkeypatch, kind, right))) < FAR
    for factor in (1.5 / math.sqrt(D_K[0]), 1.5**2):
        wrong = right._replace(factor=factor)
        assert min(map(abs, drawn_z(monkeypatch, kind, wrong))) > FAR, factor


@pytest.mark.parametrize("kind", [kind for kind in BESIDE if kind != "rms"])
def test_mean_squares_from_a_raised_key_are_those_of_all(kind):
    """They agree with theory; with d_k for √d_k, or with another n, they do not."""
    exact = expect(kind, KEYS, D_K[0], 1.5, BESIDE[kind]).gradient

    def z_of(factor, n):
        spec = Spec(kind, factor, BESIDE[kind])
        return practice.check_root(exact, practice.draw_squares("test", spec, n, 64)).z

    assert abs(z_of(1.5, KEYS)) < FAR
    assert abs(z_of(1.5 / math.sqrt(D_K[0]), KEYS)) > FAR
    assert abs(z_of(1.5, 4 * KEYS)) > FAR


def test_record_is_what_the_program_makes():
    """Exact values of all d_k, and what was drawn of one kind and for one factor."""
    assert (RECORD.seed, RECORD.n_keys, RECORD.d_k) == (1, (FEWER, MORE), D_K)
    assert [*RECORD.sizes] == [*practice.SIZES]
    for kind, line in RECORD.sizes.items():
        beside = practice.beside_of(kind, FEWER)
        for i, d_k in enumerate(D_K):
            row = expect(kind, FEWER, d_k, 1.0, beside)
            kept = [line[x][i].exact for x in ("entropy", "largest", "gradient")]
            assert kept == pytest.approx(row[:3], rel=1e-9)
    (rows,) = practice.draw("size rms", [Spec("rms", 1.0, 0.0)], FEWER, D_K[0])
    drawn = RECORD.sizes["rms"]["largest"][0].drawn
    assert drawn == pytest.approx(rows[:, 1].mean(), rel=1e-9)
    gradient = RECORD.growth["softmax 1"]["gradient"]
    spec = Spec("softmax", gradient.factor, 0.0)
    squares = practice.draw_squares("softmax 1.0", spec, MORE, D_K[0])
    drawn = practice.check_root(gradient.exact, squares)
    assert gradient.drawn == pytest.approx(drawn.drawn, rel=1e-6)


def test_factors_hold_what_they_are_for():
    """The exact value of more keys with a factor is that of fewer without."""
    assert [*RECORD.growth] == [*practice.GROWTH]
    for name, line in RECORD.growth.items():
        assert [*line] == [*KEPT]
        kind, std = practice.GROWTH[name]
        fewer = practice.row_of(kind, std, FEWER, 1.0)
        for kept, one in line.items():
            if one is None:
                continue
            more = practice.row_of(kind, std, MORE, one.factor)
            level, held = KEPT[kept](fewer, FEWER), KEPT[kept](more, MORE)
            assert held == pytest.approx(level, rel=1e-6), (name, kept)
            assert one.exact == pytest.approx(level, rel=1e-9)


def test_what_stands_beside_scores_is_held():
    """The sink's weight, one half, and the sum of sigmoids."""
    sink, sigmoid = RECORD.beside["sink"], RECORD.beside["sigmoid"]
    assert sink["fewer"].exact == pytest.approx(0.5)
    grows = sigmoid["more"].exact / sigmoid["fewer"].exact
    assert grows == pytest.approx(MORE / FEWER)
    for kind, sign in (("sink", 1.0), ("sigmoid", -1.0)):
        line = RECORD.beside[kind]
        added = line["held"].added
        assert added == pytest.approx(sign * math.log(MORE / FEWER), rel=2e-3)
        moved = practice.beside_of(kind, FEWER) + added
        held = expect(kind, MORE, D_K[0], 1.0, moved).beside
        assert held == pytest.approx(line["fewer"].exact, rel=1e-6)


def test_entropy_of_sigmoids_is_held_by_no_factor():
    """Saturated ones spread over more keys again: the least entropy is above."""
    assert RECORD.growth["sigmoid"]["entropy"] is None
    level = practice.row_of("sigmoid", 1.0, FEWER, 1.0).entropy
    for factor in np.geomspace(0.3, 30.0, 16):
        assert practice.row_of("sigmoid", 1.0, MORE, float(factor)).entropy > level


def test_what_was_drawn_agrees():
    """The z-scores of the record: as far as so many may be, and as spread."""
    assert len(RECORD.z_scores) == 68
    assert RECORD.largest_z < FAR
    assert 0.6 < RECORD.rms_z < 1.5
    # most factors are told to a few per cent by what was drawn
    held = [one for line in RECORD.growth.values() for one in line.values() if one]
    assert all(one.std_error < 0.06 * abs(one.exact) for one in held)
