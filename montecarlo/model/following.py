"""Attention that is written out, followed from a product of two tensors to values.

Every operation of torch that runs is noted.  What a tensor is made of is its *trail*:
where its entries come from, by operations that move or scale them.  A product of two
tensors that are no parameters may be one of queries and keys; if its trail leads
through softmax to a further product, it is one, and the axis over which that product
sums is that of the keys.  A trail ends with its tensor.
"""
# ruff: noqa: SLF001 - what operations are, torch says in private names alone

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from montecarlo.model.arrays import Sink, to_numpy

#: Operations that multiply two matrices, and the places of these among the arguments.
PRODUCTS = {"bmm": 0, "mm": 0, "baddbmm": 1, "addmm": 1}
SOFTMAX = ("_softmax", "_safe_softmax", "_masked_softmax")
#: Torch's own attention takes this one, after a number on queries and one on keys.
SOFTMAX_OF_TORCH = "_safe_softmax"
#: Operations after which entries stand where they stood.
IN_PLACE = (
    *("clone", "_to_copy", "alias", "detach", "native_dropout", "copy", "fill"),
    *("masked_fill", "masked_scatter", "index_put", "index_fill", "triu", "tril"),
    "_log_softmax",
)
RESHAPING = ("view", "_unsafe_view", "_reshape_alias", "reshape")
#: Operations of a trail at most, and numbers that one may be copied into.
MOST_MOVES, MOST_COPIED = 48, 2**24
#: How far weights of a row, which no softmax was seen to make, may add up to another
#: number than 1: half of the rows of one block.
FAR_FROM_ONE = 5e-3
#: What stands in place of an entry's place for one that was joined to them.
NOWHERE = -1
Move = Callable[[Tensor], Tensor]


class Operation(NamedTuple):
    """An operation of torch that ran."""

    func: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any

    @property
    def name(self) -> str:
        """Its name, whether it writes into its argument or not."""
        return base_name(self.func)


class Product:
    """A product of two tensors, perhaps of queries and keys.

    ``left`` and ``right`` have the shape (n_blocks, n_rows, d), and ``trails``.
    """

    def __init__(self, tensors: Sequence[Tensor], trails: Sequence["Trail"]) -> None:
        left, right = (one.detach() for one in tensors)
        if left.ndim == 2:
            left, right = left[None], right[None]
            trails = [one.moved(lambda x: x[None]) for one in trails]
        self.left, self.right = left, right.transpose(1, 2)
        turned = trails[1].moved(lambda x: x.transpose(1, 2))
        self.trails = trails[0], turned
        self._versions = self._counted()

    def _counted(self) -> list[int]:
        both = (self.left, self.right)
        return [0 if one.is_inference() else one._version for one in both]

    @property
    def is_as_it_was(self) -> bool:
        """Whether nothing was written into the two tensors since."""
        return self._counted() == self._versions

    def __str__(self) -> str:
        """Say what was multiplied."""
        return f"a product of {tuple(self.left.shape)} and {tuple(self.right.shape)}"


class Weights:
    """Attention weights: what softmax made of a product."""

    def __init__(self, tensor: Tensor, trail: "Trail", *, is_torch: bool) -> None:
        self.product = trail.product  # None after they were read
        self.tensor: Tensor | None = tensor.detach()
        self.trail = trail  # from the product to softmax
        self.is_torch = is_torch  # whether torch's own attention made them

    def forget(self) -> None:
        """Let go of what was read."""
        self.product = self.tensor = None


