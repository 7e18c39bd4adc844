"""Pytest plugin with the fixture `attention_scale`; active once this is installed.

The rest of the package is imported only when a test calls the fixture.
"""

import math
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from montecarlo.model.captured import Captured
    from montecarlo.model.checking import Source

#: Raises AssertionError if the divisor of a source is not the expected one.
Check = Callable[["Source"], None]


class Recording:
    """Context manager that records attention and checks its scale at the end.

    Parameters
    ----------
    model : object or None
        A torch module; None records all attention of torch that runs in the block.
    check : callable
        Called with the recorded attention unless the block raises.
    """

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
        """Check the recorded attention, unless the block raised an exception."""
        __tracebackhide__ = True
        self._capture.__exit__(kind, error, trace)
        if kind is None:
            self._check(self._captured)


@pytest.fixture
def attention_scale(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Recording | None]]:
    """Fixture: a function that checks the divisor of attention scores by head.

    ``with attention_scale(model, expect="sqrt"): model(inputs)`` records a torch model
    and checks it at the end of the block.  Without a model, all attention of torch in
    the block is recorded.  Other sources of `assert_attention_scale`, such as arrays or
    a file, are checked at once.  The options are those of `assert_attention_scale`,
    such as ``expect``, ``rtol`` and ``axes``.

    A test also fails if it asks for a recording without a with statement.
    """
    recordings = []

    def check_scale(
        source: object | None = None,
        **options: Any,  # noqa: ANN401 - of assert_attention_scale
    ) -> Recording | None:
        """Check arrays or a file now and return None; return a `Recording` of a model.

        The `Recording` checks at the end of its with block.  It is appended to
        ``recordings``.  Without ``source``, all attention of torch is recorded.
        """
        __tracebackhide__ = True
        from montecarlo.model.checking import assert_attention_scale

        try:  # report a wrong option here, not at the end of the block
            signature(assert_attention_scale).bind(source, **options)
        except TypeError as error:
            raise TypeError(f"attention_scale {error}") from None

        check = partial(_check, request=request, options=options)
        is_model = callable(getattr(source, "register_forward_pre_hook", None))
        if source is None or is_model:
            recordings.append(Recording(source, check))
            return recordings[-1]
        check(source)  # type: ignore[arg-type] # raises if it is no source
        return None

    yield check_scale
    if not all(one.is_used for one in recordings):
        pytest.fail(
            "attention_scale(model) must stand in a with statement that calls the "
            "model: nothing was checked",
            pytrace=False,
        )


def _check(
    source: "Source", request: pytest.FixtureRequest, options: dict[str, Any]
) -> None:
    """Call `assert_attention_scale` with ``options``; a failure may name a command.

    The command shows each head of the recorded attention, which is saved in
    ``tmp_path`` of the test that made ``request``.  There is none for arrays and files,
    if the recording cannot be saved, or unless all heads have one expected divisor.
    """
    __tracebackhide__ = True
    from montecarlo.errors import InputError
    from montecarlo.model.captured import Captured
    from montecarlo.model.checking import answer_models, assert_attention_scale

    try:
        assert_attention_scale(source, **options)
    except InputError as error:  # raise again with a short traceback
        raise InputError(error) from None
    except AssertionError as error:
        if not isinstance(source, Captured):
            raise
        path = request.getfixturevalue("tmp_path") / "attention.npz"
        try:
            source.save(path)
        except InputError:  # its layers differ in a size
            raise error from None
        # the expected divisor as a number: the file lacks what its name depends on
        divisors = {one.expected.value for one in answer_models(source, **options)}
        if len(divisors) > 1 or not math.isfinite(min(divisors)):
            raise  # it differs between layers, or is not determined
        more = ["python", "-m", "montecarlo", "observe", str(path), "--expect"]
        more.append(f"{divisors.pop():.12g}")
        raise AssertionError(f"{error}\n  head by head: {shlex.join(more)}") from None
