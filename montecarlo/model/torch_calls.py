"""Recording from torch and transformers: each call, and what it gives back."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from torch.overrides import TorchFunctionMode
except ImportError as error:  # an extra
    raise InputError(
        f"capture needs torch: pip install 'montecarlo-attention[torch]' ({error})"
    ) from error


class Kept(Protocol):
    """What calls are kept in: `montecarlo.model.captured.Captured`."""

    rows: int | None

    def begin(self) -> None:
        """Begin another pass of the model."""

    def room(self) -> int:
        """Return how many sequences there is room for."""

    def add(self, arrays: dict[str, NDArray[Any]], passed: dict[str, object]) -> None:
        """Keep a call."""


@contextmanager
def recording(captured: Kept, model: object | None) -> Iterator[None]:
    """Record what runs inside."""
    if model is not None and not isinstance(model, torch.nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    with ExitStack() as stack:
        if model is not None:
            hook = model.register_forward_pre_hook(lambda *_: captured.begin())
            stack.callback(hook.remove)
        mode = _Recorder(captured)
        if "transformers" in sys.modules:
            stack.enter_context(_wrapped_interface(mode))
        stack.enter_context(mode)
        yield


def uncompiled() -> AbstractContextManager[object]:
    """Return a context in which compiled models run as they are written."""
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        found: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
        return found
    return nullcontext()  # nothing is compiled, or torch is older than 2.6


class _Recorder(TorchFunctionMode):  # type: ignore[misc]
    """Sees every function of torch that is called, and records the one."""

    def __init__(self, captured: Kept) -> None:
        super().__init__()
        self.captured = captured
        self.is_inside = False  # of a call that is recorded as a whole

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function gives back
        del types
        result = func(*args, **(kwargs or {}))
        if func is scaled_dot_product_attention and not self.is_inside:
            self._record(result, *args, **(kwargs or {}))
        return result

    def _record(  # noqa: PLR0913, PLR0917 - the function's own arguments
        self,
        result: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,  # noqa: FBT001, FBT002
        scale: float | None = None,
        enable_gqa: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        del dropout_p, enable_gqa
        added = attn_mask if attn_mask is None else _with_heads(attn_mask)
        mask = "causal" if is_causal else _kind_of(attn_mask)
        passed: dict[str, object] = {
            "source": "torch",
            "scale": scale,
            "mask": mask,
            "cap": None,
            "added": _causal(query, key) if is_causal else added,
            "queries": query.shape[-2],
        }
        tensors = {"q": query, "k": key, "v": value, "outputs": result}
        self.keep({name: _with_heads(t) for name, t in tensors.items()}, passed)

    def keep(self, tensors: dict[str, torch.Tensor], passed: dict[str, object]) -> None:
        """Keep some rows and sequences of tensors (sequence, head, token, ...)."""
        room, rows = self.captured.room(), self.captured.rows
        if not room:
            return
        arrays = {}
        for name, tensor in tensors.items():
            kept = tensor[:room]
            if name in {"q", "weights", "outputs"} and rows is not None:
                kept = kept[:, :, -rows:]
            arrays[name] = _to_numpy(kept)
        added = passed.get("added")
        if isinstance(added, torch.Tensor):
            kept = added[:room] if rows is None else added[:room, :, -rows:]
            passed["added"] = _to_numpy(kept)
        self.captured.add(arrays, passed)


def _with_heads(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with axes of sequences and heads, however many it has."""
    if tensor.ndim < 4:
        return tensor[(None,) * (4 - tensor.ndim)].transpose(0, 1)
    return tensor.flatten(0, tensor.ndim - 4)


def _kind_of(mask: torch.Tensor | None) -> str:
    """Say what kind of mask was passed."""
    if mask is None:
        return "none"
    return "of booleans" if mask.dtype == torch.bool else "added"


def _causal(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Return which keys each query sees: as many as stand up to its own number."""
    queries, keys = (torch.arange(x.shape[-2], device=x.device) for x in (query, key))
    return (queries[:, None] >= keys)[None, None]


def _added_by_transformers(
    module: torch.nn.Module,
    tensors: dict[str, torch.Tensor],
    mask: torch.Tensor | None,
    passed: dict[str, Any],
) -> torch.Tensor | None:
    """Return what is added to scores, or which keys are seen, with four axes."""
    query, key, bias = tensors["q"], tensors["k"], passed.get("position_bias")
    if mask is not None and mask.ndim == 2:
        mask = mask[:, None, None].bool()  # of padding alone
    is_causal = passed.get("is_causal")
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    if (mask is None or mask.shape[-2] == 1) and "weights" not in tensors and is_causal:
        mask = _causal(query, key) if mask is None else _causal(query, key) & mask
    if not isinstance(bias, torch.Tensor):
        return mask
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return bias.masked_fill(~mask, -torch.inf)
    return bias + mask


def _to_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a copy in memory; bfloat16, which NumPy lacks, as float32."""
    held = tensor.detach()
    if held.dtype == torch.bfloat16:
        held = held.float()
    found: NDArray[Any] = np.array(held.cpu().numpy())
    return found


@contextmanager
def _wrapped_interface(mode: _Recorder) -> Iterator[None]:
    """Wrap the attention functions that transformers hands out to its models."""
    try:
        from transformers.modeling_utils import AttentionInterface
    except ImportError:
        yield  # before version 4.48
        return
    handed_out = AttentionInterface.get_interface

    def get_interface(
        interface: Any,  # noqa: ANN401
        attn_implementation: str,
        default: Callable[..., Any],
    ) -> Callable[..., Any]:
        return _record_calls(handed_out(interface, attn_implementation, default), mode)

    AttentionInterface.get_interface = get_interface
    try:
        yield
    finally:
        AttentionInterface.get_interface = handed_out


def _record_calls(attend: Callable[..., Any], mode: _Recorder) -> Callable[..., Any]:
    """Return an attention function that records what it is called with."""

    def recorded(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        *more: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        outside, mode.is_inside = mode.is_inside, True
        try:
            made = attend(module, query, key, value, attention_mask, *more, **kwargs)
        finally:
            mode.is_inside = outside
        outputs, weights = made[0], made[1]
        passed = {
            "source": "transformers",
            "scale": kwargs.get("scaling"),
            "mask": _kind_of(attention_mask),
            "cap": kwargs.get("softcap"),
        }
        tensors = {"q": query, "k": key}
        if weights is None:
            tensors |= {"v": value, "outputs": outputs.transpose(1, 2)}
        else:
            tensors["weights"] = weights[..., : key.shape[2]]
        added = _added_by_transformers(module, tensors, attention_mask, kwargs)
        passed |= {"added": added, "queries": query.shape[2]}
        mode.keep(tensors, passed)
        return made

    return recorded
