"""Reading a catalogue: what is wrong is found at once, and the message says where."""

import math
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims import catalogue
from montecarlo.claims.catalogue import (
    at_place,
    parse_catalogue,
    read_catalogue,
    read_own_catalogue,
    require_catalogue,
)
from montecarlo.claims.checks import Check, Level, region_of
from montecarlo.claims.recorded import RECORDED
from montecarlo.claims.words import read_words, without_measure
from montecarlo.errors import InputError

FINDING = {"interpretations": {"the-interpretation": "holds"}, "text": "x"}
CHECK = {"quantity": "score_variance", "summary": "value", "relation": "at_least"}
CHECK |= {"divisor": "none"}


def make(claim=None, interpretation=None, **check):
    """A catalogue of one claim with one check; fields that are None are left out."""
    merged = {**CHECK, "low": 0.0, **check}
    check = {field: value for field, value in merged.items() if value is not None}
    entry = {
        "id": "the-claim",
        "topic": "variance",
        "statement": "s",
        "source": [{"text": "a", "section": "1"}],
        "finding": [FINDING],
        "interpretation": [
            {"id": "the-interpretation", "check": [check], **(interpretation or {})}
        ],
        **(claim or {}),
    }
    entry = {field: value for field, value in entry.items() if value is not None}
    return {"text": [{"key": "a", "name": "A", "language": "en"}], "claim": [entry]}


def message_of(data):
    """The one line with which a catalogue is refused."""
    with pytest.raises(InputError) as caught:  # noqa: PT012
        catalogue = parse_catalogue(data, "my.toml")
        with at_place("my.toml"):
            require_catalogue(catalogue)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_catalogue_of_the_package():
    """The package's own catalogue is valid; ids of claims are unique."""
    catalogue = read_catalogue()
    require_catalogue(catalogue)
    assert len({claim.id for claim in catalogue.claim}) == len(catalogue.claim) >= 10
    assert {text.language for text in catalogue.text} == {"de", "zh", "ja", "es"}
    assert {check.quantity for check in catalogue.checks()} <= {*QUANTITIES, *RECORDED}


def test_every_claim_says_what_was_tested():
    """One sentence for each proposition that votes, or for a claim that has none."""
    for claim in read_catalogue().claim:
        assert bool(claim.tested) != bool(claim.interpretation), claim.id
        for one in claim.interpretation:
            assert bool(one.tested) != one.beyond, (claim.id, one.id)


def test_every_interpretation_is_said_so():
    """One votes if a source admits it, and is judged as such a source says it, by words
    of each text.
    """
    for claim in read_catalogue().claim:
        voting = claim.admitted()
        for one in claim.interpretation if claim.source else ():
            sources = [s for s in claim.source if one.id in (s.admits or voting)]
            said = {(source.quantifier, source.form) for source in sources}
            used = {text for name in one.words for text in read_words()[name]["texts"]}
            where = claim.id, one.id
            assert one.beyond != bool(sources), where
            assert one.beyond or (one.quantifier, one.form) in said, where
            assert not one.words or {s.text for s in sources} <= used, where


def test_every_number_of_a_sentence_has_its_value():
    """Each claim has a finding; texts are messages, with a number where one stands."""
    catalogue = read_catalogue()
    sentences = [passage.sentence for passage in catalogue.passage]
    for claim in catalogue.claim:
        assert claim.finding, claim.id
        sentences += [sentence for sentence, _ in claim.sentences()]
    for sentence in sentences:
        for text in (sentence.text, sentence.short or ""):
            assert set(re.findall(r"%\((\w+)\)s", text)) <= set(sentence.value), text
    assert all(isinstance(words, str) for words, _ in catalogue.words())


def test_words_of_degree_are_no_refuge():
    """At most twelve claims of texts rest on them alone."""
    alone = [
        claim
        for claim in read_catalogue().claim
        if claim.source
        and claim.interpretation
        and all(
            without_measure(one.words) or one.beyond for one in claim.interpretation
        )
    ]
    assert 0 < len(alone) <= 12


