"""What a model does to queries and keys between their projections and attention.

A factor that is applied there is seen neither in what is captured nor in the scale that
attention itself applies, and makes a model divide twice, or not at all.  Rotations keep
lengths, so the length of all queries over that of what their projection gave out is the
factor.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

#: What modules within an attention module are called: a normalisation of heads is the
#: last of those that it has.
QUERIES = (
    *("q_proj", "q_b_proj", "query", "q_lin", "to_q", "linear_q", "q", "q_attn"),
    *("q_norm", "q_layernorm", "query_layernorm", "q_layer_norm", "q_b_norm"),
)
KEYS = (
    *("k_proj", "key", "k_lin", "to_k", "linear_k", "k"),
    *("k_norm", "k_layernorm", "key_layernorm", "k_layer_norm"),
)
#: Queries, keys and values at once.
JOINED = ("c_attn", "qkv", "qkv_proj", "query_key_value", "Wqkv")
#: Size (number of entries) and sum of squares.
Energy = tuple[int, float]


def energy_of(tensor: torch.Tensor) -> Energy:
    """Return the number of entries, and the sum of their squares."""
    return tensor.numel(), float(tensor.detach().float().square().sum())


class Projections:
    """What the projections of each attention module gave out last."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], Energy] = {}

    @contextmanager
    def watching(self, model: torch.nn.Module) -> Iterator[None]:
        """Note what projections of a model give out while the block runs."""
        with ExitStack() as stack:
            for parent in model.modules():
                for name, child in parent.named_children():
                    for kind, names in _KINDS.items():
                        if name in names:
                            note = self._noting((id(parent), kind))
                            stack.callback(child.register_forward_hook(note).remove)
            yield

    def _noting(self, place: tuple[int, str]) -> Callable[..., None]:
        def note(module: torch.nn.Module, inputs: object, output: Any) -> None:  # noqa: ANN401
            del module, inputs
            # measured at once: what follows may change it in place; what is compiled
            # stays as it is
            is_known = isinstance(output, torch.Tensor)
            if is_known and not torch.compiler.is_compiling():
                self._last[place] = energy_of(output)

        return note

    def factor(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> float:
        """Return what queries times keys have been multiplied by since then.

        NaN where the projections are not seen, or gave out something of another size.
        Where keys are not seen, as with those of a cache, only queries count.
        """
        found = {kind: self._last.pop((id(module), kind), (0, 0.0)) for kind in _KINDS}
        sizes = [energy_of(one) for one in (query, key, value)]
        (n_q, of_q), (n_k, of_k), (n_v, of_v) = sizes
        before_q = found["q"]
        if before_q[0] != n_q and found["joined"][0] == n_q + n_k + n_v:
            # values and keys are taken to be as they were
            before_q = n_q, found["joined"][1] - of_k - of_v
        if before_q[0] != n_q or before_q[1] <= 0.0:
            return math.nan
        factor = math.sqrt(of_q / before_q[1])
        if found["k"][0] == n_k and found["k"][1] > 0.0:
            factor *= math.sqrt(of_k / found["k"][1])
        return factor


_KINDS = {"q": QUERIES, "k": KEYS, "joined": JOINED}
