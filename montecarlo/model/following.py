"""Traces attention that is written out as operations of torch.

Attention is found as a matrix product of queries and keys, softmax of it, and a product
with values.  For every tensor that such a path may lead through, its *provenance* is
kept: from which tensor its entries come, where they stood there, and the numbers that
they were multiplied by.  A product of two tensors that are no parameters is a candidate
for the scores.  If softmax and a further product follow, it is attention; the axis that
the further product sums over is that of the keys.  A provenance is kept as long as its
tensor lives.
"""
# ruff: noqa: SLF001 - the type of an operation has private names alone in torch

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from montecarlo.model.arrays import Receiver, to_numpy

#: Operations that multiply two matrices, each with the index of the first of these
#: among its arguments.
PRODUCTS = {"bmm": 0, "mm": 0, "baddbmm": 1, "addmm": 1}
SOFTMAX = ("_softmax", "_safe_softmax", "_masked_softmax")
#: The softmax of `torch.nn.functional.scaled_dot_product_attention` where it runs as
#: separate operations; it multiplies queries and keys by a number each before.
SOFTMAX_OF_SDPA = "_safe_softmax"
#: Operations after which entries stand where they stood before.
ELEMENTWISE = (
    *("clone", "_to_copy", "alias", "detach", "native_dropout", "copy", "fill"),
    *("masked_fill", "masked_scatter", "index_put", "index_fill", "triu", "tril"),
    "_log_softmax",
)
RESHAPING = ("view", "_unsafe_view", "_reshape_alias", "reshape")
#: Most labels that are copied in memory.
MOST_COPIED = 2**24
#: Where a product with values has no softmax before it.
NO_SOFTMAX = ", as where attention runs over blocks of keys (flash attention)"
#: A function that rearranges entries as an operation of torch did: it takes labels of
#: the entries before the operation, and returns those after it.
Move = Callable[[Tensor], Tensor]


class Operation(NamedTuple):
    """An operation of torch that ran: its arguments and its result."""

    func: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any

    @property
    def name(self) -> str:
        """Name of the operation, such as ``mul``; also for its in-place variant."""
        return base_name(self.func)


class Product:
    """A batch of matrix products of two tensors, perhaps of queries and keys.

    Parameters
    ----------
    tensors : sequence of Tensor
        The two factors, as torch multiplied them.
    provenances : sequence of Provenance
        The provenances of the two factors.

    Attributes
    ----------
    left, right : Tensor, shape (n_blocks, n_rows, d) and (n_blocks, n_columns, d)
        The factors, the second transposed.
    provenances : tuple of Provenance
        The provenances of ``left`` and ``right``.
    """

    def __init__(
        self, tensors: Sequence[Tensor], provenances: Sequence["Provenance"]
    ) -> None:
        def with_blocks(x: Tensor) -> Tensor:
            """Return a tensor of shape (n_blocks, n_rows, n_columns).

            All axes except the last two are joined.
            """
            return x.reshape(-1, *x.shape[-2:])

        self.left, right = (with_blocks(one.detach()) for one in tensors)
        self.right = right.transpose(1, 2)
        of_left, of_right = (one.moved(with_blocks) for one in provenances)
        self.provenances = of_left, of_right.moved(lambda x: x.transpose(1, 2))
        self._tensors, self._versions = tensors, _versions_of(tensors)

    @property
    def is_flat(self) -> bool:
        """Whether both factors are matrices, with no further axes."""
        return all(one.ndim == 2 for one in self._tensors)

    @property
    def is_unmodified(self) -> bool:
        """Whether nothing was written into the two factors after the product."""
        return _versions_of(self._tensors) == self._versions

    def __str__(self) -> str:
        return f"a product of {tuple(self.left.shape)} and {tuple(self.right.shape)}"


def _versions_of(tensors: Sequence[Tensor]) -> list[int]:
    """Return for each tensor how often torch has written into it.

    0 for tensors of inference mode, for which torch does not count.
    """
    return [0 if one.is_inference() else one._version for one in tensors]


class Weights:
    """Attention weights, the softmax of a product, until they are multiplied by values.

    ``provenance`` has the operations from the product to softmax, and ``kind`` is the
    name of the softmax operation.
    """

    def __init__(self, tensor: Tensor, provenance: "Provenance", kind: str) -> None:
        self.product = provenance.product  # None after they were read
        self.tensor: Tensor | None = tensor.detach()
        self.provenance = provenance  # from the product to softmax
        self.is_sdpa = kind == SOFTMAX_OF_SDPA


