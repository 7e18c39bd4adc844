"""What alternative texts and captions say of figures, from the tables of results."""

from collections.abc import Callable, Sequence

from pandas import DataFrame

from montecarlo.claims.outcomes import ClaimOutcome, InterpretationOutcome
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.drawing.specs import Fact, FigureSpec
from montecarlo.report.figures.judging.judgement import drawn_interpretations

#: Numbers of facts that are sizes, and what they are called in data.
SIZES = {"d_k": "d_k", "n": "n", "low": "least_d_k", "fewest": "fewest_keys"}


def figure_facts(measurements: DataFrame, curves: DataFrame) -> dict[str, Fact]:
    """Pick the numbers of every figure that the results have data for, by its id.

    Mostly ``first``, ``second``, their errors, and ``d_k`` and ``n``.
    """
    found = {n: spec.fact(measurements, curves) for n, spec in FIGURES.items()}
    return {name: fact for name, fact in found.items() if fact is not None}


def numbers_in_words(
    spec: FigureSpec, fact: Fact, write: Callable[..., str]
) -> dict[str, str]:
    """Write what a figure's words name; ``write`` takes a number and its error."""
    known = {**spec.constants, **fact}
    return {
        name: one if isinstance(one, str) else write(one, known.get(f"{name}_error"))
        for name, one in known.items()
    }


def name_numbers(spec: FigureSpec, fact: Fact) -> dict[str, float | int]:
    """Return the numbers of a fact under names that say what they are, for data.

    A size is a whole number; one that a figure does not have is left out.
    """
    first, second = spec.named
    names = {
        "first": first,
        "first_error": f"{first}_error",
        "second": second,
        "second_error": f"{second}_error",
        "share": "saturated_percent_unscaled",
        "share_error": "saturated_percent_unscaled_error",
    }
    sizes = {SIZES[name]: int(fact[name]) for name in SIZES if fact.get(name)}
    return sizes | {
        names.get(name, name): value
        for name, value in fact.items()
        if name not in SIZES
    }


def threshold_panels(
    curves: DataFrame, claims: Sequence[ClaimOutcome]
) -> list[tuple[ClaimOutcome, InterpretationOutcome]]:
    """Return the claim and interpretation of each panel of the figure of thresholds."""
    by_id = {claim.id: claim for claim in claims}
    return [
        (by_id[name], one)
        for name, part in drawn_interpretations(curves)
        if name in by_id
        for one in by_id[name].interpretations
        if one.id == part
    ]
