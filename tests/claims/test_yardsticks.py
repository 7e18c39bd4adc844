"""Names stand for numbers in claims files, and each number stands once."""

import re
from importlib.resources import files

from montecarlo.claims.catalogue import parse_catalogue, read_catalogue
from montecarlo.claims.yardsticks import NUMBERS

CLAIM = {
    "id": "mine",
    "topic": "weights",
    "statement": "Rows are peaked.",
    "interpretation": [
        {
            "id": "one",
            "check": [
                {
                    "quantity": "effective_keys",
                    "relation": "between",
                    "low": {"times": "balanced", "n_keys_power": 1},
                    "high": {"times": "near-uniform", "n_keys_power": 1},
                }
            ],
        }
    ],
}


def test_names_become_numbers():
    """In bounds and tolerances, as deep as they stand."""
    catalogue = parse_catalogue({"claim": [CLAIM]}, "own.toml", own=True)
    (check,) = catalogue.claim[0].interpretation[0].check
    assert (check.low.times, check.high.times) == (0.25, 0.9)
    (first, *_) = read_catalogue().passage
    assert first.sentence.check[0].tolerance == NUMBERS["variance"] == 0.05


def test_the_catalogue_has_names_where_there_are_any():
    """A variance's tolerance, and the border of a saturated row, stand nowhere else."""
    text = files("montecarlo.claims").joinpath("catalogue.toml").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in lines:
        assert not re.search(r"variance.*tolerance = 0\.05\b", line), line
        assert not re.search(r'_(?:max|weight)", summary.* (?:low|high) = 0\.9,', line)
