"""Numbers of the catalogue's checks and the words about them say the same.

A number in what an interpretation says is one of its checks' numbers, a range of d_k in
it is their domain, counts and ranges in sentences are values, and a bound that no word
gives is that of the house rule, which is written down here a second time.
"""

import math
import re

import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.checks import Level
from montecarlo.claims.words import without_measure

CATALOGUE = read_catalogue()
INTERPRETATIONS = {
    f"{claim.id}, {interpretation.id}": interpretation
    for claim in CATALOGUE.claim
    for interpretation in claim.interpretation
}

#: A number of a formula, or a fraction; not a subscript or an exponent.
NUMBER = re.compile(r"(?<![\w{.])(\d+(?:\.\d+)?)(?:/(\d+))?(\\,\\%)?")
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
#: Vague words have one number each; so have those of fractions.
WORDS = {
    r"\bhalf\b(?! a decade)": 0.5,
    r"\bquarter\b(?! more)": 0.25,
    r"\bthird more\b": 1.334,  # rounded up, above 10 ** (1 / 8)
    r"\b[Tt]hree of four\b": 0.75,
    r"\band twice\b": 2.0,
    r"\beighth\b": 0.125,
    r"(?<!nine )\btenths?\b": 0.1,
    r"\bnine tenths\b": 0.9,
    r"\bin a hundred\b": 0.01,
    r"\border of magnitude\b": 10.0,
    r"\bten times\b": 10.0,
    r"\bsaturated\b": 0.9,
    r"\b[Mm]ore balanced than\b|\blower than with|\bless than unscaled": 1.0,
    r"\bis larger than divided by|\bUndivided, more steps": 1.0,
    r"largest number of half precision": 65504.0,
}
#: Words that name no bound: a precision, a divisor, a correlation.
NO_BOUND = re.compile(
    r"half (and in single )?precision|half of \$|a half, a quarter or an eighth of"
)


def numbers_in(text):
    """The numbers that a text gives, in formulas and in words."""
    plain = re.sub(r"%\(\w+\)s", "", text).replace("%%", "%")
    found = set()
    for formula in re.findall(r"\$([^$]*)\$", plain):
        bare = re.sub(r"[\^_](\{[^}]*\}|\\?\w+)|mathrm\{\w+\}", "", formula)
        for over, under, percent in NUMBER.findall(bare):
            found.add(float(over) / float(under or 1) / (100.0 if percent else 1.0))
    words = NO_BOUND.sub("", plain)
    return found | {number for word, number in WORDS.items() if re.search(word, words)}


def bounds_of(check):
    """The numbers that a check compares with."""
    levels = (check.low, check.high, check.expected)
    found = {one.times for one in levels if isinstance(one, Level)} - {1.0}
    found |= {abs(one) for one in levels if isinstance(one, float | int)}
    return {round(one, 12) for one in found}


#: What indicators ask for, and where the distribution of a score is looked at.
OF_QUANTITIES = {
    "saturated": {0.9},
    "jacobian_trace_saturated": {0.9},
    "score_distribution_gap": {0.742},
}


def numbers_of(check):
    """All numbers of a check: bounds, the ends of its domain, its distributions."""
    found = bounds_of(check) | OF_QUANTITIES.get(check.quantity, set())
    found |= {*check.domain.d_k, *check.domain.n_keys, check.tolerance or 0.0}
    for name in (*check.domain.distributions, *check.domain.dependence):
        found |= {float(one) for one in re.findall(r"[=(](\d+\.?\d*)", name)}
    return found


#: Numbers of words that are no numbers of a check: ends of an interval and of a limit,
#: a formula, a slope's margin, sizes between the ends of a domain or of other entries.
OTHER_NUMBERS = {
    "variance-equals-dimension, equals": {16.0},
    "scaled-variance-one, equals": {16.0},
    "linear-variance, equals": {16.0},
    "variance-grows-linearly, slope": {0.02},
    "standard-deviation-root, equals": {0.025},
    "double-root-variance, equals": {2.0},
    "variance-d-sigma-squared, formula": {1.0},
    "softmax-sensitive, eight-times": {1.0, 8.0},
    "unscaled-gradient-vanishes, saturated": {0.0, 1.0},
    "unscaled-gradient-vanishes, typical": {0.0, 128.0},
    "unscaled-one-hot, large": {0.0, 1.0, 128.0},
    "linear-shrinks-differences, row": {1.0},
    "linear-cannot-focus, lost": {1.0 / 128.0},
    "linear-gradient, query": {1.0},
    "scaled-gradient-stable, spread": {0.1},
    "large-scores-overflow, as-written": {8.0, 1024.0},
    "root-keeps-arithmetic-safe, safe": {65504.0},  # of which the check has the log
    "works-in-training, learns": {64.0},
    "works-in-training, sizes": {64.0},
    "works-in-training, rates": {64.0},
}


