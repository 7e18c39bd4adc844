"""Records calls of attention in torch and transformers, with what they return."""
# ruff: noqa: SLF001 - the type of an operation has private names alone in torch

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.errors import InputError
from montecarlo.model.arrays import HIDDEN, OF_QUERIES, Arrays, Receiver, to_numpy
from montecarlo.model.expected import Caller

try:
    import torch
    from torch._ops import OpOverload
    from torch.overrides import enable_reentrant_dispatch
    from torch.utils._python_dispatch import (
        TorchDispatchMode,
        _get_current_dispatch_mode_stack,
    )
except ImportError as error:  # an extra
    raise InputError(
        f"capture needs torch: in a checkout, pip install -e '.[torch]' ({error})"
    ) from error

from montecarlo.model.following import SOFTMAX, Operation, ProvenanceTracker, base_name

#: How the name of `scaled_dot_product_attention` begins where it runs as a single
#: operation; each device has another one.
FUSED = "_scaled_dot_product"
#: The name of an attention of torch whose scores functions change and mask.
FLEX = "flex_attention"
#: How names of operations begin that compute attention.
ATTENTION = (FUSED, FUSED.removeprefix("_"), "_native_multi_head_attention", FLEX)
#: How the reason begins where recording an operation failed.
FAILED = "which could not be recorded:"