class Provenance(NamedTuple):
    """Where the entries of a tensor come from: an origin, and what was done since."""

    shape: tuple[int, ...]  # of the origin, the tensor where the provenance begins
    moves: tuple[Move, ...] = ()  # operations since that moved entries
    factors: tuple[float, ...] = ()  # that entries were multiplied by, NaN if unknown
    is_parameter: bool = False
    product: Product | None = None  # the origin, if it is a product of two tensors
    weights: Weights | None = None  # if softmax has run since
    lost: str = ""  # the operation that entries could not be traced through
    n_factors_before_cap: int | None = None  # len(factors) at tanh; None without tanh

    def moved(self, move: Move) -> "Provenance":
        """Return a copy with a further move: a rearrangement, such as a transpose."""
        return self._replace(moves=(*self.moves, move))

    def labels(self, roots: Callable[[tuple[int, ...]], list[Tensor]]) -> list[Tensor]:
        """Return index tensors that say where each entry stood in the origin.

        ``roots`` is `label_product` or `label_tensor`: it labels the entries of the
        origin, such as by row and column.  There is one index tensor for each of these
        labels, of the shape of the tensor.
        """
        return [
            reduce(lambda x, move: move(x), self.moves, x) for x in roots(self.shape)
        ]

    def scale(self, *, only_last: bool = False) -> float:
        """Return the product of all factors; 1 without factors, NaN if one is unknown.

        With ``only_last``, return the last factor.
        """
        return math.prod(self.factors[-1:] if only_last else self.factors)

    @property
    def cap(self) -> float | None:
        """The cap: the number that tanh was multiplied by; None without tanh.

        1 if tanh was not multiplied, and NaN if the number is unknown.
        """
        before = self.n_factors_before_cap
        return None if before is None else math.prod(self.factors[before:])


def label_product(shape: tuple[int, ...]) -> list[Tensor]:
    """Return three index tensors of ``shape``, for a batch of matrix products.

    They hold the number in the batch (the block), the row and the column of each entry.
    """
    *blocks, rows, columns = shape
    n_blocks = math.prod(blocks)
    return [
        torch.arange(n_blocks).reshape(*blocks, 1, 1).expand(shape),
        torch.arange(rows)[:, None].expand(shape),
        torch.arange(columns).expand(shape),
    ]


def label_tensor(shape: tuple[int, ...]) -> list[Tensor]:
    """Return two index tensors of ``shape``, with the row and the column of each entry.

    Rows are counted over all axes but the last.
    """
    *rest, width = shape or (1,)
    rows = torch.arange(math.prod(rest)).reshape(*rest, 1)
    return [one.expand(shape) for one in (rows, torch.arange(width))]


