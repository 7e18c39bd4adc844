"""What checks and texts must be beyond their types, and the error that says so."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from montecarlo.attention.divisors import parse_divisor, split_pairs
from montecarlo.attention.number_formats import NUMBER_FORMATS, SOFTMAXES
from montecarlo.attention.quantities import (
    FORMAT_QUANTITIES,
    PAIR_QUANTITIES,
    QUANTITIES,
    ROW_QUANTITIES,
    beyond_table,
)
from montecarlo.claims.checks import CONTROL, Check, Domain, Level, Words
from montecarlo.claims.domains import canonical_distributions
from montecarlo.claims.recorded import RECORDED
from montecarlo.errors import InputError
from montecarlo.estimation.summaries import offered_summaries, summaries_compared
from montecarlo.names import look_up
from montecarlo.sampling.design_points import parse_dependence, parse_initialisation
from montecarlo.theory.limits import limit_of


class CatalogueError(InputError):
    """A catalogue that cannot be used; one line with file, claim and field."""


@contextmanager
def name_place(where: str, field: str) -> Iterator[None]:
    """Name the place in the message of an `InputError`."""
    try:
        yield
    except InputError as error:
        raise CatalogueError(f"{where}, field {field}: {error}") from None


_CONTROL = re.compile(f"[{CONTROL}]")


def validate_words(words: Words, where: str, *, own: bool) -> None:
    """Make sure that a text can be shown.

    Parameters
    ----------
    words : str or dict
    where : str
        File and claim, for the message.
    own : bool
        Whether it is a user's, which may be in several languages.

    Raises
    ------
    CatalogueError
        With one line: where, requirement and what came.
    """
    texts = [words] if isinstance(words, str) else list(words.values())
    if not texts or (words not in texts and not own):
        raise CatalogueError(f"{where}: must be a text, got {words!r}")
    for text in texts:
        if found := _CONTROL.search(text):
            raise CatalogueError(
                f"{where}: must have no control character, got {found[0]!a}"
            )


#: Fields that a relation needs, beside those that every check has.
_FIELDS = {
    "equals": {"expected", "tolerance"},
    "at_least": {"low"},
    "at_most": {"high"},
    "between": {"low", "high"},
    "slope_between": {"low", "high"},
    "ratio_of_ends_between": {"low", "high"},
    "tends_to": {"to"},
}
#: These may be open on one side.
_HALF_OPEN = {"slope_between", "ratio_of_ends_between"}


def validate_check(check: Check, where: str) -> None:
    """Make sure that a check can be decided.

    Parameters
    ----------
    check : Check
    where : str
        File, claim and interpretation, for the message.

    Raises
    ------
    CatalogueError
        With one line: where, field, requirement and what came.
    """
    with name_place(where, "quantity"):
        # facts of the texts have no symbol, and belong to our claims alone
        shown = {name: known for name, known in RECORDED.items() if known.symbol}
        look_up("quantity", check.quantity, {**QUANTITIES, **shown})
    with name_place(where, "divisor"):
        _require_divisor(check)
    allowed = {name: name for name in _summaries(check)}
    with name_place(where, "summary"):
        look_up("summary", check.summary, allowed)
    for distribution in check.domain.distributions:
        with name_place(where, "domain.distributions"):
            canonical = canonical_distributions(distribution)
        if distribution != canonical:
            raise CatalogueError(
                f"{where}, field domain.distributions: must be {canonical!r}, "
                f"got {distribution!r}"
            )
    for name in check.domain.dependence:
        with name_place(where, "domain.dependence"):
            _require_canonical(parse_dependence(name).name, name)
    if check.quantity in RECORDED:
        _require_recorded(check, where)
    else:
        _require_sampled(check, where)
    with name_place(where, "number_format"):
        look_up("number_format", check.number_format, NUMBER_FORMATS)
    with name_place(where, "softmax"):
        look_up("softmax", check.softmax, dict.fromkeys(SOFTMAXES))
    _require_acting(check, where)
    for field in ("d_k", "n_keys"):
        low, high = getattr(check.domain, field)
        if low > high:
            raise CatalogueError(
                f"{where}, field domain.{field}: must rise, got [{low}, {high}]"
            )
    _validate_levels(check, where)
    given = {
        field
        for field in ("expected", "tolerance", "low", "high", "to")
        if getattr(check, field) is not None
    }
    needs = _FIELDS[check.relation]
    open_sided = check.relation in _HALF_OPEN and given and given < needs
    if given != needs and not open_sided:
        needed = " and ".join(sorted(needs))
        got = ", ".join(sorted(given)) or "none"
        raise CatalogueError(
            f"{where}, field relation: {check.relation} needs {needed}, got {got}"
        )
    if check.relation == "tends_to":
        _validate_limit(check, where)
    if check.threshold is not None and check.threshold.bound not in given:
        raise CatalogueError(
            f"{where}, field threshold.bound: must be one of the bounds given, "
            f"got {check.threshold.bound!r}"
        )


def _require_sampled(check: Check, where: str) -> None:
    """Require canonical initialisations, and no parts."""
    for name in check.domain.initialisation:
        with name_place(where, "domain.initialisation"):
            initialisation = parse_initialisation(name)
            _require_canonical(initialisation.name if initialisation else "", name)
    if check.domain.part:
        raise CatalogueError(
            f"{where}, field domain.part: must be left out for {check.quantity}, which "
            f"is sampled, got {list(check.domain.part)}"
        )


def _require_recorded(check: Check, where: str) -> None:
    """Of what is on record a check chooses among what there is, and compares it."""
    quantity = RECORDED[check.quantity]
    for field, known in (
        ("initialisation", quantity.initialisations),
        ("part", quantity.parts),
    ):
        for name in getattr(check.domain, field):
            with name_place(where, f"domain.{field}"):
                look_up(field, name, dict.fromkeys(known))
    left = {"distributions": (), "dependence": ("none",)}
    for field, default in left.items():
        if (given := getattr(check.domain, field)) != default:
            raise CatalogueError(
                f"{where}, field domain.{field}: must be left out for "
                f"{check.quantity}, which is on record, got {list(given)}"
            )
    if check.along_d_k or check.expected == "reference":
        raise CatalogueError(
            f"{where}, field relation: must compare {check.quantity}, which is on "
            f"record, with a number, got {check.relation}"
        )


def _require_acting(check: Check, where: str) -> None:
    """Refuse what the quantity does not read: it would seem to have been judged."""
    if check.quantity not in FORMAT_QUANTITIES:
        for field, default in (("number_format", "float64"), ("softmax", "shifted")):
            if (given := getattr(check, field)) != default:
                raise CatalogueError(
                    f"{where}, field {field}: must be left out for {check.quantity}, "
                    f"which has no number formats, got {given!r}; those that have: "
                    f"{', '.join(FORMAT_QUANTITIES)}"
                )
    n_keys = check.domain.n_keys
    rowless = check.quantity in PAIR_QUANTITIES or check.quantity in RECORDED
    if rowless and n_keys != Domain().n_keys:
        raise CatalogueError(
            f"{where}, field domain.n_keys: must be left out for {check.quantity}, "
            f"which has no rows, got {list(n_keys)}"
        )
    low, high = check.domain.d_k
    if check.along_d_k and low == high:
        raise CatalogueError(
            f"{where}, field domain.d_k: must hold several sizes for "
            f"{check.relation}, got [{low}, {high}]"
        )


def _validate_limit(check: Check, where: str) -> None:
    """Theory knows what becomes of some quantities, undivided, for Gaussian entries."""
    if check.divisor != "none" or check.domain.distributions != ("gaussian",):
        raise CatalogueError(
            f"{where}, field relation: tends_to needs the divisor none and the "
            f"distributions ['gaussian'], got {check.divisor!r} and "
            f"{list(check.domain.distributions)}"
        )
    if limit_of(check.quantity, check.summary, check.domain.n_keys[0]) is None:
        raise CatalogueError(
            f"{where}, field relation: tends_to needs a quantity and summary whose "
            f"limit is known, got {check.quantity!r} and {check.summary!r}"
        )


def _require_canonical(canonical: str, given: str) -> None:
    if given != canonical:
        raise InputError(f"must be {canonical!r}, got {given!r}")


def _validate_levels(check: Check, where: str) -> None:
    """Bounds rise, and depend on sizes that a case has."""
    pairs = check.quantity in (*PAIR_QUANTITIES, *RECORDED)
    for field in ("expected", "low", "high"):
        level = getattr(check, field)
        for power, lacking in (("d_k_power", check.along_d_k), ("n_keys_power", pairs)):
            if isinstance(level, Level) and lacking and getattr(level, power) != 0.0:
                raise CatalogueError(
                    f"{where}, field {field}.{power}: must be 0 where a case has no "
                    f"such size, got {getattr(level, power)!r}"
                )
    bounds = {"low": check.low, "high": check.high}
    if check.threshold is not None:
        bounds |= {"start": check.threshold.start, "stop": check.threshold.stop}
    for first, last in (("low", "high"), ("start", "stop")):
        low, high = bounds.get(first), bounds.get(last)
        if not isinstance(low, float) or not isinstance(high, float):
            continue
        if low > high or (first == "start" and low == high):
            limit = "at most" if first == "low" else "below"
            raise CatalogueError(
                f"{where}, field {first}: must be {limit} {last}, {high!r}, got {low!r}"
            )


def _require_divisor(check: Check) -> None:
    """Require a divisor under which a check's quantity is measured."""
    name, quantity = check.divisor, check.quantity
    if quantity in RECORDED:
        look_up("divisor", name, dict.fromkeys(RECORDED[quantity].divisors))
        return
    one = QUANTITIES[quantity]
    _, ratios = split_pairs([name])
    if ratios and not one.compared:
        raise InputError(f"must be one divisor for {quantity}, got {name!r}")
    if not ratios and not one.divisors((name,)):
        raise InputError(f"must be 'none' for {quantity}, got {name!r}")
    if one.of == "pairs":
        if not one.divided and name != "none":
            raise InputError(f"must be 'none' for {quantity}, got {name!r}")
        if parse_divisor(name).needs_keys:
            raise InputError(
                f"must not depend on n for {quantity}, which has no keys, got {name!r}"
            )


def _summaries(check: Check) -> tuple[str, ...]:
    """Name the summaries that a check's quantity has under its divisor."""
    if check.quantity in RECORDED:
        return (RECORDED[check.quantity].summary,)
    if check.quantity in PAIR_QUANTITIES:
        return ("value",)
    if check.quantity in FORMAT_QUANTITIES:
        return ("mean",)
    if "/" in check.divisor:
        return summaries_compared(ROW_QUANTITIES[check.quantity])
    asked = [summary for _, summary in beyond_table(check.quantity, check.summary)]
    return (*asked, *offered_summaries(ROW_QUANTITIES[check.quantity]))