NAN = math.nan
#: Change of the check, field that the message must name, and what else it must say.
WRONG_CHECKS = [
    ({"quantity": "score_varience"}, "quantity", "Did you mean 'score_variance'?"),
    ({"quantity": None}, "quantity", "must be given"),
    ({"summary": "median"}, "summary", "value"),
    ({"relation": "equal"}, "relation", "to. Did you mean 'equals'?"),
    ({"relation": "equals"}, "relation", "expected and tolerance"),
    ({"relation": "between"}, "relation", "high and low"),
    ({"low": None}, "relation", "got none"),
    ({"low": "much"}, "low", "unless it is a number or"),
    ({"low": NAN}, "low", "1e+30"),
    ({"low": {"d_k_power": 1e3}}, "low.d_k_power", "4"),
    ({"low": {"n_keys_power": 1.0}}, "low.n_keys_power", "must be 0"),
    ({"domain": {"d_k": [1, 10**30]}}, "domain.d_k", "1048576"),
    ({"domain": {"d_k": [64, 16]}}, "domain.d_k", "[64, 16]"),
    ({"domain": {"distributions": ["gausian"]}}, "distributions", "'gaussian'?"),
    ({"domain": {"n": [2, 4]}}, "domain", "n"),
    ({"relation": "between", "low": 2.0, "high": 1.0}, "low", "2.0"),
    ({"comment": "hello"}, "check[0]", "comment"),
    ({"divisor": "none/sqrt"}, "divisor", "none/sqrt"),
    ({"number_format": "float61"}, "number_format", "Did you mean 'float64'?"),
    ({"domain": {"dependence": ["planted"]}}, "field dependence", "planted(rho)"),
    ({"domain": {"initialisation": ["lecun"]}}, "field domain", "init("),
]
#: The same for checks of rows and of series.
LIMIT = {"quantity": "jacobian_trace", "summary": "mean", "relation": "tends_to"}
LIMIT |= {"low": None, "to": "zero", "domain": {"distributions": ["gaussian"]}}
EFFECTIVE = {"quantity": "effective_keys", "summary": "mean"}
SLOPE = {"relation": "slope_between"}
WRONG_CHECKS += [
    ({**EFFECTIVE, "summary": "meen"}, "summary", "Did you mean 'mean'?"),
    (
        {**EFFECTIVE, "divisor": "none/sqrt", "summary": "median"},
        "divisor",
        "none/sqrt",
    ),
    ({**EFFECTIVE, "divisor": "none/sqrt/linear"}, "divisor", "none/sqrt/linear"),
    ({**SLOPE, "low": {"d_k_power": 1.0}}, "low.d_k_power", "must be 0"),
    ({**LIMIT, "to": None}, "relation", "tends_to needs to, got none"),
    *(
        ({**LIMIT, **change}, "field relation", "tends_to needs the divisor none, a ")
        for change in (
            {"divisor": "sqrt"},
            {"quantity": "score_abs", "summary": "value"},
            {"summary": "spread"},
            *(
                {"domain": {"distributions": ["gaussian"]} | other}
                for other in (
                    {"distributions": []},
                    {"normalisation": ["rms"]},
                )
            ),
        )
    ),
    ({"relation": "at_least", "to": "zero"}, "relation", "got low, to"),
]


@pytest.mark.parametrize(("change", "field", "said"), WRONG_CHECKS)
def test_wrong_check(change, field, said):
    """Refused with file, claim, field, what is wrong and the name that was meant."""
    message = message_of(make(**change))

    assert message.startswith("my.toml: claim 'the-claim'")
    assert field in message
    assert said in message


def found(**change):
    """A claim whose finding a change spoils; fields that are None are left out."""
    finding = {**FINDING, **change}
    return {"finding": [{k: v for k, v in finding.items() if v is not None}]}


def said_by(**change):
    """A claim whose source a change spoils."""
    return {"source": [{"text": "a", "section": "1", **change}]}


def made(**change):
    """A catalogue whose interpretation a change spoils."""
    return make(interpretation=change)


def passage(**change):
    """A catalogue of a passage, which has no interpretations to rest on."""
    return {"passage": [{"id": "p", "place": "a", "sentence": {"text": "x", **change}}]}


def votes(interpretations, sources):
    """A catalogue of one claim with these interpretations and sources."""
    entries = [{"check": [{**CHECK, "low": 0.0}], **one} for one in interpretations]
    spoken = [{"text": "a", "section": "1", **one} for one in sources]
    finding = {"interpretations": {interpretations[0]["id"]: "holds"}, "text": "x"}
    change = {"interpretation": entries, "source": spoken, "finding": [finding]}
    data = make(claim=change)
    data["text"] += [{"key": "b", "name": "B", "language": "de"}]
    return data


