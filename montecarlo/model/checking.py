"""Checks for tests: that a model divides its scores by the expected divisor."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from montecarlo.errors import InputError, show
from montecarlo.model import answers
from montecarlo.model.arrays import NAMES, Model, open_arrays
from montecarlo.model.captured import Captured
from montecarlo.model.expected import Config, find_expected
from montecarlo.model.files import open_files
from montecarlo.model.scales import find_scales
from montecarlo.names import require_number

#: What `capture` recorded; the path of a file; or arrays by name, q, k, and
#: weights or v and outputs.
Source = Captured | Mapping[str, ArrayLike] | str | Path
SOURCES = "what `with capture() as it` gave, arrays by name, or a path"


def open_source(
    source: Source,
    axes: Sequence[str] | None = None,
    name: str = "captured",
) -> tuple[Model, ...]:
    """Return the arrays of a source as models: one for each group of similar layers.

    Only a `Captured` may have several groups: layers of different sizes.

    Parameters
    ----------
    source : Captured, mapping, or path
    axes : sequence of str, optional
        Names of the axes of arrays or a file; by default all of `AXES`.  Not used for a
        `Captured`.
    name : str
        What messages call the source.

    Raises
    ------
    InputError
        If the source is none of these or not usable, or a name of an array is not in
        `NAMES`.
    """
    if isinstance(source, str | Path):
        return (open_files([Path(source)], axes=axes),)
    if isinstance(source, Mapping):
        if unknown := [one for one in source if one not in NAMES]:
            raise InputError(
                f"arrays must be among {', '.join(NAMES)}, got {unknown[0]!r}"
            )
        return (open_arrays(source, axes),)
    if not isinstance(source, Captured):
        raise InputError(f"{name} must be {SOURCES}, got {show(source)}")
    return source.models()


def assert_attention_scale(
    captured: Source,
    expect: str | float | None = None,
    rtol: float = answers.RTOL,
    axes: Sequence[str] | None = None,
    config: Config | str | Path | None = None,
) -> None:
    """Raise AssertionError unless every head divides scores by the expected divisor.

    Parameters
    ----------
    captured : Captured, mapping, or path
        What `montecarlo.capture` recorded; or arrays ``q`` and ``k`` with ``weights``,
        or with ``v`` and ``outputs``, with the axes of `montecarlo.observe`; or an npz
        or pt file of such arrays.
    expect : str or float, optional
        The expected divisor: a name, such as ``sqrt``; a number; or ``config`` for the
        divisor that the configuration of the model implies, by the convention of its
        architecture.  By default ``config`` if there is a configuration, else ``sqrt``.
    rtol : float
        Largest relative difference from the expected divisor, above 0 and below 1.
    axes : sequence of str, optional
        Names of the axes of arrays, as for `montecarlo.observe`:
        ``("head", "token", "d")``.
    config : mapping or path, optional
        A configuration of transformers, or the path of its ``config.json``; by default
        that of the captured model.

    Raises
    ------
    AssertionError
        If a head divides by another divisor, or has another part than is configured,
        such as a cap.  Also if a divisor cannot be determined, if some attention may
        have been missed, or if the architecture is not known.  Heads whose arrays are 0
        do not count.  The message names layers, heads and divisors.
    InputError
        If the source, or an option, is not usable.
    """
    __tracebackhide__ = True
    found = answer_models(captured, expect, rtol, axes, config)
    if any(one.answer != answers.YES for one in found):
        lines = ([answers.say_answer(one), *answers.say_findings(one)] for one in found)
        raise AssertionError("\n".join(map("\n  ".join, lines)))


def answer_models(
    captured: Source,
    expect: str | float | None = None,
    rtol: float = answers.RTOL,
    axes: Sequence[str] | None = None,
    config: Config | str | Path | None = None,
) -> list[answers.ScaleAnswer]:
    """Return the answers by which `assert_attention_scale` passes or fails.

    There is one for each group of layers of the same sizes.  Parameters are those of
    `assert_attention_scale`.
    """
    require_number("rtol", rtol, 0.0, 1.0, ends=False)
    models = open_source(captured, axes)
    known = captured if isinstance(captured, Captured) else Captured()
    found, seen = [], (known.missed, known.caps)
    for model in models:
        expected = find_expected(model, expect, config, known.callers)
        found.append(answers.answer_scales(find_scales(model), expected, rtol, *seen))
    return found
