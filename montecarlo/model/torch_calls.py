"""Records calls of attention in torch and transformers, with what they return."""
# ruff: noqa: SLF001 - the type of an operation has private names alone in torch

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.model.arrays import HIDDEN, Arrays, Receiver, to_numpy
from montecarlo.model.expected import Caller

try:
    import torch
    from torch._ops import OpOverload
    from torch.overrides import enable_reentrant_dispatch
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
except ImportError as error:  # an extra
    raise InputError(
        f"capture needs torch: pip install 'montecarlo-attention[torch]' ({error})"
    ) from error

from montecarlo.model.following import (
    SOFTMAX,
    Operation,
    ProvenanceTracker,
    base_name,
)

#: How the name of `scaled_dot_product_attention` begins where it runs as a single
#: operation; each device has another one.
FUSED = "_scaled_dot_product"
#: The name of an attention of torch whose scores functions change and mask.
FLEX = "flex_attention"
#: How names of operations begin that compute attention.
ATTENTION = (FUSED, FUSED.removeprefix("_"), "_native_multi_head_attention", FLEX)
#: How the reason begins where recording an operation failed.
FAILED = "which could not be recorded:"
#: Largest difference between what a function adds to scores and what it adds to twice
#: these scores, where that does not depend on the scores.
SAME = 1e-4
#: Names of modules within an attention module whose outputs are queries, keys, or
#: queries, keys and values joined.  Where a normalisation of heads follows the
#: projection, its output is the last of both.
PROJECTIONS = {
    "q": (
        *("q_proj", "q_b_proj", "query", "q_lin", "to_q", "linear_q", "q", "q_attn"),
        *("q_norm", "q_layernorm", "query_layernorm", "q_layer_norm", "q_b_norm"),
    ),
    "k": (
        *("k_proj", "key", "k_lin", "to_k", "linear_k", "k"),
        *("k_norm", "k_layernorm", "key_layernorm", "k_layer_norm"),
    ),
    "joined": ("c_attn", "qkv", "qkv_proj", "query_key_value", "Wqkv"),
}
#: Arrays that have a row for each query.
OF_ROWS = ("q", "weights", "outputs")


