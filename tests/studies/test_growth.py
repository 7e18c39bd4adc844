"""How time grows: the figure of the docs is that of the table, which is whole."""

from collections import Counter

from montecarlo.report.language.catalogues import LANGUAGES
from studies import growth
from studies.growth import HEAD_SIZES, KEYS, NAMES, PICTURE, REPLICATES, draw

TABLE = growth.read_table()


def test_every_size_was_timed():
    """Each of what grows has its sizes, in order."""
    counts = Counter(line["what"] for line in TABLE)
    assert counts == {
        "n_keys": len(KEYS),
        "d_k": len(HEAD_SIZES),
        "replicates": len(REPLICATES),
        "workers": 3,
        "languages": len(LANGUAGES),
    }
    assert set(counts) == set(NAMES)
    for what in counts:
        sizes = [int(line["size"]) for line in TABLE if line["what"] == what]
        assert sizes == sorted(sizes)


def test_the_picture_is_that_of_the_table():
    """As Matplotlib draws it from the table."""
    assert PICTURE.read_text(encoding="utf-8") == draw(TABLE)


def test_rows_are_timed_by_their_size():
    """Four times the replicates are about four times the work."""
    few, many = (growth.seconds_of(growth.rows_of(64, 16, n)) for n in (32, 256))
    assert 2.0 < many / few < 32.0