def words_of(interpretation):
    """What an interpretation says: its label, or what was tested.

    What goes beyond what is said has a formula in place of words.
    """
    return interpretation.label or interpretation.tested


def unknown_numbers(interpretation):
    """The numbers of its words that no check of an interpretation has."""
    known = set().union(*map(numbers_of, interpretation.check))
    return numbers_in(words_of(interpretation)) - known


def test_numbers_of_words_are_those_of_checks():
    """An interpretation gives no number that its checks do not have."""
    for name, interpretation in INTERPRETATIONS.items():
        found = unknown_numbers(interpretation)
        assert found <= OTHER_NUMBERS.get(name, set()), name


RANGE = re.compile(r"(?:from \$d_k = |\$?d_k\$,? from \$)(\d+)\$ (?:to \$(\d+)\$|on\b)")


def ranges_in(text):
    """The ranges of d_k that a text names; None for an open end."""
    return [(int(a), int(b) if b else None) for a, b in RANGE.findall(text)]


def is_domain(named, check):
    """Tell whether a range in words is the domain of a check."""
    low, high = check.domain.d_k
    return named in ((low, high), (low, None))


def test_ranges_in_words_are_domains():
    """Every check of an interpretation looks at the d_k that its words name."""
    for name, interpretation in INTERPRETATIONS.items():
        for named in ranges_in(words_of(interpretation)):
            assert all(is_domain(named, one) for one in interpretation.check), name


# --- Findings ------------------------------------------------------------------------

#: Findings of a line of the report that are shorter than those behind it.
SHORT = {
    f"{claim.id}, {number}": (claim, finding)
    for claim in CATALOGUE.claim
    for number, finding in enumerate(claim.finding, start=1)
    if finding.short
}


@pytest.mark.parametrize("name", SHORT)
def test_numbers_of_a_line_stand_in_its_details(name):
    """Each number of a finding in the table is one of the finding behind it, or of what
    is claimed or tested: that of the same case, since its name is the same.
    """
    claim, finding = SHORT[name]
    named, behind = (
        set(PLACEHOLDER.findall(text)) for text in (finding.short, finding.text)
    )
    assert named <= behind
    tested = [one.tested for one in claim.interpretation]
    said = [finding.text, claim.statement, *tested]
    assert numbers_in(finding.short) <= set().union(*map(numbers_in, said))


def test_findings_are_read_at_once():
    """At most 25 words stand in a line of the table; a formula is a word."""
    for claim in CATALOGUE.claim:
        for finding in claim.finding:
            text = re.sub(r"\$[^$]*\$", "formula", finding.short or finding.text)
            assert len(text.replace("%%", "").split()) <= 25, claim.id


@pytest.mark.parametrize("word", ["threshold", "no measure", "(ja"])
def test_findings_do_not_refuse_the_question(word):
    """The number answers; which text says it otherwise stands in another column."""
    for claim in CATALOGUE.claim:
        for text in [claim.statement, *(one.text for one in claim.finding)]:
            assert word not in text, claim.id


# --- What no word says ----------------------------------------------------------------

#: The tolerances of the house.
TOLERANCES = {
    "entry_variance_q": 0.05,
    "score_variance": 0.05,
    "score_row_variance": 0.05,
    "score_std": 0.0247,
    "score_mean": 0.05,
}
#: Slopes are within 0.02 of what is said, those of means of gradients within 0.0687.
SLOPES = ({0.02}, {0.98, 1.02}, {0.0687}, {0.0})
#: Reading aids: bounds of what is vague, ours, which decide nothing.
OURS = {
    "magnitude-grows, explode": {10.0},
    "scaled-score-twenty-two, aligned": {10.0},
    "scores-within-range, large": {4.0},
    "scaling-avoids-extremes, three": {3.0},
    "softmax-sensitive, eight-times": {0.1},
    "unscaled-one-hot, can": {0.1},
    "unscaled-one-hot, far-larger": {0.9},
    "underscaled-one-hot, can": {0.1},
    "scaled-balanced, between": {0.25, 0.9, 0.5},
    "scaled-balanced, unsaturated": {0.01},
    "linear-cannot-focus, lost": {2.0},
    "double-root-harms, affects": {0.5},
    "unscaled-gradient-vanishes, can": {0.1},
    "unscaled-vanishes-for-most, peaked": {1.0},
    "unscaled-gradient-explodes, query": {10.0},
    "scaled-gradient-stable, spread": {10.0},
    "root-keeps-arithmetic-safe, stable": {0.01},
    "works-in-training, learns": {0.75},
    "works-in-training, sizes": {0.5, 2.0},
    # three rates half a decade apart are a decade; counts differ by one of them
    "works-in-training, rates": {3.0},
    "linear-hurts-performance, slower": {1.334},
    "linear-gradient, jacobian": {0.1},
    "linear-gradient, query": {0.1},
}
#: Bounds of interpretations that neither their words nor a rule gives, or that the
#: claim does: no smaller than unscaled, or than divided by the root, is 1.
BOUNDS = OURS | {
    "unit-variance-at-start, variance": {1.0},
    "variance-d-sigma-squared, formula": {4.0},
    "scaled-variance-one, equals": {1.0},
    "scaled-mean-zero, premise": {0.0},
    "double-root-variance, equals": {0.25},
    "score-reaches-dimension, size": {256.0},
    "scaled-balanced, more-than-unscaled": {1.0},
    "linear-near-uniform, limit": {1.0},
    "linear-cannot-focus, weight": {1.0},
    "unscaled-gradient-vanishes, saturated": {2.0},
    "gradient-sets-update, grows": {0.1},
    # the logarithm of 65504
    "root-keeps-arithmetic-safe, safe": {11.08986},
}