@contextmanager
def recording(
    receiver: Receiver,
    model: object | None = None,
    begin: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Record attention that runs in the block; call ``begin`` before each pass.

    The fused layers of torch, which return no weights, are switched off meanwhile:
    modules then run as they do in training.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    fast_path = torch.backends.mha
    with ExitStack() as stack:
        mode = _Recorder(receiver)
        if model is not None:
            hook = model.register_forward_pre_hook(lambda *_: begin())
            stack.callback(hook.remove)
            stack.enter_context(mode.projections.watching(model))
        if "transformers" in sys.modules:
            stack.enter_context(_wrapped_interface(mode))
        stack.callback(fast_path.set_fastpath_enabled, fast_path.get_fastpath_enabled())
        fast_path.set_fastpath_enabled(False)
        stack.enter_context(mode)
        yield


def uncompiled() -> AbstractContextManager[object]:
    """Return a context in which compiled models run as they are written."""
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        found: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
        return found
    return nullcontext()  # nothing is compiled, or torch is older than 2.6


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Sees every operation of torch that runs in its thread, and records attention.

    What is compiled stays compiled.
    """

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Tell the compiler of torch that this mode changes nothing."""
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Tell the compiler of torch not to stop for this mode."""
        return True

    def __init__(self, receiver: Receiver) -> None:
        super().__init__()
        self.receiver = receiver
        self.projections = Projections()
        self._tracker = ProvenanceTracker(receiver)
        self._handlers: dict[object, Callable[[Operation], None]] = {}

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operation
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        del types
        kwargs = kwargs or {}
        if torch._C._current_autograd_node() is not None:
            return func(*args, **kwargs)  # the backward pass
        name = base_name(func) if isinstance(func, OpOverload) else func.name()
        if kind := _unreadable(*args, *kwargs.values()):
            self._report(name, kind)
            return func(*args, **kwargs)
        handler = self._handlers.get(func)
        if handler is None:
            handler = self._handlers.setdefault(func, self._handler_of(func))
        if handler is _decompose:  # to the operations that run without this mode
            with enable_reentrant_dispatch(), self:
                return func.decompose(*args, **kwargs)
        result = func(*args, **kwargs)
        if kind := _unreadable(result):
            self._report(name, kind)
        elif args:
            try:
                handler(Operation(func, args, kwargs, result))
            except Exception as error:  # noqa: BLE001 - the model must go on
                self._report(name, f"{FAILED} {type(error).__name__}: {error}")
        return result

    def _report(self, name: str, reason: str) -> None:
        """Report attention that cannot be read, and any operation that failed here."""
        is_attention = name.startswith(ATTENTION) or name in SOFTMAX
        if name.endswith("backward"):
            return
        if is_attention or reason.startswith(FAILED):
            told = f"{name} of {reason}".partition("\n")[0]
            self.receiver.miss(told, is_certain=is_attention)

    def _handler_of(self, func: Any) -> Callable[[Operation], None]:  # noqa: ANN401
        """Return the function that records an operation after it ran."""
        if not isinstance(func, OpOverload):
            return self._record_flex if func.name() == FLEX else _ignore
        if func._can_decompose():  # in inference mode these come undivided
            return _decompose
        name = base_name(func)
        if name.startswith(FUSED) and not name.endswith("backward"):
            return self._record_fused
        return self._tracker.handler_of(func)

    def _record_fused(self, operation: Operation) -> None:
        """Record `scaled_dot_product_attention`, with its outputs and its mask."""
        names = [one.name for one in operation.func._schema.arguments]
        given = dict(zip(names, operation.args, strict=False)) | dict(operation.kwargs)
        result = operation.result
        outputs = result if isinstance(result, torch.Tensor) else result[0]
        query, key = given["query"], given["key"]
        if not (room := self.receiver.room()):
            return
        passed_mask = given.get("attn_mask", given.get("attn_bias"))
        is_causal = bool(given.get("is_causal"))
        tensors = {"q": query, "k": key, "v": given["value"], "outputs": outputs}
        arrays = self.to_arrays({name: _with_heads(t) for name, t in tensors.items()})
        n_rows = query.shape[-2], arrays["q"].shape[2]
        shape = (*arrays["q"].shape[:3], key.shape[-2])
        if is_causal:
            row = torch.arange(n_rows[0] - n_rows[1], n_rows[0])[:, None]
            mask = torch.arange(shape[-1]) <= row
        elif passed_mask is None:
            mask = torch.zeros(1, 1)
        else:
            mask = passed_mask
        if mask.ndim > 4 or (mask.ndim == 3 and query.ndim != 3):
            mask = mask.expand(*query.shape[:-1], shape[-1])
        arrays["added"] = _added_by(_with_heads(mask)[:room], shape)
        kind = "causal" if is_causal else _kind_of(passed_mask)
        passed = _options("torch", given.get("scale"), kind, None, n_rows[0])
        self.receiver.add(arrays, passed)

    def _record_flex(self, operation: Operation) -> None:
        """Record flex attention, with its outputs and what its functions add."""
        # it imports modules of the compiler, which take seconds
        from torch._higher_order_ops.flex_attention import _math_attention_inner

        query, key, value, function, blocks, scale, _, *buffers = operation.args
        if not (room := self.receiver.room()):
            return
        tensors = {"q": query, "k": key, "v": value, "outputs": operation.result[0]}
        arrays = self.to_arrays(tensors)
        keys = key[:room].repeat_interleave(query.shape[1] // key.shape[1], 1)
        once, twice = (
            after - before
            for before, after in (
                _math_attention_inner(
                    query[:room], keys, value, function, blocks, factor, {}, *buffers
                )
                for factor in (scale, 2.0 * scale)
            )
        )
        is_hidden = once.isneginf()
        if (once - twice)[~is_hidden].abs().max() > SAME:  # not a sum, as with a cap
            once = torch.zeros_like(once)
        added = once.masked_fill(is_hidden, HIDDEN)
        shape = (*arrays["q"].shape[:3], key.shape[2])
        arrays["added"] = _added_by(added, shape)
        passed = _options(FLEX, scale, "of booleans", None, query.shape[2])
        self.receiver.add(arrays, passed)

    def to_arrays(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
        """Return the rows and sequences that are kept of tensors, as arrays.

        Their axes are (sequence, head, token, ...).
        """
        room, arrays = self.receiver.room(), {}
        for name, tensor in tensors.items():
            kept = tensor[:room]
            if name in OF_ROWS and self.receiver.rows is not None:
                kept = kept[:, :, -self.receiver.rows :]
            arrays[name] = to_numpy(kept)
        return arrays


def _unreadable(*values: object) -> str:
    """Return the kind of the first tensor whose entries cannot be read; else empty."""
    for one in values:
        if isinstance(one, list | tuple):
            if kind := _unreadable(*one):
                return kind
        elif isinstance(one, torch.Tensor):
            if type(one).__torch_dispatch__ != torch.Tensor.__torch_dispatch__:
                return f"a {type(one).__name__}"
            if torch._C._functorch.is_functorch_wrapped_tensor(one):
                return "a tensor within torch.func"
            if one.is_meta:
                return "a meta tensor"
            if one.is_nested:
                return "a nested tensor"
    return ""


def _sum_of_squares(tensor: torch.Tensor) -> float:
    """Return the sum of the squares of all entries, in float32."""
    with _disable_current_modes():  # the tracker need not see this
        return float(tensor.detach().float().square().sum())


class Projections:
    """Measures what multiplies queries and keys between projections and attention.

    A factor there is part neither of what is captured nor of the scale of attention;
    with it a model may scale twice, or not at all.  Rotary embeddings keep norms, so
    the factor is the norm of all queries, over that of the outputs of their projection.
    """

    def __init__(self) -> None:
        #: Of the last output: number of entries, and sum of their squares.
        self._last: dict[tuple[int, str], tuple[int, float]] = {}

    @contextmanager
    def watching(self, model: torch.nn.Module) -> Iterator[None]:
        """Measure outputs of a model's projections in the block."""
        kinds = {name: kind for kind, names in PROJECTIONS.items() for name in names}
        with ExitStack() as stack:
            for parent in model.modules():
                for name, child in parent.named_children():
                    if name in kinds:
                        measure = partial(self._measure, (id(parent), kinds[name]))
                        hook = child.register_forward_hook(measure)
                        stack.callback(hook.remove)
            yield

    def _measure(self, place: tuple[int, str], *called: object) -> None:
        """Measure an output at once, since it may be changed in place later."""
        if torch.compiler.is_compiling():
            return
        self._last.pop(place, None)
        output = called[-1]
        if isinstance(output, torch.Tensor) and not _unreadable(output):
            self._last[place] = output.numel(), _sum_of_squares(output)

    def factor(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> float:
        """Return the factor of products of queries and keys.

        NaN where outputs of projections are not known, or differ in size.  Where those
        of keys are not known, as with a cache, it is the factor of queries alone.
        """
        found = [
            self._last.pop((id(module), kind), (0, 0.0))
            for kind in ("q", "k", "joined")
        ]
        if not any(n for n, _ in found):
            return math.nan
        (n_q, before_q), (n_k, before_k), (n_all, before_all) = found
        sizes = [one.numel() for one in (query, key, value)]
        of_q, of_k, of_v = map(_sum_of_squares, (query, key, value))
        if n_q != sizes[0] and n_all == sum(sizes):
            # values and keys are taken to be as they were
            n_q, before_q = sizes[0], before_all - of_k - of_v
        if n_q != sizes[0] or before_q <= 0.0:
            return math.nan
        factor = of_q / before_q
        if n_k == sizes[1] and before_k > 0.0:
            factor *= of_k / before_k
        return math.sqrt(factor)


def _ignore(_: Operation) -> None:
    """Record nothing."""


def _decompose(_: Operation) -> None:
    """Mark operations that consist of others, which are seen in their place."""


def _added_by(mask: torch.Tensor, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return what a mask adds to scores, `HIDDEN` where it hides a key.

    It has the shape (sequence, head, row, key), by broadcasting; a mask of booleans is
    true where a key is seen.
    """
    mask = mask[:, :, -shape[2] :]
    if mask.dtype == torch.bool:
        added = torch.zeros(mask.shape).masked_fill_(~mask.cpu(), HIDDEN)
    else:
        added = mask.float().clamp(min=HIDDEN)
    return np.broadcast_to(to_numpy(added), shape)


def _with_heads(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with four axes, the first two those of sequences and heads."""
    if tensor.ndim < 4:
        return tensor[(None,) * (4 - tensor.ndim)].transpose(0, 1)
    return tensor.flatten(0, tensor.ndim - 4)


def config_of(module: object) -> Mapping[str, object] | None:
    """Return the configuration of a model of transformers; None of others."""
    config: Any = getattr(module, "config", None)
    has_one = hasattr(config, "to_dict") and hasattr(config, "model_type")
    return dict(config.to_dict()) if has_one else None


def _kind_of(mask: object) -> str:
    """Return the kind of a mask, as `Captured.passed` has it."""
    if mask is None:
        return "none"
    if not isinstance(mask, torch.Tensor):
        return "of blocks"
    return "of booleans" if mask.dtype == torch.bool else "added"


def _options(
    source: str, scale: object, mask: str, cap: object, queries: int
) -> dict[str, Any]:
    """Return the options of a call, as `Captured.passed` has them."""
    names = ("source", "scale", "mask", "cap", "queries")
    return dict(zip(names, (source, scale, mask, cap, queries), strict=True))


#: Modes that record now, each with its thread; what they wrap.
_MODES: list[tuple[int, _Recorder]] = []
_WRAPPED: list[Callable[..., Any]] = []
_WRAPPING = threading.Lock()


@contextmanager
def _wrapped_interface(mode: _Recorder) -> Iterator[None]:
    """Wrap the attention functions that transformers hands to its models."""
    try:
        from transformers.modeling_utils import AttentionInterface
    except ImportError:
        yield  # before version 4.48
        return
    with _WRAPPING:
        if not _MODES:
            _WRAPPED[:] = [AttentionInterface.get_interface]
            AttentionInterface.get_interface = _get_interface
        entry = threading.get_ident(), mode
        _MODES.append(entry)
    try:
        yield
    finally:
        with _WRAPPING:
            _MODES.remove(entry)
            if not _MODES:
                AttentionInterface.get_interface = _WRAPPED[0]


def _get_interface(*args: Any, **kwargs: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return an attention function that records for the modes of this thread."""
    attend: Callable[..., Any] = _WRAPPED[0](*args, **kwargs)
    for thread, mode in _MODES:
        if thread == threading.get_ident():
            attend = _record_calls(attend, mode)
    return attend


def _record_calls(attend: Callable[..., Any], mode: _Recorder) -> Callable[..., Any]:
    """Return an attention function of transformers that records its calls."""

    def recorded(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        *more: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        receiver = mode.receiver
        outside, receiver.within = receiver.within, []
        try:
            result = attend(module, query, key, value, attention_mask, *more, **kwargs)
        finally:
            within, receiver.within = receiver.within or [], outside
        if torch._C._current_autograd_node() is not None or not receiver.room():
            return result
        name = f"attention of {type(module).__name__}"
        try:
            if kind := _unreadable(query, key, value):
                receiver.miss(f"{name}, of {kind}", is_certain=True)
                return result
            given = kwargs | {"mask": attention_mask}
            _record_call(mode, module, (query, key, value), result, (within, given))
        except Exception as error:  # noqa: BLE001 - the model must go on
            reason = str(error).partition("\n")[0]
            told = f"{name}: {type(error).__name__}: {reason}"
            receiver.miss(told, is_certain=True)
        return result

    return recorded


def _record_call(
    mode: _Recorder,
    module: torch.nn.Module,
    tensors: Sequence[torch.Tensor],
    result: Any,  # noqa: ANN401
    more: tuple[Sequence[tuple[Arrays, Mapping[str, object]]], Mapping[str, Any]],
) -> None:
    """Record a call of an attention function of transformers.

    ``tensors`` are queries, keys and values, ``result`` outputs and weights; ``more``
    are the calls that were recorded within it, and its options.
    """
    within, given = more
    receiver, (query, key, value), mask = mode.receiver, tensors, given["mask"]
    outputs, weights = result[0], result[1]
    caller = Caller(
        type(module).__name__,
        config_of(module) or receiver.config,
        getattr(module, "layer_idx", None),
        mode.projections.factor(module, query, key, value),
    )
    inner, inner_passed = within[0] if len(within) == 1 else ({}, {})
    cap = inner_passed.get("cap", given.get("softcap"))
    scale, n_queries = given.get("scaling"), query.shape[2]
    passed = _options("transformers", scale, _kind_of(mask), cap, n_queries)
    passed["caller"] = caller
    if "added" in inner:  # some keys of a static cache are not used yet
        n_keys = np.shape(inner["added"])[-1]
        key, value = key[:, :, :n_keys], value[:, :, :n_keys]
    arrays = mode.to_arrays({"q": query, "k": key})
    if "weights" in inner:  # those before dropout
        arrays["weights"] = np.asarray(inner["weights"])
    elif weights is not None:
        arrays |= mode.to_arrays({"weights": weights[..., : key.shape[2]]})
    else:
        arrays |= mode.to_arrays({"v": value, "outputs": outputs.transpose(1, 2)})
        if "added" in inner:  # heads that share keys may have come as rows
            shape = (*arrays["q"].shape[:3], key.shape[2])
            arrays["added"] = np.reshape(np.asarray(inner["added"]), shape)
    if isinstance(mask, torch.Tensor) and mask.ndim == 4:
        mask = mask[: receiver.room(), :, -arrays["q"].shape[2] :]
        passed["hidden"] = to_numpy(mask[..., : key.shape[2]])
    receiver.add(arrays, passed)