def _reshape(label: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return an index tensor in another shape.

    Labels that are constant along the last axes are not copied in memory.  A
    `RuntimeError` is raised if more than `MOST_COPIED` labels would have to be.
    """
    if label.ndim and shape and label.shape[-1] == shape[-1] and not label.stride(-1):
        return _reshape(label[..., 0], shape[:-1])[..., None].expand(shape)
    try:
        return label.view(shape)
    except RuntimeError:
        if label.numel() > MOST_COPIED:
            raise RuntimeError("too many entries") from None
        return label.reshape(shape)


def _varies(label: Tensor, axis: int) -> bool:
    """Return whether the entries of an index tensor differ along an axis."""
    if label.shape[axis] < 2 or not label.stride(axis):
        return False
    once = tuple(slice(None) if step else slice(0, 1) for step in label.stride())
    small = label[once]
    return bool((small != small.narrow(axis, 0, 1)).any())


class ProvenanceTracker:
    """Keeps the provenances of tensors, and finds attention in operations that ran.

    Queries, keys, weights and options of attention that it finds are added to the
    receiver.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._provenances: dict[int, tuple[weakref.ref[Tensor], Provenance]] = {}

    def handler_of(self, func: Any) -> Callable[[Operation], None]:  # noqa: ANN401
        """Return the method to call after each run of the torch operation ``func``.

        The method takes the `Operation`, and updates the provenances.
        """
        name = base_name(func)
        is_elementwise = name in ELEMENTWISE or torch.Tag.pointwise in func.tags
        is_view = name in RESHAPING or (func.is_view and name != "as_strided")
        handlers = (
            (name in PRODUCTS, self._track_product),
            (name in SOFTMAX, self._track_softmax),
            (is_elementwise, self._track_elementwise),
            (is_view, self._track_view),
            (True, self._track_other),
        )
        return next(handler for applies, handler in handlers if applies)

    def _get_provenance(self, tensor: object) -> Provenance | None:
        """Return the provenance that is stored for a tensor; None if there is none."""
        found = self._provenances.get(id(tensor))
        return found[1] if found is not None else None

    def factor(self, tensor: Tensor) -> float:
        """Return the product of all factors that a tensor was multiplied by.

        They count from the origin of its provenance.  1 if there are none.  NaN if one
        is unknown, or if the tensor has no provenance.
        """
        known = self._get_provenance(tensor)
        return math.nan if known is None else known.scale()

    def _provenance(self, tensor: Tensor) -> Provenance:
        """Return the stored provenance of a tensor, or a new one whose origin it is."""
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        return self._get_provenance(tensor) or Provenance(
            tuple(tensor.shape), is_parameter=is_parameter
        )

    def _set(self, tensor: Tensor, provenance: Provenance) -> None:
        """Store the provenance of a tensor for as long as the tensor lives."""
        number = id(tensor)

        def drop(ref: weakref.ref[Tensor]) -> None:
            """Forget the provenance, unless another tensor has the same id by now."""
            if self._provenances.get(number, (None,))[0] is ref:
                del self._provenances[number]

        self._provenances[number] = weakref.ref(tensor, drop), provenance

    def _track_view(self, operation: Operation) -> None:
        """Store provenances of the results of a view or a reshape.

        They are that of the argument with one more move.  A view such as ``split`` has
        several results.
        """
        func, (source, *rest), kwargs, result = operation
        if not isinstance(source, Tensor):
            return
        provenance = self._provenance(source)
        viewed = provenance.moved(lambda x: func(x, *rest, **kwargs))
        if operation.name in RESHAPING:
            shape = tuple(result.shape)
            self._set(result, provenance.moved(lambda x: _reshape(x, shape)))
        elif isinstance(result, Tensor):
            self._set(result, viewed)
        else:
            for number, one in enumerate(result):
                self._set(one, viewed.moved(itemgetter(number)))

    def _track_elementwise(self, operation: Operation) -> None:
        """Store the provenance of the result of an operation on single entries.

        It is that of an argument, to which a factor or a cap is added if the operation
        is one.
        """
        name, args, result = operation.name, operation.args, operation.result
        output = result if isinstance(result, Tensor) else result[0]
        source = self._source_of(name, args, operation.kwargs)
        if source is None or not isinstance(output, Tensor):
            return
        tensor, provenance = source
        others = [one for one in args if one is not tensor]
        provenance = self._with_factor(name, provenance, others)
        if name == "tanh" and provenance.product is not None and not provenance.lost:
            n_factors = len(provenance.factors)
            provenance = provenance._replace(n_factors_before_cap=n_factors)
        if output.shape != tensor.shape:
            shape = tuple(output.shape)
            provenance = provenance.moved(lambda x: x.expand(shape))
        self._set(output, provenance)

    def _source_of(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Tensor, Provenance] | None:
        """Return (tensor, provenance) of the argument that the result comes from.

        ``name``, ``args`` and ``kwargs`` are those of the operation.  If several
        arguments have a provenance, scores and weights are preferred, and among them
        those that can still be traced.  Else only the first argument counts: None if it
        has no provenance and begins none.
        """
        known = [
            (one, provenance)
            for one in (*args, *kwargs.values())
            if isinstance(one, Tensor) and (provenance := self._get_provenance(one))
        ]
        scores = [(x, p) for x, p in known if p.product or p.weights or p.lost]
        if scores:
            scores.sort(key=lambda one: bool(one[1].lost))
            tensor, provenance = scores[0]
            traced = [p for _, p in scores if not (p.lost or provenance.lost)]
            if any(p.product is not provenance.product for p in traced):
                provenance = provenance._replace(lost=f"{name} of two products")
            return tensor, provenance
        if known and known[0][0] is args[0]:
            return known[0]
        if isinstance(args[0], Tensor) and _begins_provenance(name, args):
            return args[0], self._provenance(args[0])
        return None

    def _with_factor(
        self, name: str, provenance: Provenance, others: Sequence[object]
    ) -> Provenance:
        """Return a provenance after an operation that may multiply by a factor.

        ``name`` is that of the operation, and ``others`` are its other arguments.  For
        scores, a factor that is no number is NaN, and other operations change nothing.
        For queries and keys, factors stay if they are multiplied entry by entry, as by
        a rotary embedding, copied, negated, or added to a tensor with the same factors.
        Other operations remove the factors.
        """
        is_scores = provenance.product is not None
        factors = provenance.factors
        if name in {"mul", "div"} and others:
            number = _factor_of(others[0])
            if number is not None:
                number = number if name == "mul" else 1.0 / number
                return provenance._replace(factors=(*factors, number))
            if is_scores and provenance.weights is None:
                return provenance._replace(factors=(*factors, math.nan))
            return provenance
        if is_scores or not factors or name in {"neg", *ELEMENTWISE}:
            return provenance
        if name in {"add", "sub"}:
            known = [self._get_provenance(x) for x in others if isinstance(x, Tensor)]
            if known and all(p and p.scale() == provenance.scale() for p in known):
                return provenance
        return provenance._replace(factors=())

    def _track_other(self, operation: Operation) -> None:
        """Store the provenance of the results of any other operation.

        The results of scores and weights are marked as lost.  Results that have the
        shape of another argument keep its provenance, without factors.  If tensors are
        joined, a factor that all have in common stays.
        """
        (first, *_), result = operation.args, operation.result
        is_joined = operation.name == "cat"
        tensors = first if is_joined else operation.args
        found = [self._get_provenance(one) for one in tensors]
        known = [one for one in found if one is not None]
        results = result if isinstance(result, list | tuple) else [result]
        scores = next((p for p in known if p.product is not None), None)
        for one in results if known else ():
            if not isinstance(one, Tensor):
                continue
            if scores is not None:
                lost, shape = scores.lost or operation.name, tuple(one.shape)
                self._set(one, scores._replace(shape=shape, moves=(), lost=lost))
            elif is_joined:
                scales = {p.scale() for p in known}
                is_one = len(scales) == 1 and len(known) == len(found)
                factors = known[0].factors if is_one else ()
                self._set(one, Provenance(tuple(one.shape), factors=factors))
            elif isinstance(first, Tensor) and first.shape == one.shape:
                self._set(one, known[0]._replace(factors=(), is_parameter=False))

    def _track_softmax(self, operation: Operation) -> None:
        """Store the result of softmax as attention weights if it is of a product.

        That is, if its input was traced to a product of two tensors.  If not, if the
        trace was lost since, or if it is a second softmax, the result is marked lost.
        """
        result, provenance = operation.result, self._provenance(operation.args[0])
        if provenance.product is None:
            lost = "softmax of what is no product of two tensors that was seen"
            provenance = Provenance(tuple(result.shape), lost=lost)
        elif provenance.lost or provenance.weights is not None:
            lost = (provenance.lost or "a second softmax").removesuffix(" (softmax)")
            provenance = provenance._replace(lost=f"{lost} (softmax)")
        else:
            weights = Weights(result, provenance, operation.name)
            provenance = provenance._replace(weights=weights)
        self._set(result, provenance)

    def _track_product(self, operation: Operation) -> None:
        """Add attention to the receiver if a factor is weights; else store the product.

        A product of two tensors that are no parameters may be that of queries and keys.
        """
        start, kwargs = PRODUCTS[operation.name], operation.kwargs
        tensors = operation.args[start : start + 2]
        provenances = [self._factor_provenance(one) for one in tensors]
        ends = (tensors[1], operation.result), (tensors[0].mT, operation.result.mT)
        end_attention = [
            self._ends_attention(*one)
            for one in zip(provenances, (-1, -2), ends, strict=True)
        ]
        if any(end_attention) or any(one.is_parameter for one in provenances):
            return
        alpha = kwargs.get("alpha", 1.0)
        provenance = Provenance(
            tuple(operation.result.shape),
            factors=() if alpha == 1.0 else (float(alpha),),
            product=Product(tensors, provenances),
        )
        self._set(operation.result, provenance)

    def _factor_provenance(self, tensor: Tensor) -> Provenance:
        """Return the provenance of a factor of a product.

        A factor may itself be a product of two matrices that was given to no softmax.
        That is a projection by a tensor that is no `Parameter`.  Its provenance begins
        anew, with its known factors.
        """
        known = self._provenance(tensor)
        is_given = known.weights is not None or known.lost.endswith("(softmax)")
        if known.product is None or not known.product.is_flat or is_given:
            return known
        numbers = tuple(one for one in known.factors if not math.isnan(one))
        return Provenance(tuple(tensor.shape), factors=numbers)

    def _ends_attention(
        self, provenance: Provenance, axis: int, ends: tuple[Tensor, Tensor]
    ) -> bool:
        """Return whether a product is that of weights and values, which ends attention.

        If so, attention is added to the receiver, or reported as missed if it cannot be
        read.  True, too, if the factor may be weights and its trace was lost: that is
        reported as missed.

        Parameters
        ----------
        provenance : Provenance
            Of one factor, which may be weights.
        axis : int
            The axis of this factor that the product sums over.
        ends : tuple of Tensor
            The other factor and the result.  If the first factor is weights, they are
            values (block, key, entry) and outputs (block, query, entry).
        """
        product, weights = provenance.product, provenance.weights
        if provenance.lost:
            lost = f"{product}, lost at {provenance.lost}" if product else ""
            is_certain = bool(product) and lost.endswith("(softmax)")
            self._receiver.miss(lost or provenance.lost, is_certain=is_certain)
            return True
        if weights is None:
            if product is None:
                return False
            reason = f"no softmax after {product}{NO_SOFTMAX}"
            self._receiver.miss(reason, is_certain=False)
            return False
        if weights.product is not None and self._receiver.room():
            try:
                problem = self._hand_on(weights, provenance, axis, ends)
            except (RuntimeError, IndexError) as error:
                problem = str(error).partition("\n")[0]
            if problem:
                lost = f"{weights.product}, lost in its axes: {problem}"
                self._receiver.miss(lost, is_certain=True)
        weights.product = weights.tensor = None  # they hold tensors
        return True

    def _hand_on(
        self,
        weights: Weights,
        used: Provenance,
        axis: int,
        ends: tuple[Tensor, Tensor],
    ) -> str:
        """Add queries, keys, weights, values and outputs to the receiver.

        Return the reason if that fails, such as ``queries or keys were written into``,
        and an empty string if it succeeds.  Of a call with a single key, that it was
        one is all that is added.

        Parameters
        ----------
        weights : Weights
        used : Provenance
            Of the weights at the product with values.
        axis : int
            The axis of the weights that this product sums over.
        ends : tuple of Tensor
            Values and outputs.
        """
        product, tensor = weights.product, weights.tensor
        if product is None or tensor is None or not product.is_unmodified:
            return "queries or keys were written into"
        used_block, row, column = used.labels(label_product)
        along = _varies(row, axis), _varies(column, axis)
        if not any(along):
            self._receiver.add({"k": [np.empty((1, 1, 1))]}, {})  # a single key
            return ""
        block, *places = weights.provenance.labels(label_product)
        factors = product.left, product.right
        sides = list(zip(factors, product.provenances, strict=True))
        if along[0]:  # keys are the left factor
            sides.reverse()
            places.reverse()
        (queries, from_queries), (keys, from_keys) = sides
        axes = _axes_of(tensor, *places)
        if axes is None or all(along) or _varies(block, axes[0]):
            return "queries or keys have no axis of their own"
        tensor, block, q_place, k_place = (
            one.movedim(axes, (-2, -1)) for one in (tensor, block, *places)
        )
        rows = self._receiver.rows
        last = slice(None) if rows is None else slice(-rows, None)
        q_block, q_place = (
            one[..., 0].reshape(-1, tensor.shape[-2]) for one in (block, q_place)
        )
        k_block, k_place = (
            one[..., 0, :].reshape(len(q_block), -1) for one in (block, k_place)
        )
        axes_before = tuple(tensor.shape[:-2])
        order = _order_of_heads(from_queries, q_block[:, 0], q_place[:, 0], axes_before)
        order = order[: self._receiver.room()]
        chosen = order.flatten()
        shown = tensor[..., last, :].flatten(0, -3)
        q = queries[q_block[chosen][:, last], q_place[chosen][:, last]]
        k = keys[k_block[chosen], k_place[chosen]]
        scales = [
            one.scale(only_last=weights.is_sdpa) for one in (from_queries, from_keys)
        ]
        scale = math.prod(scales) * weights.provenance.scale()
        found = {"q": q, "k": k, "weights": shown[chosen]}
        # values of the block of the first product that has the weights of each head
        same = used_block.flatten(0, -3)[:, 0, 0] == q_block[chosen][:, :1]
        if same.any(dim=1).all():
            used_by = same.int().argmax(dim=1)
            v, outputs = (x.detach().flatten(0, -3)[used_by] for x in ends)
            found |= {"v": v} if v.shape[1] == k.shape[1] else {}
            if outputs.shape[1] == tensor.shape[-2]:
                found["outputs"] = outputs[:, last]
        arrays = {n: to_numpy(x.unflatten(0, order.shape)) for n, x in found.items()}
        for name, factor in zip("qk", scales, strict=True):
            if factor != 1.0 and not math.isnan(factor):
                precise = np.promote_types(arrays[name].dtype, np.float32)
                arrays[name] = arrays[name].astype(precise) / factor
        passed = {
            "source": "torch" if weights.is_sdpa else "written out",
            "scale": None if math.isnan(scale) else scale,
            "cap": weights.provenance.cap,
            "queries": tensor.shape[-2],
        }
        self._receiver.add(arrays, passed)
        return ""


def base_name(func: Any) -> str:  # noqa: ANN401
    """Return the name of a torch operation, ``mul`` for ``aten::mul.Tensor``.

    In-place variants have the same name: ``mul`` for ``aten::mul_.Tensor``.
    """
    return str(func._schema.name).partition("::")[2].removesuffix("_")


def _axes_of(weights: Tensor, row: Tensor, key: Tensor) -> tuple[int, int] | None:
    """Return (axis of queries, axis of keys) of weights, by number.

    ``row`` and ``key`` are index tensors of the shape of the weights: the query and the
    key of each weight.  A single query has an axis of length 1.  None if keys vary
    along no axis or several, or if there is no axis of queries.
    """
    axes = [n for n in range(weights.ndim) if _varies(key, n)]
    others = [n for n in range(weights.ndim) if n not in axes]
    rows = [n for n in others if _varies(row, n)]
    rows = rows or [n for n in others if weights.shape[n] == 1]
    return (rows[-1], axes[0]) if len(axes) == 1 and rows else None


def _begins_provenance(name: str, args: Sequence[object]) -> bool:
    """Return whether to trace, from here on, an operation's untraced first argument.

    Yes if it is multiplied or divided by a number (see `_factor_of`), or if it is a
    parameter and the operation is one of `ELEMENTWISE`, such as a copy.  ``name`` and
    ``args`` are those of the operation.
    """
    if name in {"mul", "div"}:
        return len(args) > 1 and _factor_of(args[1]) is not None
    return name in ELEMENTWISE and isinstance(args[0], torch.nn.Parameter)


def _factor_of(other: object) -> float | None:
    """Return the number that an operation multiplies or divides by.

    ``other`` is an argument of the operation.  None unless it is a finite number other
    than 0.  A tensor is a number if it has a single entry and no axes, and is on the
    CPU.
    """
    if isinstance(other, Tensor):
        if other.ndim or other.device.type != "cpu":
            return None
    elif not isinstance(other, bool | int | float):
        return None
    number = float(other)
    return number if number and math.isfinite(number) else None


def _order_of_heads(
    provenance: Provenance, blocks: Tensor, places: Tensor, axes_before: tuple[int, ...]
) -> Tensor:
    """Return the places of sequences and heads in the weights: (n_sequences, n_heads).

    A place is the index of a matrix of weights, counted over all axes before queries
    and keys.  Heads are told apart by the columns of the projection that queries come
    from, and sequences by its rows.  If that cannot be traced, the last axis before
    queries and keys is that of heads, provided that there are two or more such axes.

    Parameters
    ----------
    provenance : Provenance
        Of the queries.
    blocks, places : Tensor, shape (n_matrices,)
        For each matrix of weights, the block and the row of its first query.
    axes_before : tuple of int
        Lengths of the axes of the weights before queries and keys.
    """
    n_heads = axes_before[-1] if len(axes_before) > 1 else 1
    guessed = torch.arange(len(blocks)).reshape(-1, n_heads)
    try:
        rows, columns = (
            one[blocks, places, 0].tolist() for one in provenance.labels(label_tensor)
        )
    except (RuntimeError, IndexError):
        return guessed
    numbers = {place: n for n, place in enumerate(zip(rows, columns, strict=True))}
    sequences, heads = sorted(set(rows)), sorted(set(columns))
    if len(heads) == 1 or not len(sequences) * len(heads) == len(numbers) == len(rows):
        return guessed
    return torch.tensor([[numbers[row, one] for one in heads] for row in sequences])
