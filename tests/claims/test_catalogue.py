"""Reading a catalogue: what is wrong is found at once, and the message says where."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.catalogue import (
    CatalogueError,
    parse_catalogue,
    read_catalogue,
)
from montecarlo.claims.checks import Level, level_at
from montecarlo.claims.schema import Catalogue, Sentences
from montecarlo.claims.verdicts import claim_verdict

SENTENCES = dict.fromkeys(("supported", "refuted", "conditional", "inconclusive"), "x")
CHECK = {"quantity": "score_variance", "summary": "value", "relation": "at_least"}


def make(claim=None, reading=None, **check):
    """A catalogue of one claim with one check; fields that are None are left out."""
    merged = {**CHECK, "low": 0.0, **check}
    check = {field: value for field, value in merged.items() if value is not None}
    entry = {
        "id": "the-claim",
        "topic": "variance",
        "statement": "s",
        "source": [{"text": "a", "section": "1"}],
        "sentences": SENTENCES,
        "reading": [{"id": "the-reading", "check": [check], **(reading or {})}],
        **(claim or {}),
    }
    entry = {field: value for field, value in entry.items() if value is not None}
    return {"text": [{"key": "a", "name": "A", "language": "en"}], "claim": [entry]}


def message_of(data):
    """The one line with which a catalogue is refused."""
    with pytest.raises(CatalogueError) as caught:
        parse_catalogue(data, "my.toml")
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_catalogue_of_the_package():
    """The package's own catalogue is valid, and its claims and texts have ids of their
    own.
    """
    catalogue = read_catalogue()

    assert len({claim.id for claim in catalogue.claim}) == len(catalogue.claim) >= 10
    assert {text.language for text in catalogue.text} == {"de", "zh", "ja", "es"}
    assert all(check.quantity in QUANTITIES for check in catalogue.checks())


def test_the_plain_catalogue_is_valid():
    """The catalogue that the tests below spoil is a valid one."""
    catalogue = parse_catalogue(make(), "my.toml")

    assert catalogue.claim[0].reading[0].check[0].low == 0.0
    assert parse_catalogue({}, "my.toml") == Catalogue()


NAN, INF = math.nan, math.inf
#: Change of the check, field that the message must name, and what else it must say.
WRONG_CHECKS = [
    ({"quantity": "score_varience"}, "quantity", "Did you mean 'score_variance'?"),
    ({"quantity": "zzz"}, "quantity", "score_variance"),
    ({"quantity": None}, "quantity", "missing"),
    ({"divisor": "sqr"}, "divisor", "Did you mean 'sqrt'?"),
    ({"summary": "median"}, "summary", "value"),
    ({"relation": "equal"}, "relation", "there are equals, at_least"),
    ({"relation": 3}, "relation", "int"),
    ({"relation": "equals"}, "relation", "expected and tolerance"),
    ({"relation": "between"}, "relation", "high and low"),
    ({"low": None}, "relation", "got none"),
    ({"high": 1.0}, "relation", "got high, low"),
    ({"low": "much"}, "low", "str"),
    ({"low": True}, "low", "bool"),
    ({"low": [1.0]}, "low", "array"),
    ({"low": NAN}, "low", "1e+30"),
    ({"low": INF}, "low", "1e+30"),
    ({"low": 1e31}, "low", "1e+30"),
    ({"low": 10**400}, "low", "range"),
    ({"low": {"d_k_power": 1e3}}, "low.d_k_power", "4"),
    ({"low": {"d_k_power": NAN}}, "low.d_k_power", "-4"),
    ({"low": {"power": 1.0}}, "low", "power"),
    ({"low": {"n_keys_power": 1.0}}, "low.n_keys_power", "must be 0"),
    ({"tolerance": NAN}, "tolerance", "0"),
    ({"tolerance": -0.1}, "tolerance", "0"),
    ({"domain": {"d_k": [16]}}, "domain.d_k", "2"),
    ({"domain": {"d_k": [0, 16]}}, "domain.d_k", "1"),
    ({"domain": {"d_k": [1, 10**30]}}, "domain.d_k", "16777216"),
    ({"domain": {"d_k": [64, 16]}}, "domain.d_k", "[64, 16]"),
    ({"domain": {"laws": ["gausian"]}}, "domain.laws", "Did you mean 'gaussian'?"),
    ({"domain": {"laws": ["gaussian(std=1)"]}}, "domain.laws", "'gaussian'"),
    ({"domain": {"laws": "gaussian"}}, "domain.laws", "str"),
    ({"domain": {"n": [2, 4]}}, "domain", "n"),
    ({"threshold": {"bound": "high", "start": 0, "stop": 1}}, "threshold", "high"),
    ({"threshold": {"bound": "low", "start": NAN, "stop": 1}}, "threshold", "1e+30"),
    ({"threshold": {"bound": "low", "start": 2.0, "stop": 1.0}}, "start", "2.0"),
    ({"threshold": {"bound": "low", "start": 1.0, "stop": 1.0}}, "start", "below"),
    ({"relation": "between", "low": 2.0, "high": 1.0}, "low", "2.0"),
    ({"comment": "hello"}, "check[0]", "comment"),
    ({"divisor": "none/sqrt"}, "divisor", "none/sqrt"),
    ({"quantity": "score_variance_ratio", "divisor": "sqrt"}, "divisor", "sqrt"),
    ({"number_format": "float61"}, "number_format", "Did you mean 'float64'?"),
    ({"softmax": "shiftd"}, "softmax", "Did you mean 'shifted'?"),
    ({"domain": {"dependence": ["planted"]}}, "domain.dependence", "planted(rho)"),
    ({"domain": {"dependence": ["pairs(2)"]}}, "domain.dependence", "rho <= 1"),
    ({"domain": {"setup": ["lecun"]}}, "domain.setup", "init("),
    ({"domain": {"laws": ["gaussian*laplace"]}}, "domain.laws", "gaussian * laplace"),
    ({"domain": {"laws": ["a * b"]}}, "domain.laws", "law must be one of"),
    ({"domain": {"laws": ["gaussian * gaussian"]}}, "domain.laws", "'gaussian'"),
]
#: The same for checks of rows and of series.
EFFECTIVE = {"quantity": "effective_keys", "summary": "mean"}
OVERFLOW = {"quantity": "format_overflow", "summary": "mean"}
SLOPE = {"relation": "slope_between"}
WRONG_CHECKS += [
    ({**EFFECTIVE, "summary": "meen"}, "summary", "Did you mean 'mean'?"),
    ({**EFFECTIVE, "divisor": "none/sqr"}, "divisor", "Did you mean 'none/sqrt'?"),
    ({**EFFECTIVE, "divisor": "none/sqrt", "summary": "median"}, "summary", "spread"),
    ({**EFFECTIVE, "divisor": "none/sqrt/linear"}, "divisor", "none/sqrt/linear"),
    ({**EFFECTIVE, "divisor": "sqrt/none"}, "divisor", "sqrt/none"),
    ({**EFFECTIVE, "divisor": "/"}, "divisor", "none"),
    ({**EFFECTIVE, "quantity": "entropy", "divisor": "none/sqrt"}, "divisor", "none"),
    ({**SLOPE, "low": {"d_k_power": 1.0}}, "low.d_k_power", "must be 0"),
    ({**SLOPE, "low": None}, "relation", "high and low"),
    ({**OVERFLOW, "summary": "median"}, "summary", "mean"),
    ({**OVERFLOW, "divisor": "none/sqrt"}, "divisor", "none/sqrt"),
]


@pytest.mark.parametrize(("change", "field", "said"), WRONG_CHECKS)
def test_wrong_check(change, field, said):
    """A wrong check is refused with file, claim and field, what is wrong and, where a
    name is near, the name that was meant.
    """
    message = message_of(make(**change))

    assert message.startswith("my.toml: claim 'the-claim'")
    assert field in message
    assert said in message


def when(**change):
    """The sentences of a claim with one more, which a change spoils."""
    one = {"readings": {"the-reading": "refuted"}, "sentence": "y", **change}
    return {"sentences": {**SENTENCES, "when": [one]}}


#: Change of the claim, field, and what else the message must say.
WRONG_CLAIMS = [
    ({"id": "The Claim"}, "`id`", "regex"),
    ({"id": 7}, "`id`", "int"),
    ({"id": "x" * 61}, "`id`", "regex"),
    ({"id": "x\n"}, "`id`", "regex"),
    ({"topic": "gradient"}, "`topic`", "gradient"),
    ({"statement": ""}, "`statement`", "1"),
    ({"statement": "x" * 2001}, "`statement`", "2000"),
    ({"statement": "x\n"}, "the claim", "no control character"),
    ({"statement": "x\u202ey"}, "the claim", "no control character"),
    ({"statement": {"en": "x"}}, "the claim", "must be a text"),
    ({"source": [{"text": "a", "section": "1\n"}]}, "section", "regex"),
    ({"source": [{"text": "b", "section": "1"}]}, "source.text", "'b'"),
    ({"sentences": {"supported": "x"}}, "`sentences`", "refuted"),
    ({"sentences": None}, "sentences", "must be there for the kind 'measured'"),
    (when(readings={"the-raeding": "refuted"}), "sentences.when.readings", "Did you"),
    (when(readings={"the-reading": "rejected"}), "when[0].readings", "'rejected'"),
    (when(readings={"the-reading": "not_measured"}), "when[0].readings", "measured"),
    (when(readings={"the-reading": True}), "when[0].readings", "bool"),
    (when(readings={}), "when[0].readings", ">= 1"),
    (when(readings=["the-reading"]), "when[0].readings", "array"),
    (when(sentence=""), "when[0].sentence", ">= 1"),
    (when(verdict="refuted"), "when[0]", "`verdict`"),
    ({"sentences": {**SENTENCES, "when": [{"sentence": "x"}]}}, "when[0]", "readings"),
    ({"sentences": {**SENTENCES, "when": {}}}, "sentences.when", "object"),
    ({"reading": []}, "reading", "must be there for the kind 'measured'"),
    ({"reading": None}, "reading", "must be there for the kind 'measured'"),
    ({"note": "n"}, "note", "must be left out for the kind 'measured'"),
    ({"kind": "opinion"}, "`kind`", "opinion"),
    ({"kind": "shape"}, "id", "product-shape"),
    ({"kind": "shape", "id": "product-shape"}, "reading", "left out"),
    ({"kind": "practice"}, "reading", "must be left out for the kind 'practice'"),
    ({"kind": "citation", "reading": None}, "sentences", "must be left out"),
    ({"kind": "citation", "reading": None, "sentences": None}, "note", "be there"),
    ({"right": {"sentence": "s", "arithmetic": "a"}}, "`right", "check"),
    ({"right": {"sentence": "s", "arithmetic": "a", "check": []}}, "right.check", "1"),
    ({"right": {"arithmetic": "a", "check": [CHECK]}}, "`right", "sentence"),
    ({"right": {"sentence": "s", "check": [CHECK]}}, "`right", "arithmetic"),
    ({"reading": {}}, "`reading`", "array"),
    ({"verdict": "supported"}, "the claim", "verdict"),
]


@pytest.mark.parametrize(("change", "field", "said"), WRONG_CLAIMS)
def test_wrong_claim(change, field, said):
    """A wrong field of a claim is refused with file, claim and field."""
    message = message_of(make(claim=change))

    assert message.startswith("my.toml: claim ")
    assert field == "the claim" or field in message
    assert said in message


def test_reading_has_one_threshold():
    """Outcomes of a reading are drawn over one threshold; a second one is refused."""
    check = {**CHECK, "low": 1.0, "threshold": {"bound": "low", "start": 0, "stop": 2}}
    message = message_of(make(reading={"check": [check, check]}))

    assert message.startswith("my.toml: claim 'the-claim', reading 'the-reading', ")
    assert "field threshold: must stand in one check" in message


def test_kinds_that_are_not_measured():
    """A claim of kind practice or citation has a note and nothing to measure; one on
    shapes has sentences and a check in code; a reader's question has no source.
    """
    bare = {"reading": None, "sentences": None, "note": "n"}
    for change in (
        {**bare, "kind": "practice"},
        {**bare, "kind": "citation"},
        {"kind": "shape", "id": "product-shape", "reading": None},
        {"source": []},
    ):
        (claim,) = parse_catalogue(make(claim=change), "my.toml").claim
        assert claim.kind == change.get("kind", "measured")
        assert claim.right is None


def test_right_sentences_are_validated_too():
    """The checks of a right sentence are held to the rules of all checks."""
    right = {"sentence": "s", "arithmetic": "a"}
    good = {**right, "check": [{**CHECK, "low": 0.0}]}
    catalogue = parse_catalogue(make(claim={"right": good}), "my.toml")
    assert len(list(catalogue.checks())) == 2
    bad = {**right, "check": [{**CHECK, "low": 0.0, "quantity": "score_varianc"}]}
    message = message_of(make(claim={"right": bad}))

    assert message.startswith("my.toml: claim 'the-claim', right, field quantity: ")
    assert "Did you mean 'score_variance'?" in message


def test_sentence_is_chosen_by_verdict_and_readings():
    """A conditional claim gets the first sentence that is true of its readings, else
    the neutral one; readings choose nothing for any other verdict.
    """
    given = [
        ({"a": "supported", "b": "refuted"}, "a only"),
        ({"a": "supported"}, "a"),
        ({"b": "conditional"}, "b in places"),
    ]
    others = {verdict: verdict for verdict in SENTENCES}
    whens = [{"readings": readings, "sentence": text} for readings, text in given]
    readings = [{"id": name, "check": [{**CHECK, "low": 0.0}]} for name in "abc"]
    entry = make(claim={"reading": readings, "sentences": {**others, "when": whens}})
    (claim,) = parse_catalogue(entry, "my.toml").claim

    def said(verdict, *came_out):
        return claim.sentences.chosen(verdict, dict(zip("abc", came_out, strict=True)))

    assert said("conditional", "supported", "refuted", "refuted") == "a only"
    assert said("conditional", "supported", "supported", "refuted") == "a"
    assert said("conditional", "supported", "conditional", "refuted") == "a"
    assert said("conditional", "refuted", "conditional", "refuted") == "b in places"
    assert said("conditional", "refuted", "supported", "refuted") == "conditional"
    for verdict in set(SENTENCES) - {"conditional"}:
        assert said(verdict, "supported", "refuted", "refuted") == verdict
    for verdict in ("not_applicable", "not_measured", "when"):
        assert said(verdict, "supported", "refuted", "refuted") is None
    assert claim.sentences.chosen("conditional", {}) == "conditional"


def reachable(sentences, ids):
    """The sentences that a conditional claim can get, for all verdicts of readings."""
    found = set()
    for whens in sentences.when:
        free = [name for name in ids if name not in whens.readings]
        for verdicts in product(SENTENCES, repeat=len(free)):
            came_out = dict(zip(free, verdicts, strict=True)) | whens.readings
            if claim_verdict(list(came_out.values())) == "conditional":
                found.add(sentences.chosen("conditional", came_out))
    return found


@pytest.mark.parametrize(
    "claim",
    [c for c in read_catalogue().claim if c.sentences and c.sentences.when],
    ids=lambda claim: claim.id,
)
def test_sentences_of_readings_are_reachable(claim):
    """Each sentence that asks for readings is said for some outcome of a conditional
    claim, and is said by nothing else.
    """
    ids = [reading.id for reading in claim.reading]
    sentences = [entry.sentence for entry in claim.sentences.when]
    assert set(sentences) <= reachable(claim.sentences, ids)
    others = [getattr(claim.sentences, verdict) for verdict in SENTENCES]
    assert len({*sentences, *others}) == len(sentences) + len(others)


def test_sentences_that_cannot_be_reached_are_seen():
    """One behind a weaker one is not reachable, nor one for readings that agree."""
    ids = ["a", "b"]
    strict = {"readings": {"a": "supported", "b": "refuted"}, "sentence": "strict"}
    loose = {"readings": {"a": "supported"}, "sentence": "loose"}
    agreed = {"readings": {"a": "refuted", "b": "refuted"}, "sentence": "agreed"}
    for whens, want in (
        ([strict, loose], {"strict", "loose"}),
        ([loose, strict], {"loose"}),
        ([agreed, loose], {"loose"}),
    ):
        sentences = convert({**SENTENCES, "when": whens}, Sentences)
        assert reachable(sentences, ids) == want


def checks_of(claim):
    """The checks of a claim's readings."""
    return [check for reading in claim.reading for check in reading.check]


