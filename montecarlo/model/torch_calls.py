"""Recording from torch and transformers: each call, and what it gives back."""
# ruff: noqa: SLF001 - what operations are, torch says in private names alone

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
from montecarlo.model.arrays import HIDDEN, Arrays, Sink, to_numpy
from montecarlo.model.expected import Caller

try:
    import torch
    from torch._ops import OpOverload
    from torch.nn import functional
    from torch.overrides import enable_reentrant_dispatch
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
except ImportError as error:  # an extra
    raise InputError(
        f"capture needs torch: pip install 'montecarlo-attention[torch]' ({error})"
    ) from error

from montecarlo.model.following import (
    SOFTMAX,
    Follower,
    Operation,
    base_name,
)

#: Torch's own attention as a single operation; on each device it is another.
FUSED = "_scaled_dot_product"
#: Whole layers, as evaluation without gradients runs them.
FAST_ATTENTION = "_native_multi_head_attention"
FAST_LAYER = "_transformer_encoder_layer_fwd"
FAST = (FAST_ATTENTION, FAST_LAYER)
#: An attention of torch whose scores are changed and masked by functions.
FLEX = "flex_attention"
#: What names of operations that are attention begin with.
ATTENTION = (FUSED, FUSED.removeprefix("_"), *FAST, FLEX)
#: What torch makes of Python's numbers.
_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}
#: How the reason begins for what recording did not expect.
UNEXPECTED = "what ends in"
#: How far what a function makes of three scores may be off them, less one number.
SAME = 1e-4
#: What modules within an attention module are called, of queries, keys and all at once:
#: a normalisation of heads is the last of those that it has.
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
#: What is of queries, a row of each.
OF_ROWS = ("q", "weights", "outputs")


class Hook:
    """A hook of a module.  Copies of the module, and what is saved, hold none of it."""

    def __init__(self, call: Callable[..., None] | None = None) -> None:
        self._call = call

    def __call__(self, *called: object) -> None:
        """Hand on what a module was called with, unless this is a copy."""
        if self._call is not None:
            self._call(*called)

    def __reduce__(self) -> tuple[type["Hook"], tuple[()]]:
        """Leave out what is called."""
        return Hook, ()


