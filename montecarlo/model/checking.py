"""For tests of others: that a model divides by what it should, and as another does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from montecarlo.errors import InputError, show
from montecarlo.model.answers import (
    RTOL,
    YES,
    ScaleAnswer,
    answer_scales,
    say_answer,
    say_findings,
)
from montecarlo.model.arrays import FEWEST, NAMES, Model, open_arrays
from montecarlo.model.captured import Captured
from montecarlo.model.expected import Caller, Config, find_expected
from montecarlo.model.files import open_files
from montecarlo.model.scales import find_scales
from montecarlo.names import require_number

#: Something captured; a path of an npz or pt file; arrays by name: q, k, and weights or
#: v and outputs, with all axes.
Source = Captured | Mapping[str, ArrayLike] | str | Path


def open_source(
    source: Source,
    axes: Sequence[str] | None = None,
    names: str | None = None,
    fewest: Mapping[str, int] = FEWEST,
) -> tuple[Model, ...]:
    """Return the models of something captured, of arrays, or of a file."""
    if isinstance(source, str | Path):
        return (open_files([Path(source)], axes=axes, names=names),)
    if names is not None:
        raise InputError(f"names must stand with a file, got {show(names)}")
    if isinstance(source, Mapping):
        if unknown := [name for name in source if name not in NAMES]:
            raise InputError(
                f"arrays must be among {', '.join(NAMES)}, got {unknown[0]!r}"
            )
        return (open_arrays(source, axes, fewest=fewest),)
    if not callable(getattr(source, "models", None)):
        raise InputError(
            "captured must be what capture() gave, arrays by name, or a path, got "
            f"{show(source)}"
        )
    return source.models()


def assert_attention_scale(
    captured: Source,
    expect: str | float | None = None,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
    config: Config | str | Path | None = None,
) -> None:
    """Make sure that every head divides its scores by what is expected.

    Parameters
    ----------
    captured : Captured, mapping, or path
        What `montecarlo.capture` recorded; arrays ``q`` and ``k`` with ``weights``, or
        with ``v`` and ``outputs``, axes as for `montecarlo.observe`; or an npz file of
        these.
    expect : str or float, optional
        The divisor: ``config`` for what the model's configuration says, by the
        convention of its architecture; a name, such as ``sqrt``; or a number.  By
        default ``config`` where there is a configuration, else ``sqrt``.
    rtol : float
        How far it may be off, as a part of it.
    axes : sequence of str, optional
        Of arrays, as for `montecarlo.observe`: ``("head", "token", "d")``.
    config : mapping or path, optional
        A configuration of transformers, or its ``config.json``, for arrays, files and
        models of one's own; by default that of the captured model.

    Raises
    ------
    AssertionError
        If a head divides by something else, or it cannot be told, as where the
        architecture is not known.
    InputError
        If what was captured, or an option, is not usable.
    """
    __tracebackhide__ = True
    told = answer_models(captured, expect, rtol, axes, config)
    if any(one.answer != YES for one in told):
        said = ["\n  ".join([say_answer(one), *say_findings(one)]) for one in told]
        raise AssertionError("\n".join(said))


def answer_models(
    captured: Source,
    expect: str | float | None = None,
    rtol: float = RTOL,
    axes: Sequence[str] | None = None,
    config: Config | str | Path | None = None,
) -> list[ScaleAnswer]:
    """Return what `assert_attention_scale` asserts, for each kind of layer."""
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    models = open_source(captured, axes)
    callers: Sequence[Caller] = ()
    missed: tuple[str, ...] = ()
    caps: Mapping[int, float | None] = {}
    if not isinstance(captured, str | Path | Mapping):
        callers, missed, caps = captured.callers, captured.missed, captured.caps
    answers = []
    for model in models:
        expected = find_expected(model, expect, config, callers)
        answers.append(answer_scales(find_scales(model), expected, rtol, missed, caps))
    return answers