RIGHT = {"sentence": "s", "arithmetic": "a"}
RIGHTLY, WRONG = "the-interpretation", "the-interpretatoin"
CAN, BEYOND = {"quantifier": "can"}, {"beyond": True}
BOUND = {**CHECK, "low": 0.0}
TWICE = {"id": "s", "statement": "s", "check": [BOUND]}
#: The argument that a message names, and changes of a claim that it refuses.
WRONG_CLAIMS = [
    ("id", {"id": "The Claim"}, {"kind": "shape"}),
    ("topic", {"topic": "gradient"}),
    ("the-claim", {"statement": "x\n"}, {"statement": "x\u202ey"}),
    ("section", said_by(section="1\n")),
    ("source.text", said_by(text="b")),
    ("quantifier", said_by(quantifier="often")),
    ("source.admits", said_by(admits=[WRONG])),
    ("interpretations", found(interpretations={WRONG: "fails"})),
    ("interpretations", found(value={"a": {"interpretation": WRONG}})),
    ("basis", found(basis="opinion")),
    ("check", found(value={"a": {"interpretation": RIGHTLY, "check": 1}})),
    (
        "value.a.check",
        *(found(value={"a": a}) for a in ({"check": 0}, {"count": "all"})),
    ),
    ("interpretation", {"interpretation": None}, {"kind": "assumption"}),
    ("interpretation", {"kind": "shape", "id": "product-shape"}),
    ("kind", {"kind": "opinion"}),
    ("sentence", {"right": {"arithmetic": "a", "check": [CHECK]}}),
    ("verdict", {"verdict": "holds"}),
]
#: The same of whole catalogues: interpretations, what votes, passages, self-checks, and
#: what has the id of another.
WRONG_FILES = [
    ("interpretation[0].check", made(check=[])),
    ("omits", made(omits="nothing")),
    ("interpretation[0].id", made(id="")),
    ("interpretations", passage(interpretations={"r": "holds"})),
    ("relation", passage(check=[CHECK])),
    ("value.a.check", passage(value={"a": {}})),
    ("quantity", {"self_check": [{**TWICE, "check": [{**BOUND, "quantity": "x"}]}]}),
    ("self_check.id", {"self_check": [TWICE, TWICE]}),
    ("claim.id", {**make(), "claim": make()["claim"] * 2}),
    (
        "interpretation.id",
        make(claim={"interpretation": make()["claim"][0]["interpretation"] * 2}),
    ),
]


@pytest.mark.parametrize(
    ("argument", "data"),
    [(name, make(claim=change)) for name, *some in WRONG_CLAIMS for change in some]
    + [(name, data) for name, *some in WRONG_FILES for data in some],
)
def test_wrong_files(argument, data):
    """One line with the file and the argument that is wrong."""
    message = message_of(data)
    assert message.startswith("my.toml: ")
    assert argument in message


def test_kinds_that_are_not_measured():
    """Assumptions, claims of record and shapes, and readers' questions."""
    told = {"basis": "definition", "text": "n"}
    bare = {"interpretation": None, "finding": [told]}
    for change in (
        {**bare, "kind": "record", "id": "introduced-2017"},
        {**bare, "kind": "shape", "id": "product-shape"},
        {**bare, "kind": "assumption"},
        {"source": []},
    ):
        (claim,) = parse_catalogue(make(claim=change), "my.toml").claim
        assert claim.kind == change.get("kind", "measured")
        assert claim.right is None


def checks_of(claim):
    """The checks of a claim's interpretations."""
    return [check for one in claim.interpretation for check in one.check]


@pytest.mark.parametrize(
    "claim",
    [c for c in read_catalogue().claim if c.right and c.kind == "measured"],
    ids=lambda claim: claim.id,
)
def test_right_sentences_are_not_the_claim(claim):
    """What would be right is checked by something that the claim does not say."""
    assert set(claim.right.check) - set(checks_of(claim))
    assert claim.right.text != claim.statement


@pytest.mark.parametrize(
    ("field", "written", "spelled"),
    [
        ("distributions", "gaussian(std=1)", "gaussian"),
        ("distributions", "gaussian*laplace", "gaussian * laplace"),
        ("dependence", "pairs(0.50)", "pairs(0.5)"),
        ("normalisation", "l2(gain=10)", "l2(gain=10.0)"),
    ],
)
def test_names_are_spelled_as_in_tables(field, written, spelled):
    """However they are written; rows and cases are found by them."""
    (claim,) = parse_catalogue(make(domain={field: [written]}), "my.toml").claim
    (check,) = checks_of(claim)
    assert getattr(check.domain, field) == (spelled,)