@contextmanager
def recording(
    sink: Sink, model: object | None = None, begin: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Record what runs inside; ``begin`` is called before each pass of the model."""
    if model is not None and not isinstance(model, torch.nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    with ExitStack() as stack:
        mode = _Recorder(sink)
        if model is not None:
            hook = model.register_forward_pre_hook(Hook(lambda *_: begin()))
            stack.callback(hook.remove)
            stack.enter_context(mode.projections.watching(model))
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


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Sees every operation of torch that runs, and records attention.

    Operations, not functions: a mode for functions keeps
    ``torch.nn.MultiheadAttention`` from its fast path, and so changes what is computed.
    What is compiled stays compiled.
    """

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Tell the compiler of torch that this one changes nothing."""
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Tell the compiler of torch not to stop for this one."""
        return True

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink = sink
        self.follower = Follower(self.sink)
        self._ways: dict[object, Callable[[Operation], None]] = {}
        self.projections = Projections()

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - an operation
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation gives back
        del types
        args, kwargs = _with_tensor(func, args), kwargs or {}
        if torch._C._current_autograd_node() is not None:
            return func(*args, **kwargs)  # the way back
        name = _name_of(func)
        hidden = _why_hidden(*args, *kwargs.values(), is_fast=name in FAST)
        if hidden:
            self._pass_by(name, hidden)
            return func(*args, **kwargs)
        way = self._ways.get(func)
        if way is None:
            way = self._ways.setdefault(func, self._way_to_record(func))
        if way is _in_parts:  # as they are where this mode is not
            with enable_reentrant_dispatch(), self:
                return func.decompose(*args, **kwargs)
        result = func(*args, **kwargs)
        if hidden := _why_hidden(result, is_fast=name in FAST):
            self._pass_by(name, hidden)
        elif args:
            try:
                way(Operation(func, args, kwargs, result))
            except Exception as error:  # noqa: BLE001 - whatever is not understood
                self._pass_by(name, f"{UNEXPECTED} {type(error).__name__}: {error}")
        return result

    def _pass_by(self, name: str, reason: str) -> None:
        """Note attention whose tensors cannot be read, and what was not understood."""
        is_attention = name.startswith(ATTENTION) or name in SOFTMAX
        if name.endswith("backward"):
            return
        if is_attention or reason.startswith(UNEXPECTED):
            told = f"{name} of {reason}".partition("\n")[0]
            self.sink.miss(told, is_certain=is_attention)

    def _way_to_record(self, func: Any) -> Callable[[Operation], None]:  # noqa: ANN401
        """Return what records an operation."""
        if not isinstance(func, OpOverload):
            return self._record_flex if func.name() == FLEX else _nothing
        name = base_name(func)
        if func._can_decompose():  # in inference mode these come undivided
            return _in_parts
        if name.startswith(FUSED) and not name.endswith("backward"):
            return self._record_fused
        if name in FAST:
            return self._record_fast
        return self.follower.way_to_note(func)

    def _record_fused(self, done: Operation) -> None:
        """Record torch's own attention: its outputs, and the mask that was passed."""
        given, result = _by_name(done), done.result
        outputs = result if isinstance(result, torch.Tensor) else result[0]
        query, key = given["query"], given["key"]
        if query.is_nested or not (room := self.sink.room()):
            return
        passed_mask = given.get("attn_mask", given.get("attn_bias"))
        is_causal = bool(given.get("is_causal"))
        tensors = {"q": query, "k": key, "v": given["value"], "outputs": outputs}
        arrays = self.some({name: _with_heads(t) for name, t in tensors.items()})
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
        arrays["added"] = _read_mask(_with_heads(mask)[:room], shape)
        passed = {
            "source": "torch",
            "scale": given.get("scale"),
            "mask": "causal" if is_causal else _kind_of(passed_mask),
            "cap": None,
            "queries": n_rows[0],
        }
        self.sink.add(arrays, passed)

    def _record_flex(self, done: Operation) -> None:
        """Record flex attention: its outputs, and what its mask hides."""
        query, key, value, score, blocks, scale, *more = done.args
        if not self.sink.room():
            return
        tensors = {"q": query, "k": key, "v": value, "outputs": done.result[0]}
        arrays = self.some(tensors)
        n_sequences, n_heads, n_rows = arrays["q"].shape[:3]
        first = query.shape[2] - n_rows
        ends = (0, n_sequences), (0, n_heads), (first, first + n_rows)
        places = [
            torch.arange(*one, device=query.device)
            for one in (*ends, (0, key.shape[2]))
        ]
        of_scores, of_mask = more[1:3] if len(more) > 2 else ((), ())
        seen = _at_places(blocks[-1], (), places, of_mask)
        mask = torch.zeros(seen.shape).masked_fill_(~seen.cpu(), HIDDEN)
        # what adds something to a score, whatever the score
        tried = [torch.tensor(one, device=query.device) for one in (0.0, 1.0, -2.0)]
        made = [_at_places(score, (one,), places, of_scores).cpu() for one in tried]
        changes = [one - made[0] for one in made]
        if all(
            (change - one.cpu()).abs().max() < SAME
            for change, one in zip(changes, tried, strict=True)
        ):
            mask += made[0]
        arrays["added"] = _read_mask(mask, tuple(mask.shape))
        passed = {"source": FLEX, "scale": scale, "mask": "of booleans", "cap": None}
        self.sink.add(arrays, {**passed, "queries": query.shape[2]})

    def _record_fast(self, done: Operation) -> None:
        """Record a whole layer that ran as one operation, and gave back no weights.

        Its attention is computed once more as torch does elsewhere, and seen there, for
        the sequences that are kept.
        """
        if not (room := self.sink.room()):
            return
        given = _by_name(done)
        names = ("src",) * 3 if done.name == FAST_LAYER else ("query", "key", "value")
        inputs = [given[name] for name in names]
        mask, kind, hidden = given.get("mask"), given.get("mask_type"), None
        if inputs[0].is_nested:  # of sequences that differ in length
            ends = torch.tensor([[len(one)] for one in inputs[1].unbind()])
            inputs = [torch.nested.to_padded_tensor(one, 0.0) for one in inputs]
            hidden = (torch.arange(inputs[1].shape[1]) >= ends)[:room].to(ends.device)
        elif mask is not None:
            mask = mask.bool() if kind == 0 else mask[:room].bool()
            if kind == 1:
                mask, hidden = None, mask
            elif kind == 2:
                mask = mask.flatten(0, 1)
        inputs = [one[:room].transpose(0, 1) for one in inputs]
        if given.get("norm_first"):
            norm = given["norm_weight_1"], given["norm_bias_1"], given["eps"]
            inputs = [functional.layer_norm(inputs[0], inputs[0].shape[-1:], *norm)] * 3
        with self:
            functional.multi_head_attention_forward(
                *inputs,
                given["embed_dim"],
                given.get("num_heads", given.get("num_head")),
                given["qkv_weight"],
                given["qkv_bias"],
                bias_k=None,
                bias_v=None,
                add_zero_attn=False,
                dropout_p=0.0,
                out_proj_weight=given["proj_weight"],
                out_proj_bias=given["proj_bias"],
                training=False,
                key_padding_mask=hidden,
                attn_mask=mask,
            )

    def some(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
        """Return some rows and sequences of tensors (sequence, head, token, ...)."""
        room, arrays = self.sink.room(), {}
        for name, tensor in tensors.items():
            kept = tensor[:room]
            if name in OF_ROWS and self.sink.rows is not None:
                kept = kept[:, :, -self.sink.rows :]
            arrays[name] = to_numpy(kept)
        return arrays


def _name_of(func: Any) -> str:  # noqa: ANN401 - an operation
    """Return the name of an operation of any kind."""
    return base_name(func) if isinstance(func, OpOverload) else func.name()


def _with_tensor(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: ANN401
    """Return arguments, the first a tensor where torch handed on the number in it."""
    if not (args and type(args[0]) in _DTYPES and isinstance(func, OpOverload)):
        return args
    if str(func._schema.arguments[0].type) != "Tensor":
        return args
    return torch.tensor(args[0], dtype=_DTYPES[type(args[0])]), *args[1:]


def _why_hidden(*values: object, is_fast: bool = False) -> str:
    """Return what a tensor is whose entries cannot be read; empty without one.

    ``is_fast``: whether nested tensors are taken apart by whoever asks.
    """
    for one in values:
        if isinstance(one, list | tuple):
            if hidden := _why_hidden(*one, is_fast=is_fast):
                return hidden
        elif isinstance(one, torch.Tensor):
            if type(one).__torch_dispatch__ != torch.Tensor.__torch_dispatch__:
                return f"a {type(one).__name__}"
            if torch._C._functorch.is_functorch_wrapped_tensor(one):
                return "a tensor within torch.func"
            if one.is_meta:
                return "a meta tensor"
            if one.is_nested and not is_fast:
                return "a nested tensor"
    return ""


def _energy_of(tensor: torch.Tensor) -> tuple[int, float]:
    """Return the number of entries, and the sum of their squares."""
    with _disable_current_modes():  # what follows attention need not see this
        return tensor.numel(), float(tensor.detach().float().square().sum())


def _squares_of(tensor: torch.Tensor, axes: int | tuple[int, ...]) -> torch.Tensor:
    """Return the sum of squares of entries along some axes."""
    with _disable_current_modes():
        return tensor.detach().float().square().sum(axes)


class Projections:
    """What a model does to queries and keys between their projections and attention.

    A factor that is applied there is seen neither in what is captured nor in the scale
    that attention itself applies, and makes a model divide twice, or not at all.
    Rotations keep lengths, so the length of all queries over that of what their
    projection gave out last is the factor.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], tuple[int, float]] = {}
        self._queries: dict[int, torch.Tensor] = {}  # squares of lengths of rows

    @contextmanager
    def watching(self, model: torch.nn.Module) -> Iterator[None]:
        """Note what projections of a model give out while the block runs."""
        with ExitStack() as stack:
            for parent in model.modules():
                for name, child in parent.named_children():
                    for kind, names in PROJECTIONS.items():
                        if name in names:
                            note = partial(self._note, (id(parent), kind))
                            hook = child.register_forward_hook(Hook(note))
                            stack.callback(hook.remove)
            yield

    def _note(self, place: tuple[int, str], *called: object) -> None:
        """Measure an output at once: what follows may change it in place.

        What is compiled stays as it is.
        """
        if torch.compiler.is_compiling():
            return
        self._last.pop(place, None)
        output = called[-1]
        if isinstance(output, torch.Tensor) and not _why_hidden(output):
            self._last[place] = _energy_of(output)
            if place[1] == "q" and output.ndim == 3:
                self._queries[place[0]] = _squares_of(output, -1)

    def by_position(
        self, module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor
    ) -> tuple[float, ...]:
        """Return what lengths of queries have been multiplied by, from the first on.

        Empty where the projection is not seen, or queries are the last of many.
        """
        before = self._queries.pop(id(module), None)
        now = _squares_of(query, (1, 3))
        if (
            before is None
            or before.shape != now.shape
            or query.shape[2] != key.shape[2]
        ):
            return ()
        return tuple((now.sum(0) / before.sum(0)).sqrt().tolist())

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
        found = [
            self._last.pop((id(module), kind), (0, 0.0))
            for kind in ("q", "k", "joined")
        ]
        if not any(n for n, _ in found):
            return math.nan
        (n_q, before_q), (n_k, before_k), (n_all, before_all) = found
        now = [_energy_of(one) for one in (query, key, value)]
        sizes, (of_q, of_k, of_v) = zip(*now, strict=True)
        if n_q != sizes[0] and n_all == sum(sizes):
            # values and keys are taken to be as they were
            n_q, before_q = sizes[0], before_all - of_k - of_v
        if n_q != sizes[0] or before_q <= 0.0:
            return math.nan
        factor = of_q / before_q
        if n_k == sizes[1] and before_k > 0.0:
            factor *= of_k / before_k
        return math.sqrt(factor)


def _nothing(*_: object) -> None:
    """Record nothing."""


def _in_parts(*_: object) -> None:
    """Stand for operations that consist of others."""


def _by_name(done: Operation) -> dict[str, Any]:
    """Return arguments of an operation by their names."""
    names = [one.name for one in done.func._schema.arguments]
    return dict(zip(names, done.args, strict=False)) | dict(done.kwargs)


def _at_places(
    function: Callable[..., torch.Tensor],
    first: Sequence[torch.Tensor],
    places: Sequence[torch.Tensor],
    buffers: Sequence[torch.Tensor],
) -> torch.Tensor:
    """Return a function of sequence, head, query and key at all of some of these.

    It may index tensors by them, as torch lets functions of flex attention.
    """
    # flex attention has imported it: it takes seconds
    wrapped = sys.modules["torch._dynamo._trace_wrapped_higher_order_op"]
    for axis in (3, 2, 1, 0):
        along = [None] * (len(first) + 4 + len(buffers))
        along[len(first) + axis] = 0  # type: ignore[call-overload]
        function = torch.vmap(function, tuple(along))
    with wrapped.TransformGetItemToIndex():
        return function(*first, *places, *buffers)


def _read_mask(mask: torch.Tensor, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return what a mask adds to scores, shape (sequence, head, row, key).

    What sequences and heads have in common is there once.
    """
    n_rows = shape[2]
    mask = mask[:, :, -n_rows:]
    if mask.dtype == torch.bool:
        added = torch.zeros(mask.shape).masked_fill_(~mask.cpu(), HIDDEN)
    else:
        added = mask.float().clamp(min=HIDDEN)
    return np.broadcast_to(to_numpy(added), shape)


def _with_heads(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with axes of sequences and heads, however many it has."""
    if tensor.ndim < 4:
        return tensor[(None,) * (4 - tensor.ndim)].transpose(0, 1)
    return tensor.flatten(0, tensor.ndim - 4)


def config_of(module: object) -> Mapping[str, object] | None:
    """Return the configuration that a module of transformers was made from."""
    config: Any = getattr(module, "config", None)
    has_one = hasattr(config, "to_dict") and hasattr(config, "model_type")
    return dict(config.to_dict()) if has_one else None


def _kind_of(mask: object) -> str:
    """Say what kind of mask was passed."""
    if mask is None:
        return "none"
    if not isinstance(mask, torch.Tensor):
        return "of blocks"
    return "of booleans" if mask.dtype == torch.bool else "added"


#: Modes that record now, each with its thread, and what ends the wrapping for all.
_MODES: list[tuple[int, "_Recorder"]] = []
_RESTORE: list[Callable[[], None]] = []
_WRAPPING = threading.Lock()


@contextmanager
def _wrapped_interface(mode: _Recorder) -> Iterator[None]:
    """Wrap the attention functions that transformers hands out to its models."""
    try:
        from transformers.modeling_utils import AttentionInterface
    except ImportError:
        yield  # before version 4.48
        return
    with _WRAPPING:
        if not _MODES:
            handed_out = AttentionInterface.get_interface

            def get_interface(
                interface: Any,  # noqa: ANN401
                attn_implementation: str,
                default: Callable[..., Any],
            ) -> Callable[..., Any]:
                attend: Callable[..., Any] = handed_out(
                    interface, attn_implementation, default
                )
                for thread, one in _MODES:
                    if thread == threading.get_ident():
                        attend = _record_calls(attend, one)
                return attend

            AttentionInterface.get_interface = get_interface
            _RESTORE.append(
                partial(setattr, AttentionInterface, "get_interface", handed_out)
            )
        entry = threading.get_ident(), mode
        _MODES.append(entry)
    try:
        yield
    finally:
        with _WRAPPING:
            _MODES.remove(entry)
            if not _MODES:
                _RESTORE.pop()()


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
        sink = mode.sink
        outside, sink.within = sink.within, []
        try:
            made = attend(module, query, key, value, attention_mask, *more, **kwargs)
        finally:
            within, sink.within = sink.within or [], outside
        if torch._C._current_autograd_node() is not None or not sink.room():
            return made
        name = f"attention of {type(module).__name__}"
        try:
            if hidden := _why_hidden(query, key, value):
                sink.miss(f"{name}, of {hidden}", is_certain=True)
                return made
            given = kwargs | {"mask": attention_mask}
            _record_call(mode, module, (query, key, value), made, (within, given))
        except Exception as error:  # noqa: BLE001 - whatever is not understood
            reason = str(error).partition("\n")[0]
            sink.miss(f"{name}: {type(error).__name__}: {reason}", is_certain=True)
        return made

    return recorded


def _record_call(
    mode: _Recorder,
    module: torch.nn.Module,
    tensors: Sequence[torch.Tensor],
    made: Any,  # noqa: ANN401
    more: tuple[Sequence[tuple[Arrays, Mapping[str, object]]], Mapping[str, Any]],
) -> None:
    """Record a call of an attention function: its tensors, and what it made of them.

    ``more``: what was recorded within it, and its options.
    """
    within, given = more
    sink, (query, key, value), mask = mode.sink, tensors, given["mask"]
    outputs, weights = made[0], made[1]
    passed = {
        "source": "transformers",
        "scale": given.get("scaling"),
        "mask": _kind_of(mask),
        "cap": given.get("softcap"),
        "caller": Caller(
            type(module).__name__,
            config_of(module) or sink.config,
            getattr(module, "layer_idx", None),
            mode.projections.factor(module, query, key, value),
            by_position=mode.projections.by_position(module, query, key),
        ),
    }
    inner: Arrays = {}
    if len(within) == 1:
        inner, ran = within[0]
        passed["cap"] = ran["cap"]
    if "added" in inner:  # of a cache that is not full some keys are not used
        n_keys = np.shape(inner["added"])[-1]
        key, value = key[:, :, :n_keys], value[:, :, :n_keys]
    arrays = mode.some({"q": query, "k": key})
    if "weights" in inner:  # as they were before dropout
        arrays["weights"] = np.asarray(inner["weights"])
    elif weights is not None:
        arrays |= mode.some({"weights": weights[..., : key.shape[2]]})
    else:
        arrays |= mode.some({"v": value, "outputs": outputs.transpose(1, 2)})
        if "added" in inner:  # heads that share keys may have come as rows
            shape = (*arrays["q"].shape[:3], key.shape[2])
            arrays["added"] = np.reshape(np.asarray(inner["added"]), shape)
    passed["queries"] = query.shape[2]
    if isinstance(mask, torch.Tensor) and mask.ndim == 4:
        mask = mask[: sink.room(), :, -arrays["q"].shape[2] :]
        passed["hidden"] = to_numpy(mask[..., : key.shape[2]])
    sink.add(arrays, passed)
