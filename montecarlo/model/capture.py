"""What a model hands to attention, while it runs: a context manager.

It records calls of ``torch.nn.functional.scaled_dot_product_attention``, and of the
attention functions that transformers (from version 5 on) hands out to its models:
queries and keys as they are multiplied, after rotary embeddings, with heads of keys
still grouped; attention weights where the function gives them back, else values and
outputs; and the scale, mask and cap that were passed.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from montecarlo.errors import InputError
from montecarlo.model.captured import ROWS, SEQUENCES, Captured


@contextmanager
def capture(
    model: object | None = None,
    *,
    rows: int | None = ROWS,
    sequences: int = SEQUENCES,
) -> Iterator[Captured]:
    """Record what is handed to attention while the block runs.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Each call of it is a pass over further sequences; without it, all calls of
        attention are layers of one pass.
    rows : int or None
        Queries of each sequence that are kept, the last ones; None for all.
    sequences : int
        That are kept at most.

    Yields
    ------
    Captured

    Notes
    -----
    What a model multiplies and puts through softmax by itself is not seen, nor what
    runs compiled, nor the fast path of ``torch.nn.MultiheadAttention`` in evaluation
    without gradients.  transformers is seen if it was imported before.

    Raises
    ------
    InputError
        If an option is not usable, or torch is not there.
    """
    for name, value in (("rows", rows), ("sequences", sequences)):
        wrong = not isinstance(value, int) or value < (2 if name == "rows" else 1)
        if wrong and not (name == "rows" and value is None):
            least = 2 if name == "rows" else 1
            raise InputError(
                f"{name} must be a whole number of at least {least}, got {value!r}"
            )
    from montecarlo.model.torch_calls import recording

    captured = Captured(rows, sequences)
    with recording(captured, model):
        yield captured