def unsaid(name, interpretation):
    """The bounds and tolerances of an interpretation that no word and no rule gives."""
    said = numbers_in(words_of(interpretation))
    found = set()
    for check in interpretation.check:
        bounds = bounds_of(check)
        if check.relation == "slope_between" and bounds in SLOPES:
            bounds = set()
        found |= bounds - said
        if check.tolerance not in (None, TOLERANCES.get(check.quantity)):
            found.add(check.tolerance)
    return found - {round(one, 12) for one in BOUNDS.get(name, ())}


def test_bounds_that_no_word_gives_are_the_rule():
    """A bound stands in its words, or is that of the house, or is listed here."""
    for name, interpretation in INTERPRETATIONS.items():
        assert interpretation.beyond or not unsaid(name, interpretation), name
        assert (name in OURS) <= bool(without_measure(interpretation.words)), name


@pytest.mark.parametrize("check", [s.check for s in CATALOGUE.self_check])
def test_self_checks_are_no_looser_than_they_were(check):
    """Self-checks compare within a tenth, those of emulated rounding within a quarter:
    what rounding is told from by (a cut is off by 0.43).  What is exact has none.
    """
    for one in check:
        if one.quantity == "training_rescaled":
            assert (one.relation, one.high) == ("at_most", 0.0)
            continue
        most = 0.25 if one.quantity == "format_error" else 0.1
        assert one.relation == "equals"
        assert one.tolerance <= most


def test_self_checks_expect_what_their_words_say():
    """The weight of a planted key is that of the formula, with n = 128; rounding errs
    by a quarter of a unit in the last place: 2**-10 in float16, 2**-7 in bfloat16.
    """
    expected = {
        (check.quantity, check.number_format): check.expected
        for self_check in CATALOGUE.self_check
        for check in self_check.check
        if check.relation == "equals" and check.expected != "reference"
    }
    planted = math.exp(0.5) / (127.0 + math.exp(0.5))
    assert expected.pop(("planted_weight", "float64")) == pytest.approx(planted, 1e-4)
    assert expected == {
        ("score_variance_ratio", "float64"): 1.0,
        ("entropy_identity", "float64"): 0.0,
        ("format_error", "float16"): 2.0**-12,
        ("format_error", "bfloat16"): 2.0**-9,
    }


# --- What is wrong is seen ------------------------------------------------------------


SENTENCES = {
    f"{claim.id}, {place}": sentence
    for claim in CATALOGUE.claim
    for sentence, place in claim.sentences()
} | {p.id: p.sentence for p in CATALOGUE.passage}


#: Rows that theory knows exactly, where entries are Gaussian and independent.
KNOWN = {
    *(("jacobian_trace", "mean"), ("saturated", "mean"), ("score_max", "mean")),
    *(("weight_max", "mean"), ("weight_max", "median")),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_numbers_that_theory_knows_are_exact(name):
    """As one share is, so is the mean trace beside it: a measured one stands beside the
    exact one, or where that is what it is held against.
    """
    values = SENTENCES[name].value.values()
    exact = {v.check for v in values if v.of == "known"}
    for value in values:
        if value.interpretation is not None or value.count is not None:
            continue
        check = SENTENCES[name].check[value.check]
        plain = (check.quantity, check.summary) in KNOWN and "/" not in check.divisor
        if plain and check.relation in ("between", "at_least", "at_most"):
            sizes = value.of in ("d_k", "n_keys")
            assert sizes or value.check in exact, check