class Trail(NamedTuple):
    """Where the entries of a tensor come from."""

    shape: tuple[int, ...]  # of the tensor where the trail begins
    moves: tuple[Move, ...] = ()  # what was done to places since
    factors: tuple[float, ...] = ()  # that entries were multiplied by, NaN if not known
    is_parameter: bool = False
    product: Product | None = None  # that the trail begins with, if it does
    weights: Weights | None = None  # if softmax stands on the trail
    lost: str = ""  # the operation that it could not be followed through
    mask: str = "none"  # what kind of mask stands on it
    capped_after: int | None = None  # of how many factors tanh was taken

    def moved(self, move: Move) -> "Trail":
        """Return the trail with one more move."""
        return self._replace(moves=(*self.moves, move))

    def labels(self, roots: Callable[[tuple[int, ...]], list[Tensor]]) -> list[Tensor]:
        """Return where entries of the tensor come from, by labels of the beginning."""
        return [_moved(label, self.moves) for label in roots(self.shape)]

    def scale(self, *, only_last: bool = False) -> float:
        """Return the number that entries were multiplied by, all in all or last."""
        return math.prod(self.factors[-1:] if only_last else self.factors)

    @property
    def cap(self) -> float | None:
        """What tanh was multiplied by afterwards; None without."""
        after = self.capped_after
        return None if after is None else math.prod(self.factors[after:])


def _moved(label: Tensor, moves: Sequence[Move]) -> Tensor:
    """Return labels after some moves."""
    for move in moves:
        label = move(label)
    return label


def label_product(shape: tuple[int, ...]) -> list[Tensor]:
    """Return block, row and column of each entry of a product."""
    *blocks, rows, columns = shape
    n_blocks = math.prod(blocks)
    return [
        torch.arange(n_blocks).reshape(*blocks, 1, 1).expand(shape),
        torch.arange(rows)[:, None].expand(shape),
        torch.arange(columns).expand(shape),
    ]


def label_tensor(shape: tuple[int, ...]) -> list[Tensor]:
    """Return a number for all axes but the last of each entry, and its place there."""
    *rest, width = shape or (1,)
    rows = torch.arange(math.prod(rest)).reshape(*rest, 1)
    return [one.expand(shape) for one in (rows, torch.arange(width))]


