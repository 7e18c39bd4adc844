"""Numbers as readers see them: the right digits, in any language, no false zero."""

import math
from decimal import Decimal

import html5lib
import pytest
from babel import Locale
from babel.numbers import get_decimal_symbol, parse_decimal
from hypothesis import example, given, settings
from hypothesis import strategies as st

from montecarlo.report.language.numbers import NumberFormat

CODES = ("en", "de", "zh", "ja", "es")
MINUS = "\N{MINUS SIGN}"
FINITE = st.floats(allow_nan=False, allow_infinity=False)
#: Dividing by a power of ten costs a float its last bits.
ROUNDING = Decimal("1e-14")
#: Numbers that a report may come to show.
USUAL = st.builds(
    lambda sign, mantissa, exponent: sign * mantissa * 10.0**exponent,
    st.sampled_from((1.0, -1.0)),
    st.floats(1.0, 10.0, exclude_max=True),
    st.integers(-300, 300),
)


def numbers(code):
    """Return the format of a language."""
    return NumberFormat(Locale.parse(code))


def read(markup, code):
    """Read numbers back: raw value, shown value, half a unit of the last digit."""
    root = html5lib.parseFragment(markup, namespaceHTMLElements=False)
    found = []
    for element in root.iter():
        if not element.get("value"):
            continue
        outside = element.get("data-power") is not None
        powers = [
            e for e in (root if outside else element) if e.get("class") == "power"
        ]
        exponent = int(powers[0][0].text.replace(MINUS, "-")) if powers else 0
        if outside:
            assert element.get("data-power") == str(exponent)
        written = element.text.replace(MINUS, "-")
        locale = Locale.parse(code)
        shown = parse_decimal(written, locale, strict=True).scaleb(exponent)
        _, _, decimals = written.partition(get_decimal_symbol(locale))
        half = Decimal(5).scaleb(exponent - len(decimals) - 1)
        found.append((Decimal(element.get("value")), shown, half))
    return found


def text(markup):
    """Return what a reader sees; no line breaks at its spaces."""
    found = "".join(html5lib.parseFragment(markup).itertext())
    assert " " not in found
    return found.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.0326637, 0.0298, "1.033 ± 0.030"),
        (16.0, 0.13, "16.00 ± 0.13"),
        (256.117, 0.4258, "256.12 ± 0.43"),
        (-0.25, 0.0075, f"{MINUS}0.2500 ± 0.0075"),
        (12345.678, 1.5, "12,345.7 ± 1.5"),
        (1024.0, 15.0, "1024 ± 15"),
        (1024.0, 150.0, "1024 ± 150"),
        (0.1, 2.0, "0.1 ± 2.0"),
        (-0.04, 0.3, f"{MINUS}0.04 ± 0.30"),
        (0.0, 0.012, "0.000 ± 0.012"),
        (-0.0, 0.012, "0.000 ± 0.012"),
        (1.5e-7, 2e-8, f"(1.50 ± 0.20)×10{MINUS}7"),
        (3e-8, 2e-7, f"(0.3 ± 2.0)×10{MINUS}7"),
        (2.5e8, 1e6, "(2.500 ± 0.010)×108"),
        (1.0, 0.0, "1"),
        (1.0, math.inf, "1"),
        (1.0, None, "1"),
    ],
)
def test_error_sets_the_digits(value, error, shown):
    """Both end where the second digit of the error does, whichever is larger."""
    assert text(numbers("en").with_error(value, error)) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-0.0, "0"),
        (7, "7"),
        (0.5, "0.5"),
        (-1.0, f"{MINUS}1"),
        (0.95, "0.95"),
        (0.9753000000000001, "0.9753"),
        (1 / 3, "0.3333"),
        (1024, "1024"),
        (9999, "9999"),
        (10000, "10,000"),
        (123456, "123,456"),
        (0.001, "0.001"),
        (0.0001, f"1×10{MINUS}4"),
        (-1.25e-7, f"{MINUS}1.25×10{MINUS}7"),
        (2e6, "2×106"),
        (1e300, "1×10300"),
        (1e-300, f"1×10{MINUS}300"),
    ],
)
def test_number_alone_has_no_more_digits_than_it_needs(value, shown):
    """Without an error, whole numbers stay whole and long ones get four decimals."""
    assert text(numbers("en").number(value)) == shown