def test_a_summary_that_is_left_out():
    """It is that of pairs where the quantity is one of them, else the mean."""
    for quantity in (*QUANTITIES, *RECORDED):
        of_pairs = quantity in QUANTITIES and QUANTITIES[quantity].of == "pairs"
        assert Check(quantity, "equals").summary == ("value" if of_pairs else "mean")


def test_votes_of_a_text():
    """A text's verdict rests on what its sources admit, or on all that vote."""
    interpretations = [{"id": "x"}, {"id": "y", **CAN}, {"id": "z", **BEYOND}]
    sources = [
        {"admits": ["x"]},
        {"text": "b", "admits": ["y"], **CAN},
        {"text": "b", "admits": ["y"], "line": 3, **CAN},
    ]
    (claim,) = parse_catalogue(votes(interpretations, sources), "my.toml").claim

    assert claim.admitted() == ("x", "y")
    assert claim.admitted("a") == ("x",)
    assert claim.admitted("b") == ("y",)
    assert claim.admitted("c") == ()
    plain = votes(interpretations[:1] + interpretations[2:], [{}, {"text": "b"}])
    (claim,) = parse_catalogue(plain, "my.toml").claim
    assert claim.admitted("a") == claim.admitted("b") == claim.admitted() == ("x",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("claims = []", "got 'claims'"),
        ("claim = 3", "list of tables"),
        ("claim = [3]", "claim number 1"),
        ("[[claim]]\nid = 3", "claim number 1"),
        ("[[claim]]\n[[claim]]", "claim number 1"),
        ("[claim]\nid = 'x'", "list of tables"),
        ("[[claim]", "must be TOML"),
        ("a = 1\0", "must be TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "must be TOML"),
        ("a = " + "{a=" * 5000 + "1" + "}" * 5000, "must be TOML"),
        ("a = " + "9" * 5000, "must be TOML"),
    ],
    ids=range(11),
)
def test_hostile_files(tmp_path, text, said):
    """What is no catalogue, however hostile, is refused in one line with its name."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_own_catalogue(path)

    assert str(caught.value).startswith("mine.toml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_subset():
    """Some claims, once each, as asked for; an unknown one is met with the nearest."""
    catalogue = read_catalogue()
    first, second = (claim.id for claim in catalogue.claim[:2])
    subset = catalogue.only((second, first, second))

    assert [claim.id for claim in subset.claim] == [second, first]
    assert subset.self_check == catalogue.self_check
    assert catalogue.passage
    assert subset.passage == ()  # they are about all of it
    with pytest.raises(ValueError, match=f"Did you mean '{first}'"):
        catalogue.only((first[:-1],))


def test_levels():
    """A bound is a number, times powers of the sizes; without one an end is open."""
    check = Check("entropy", "between", low=Level(0.5, 1.0, 2.0))
    assert region_of(check, 16, 3) == (0.5 * 16 * 9, math.inf)
    check = Check("entropy", "at_most", high=2)
    assert region_of(check, None, None) == (-math.inf, 2.0)
    with pytest.raises(ValueError, match="lacks"):
        Level(1.0, 1.0).at(None, 4)


def test_what_the_page_counts_as_changed_is_listed():
    """Each claim whose rule was changed after results were seen stands in the docs."""
    docs = Path(__file__).parents[2] / "docs" / "changes-after-results.md"
    listed = set(re.findall(r"^\| `([\w-]+)` \|", docs.read_text(), re.MULTILINE))
    assert {one.id for one in read_catalogue().claim if one.changed} == listed


def test_a_check_that_several_use_has_a_name():
    """Each name is used twice or more, and no check stands twice."""
    path = Path(catalogue.__file__).with_name("catalogue.toml")
    source = tomllib.loads(path.read_text(encoding="utf-8"))
    named = source.pop("check")

    def checks_in(value):
        if isinstance(value, dict):
            for name, one in value.items():
                some = name == "check" and isinstance(one, list)
                yield from one if some else checks_in(one)
        elif isinstance(value, list):
            for one in value:
                yield from checks_in(one)

    found = [*checks_in(source)]
    used = Counter(one for one in found if isinstance(one, str))
    assert set(used) == set(named)
    assert min(used.values()) > 1
    written = [*named.values(), *(one for one in found if isinstance(one, dict))]
    assert len({str(one) for one in written}) == len(written) > 200