@contextmanager
def recording(
    receiver: Receiver,
    model: object | None = None,
    begin: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Pass each call of attention within a with block to ``receiver``.

    Meanwhile the fast path of torch's own layers, which returns no weights, is switched
    off: these layers then run as they do in training.

    Parameters
    ----------
    receiver : Receiver
        Its method ``add`` is called with the arrays and options of each call.
    model : torch.nn.Module, optional
        The model whose passes are counted.
    begin : callable
        Called without arguments before each pass of ``model``.

    Raises
    ------
    InputError
        If ``model`` is not a torch.nn.Module.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    with ExitStack() as stack:
        mode = _Recorder(receiver)
        if model is not None:
            hook = model.register_forward_pre_hook(lambda *_: begin())
            stack.callback(hook.remove)
        transformers = sys.modules.get("transformers.modeling_utils")
        if interface := getattr(transformers, "AttentionInterface", None):
            functions = interface, "get_interface", _get_interface, _INTERFACES
            stack.enter_context(_replaced_attribute(*functions))
        fast_path = torch.backends.mha, "_is_fastpath_enabled", False, _FAST_PATHS
        stack.enter_context(_replaced_attribute(*fast_path))
        stack.enter_context(mode)
        yield


def uncompiled() -> AbstractContextManager[object]:
    """Return a context manager in which models of ``torch.compile`` run uncompiled.

    It does nothing if nothing was compiled yet, or with torch before 2.6.
    """
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        found: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
        return found
    return nullcontext()  # nothing is compiled, or torch is older than 2.6


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """A `TorchDispatchMode` of torch that adds attention to a receiver.

    Within its with block, torch calls it for each operation.  Compiled code stays
    compiled.
    """

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return True: for torch's compiler, this mode changes nothing."""
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return True: torch's compiler need not stop for this mode."""
        return True

    def __init__(self, receiver: Receiver) -> None:
        super().__init__()
        self.receiver = receiver
        self.tracker = ProvenanceTracker(receiver)
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
        if kind := _unreadable_kind(*args, *kwargs.values()):
            self._report(name, kind)
            return func(*args, **kwargs)
        handler = self._handlers.get(func)
        if handler is None:
            handler = self._handlers.setdefault(func, self._handler_of(func))
        if handler is _decompose:  # to the operations that run without this mode
            with enable_reentrant_dispatch(), self:
                return func.decompose(*args, **kwargs)
        result = func(*args, **kwargs)
        if kind := _unreadable_kind(result):
            self._report(name, kind)
        elif args:
            try:
                handler(Operation(func, args, kwargs, result))
            except Exception as error:  # noqa: BLE001 - the model must go on
                self._report(name, f"{FAILED} {type(error).__name__}: {error}")
        return result

    def _report(self, name: str, reason: str) -> None:
        """Report an operation as missed if it is attention or if recording it failed.

        ``name`` is that of the operation.  ``reason`` is the kind of a tensor that
        cannot be read, or `FAILED` with an error.  Operations of the backward pass are
        not reported.
        """
        is_attention = name.startswith(ATTENTION) or name in SOFTMAX
        if name.endswith("backward"):
            return
        if is_attention or reason.startswith(FAILED):
            line = f"{name} of {reason}".partition("\n")[0]
            self.receiver.miss(line, is_certain=is_attention)

    def _handler_of(self, func: Any) -> Callable[[Operation], None]:  # noqa: ANN401
        """Return the function to call with each run of the torch operation ``func``.

        `_decompose` is returned as a mark for an operation that is to run as the
        operations it consists of.
        """
        if not isinstance(func, OpOverload):
            return self._record_flex if func.name() == FLEX else _ignore
        if func._can_decompose():  # in inference mode these come undivided
            return _decompose
        name = base_name(func)
        if name.startswith(FUSED) and not name.endswith("backward"):
            return self._record_fused
        return self.tracker.handler_of(func)

    def _record_fused(self, operation: Operation) -> None:
        """Add a call of `scaled_dot_product_attention` to the receiver, if it has room.

        Outputs are recorded in place of weights, and the mask as numbers added to
        scores.
        """
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
        arrays = self.to_arrays({name: _four_axes(t) for name, t in tensors.items()})
        n_rows = query.shape[-2], arrays["q"].shape[2]
        shape = (*arrays["q"].shape[:3], key.shape[-2])
        mask = torch.zeros(1, 1) if passed_mask is None else passed_mask
        if is_causal:
            row = torch.arange(n_rows[0] - n_rows[1], n_rows[0])[:, None]
            mask = torch.arange(shape[-1]) <= row
        if mask.ndim > 4 or (mask.ndim == 3 and query.ndim != 3):
            mask = mask.expand(*query.shape[:-1], shape[-1])
        arrays["added"] = _added_by(_four_axes(mask)[:room], shape)
        passed = _options("torch", given.get("scale"), None, n_rows[0])
        self.receiver.add(arrays, passed)

    def _record_flex(self, operation: Operation) -> None:
        """Add a call of flex attention to ``self.receiver``, if that has room.

        Outputs are recorded in place of weights; and as ``added`` what the score and
        mask functions of the call make of scores that are all 0.
        """
        # it imports modules of the compiler, which take seconds
        from torch._higher_order_ops.flex_attention import _math_attention_inner

        query, key, value, function, blocks, scale, _, *buffers = operation.args
        if not (room := self.receiver.room()):
            return
        outputs = operation.result[0]
        arrays = self.to_arrays({"q": query, "k": key, "v": value, "outputs": outputs})
        keys = key[:room].repeat_interleave(query.shape[1] // key.shape[1], 1)
        # what becomes of scores that are all 0; a cap leaves them
        _, added = _math_attention_inner(
            query[:room], keys, value, function, blocks, 0.0, {}, *buffers
        )
        shape = (*arrays["q"].shape[:3], key.shape[2])
        arrays["added"] = _added_by(added, shape)
        passed = _options(FLEX, scale, None, query.shape[2])
        del passed["cap"]  # one of the functions may have a cap
        self.receiver.add(arrays, passed)

    def to_arrays(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
        """Return tensors as arrays, cut to the sequences and rows that are recorded.

        Axes are (sequence, head, token, ...).  Of queries and what has a row for each
        of them (`OF_QUERIES`), the last rows are kept.
        """
        room, arrays = self.receiver.room(), {}
        for name, tensor in tensors.items():
            kept = tensor[:room]
            if name in OF_QUERIES and self.receiver.rows is not None:
                kept = kept[:, :, -self.receiver.rows :]
            arrays[name] = to_numpy(kept)
        return arrays


def _unreadable_kind(*values: object) -> str:
    """Return in words the kind of the first tensor whose entries cannot be read.

    Such as ``a nested tensor``.  An empty string if all can be read.  Tensors in lists
    count, too.
    """
    for one in values:
        if isinstance(one, list | tuple):
            if kind := _unreadable_kind(*one):
                return kind
        elif isinstance(one, torch.Tensor):
            if type(one).__torch_dispatch__ != torch.Tensor.__torch_dispatch__:
                return f"a {type(one).__name__}"
            if one.is_nested:
                return "a nested tensor"
    return ""


def _ignore(_: Operation) -> None:
    """Do nothing: the handler of operations that have no part in attention."""


def _decompose(_: Operation) -> None:
    """Mark operations that are to run as those they consist of; it is never called."""


def _added_by(mask: torch.Tensor, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the numbers that a mask adds to scores, at least `HIDDEN`.

    ``shape`` is that of the result, (sequences, heads, rows, keys), to which the last
    rows of the mask are broadcast.  A boolean mask, True where a key is visible, adds
    `HIDDEN` elsewhere.
    """
    mask = mask[:, :, -shape[2] :]
    if mask.dtype == torch.bool:
        added = torch.zeros(mask.shape).masked_fill_(~mask.cpu(), HIDDEN)
    else:
        added = mask.float().clamp(min=HIDDEN)
    return np.broadcast_to(to_numpy(added), shape)


def _four_axes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with four axes, of which the first two are sequences and heads.

    Missing axes are added in front, with length 1.  If there are more than four, the
    first ones are joined.
    """
    if tensor.ndim < 4:
        return tensor[(None,) * (4 - tensor.ndim)]
    return tensor.flatten(0, tensor.ndim - 4)


def config_of(module: object) -> Mapping[str, object] | None:
    """Return the configuration of a module of transformers; None for other objects."""
    config: Any = getattr(module, "config", None)
    has_one = hasattr(config, "to_dict") and hasattr(config, "model_type")
    return dict(config.to_dict()) if has_one else None


def _options(source: str, scale: object, cap: object, queries: int) -> dict[str, Any]:
    """Return the options of a call by name, as `Captured.passed` has them.

    ``queries`` is the number of queries of a sequence, whether recorded or not:
    ``{"source": "torch", "scale": None, "cap": None, "queries": 512}``.
    """
    return {"source": source, "scale": scale, "cap": cap, "queries": queries}


#: What stood in the place of what recordings replace, once for each recording that
#: runs: whether torch uses its fused layers, and how transformers hands out attention.
_FAST_PATHS: list[bool] = []
_INTERFACES: list[Callable[..., Any]] = []
_REPLACING = threading.Lock()


@contextmanager
def _replaced_attribute(
    owner: object, name: str, value: object, earlier: list[Any]
) -> Iterator[None]:
    """Set an attribute of an object within a with block, and restore it afterwards.

    The attribute ``name`` of ``owner`` becomes ``value``.  With blocks of several
    threads may overlap: the last one restores the value.  ``earlier`` is a list for
    each attribute; it holds the original value once for each block that runs.
    """
    with _REPLACING:
        earlier.append(earlier[0] if earlier else getattr(owner, name))
        setattr(owner, name, value)
    try:
        yield
    finally:
        with _REPLACING:
            if len(earlier) == 1:
                setattr(owner, name, earlier[0])
            earlier.pop()


def _get_interface(*args: Any, **kwargs: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return the attention function that transformers asks for.

    Arguments are those of ``AttentionInterface.get_interface``.  If this thread
    records, the returned function also records its calls.
    """
    # the latter where another thread ended the last recording after this was called
    hand_out, *_ = (*_INTERFACES, type(args[0]).get_interface)
    attend: Callable[..., Any] = hand_out(*args, **kwargs)
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, _Recorder):
            attend = _recording_calls(attend, mode)
    return attend


def _recording_calls(attend: Callable[..., Any], mode: _Recorder) -> Callable[..., Any]:
    """Return an attention function of transformers that also records its calls.

    It does what ``attend`` does, and adds each call to the receiver of ``mode``.
    """

    def recorded(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        *more: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Call ``attend``, and add the call as a whole to the receiver of ``mode``.

        Operations within the call are not added by themselves.
        """
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
            if kind := _unreadable_kind(query, key, value):
                receiver.miss(f"{name}, of {kind}", is_certain=True)
                return result
            given = kwargs | {"mask": attention_mask}
            _record_whole(mode, module, (query, key, value), result, (within, given))
        except Exception as error:  # noqa: BLE001 - the model must go on
            reason = f"{name}: {type(error).__name__}: {error}"
            receiver.miss(reason.partition("\n")[0], is_certain=True)
        return result

    return recorded


def _record_whole(
    mode: _Recorder,
    module: torch.nn.Module,
    tensors: Sequence[torch.Tensor],
    result: Any,  # noqa: ANN401
    more: tuple[Sequence[tuple[Arrays, Mapping[str, object]]], Mapping[str, Any]],
) -> None:
    """Add a call of an attention function of transformers to the receiver of ``mode``.

    Parameters
    ----------
    mode : _Recorder
    module : torch.nn.Module
        The module that called the function.
    tensors : sequence of Tensor
        Queries, keys and values.
    result : sequence of Tensor
        Outputs, and weights or None.
    more : tuple
        The calls that were recorded within this one, each as (arrays, options); and
        the options of this one.
    """
    within, given = more
    receiver, (query, key, value), mask = mode.receiver, tensors, given["mask"]
    outputs, weights = result[0], result[1]
    caller = Caller(
        type(module).__name__,
        config_of(module) or receiver.config,
        getattr(module, "layer_idx", None),
        mode.tracker.factor(query) * mode.tracker.factor(key),
    )
    inner, inner_passed = within[0] if len(within) == 1 else ({}, {})
    cap = inner_passed.get("cap", given.get("softcap"))
    scale, n_queries = given.get("scaling"), query.shape[2]
    passed = _options("transformers", scale, cap, n_queries)
    passed["caller"] = caller
    if "added" in inner:  # some keys of a static cache are not used yet
        n_keys = np.shape(inner["added"])[-1]
        key, value = key[:, :, :n_keys], value[:, :, :n_keys]
    made = {"v": value, "outputs": outputs.transpose(1, 2)}
    arrays = mode.to_arrays({"q": query, "k": key, **made})
    if "weights" in inner:  # those before dropout
        arrays["weights"] = np.asarray(inner["weights"])
    elif weights is not None:
        arrays |= mode.to_arrays({"weights": weights[..., : key.shape[2]]})
    elif "added" in inner:  # heads that share keys may have come as rows
        shape = (*arrays["q"].shape[:3], key.shape[2])
        arrays["added"] = np.reshape(np.asarray(inner["added"]), shape)
    if isinstance(mask, torch.Tensor) and mask.ndim == 4:
        mask = mask[: receiver.room(), :, -arrays["q"].shape[2] :]
        passed["hidden"] = to_numpy(mask[..., : key.shape[2]])
    receiver.add(arrays, passed)