@pytest.mark.parametrize(
    ("code", "small", "large"),
    [
        ("en", "1234.5", "12,345.6"),
        ("de", "1234,5", "12.345,6"),
        ("es", "1234,5", "12.345,6"),
        ("zh", "1234.5", "12,345.6"),
        ("ja", "1234.5", "12,345.6"),
    ],
)
def test_each_language_has_its_signs(code, small, large):
    """Decimal comma and groups as the language has them; groups from five digits on."""
    assert numbers(code).text(1234.5, 1) == small
    assert numbers(code).text(12345.6, 1) == large
    assert numbers(code).text(-12345.6, 1) == MINUS + large
    assert numbers(code).plain(12345.6, 2.0) == large
    assert text(numbers(code).number(12345.6)) == large


def test_row_cannot_break_out_of_its_attribute():
    """Attributes have no quotes, so a row is of signs that need none."""
    for row in ('"><b>', "a b", "a>b", "a=b"):
        with pytest.raises(ValueError, match="need no quotes"):
            numbers("en").number(1.0, row=row)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.123456, None, "0.123"),
        (123.456, None, "123"),
        (2.0, None, "2"),
        (0.5, 0.0, "0.5"),
        (1.23456, 0.0004, "1.23"),
        (1.23456, 0.39, "1.2"),
        (1.23456, 0.4, "1"),
        (12.3456, 4.0, "12"),
        (1.234e-9, 4e-11, "1.2×10−9"),
        (9.3e-10, 5e-11, "9×10−10"),
        (-0.98765, 0.001, f"{MINUS}0.988"),
    ],
)
def test_numbers_in_prose_are_brief(value, error, shown):
    """Three digits at most; the unit of the last is over a quarter of the error."""
    assert text(numbers("en").brief(value, error)) == shown
    error = error and error / 100
    per_cent = text(numbers("en").brief(value / 100, error, percent=True))
    assert per_cent == f"{shown} %"


def test_open_end_is_a_dash():
    """An infinite end is no number."""
    assert read(numbers("en").number(None), "en") == []
    assert text(numbers("en").interval(None, 1.0, (0.0, None))) == "[–, 1]"


@given(value=FINITE, code=st.sampled_from(CODES))
@example(5e-324, "en")
@example(-2.2e-311, "de")
@example(1.7976931348623157e308, "es")
@example(999999.99999, "de")
@example(9999.99996, "es")
@settings(deadline=None)
def test_number_alone_reads_back(value, code):
    """Any number is shown to half a unit of its last digit, and only 0 as 0."""
    ((raw, shown, half),) = read(numbers(code).number(value), code)
    assert float(raw) == value
    assert abs(shown - raw) <= half + abs(raw) * ROUNDING
    assert (shown == 0) == (value == 0.0)


@given(value=USUAL | st.just(0.0), error=USUAL.map(abs), code=st.sampled_from(CODES))
@example(1.0, 1e-15, "en")
@example(1e-5, 0.1, "de")
@example(123456.7, 2e-9, "es")
@settings(deadline=None, max_examples=200)
def test_value_and_error_read_back(value, error, code):
    """Both read back; an error is never 0, a value only where its error hides it."""
    found = read(numbers(code).with_error(value, error), code)
    assert [float(raw) for raw, _, _ in found] == [value, error]
    for raw, shown, half in found:
        assert abs(shown - raw) <= half + abs(raw) * ROUNDING
    assert found[1][1] > 0
    if abs(value) > error:
        assert found[0][1] != 0


def outcome(low, high, least, most):
    """Return the outcome that an interval and a region tell."""
    if least <= low and high <= most:
        return "supported"
    return "refuted" if high < least or most < low else "undecided"