#: A claim that is right as it stands needs no other sentence.
RIGHT_AS_THEY_STAND = {
    "variance-equals-dimension",
    "variance-grows-linearly",
    "standard-deviation-root",
    "scaled-variance-one",
    "linear-variance",
    "double-root-variance",
    "scaled-balanced",
    "linear-near-uniform",
    "unscaled-few-positions",
    "linear-shrinks-differences",
    "unscaled-vanishes-for-most",
}


def test_right_sentences_are_there():
    """Each measured claim has a sentence that would be right, unless it is right
    itself, and no other claim has one.
    """
    for claim in read_catalogue().claim:
        needed = claim.kind == "measured" and claim.id not in RIGHT_AS_THEY_STAND
        assert (claim.right is not None) is needed, claim.id


@pytest.mark.parametrize(
    "claim", [c for c in read_catalogue().claim if c.right], ids=lambda claim: claim.id
)
def test_right_sentences_are_not_the_claim(claim):
    """What would be right is checked by something that the claim does not say."""
    assert set(claim.right.check) - set(checks_of(claim))
    assert claim.right.sentence != claim.statement


@pytest.mark.parametrize(
    ("change", "said"),
    [({"check": []}, "check"), ({"scope": "all"}, "scope"), ({"id": ""}, "id")],
)
def test_wrong_reading(change, said):
    """A wrong reading is refused with file, claim and field."""
    message = message_of(make(reading=change))

    assert message.startswith("my.toml: claim 'the-claim'")
    assert f"reading[0].{said}" in message


