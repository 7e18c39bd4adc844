"""Messages: what came is cut and cannot steer a terminal, whatever its length."""

import pytest

from montecarlo.claims.simulation import canonical_distributions
from montecarlo.errors import MOST_MESSAGE, InputError, UnfinishedError
from tests.commands import judge, measure

LONG = "x" * 5000


@pytest.mark.parametrize("kind", [InputError, UnfinishedError])
@pytest.mark.parametrize(
    "came",
    [LONG, "a b " * 5000, "it's " * 5000, "\x1b[31m" * 5000, "\\'" * 5000],
    ids=range(5),
)
def test_what_came_is_cut(kind, came):
    """As `repr` shows it, in quotes of either kind; both ends stay."""
    message = str(kind(f"seed must be one's own, got {came!r}: no such file"))
    assert message.startswith(f"seed must be one's own, got {came!r}"[:80])
    assert message.endswith(": no such file")
    assert len(message) <= MOST_MESSAGE


def test_commands_cut_what_came(tmp_path, capsys):
    """Flags, and what a file says: a name, a key, a text."""
    for option in ("quantity", "d-k", "distribution", "divisor", "seed"):
        given = {"quantity": "entropy", "d-k": "4", "keys": "8"} | {option: LONG}
        typed = [f"--{name}={value}" for name, value in given.items()]
        assert measure(typed) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert len(line) < 1500  # lists of names, and what came
        assert LONG[:200] not in line
    for text in (f"{LONG} = 1", f"claim = '{LONG}'", f"[[claim]]\nid = '{LONG}'"):
        (tmp_path / "x.toml").write_text(text, encoding="ascii")
        assert judge([str(tmp_path / "x.toml")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert len(line) < MOST_MESSAGE + 200
    assert measure([f"--{LONG}"]) == 2
    assert len(capsys.readouterr().err.splitlines()[-1]) < 300


@pytest.mark.parametrize("named", ["gaussian*gaussian*gaussian", "a * b", "*"])
def test_distributions_are_one_or_two(named):
    """Refused as what a file says is, and no bug."""
    with pytest.raises(InputError, match="distribution"):
        canonical_distributions(named)