#: How far an end of an interval lies from an end of its region.
HAIR = st.floats(1e-7, 1e-3) | st.floats(-1e-3, -1e-7)


@given(
    least=st.floats(-10.0, 10.0),
    width=st.floats(1e-2, 10.0),
    scale=st.integers(-9, 9),
    hairs=st.tuples(HAIR, HAIR),
    ends=st.tuples(st.booleans(), st.booleans()),
)
@settings(deadline=None, max_examples=200)
def test_shown_interval_tells_the_outcome(least, width, scale, hairs, ends):
    """However near to an end of the region, the shown interval lies where it lies."""
    size = 10.0**scale
    region = (least * size, (least + width) * size)
    low, high = sorted(
        (region[last] + hair * size) for hair, last in zip(hairs, ends, strict=True)
    )
    found = read(numbers("en").interval(low, high, region), "en")
    shown = [float(number) for _, number, _ in found]
    assert outcome(*shown, *region) == outcome(low, high, *region)


@pytest.mark.parametrize(
    ("low", "high", "region", "shown"),
    [
        (0.867, 1.198, (0.95, 1.05), "[0.867, 1.198]"),
        (0.971077, 1.0199988, (0.98, 1.02), "[0.971077, 1.019999]"),
        (-0.019998, 0.0151, (-0.02, 0.02), f"[{MINUS}0.019998, 0.015100]"),
        (1.0, 1.0, (0.9, 1.1), "[1.000, 1.000]"),
        (0.0, 0.0, (0.0, 1.0), "[0.0, 0.0]"),
        (0.497, 0.515, (0.0, None), "[0.4970, 0.5150]"),
    ],
)
def test_interval_has_the_digits_that_tell(low, high, region, shown):
    """An interval has the digits of its width, and more where its region asks."""
    assert text(numbers("en").interval(low, high, region)) == shown


@pytest.mark.parametrize(
    ("region", "shown"),
    [((0.95, 1.05), "0.95 … 1.05"), ((None, 0.1), "≤ 0.1"), ((1.0, None), "≥ 1")],
)
def test_open_regions_are_bounds(region, shown):
    """A region that is open to a side has no dash for it, which could be a minus."""
    assert text(numbers("en").region(region, 0.3, 0.4)) == shown


@given(
    low=st.floats(-1e7, 1e7),
    width=st.floats(0.0, 10.0) | st.floats(0.0, 1e-6),
    region=st.tuples(st.floats(-10.0, 10.0), st.none() | st.floats(10.0, 20.0)),
)
@settings(deadline=None, max_examples=200)
def test_shown_interval_holds_the_raw_one(low, width, region):
    """Ends are rounded outwards, so that the estimate lies between them."""
    found = read(numbers("en").interval(low, low + width, region), "en")
    shown = [float(number) for _, number, _ in found]
    assert shown[0] <= low <= low + width <= shown[1]


def test_an_open_interval_is_rounded_outwards():
    """One end has no width to go by, and is still no nearer than it was."""
    assert text(numbers("en").interval(0.123456, None, (0.0, None))) == "[0.1234, –]"
    assert text(numbers("en").interval(None, 0.123411, (0.0, None))) == "[–, 0.1235]"


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (None, 0.0431, "≤ 0.044"),
        (0.9511, None, "≥ 0.95"),
        (0.12, 0.16, "[0.120, 0.160]"),
        (None, 1.31e-5, f"≤ 1.4×10{MINUS}5"),
    ],
)
def test_a_bound_has_one_side(low, high, shown):
    """Two digits, rounded outwards; of two ends it is an interval."""
    found = text(numbers("en").bound(low, high))
    assert found == shown


def test_a_factor_stands_beside_what_it_is_of():
    """Two digits of each."""
    found = text(numbers("en").with_factor(4.226e-15, 1.811))
    assert found == f"4.2×10{MINUS}15 ×/÷ 1.8"
