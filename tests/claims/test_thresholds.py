"""Names stand for numbers in claims files, and each number stands once."""

from montecarlo.attention.quantities import SATURATED
from montecarlo.claims.catalogue import parse_catalogue, read_catalogue
from montecarlo.claims.words import read_thresholds
from tests.conftest import claims_of

CHECK = {
    "quantity": "effective_keys",
    "relation": "between",
    "low": {"times": "balanced", "n_keys_power": 1},
    "high": {"times": "near-uniform", "n_keys_power": 1},
}


def test_names_become_numbers():
    """In bounds and tolerances, as deep as they stand."""
    catalogue = parse_catalogue(claims_of(CHECK), "own.toml", own=True)
    (check,) = catalogue.claim[0].interpretation[0].check
    assert (check.low.times, check.high.times) == (0.25, 0.9)
    (first, *_) = read_catalogue().passage
    assert first.sentence.check[0].tolerance == read_thresholds()["variance"] == 0.05


def test_one_hot_is_saturated():
    """Rows are one-hot from where the quantity that counts them has them."""
    assert read_thresholds()["one-hot"] == SATURATED["saturated"]