def test_ids_are_unique():
    """Claims, readings and texts that share an id are refused, with the id."""
    one = make()
    twice = {**one, "claim": one["claim"] * 2}
    assert "claim.id must be unique, got 'the-claim' twice" in message_of(twice)
    twice = {**one, "text": one["text"] * 2}
    assert "text.key must be unique, got 'a' twice" in message_of(twice)
    readings = make()["claim"][0]["reading"] * 2
    message = message_of(make(claim={"reading": readings}))
    assert "claim 'the-claim': reading.id must be unique, got 'the-reading'" in message
    checks = {"id": "s", "statement": "s", "check": [{**CHECK, "low": 0.0}]}
    message = message_of({"self_check": [checks, checks]})
    assert "self_check.id must be unique, got 's' twice" in message


def test_self_checks_are_validated_too():
    """A self-check is held to the same rules as a claim's."""
    check = {**CHECK, "low": 0.0, "quantity": "score_varianc"}
    message = message_of(
        {"self_check": [{"id": "s", "statement": "s", "check": [check]}]}
    )

    assert message.startswith("my.toml: self_check 's', field quantity: ")
    assert "Did you mean 'score_variance'?" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("claims = []", "got 'claims'"),
        ("claim = 3", "list of tables"),
        ("claim = [3]", "claim number 1"),
        ("[[claim]]\nid = 3", "claim number 1"),
        ("[[claim]]\n[[claim]]", "claim number 1"),
        ("[claim]\nid = 'x'", "list of tables"),
        ("[[claim]", "cannot be read as TOML"),
        ("a = 1\0", "cannot be read as TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "cannot be read as TOML"),
        ("a = " + "{a=" * 5000 + "1" + "}" * 5000, "cannot be read as TOML"),
        ("a = " + "9" * 5000, "cannot be read as TOML"),
        ("[" + ".".join("a" * 5000) + "]", "got 'a'"),
    ],
    ids=range(12),
)
def test_hostile_files(tmp_path, text, said):
    """What is no catalogue, however hostile, is refused in one line with its name."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError) as caught:
        read_catalogue(path)

    assert str(caught.value).startswith("mine.toml: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_files_that_cannot_be_read(tmp_path):
    """A folder, no file and no text are refused in one line."""
    (tmp_path / "text.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("text.toml", "absent.toml", "."):
        with pytest.raises(CatalogueError, match="cannot be read"):
            read_catalogue(tmp_path / name)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*CHECK, "d_k", "id", "low"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
FIELDS = (
    *CHECK,
    "divisor",
    "low",
    "high",
    "expected",
    "tolerance",
    "domain",
    "threshold",
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(field=st.sampled_from(FIELDS), value=ANYTHING)
def test_any_value_is_accepted_or_refused(field, value):
    """Whatever stands in a field, the answer is a catalogue or one clear line."""
    try:
        parse_catalogue(make(**{field: value}), "my.toml")
    except CatalogueError as error:
        assert str(error).startswith("my.toml: claim 'the-claim'")  # noqa: PT017


def test_subset():
    """Some of the claims can be taken, once each and in the order asked for, with all
    self-checks; an unknown one is answered with the nearest.
    """
    catalogue = read_catalogue()
    first, second = (claim.id for claim in catalogue.claim[:2])
    subset = catalogue.only((second, first, second))

    assert [claim.id for claim in subset.claim] == [second, first]
    assert subset.self_check == catalogue.self_check
    with pytest.raises(ValueError, match=f"Did you mean '{first}'"):
        catalogue.only((first[:-1],))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    times=st.floats(-1e30, 1e30),
    powers=st.tuples(st.floats(-4, 4), st.floats(-4, 4)),
    sizes=st.tuples(st.integers(1, 2**24), st.integers(1, 2**24)),
)
def test_levels_are_finite(times, powers, sizes):
    """Every level that may be written is a finite number in every cell that may be."""
    assert math.isfinite(Level(times, *powers).at(*sizes))


def test_levels():
    """A level is a number, times powers of the sizes, or the default."""
    assert level_at(Level(0.5, 1.0, 2.0), 7.0, 16, 3) == 0.5 * 16 * 9
    assert level_at(None, 7.0, 16, 3) == 7.0
    assert level_at(2, 7.0, None, None) == 2.0
    with pytest.raises(ValueError, match="lacks"):
        Level(1.0, 1.0).at(None, 4)
