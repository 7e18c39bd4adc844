"""For pytest: the fixture `attention_scale`, which is there where this is installed.

Nothing is imported but these lines until a test asks for the scale.
"""

import math
import shlex
from collections.abc import Callable, Iterator
from inspect import signature
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from montecarlo.model.captured import Captured
    from montecarlo.model.checking import Source

Check = Callable[["Source"], None]


class Recording:
    """Attention that runs in a ``with`` block, checked where the block ends."""

    def __init__(self, model: object | None, check: Check) -> None:
        self.is_used = False
        self._model, self._check = model, check

    def __enter__(self) -> "Captured":
        from montecarlo.model.captured import capture

        self.is_used = True
        self._capture = capture(self._model)
        self._captured = self._capture.__enter__()
        return self._captured

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        self._capture.__exit__(kind, error, trace)
        if kind is None:
            self._check(self._captured)


@pytest.fixture
def attention_scale(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Recording | None]]:
    """Check what scores of attention are divided by, head by head.

    ``with attention_scale(model, expect="sqrt"): model(inputs)`` records a torch model
    and checks it where the block ends; without a model, whatever attention of torch
    runs in the block.  Called with anything else that `assert_attention_scale` takes,
    such as arrays or a file, it checks at once.  Options are those of
    `assert_attention_scale`: ``expect``, ``rtol``, ``axes`` and so on.
    """
    recordings = []

    def checked(
        source: object | None = None,
        **options: Any,  # noqa: ANN401 - of assert_attention_scale
    ) -> Recording | None:
        __tracebackhide__ = True
        from montecarlo.model.checking import assert_attention_scale

        try:  # now, not where the block ends
            signature(assert_attention_scale).bind(source, **options)
        except TypeError as error:
            raise TypeError(f"attention_scale {error}") from None

        def check(found: "Source") -> None:
            __tracebackhide__ = True
            _check(found, request, options)

        is_model = callable(getattr(source, "register_forward_pre_hook", None))
        if source is None or is_model:
            recordings.append(Recording(source, check))
            return recordings[-1]
        check(source)  # type: ignore[arg-type] # refused there if it is no source
        return None

    yield checked
    if not all(one.is_used for one in recordings):
        pytest.fail(
            "attention_scale(model) must stand in a with statement, around a call of "
            "the model: nothing was checked",
            pytrace=False,
        )


def _check(
    found: "Source", request: pytest.FixtureRequest, options: dict[str, Any]
) -> None:
    """Check a source; where it fails, say how to see more of it."""
    __tracebackhide__ = True
    from montecarlo.errors import InputError
    from montecarlo.model.captured import Captured
    from montecarlo.model.checking import answer_models, assert_attention_scale

    try:
        assert_attention_scale(found, **options)
    except InputError as error:  # again, without the way to it
        raise InputError(error) from None
    except AssertionError as error:
        if not isinstance(found, Captured):
            raise
        path = request.getfixturevalue("tmp_path") / "attention.npz"
        try:
            found.save(path)
        except InputError:  # its layers differ in a size
            raise error from None
        # as a number: what happened before attention is not in the file
        divisors = {one.expected.value for one in answer_models(found, **options)}
        if len(divisors) > 1 or not math.isfinite(min(divisors)):
            raise  # it differs by layer, or cannot be told
        more = ["python", "-m", "montecarlo", "observe", str(path), "--expect"]
        more.append(f"{divisors.pop():.12g}")
        raise AssertionError(f"{error}\n  head by head: {shlex.join(more)}") from None
