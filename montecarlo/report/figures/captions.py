"""What stands beside figures: numbers of alternative texts, what panels show."""

from collections.abc import Callable, Sequence

from pandas import DataFrame

from montecarlo.claims.outcomes import ClaimOutcome, InterpretationOutcome
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.specs import Fact, FigureSpec
from montecarlo.report.figures.verdicts import drawn_interpretations

#: Numbers of facts that are sizes, and what they are called in data.
SIZES = {"d_k": "d_k", "n": "n", "low": "least_d_k", "fewest": "fewest_keys"}


def figure_facts(measurements: DataFrame, curves: DataFrame) -> dict[str, Fact]:
    """Pick the numbers of every figure that the results have data for, by its id.

    Mostly ``first``, ``second``, their errors, and ``d_k`` and ``n``.
    """
    return {
        name: fact
        for name, spec in FIGURES.items()
        if spec.fact and (fact := spec.fact(measurements, curves)) is not None
    }


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
    names = {"first": first, "second": second, "share": "saturated_percent_unscaled"}
    names |= {f"{name}_error": f"{called}_error" for name, called in names.items()}
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
        (by_id[claim_id], interpretation)
        for claim_id, interpretation_id in drawn_interpretations(curves)
        if claim_id in by_id
        for interpretation in by_id[claim_id].interpretations
        if interpretation.id == interpretation_id
    ]