def _reshape(label: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape labels; what is the same along the last axes is not copied."""
    if label.ndim and shape and label.shape[-1] == shape[-1] and not label.stride(-1):
        return _reshape(label[..., 0], shape[:-1])[..., None].expand(shape)
    try:
        return label.view(shape)
    except RuntimeError:
        if label.numel() > MOST_COPIED:
            raise
        return label.reshape(shape)


def _varies(label: Tensor, axis: int) -> bool:
    """Tell whether labels differ along an axis; ends that were joined do not count."""
    if label.shape[axis] < 2 or not label.stride(axis):
        return False
    once = tuple(slice(None) if step else slice(0, 1) for step in label.stride())
    small = label[once]
    differ = (small != small.narrow(axis, 0, 1)) & (small != NOWHERE)
    return bool(differ.any())


class Follower:
    """Follows every tensor from a product on, until it is let go."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._trails: dict[int, tuple[weakref.ref[Tensor], Trail]] = {}

    def way_to_note(self, func: Any) -> Callable[[Operation], None]:  # noqa: ANN401
        """Return what notes what an operation made of its arguments."""
        name = base_name(func)
        ways = (
            (name in PRODUCTS, self._note_product),
            (name in SOFTMAX, self._note_softmax),
            (name in RESHAPING and "dtype" not in func.name(), self._note_reshaping),
            (
                name in IN_PLACE or torch.Tag.pointwise in func.tags,
                self._note_pointwise,
            ),
            (name == "cat", self._note_joined),
            (func.is_view and name != "as_strided", self._note_view),
            (True, self._note_other),
        )
        return next(way for is_so, way in ways if is_so)

    def _trail(self, tensor: Tensor) -> Trail | None:
        found = self._trails.get(id(tensor))
        return found[1] if found is not None else None

    def trail_of(self, tensor: Tensor) -> Trail:
        """Return the trail of a tensor, one that begins here if nothing is known."""
        found = self._trail(tensor)
        if found is not None:
            return found
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        return Trail(tuple(tensor.shape), is_parameter=is_parameter)

    def _set(self, tensor: Any, trail: Trail) -> None:  # noqa: ANN401
        """Keep a trail for as long as its tensor lives."""
        if not isinstance(tensor, Tensor) or tensor.is_nested:
            return
        if len(trail.moves) > MOST_MOVES:
            if trail.product is not None:
                trail = trail._replace(lost="too many operations")
            trail = trail._replace(shape=tuple(tensor.shape), moves=())
        number = id(tensor)

        def drop(ref: weakref.ref[Tensor]) -> None:
            if self._trails.get(number, (None,))[0] is ref:
                del self._trails[number]

        self._trails[number] = weakref.ref(tensor, drop), trail

    def _note_reshaping(self, done: Operation) -> None:
        source, result = done.args[0], done.result
        if source.is_nested or result.is_nested:
            return
        shape = tuple(result.shape)
        self._set(result, self.trail_of(source).moved(lambda x: _reshape(x, shape)))

    def _note_view(self, done: Operation) -> None:
        func, (source, *rest), kwargs, result = done
        if not isinstance(source, Tensor) or source.is_nested:
            return
        trail = self.trail_of(source)
        if isinstance(result, Tensor):
            self._set(result, trail.moved(lambda x: func(x, *rest, **kwargs)))
            return
        for number, one in enumerate(result):

            def pick(x: Tensor, number: int = number) -> Tensor:
                chosen: Tensor = func(x, *rest, **kwargs)[number]
                return chosen

            self._set(one, trail.moved(pick))

    def _note_pointwise(self, done: Operation) -> None:
        name, args, result = done.name, done.args, done.result
        made = result if isinstance(result, Tensor) else result[0]
        if not isinstance(made, Tensor) or made.is_nested:
            return
        found = self._find(name, args, done.kwargs)
        if found is None:
            return
        tensor, trail = found
        others = [one for one in args if one is not tensor]
        trail = self._scaled(name, trail, others)
        if trail.product is not None and not trail.lost:
            if name in {"masked_fill", "where", "masked_scatter"}:
                trail = trail._replace(mask="of booleans")
            elif name == "add" and any(
                isinstance(o, Tensor) and o.ndim for o in others
            ):
                trail = trail._replace(mask="added")
            elif name == "tanh":
                trail = trail._replace(capped_after=len(trail.factors))
        if made.shape != tensor.shape:
            shape = tuple(made.shape)
            trail = trail.moved(lambda x: x.expand(shape))
        self._set(made, trail)

    def _find(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Tensor, Trail] | None:
        """Return the argument that entries come from, with its trail.

        Scores come before what stands beside them, and what was lost comes last.
        """
        tensors = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
        trails = [(one, trail) for one in tensors if (trail := self._trail(one))]
        scores = [(one, t) for one, t in trails if t.product or t.weights or t.lost]
        if scores:
            scores.sort(key=lambda one: bool(one[1].lost))
            tensor, trail = scores[0]
            also = [t for _, t in scores if not (t.lost or trail.lost)]
            if any(t.product is not trail.product for t in also):
                trail = trail._replace(lost=f"{name} of two products")
            return tensor, trail
        if trails and trails[0][0] is args[0]:
            return trails[0]
        if isinstance(args[0], Tensor) and _may_begin(name, args):
            return args[0], self.trail_of(args[0])
        return None

    def _scaled(self, name: str, trail: Trail, others: Sequence[object]) -> Trail:
        """Return a trail with the number that an operation multiplies by."""
        is_scores = trail.product is not None
        if name in {"mul", "div"} and others:
            number = _number_of(others[0])
            if number is None:
                unknown = is_scores and trail.weights is None
                factors = (*trail.factors, math.nan) if unknown else trail.factors
            else:
                factors = (*trail.factors, number if name == "mul" else 1.0 / number)
            return trail._replace(factors=factors)
        if is_scores or not trail.factors or name in {"neg", *IN_PLACE}:
            return trail
        if name in {"add", "sub"}:
            found = [self._trail(o) for o in others if isinstance(o, Tensor)]
            if found and all(t and t.scale() == trail.scale() for t in found):
                return trail
        return trail._replace(factors=())

    def _note_joined(self, done: Operation) -> None:
        _, (tensors, *rest), kwargs, result = done
        if result.is_nested:
            return
        axis = rest[0] if rest else kwargs.get("dim", 0)
        trails = [self._trail(one) for one in tensors]
        scores = [n for n, t in enumerate(trails) if t and (t.product or t.weights)]
        if not scores:
            self._join(trails, axis, result)
            return
        trail = trails[scores[0]]
        if trail is None:
            return
        if len(scores) > 1:
            self._set(result, trail._replace(lost="cat of several products"))
            return
        sizes = [one.shape[axis] for one in tensors]
        before, after = sum(sizes[: scores[0]]), sum(sizes[scores[0] + 1 :])

        def pad(label: Tensor) -> Tensor:
            if label.numel() > MOST_COPIED:
                raise RuntimeError("too many entries")
            ends = [0, 0] * (label.ndim - 1 - axis % label.ndim) + [before, after]
            return torch.nn.functional.pad(label, ends, value=NOWHERE)

        self._set(result, trail.moved(pad))

    def _join(self, trails: Sequence[Trail | None], axis: int, result: Tensor) -> None:
        """Set the trail of pieces that were joined, if all come from one tensor."""
        known = [one for one in trails if one is not None]
        if len(known) < len(trails) or any(one.lost for one in known):
            return
        factors = known[0].factors if len({one.scale() for one in known}) == 1 else ()
        if len({one.shape for one in known}) > 1:
            self._set(result, Trail(tuple(result.shape), factors=factors))
            return
        moves = [one.moves for one in known]

        def join(label: Tensor) -> Tensor:
            parts = [_moved(label, each) for each in moves]
            if sum(one.numel() for one in parts) > MOST_COPIED:
                raise RuntimeError("too many entries")
            return torch.cat(parts, axis)

        self._set(result, Trail(known[0].shape, (join,), factors))

    def _note_other(self, done: Operation) -> None:
        """Lose what scores were; other tensors stay what they were if shapes do."""
        args, result = done.args, done.result
        first = args[0]
        trails = [
            trail
            for one in args
            if isinstance(one, Tensor) and (trail := self._trail(one))
        ]
        made = [result] if isinstance(result, Tensor) else result
        if not trails or not isinstance(made, list | tuple):
            return
        scores = [t for t in trails if t.product is not None]
        for one in made:
            if not isinstance(one, Tensor) or one.is_nested:
                continue
            shape = tuple(one.shape)
            if scores:
                lost = scores[0].lost or done.name
                self._set(one, scores[0]._replace(shape=shape, moves=(), lost=lost))
            elif isinstance(first, Tensor) and first.shape == one.shape:
                self._set(one, trails[0]._replace(factors=(), is_parameter=False))

    def _note_softmax(self, done: Operation) -> None:
        result = done.result
        trail, shape = self.trail_of(done.args[0]), tuple(result.shape)
        if trail.product is None:
            lost = "softmax of what is no product of two tensors that was seen"
            self._set(result, Trail(shape, lost=lost))
        elif trail.lost or trail.weights is not None:
            lost = trail.lost or "a second softmax"
            lost = lost.removesuffix(" (softmax)") + " (softmax)"
            self._set(result, trail._replace(lost=lost))
        else:
            made = Weights(result, trail, is_torch=done.name == SOFTMAX_OF_TORCH)
            self._set(result, trail._replace(weights=made))

    def _note_product(self, done: Operation) -> None:
        start, kwargs = PRODUCTS[done.name], done.kwargs
        tensors = done.args[start : start + 2]
        if any(one.is_nested for one in tensors):
            return
        trails = [self.trail_of(one) for one in tensors]
        of_values = False
        for tensor, trail, axis in zip(tensors, trails, (-1, -2), strict=True):
            of_values |= self._note_use(tensor, trail, axis)
        if of_values or any(one.is_parameter for one in trails):
            return
        product = Product(tensors, trails)
        alpha = kwargs.get("alpha", 1.0)
        self._set(
            done.result,
            Trail(
                tuple(done.result.shape),
                factors=() if alpha == 1.0 else (float(alpha),),
                product=product,
                mask="added" if start and kwargs.get("beta", 1.0) else "none",
            ),
        )

    def _note_use(self, tensor: Tensor, trail: Trail, axis: int) -> bool:
        """Note that a product sums over an axis: tell whether it is one of values."""
        if trail.lost:
            if trail.product is None:
                self._sink.miss(trail.lost, is_certain=False)
            else:
                is_certain = trail.lost.endswith("(softmax)")
                lost = f"{trail.product}, lost at {trail.lost}"
                self._sink.miss(lost, is_certain=is_certain)
            return True
        weights = trail.weights
        if weights is None:
            if trail.product is None:
                return False
            if not _adds_up_to_one(tensor, axis):
                self._sink.miss(f"{trail.product}, without softmax", is_certain=False)
                return False
            weights = Weights(tensor, trail, is_torch=False)
        if weights.product is not None and self._sink.room():
            try:
                problem = self._read(weights, trail, axis)
            except (RuntimeError, IndexError) as error:
                problem = str(error).partition("\n")[0]
            if problem:
                lost = f"{weights.product}, lost in its axes: {problem}"
                self._sink.miss(lost, is_certain=True)
        weights.forget()
        return True

    def _read(self, weights: Weights, used: Trail, axis: int) -> str:
        """Read queries, keys and weights; returns what is in the way, if something is.

        ``used`` is the trail where they meet values, ``axis`` that of the sum.
        """
        product, made = weights.product, weights.tensor
        if product is None or made is None or not product.is_as_it_was:
            return "queries or keys were written into"
        _, row, column = used.labels(label_product)
        along = _varies(row, axis), _varies(column, axis)
        if not any(along):
            return ""  # a single key
        block, *places = weights.trail.labels(label_product)
        sides = [(product.left, product.trails[0]), (product.right, product.trails[1])]
        if along[0]:  # keys stand left
            sides.reverse()
            places.reverse()
        (queries, from_queries), (keys, from_keys) = sides
        axes = _axes_of(made, *places)
        if axes is None or all(along):
            return "queries or keys have no axis of their own"
        if _varies(block, axes[0]):
            made, block, *places = _sorted_rows(made, axes[1], block, places)
            axes = 1, 2
        made, block, q_place, k_place = (
            one.movedim(axes, (-2, -1)) for one in (made, block, *places)
        )
        rest = tuple(made.shape[:-2])
        last = slice(None) if self._sink.rows is None else slice(-self._sink.rows, None)
        real = k_place[(0,) * (made.ndim - 1)] != NOWHERE
        first = int(real.int().argmax())
        q_block, q_place = (
            one[..., first].reshape(-1, made.shape[-2]) for one in (block, q_place)
        )
        k_block, k_place = (
            one[..., 0, real].reshape(len(q_block), -1) for one in (block, k_place)
        )
        order = _arrange(from_queries, q_block[:, 0], q_place[:, 0], rest)
        order = order[: self._sink.room()]
        chosen, device = order.flatten(), made.device

        def taken(matrix: Tensor, *where: Tensor) -> Tensor:
            found: Tensor = matrix[tuple(one[chosen].to(device) for one in where)]
            return found.unflatten(0, order.shape)

        q = taken(queries, q_block[:, last], q_place[:, last])
        k = taken(keys, k_block, k_place)
        shown = made[..., last, :]
        if not bool(real.all()):
            shown = shown[..., real.to(device)]
        shown = shown.reshape(len(q_block), q.shape[2], k.shape[2])
        shown = shown[chosen.to(device)].unflatten(0, order.shape)
        numbers = [
            one.scale(only_last=weights.is_torch) for one in (from_queries, from_keys)
        ]
        scale = math.prod(numbers) * weights.trail.scale()
        arrays = {
            "q": _divided(to_numpy(q), numbers[0]),
            "k": _divided(to_numpy(k), numbers[1]),
            "weights": to_numpy(shown),
        }
        passed = {
            "source": "torch" if weights.is_torch else "written out",
            "scale": None if math.isnan(scale) else scale,
            "mask": weights.trail.mask,
            "cap": weights.trail.cap,
            "queries": made.shape[-2],
        }
        self._sink.add(arrays, passed)
        return ""


def base_name(func: Any) -> str:  # noqa: ANN401
    """Return the name of an operation, whether it writes into its argument or not."""
    name = str(func._schema.name).partition("::")[2]
    return name.removesuffix("_")


def _axes_of(weights: Tensor, row: Tensor, key: Tensor) -> tuple[int, int] | None:
    """Return the axes of queries and of keys, by labels; None if keys have no one axis.

    Where there is a single query, it is an axis of length 1.
    """
    axes = [n for n in range(weights.ndim) if _varies(key, n)]
    others = [n for n in range(weights.ndim) if n not in axes]
    rows = [n for n in others if _varies(row, n)]
    rows = rows or [n for n in others if weights.shape[n] == 1]
    return (rows[-1], axes[0]) if len(axes) == 1 and rows else None


def _sorted_rows(
    weights: Tensor, key_axis: int, block: Tensor, places: Sequence[Tensor]
) -> list[Tensor]:
    """Return weights, and their labels, whose rows of all blocks lie along one axis.

    They get an axis of blocks, one of rows and one of keys.
    """
    weights, block, row, key = (
        one.movedim(key_axis, -1).flatten(0, -2) for one in (weights, block, *places)
    )
    real = int((key[0] != NOWHERE).int().argmax())
    order = torch.argsort(block[:, real] * (int(row.max()) + 1) + row[:, real])
    order = order.reshape(int(block.max()) + 1, -1)
    found = [weights[order.to(weights.device)]]
    return found + [one[order] for one in (block, row, key)]


def _may_begin(name: str, args: Sequence[object]) -> bool:
    """Tell whether an operation scales its argument, or leaves a parameter one."""
    if name in {"mul", "div"}:
        return len(args) > 1 and _number_of(args[1]) is not None
    return name in IN_PLACE and isinstance(args[0], torch.nn.Parameter)


def _number_of(other: object) -> float | None:
    """Return a number that a tensor is multiplied by, if it is one and at hand."""
    if isinstance(other, Tensor):
        if other.ndim or other.device.type != "cpu":
            return None
    elif not isinstance(other, bool | int | float):
        return None
    number = float(other)
    return number if number and math.isfinite(number) else None


def _adds_up_to_one(tensor: Tensor, axis: int) -> bool:
    """Tell whether rows of a tensor may be weights, by the first of its blocks."""
    block = tensor.detach()[0] if tensor.ndim > 2 else tensor.detach()
    if block.shape[axis] < 2 or not block.is_floating_point():
        return False
    block = block.float()
    away = (block.sum(axis) - 1.0).abs().median()
    return bool(away <= FAR_FROM_ONE) and bool((block >= 0.0).all())


def _arrange(
    trail: Trail, blocks: Tensor, places: Tensor, rest: tuple[int, ...]
) -> Tensor:
    """Return the block of each sequence and head, shape (n_sequences, n_heads).

    Heads are pieces of a row of what projects the input, sequences other rows of it.
    Where that is not to be seen, the last of the axes is that of heads; a single one
    is that of sequences.
    """
    n_heads = rest[-1] if len(rest) > 1 else 1
    guessed = torch.arange(len(blocks)).reshape(-1, n_heads)
    try:
        rows, columns = (
            one[blocks, places, 0].tolist() for one in trail.labels(label_tensor)
        )
    except (RuntimeError, IndexError):
        return guessed
    numbers = {place: n for n, place in enumerate(zip(rows, columns, strict=True))}
    sequences, heads = sorted(set(rows)), sorted(set(columns))
    if len(heads) == 1 or not len(sequences) * len(heads) == len(numbers) == len(rows):
        return guessed
    return torch.tensor([[numbers[row, one] for one in heads] for row in sequences])


def _divided(array: NDArray[Any], number: float) -> NDArray[Any]:
    """Return queries or keys before a number that they were multiplied by."""
    if number == 1.0 or math.isnan(number):
        return array
    found: NDArray[Any] = array.astype(np.promote_types(array.dtype, np.float32))
    found /= number
    return found
