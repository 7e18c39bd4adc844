"""An edited claims.json is refused, field by field; nothing is drawn for this."""

import copy
import json
import math
import re

import msgspec
import pytest

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.claims.judging import Judge
from montecarlo.claims.outcomes import CaseOutcome, JointOutcome
from montecarlo.claims.record import CLAIMS_FILE
from montecarlo.claims.recorded import Recorded
from montecarlo.claims.running import exact_value
from montecarlo.claims.simulation import Simulation
from montecarlo.claims.verdicts import Verdict
from montecarlo.records.training import read_record
from montecarlo.report.content import record
from montecarlo.report.content.record import ReportRecord, read_claims, require_fits
from montecarlo.study.folder import ResultsError, write_json
from montecarlo.study.validating import validate

CATALOGUE = read_catalogue()


@pytest.fixture(scope="module")
def written():
    """claims.json of a grid without a point, as plain data."""
    evidence = Recorded(CATALOGUE, Simulation({}, (), exact_value))
    z_scores = {"verdict": "not_measured", "false_alarm": 1e-4, "largest_limit": None}
    z_scores |= {"counted": {"preset": "quick", "seeds": 1}, "groups": []}
    return msgspec.to_builtins(Judge(evidence, 1e-4).judge(CATALOGUE)) | {
        "error_rate": 0.01,
        "simultaneous_error": 1e-6,
        "analyses": 1,
        "z_scores": z_scores,
        "models": msgspec.to_builtins(CATALOGUE.model),
        "records": msgspec.to_builtins(CATALOGUE.record),
    }


def test_what_was_judged_fits(written):
    """What the judge wrote is of the catalogue that it judged."""
    require_fits(validate(written, ReportRecord, CLAIMS_FILE), CATALOGUE)


#: A measured claim that has everything, and its place.
PLACE, CLAIM = next(
    (place, claim)
    for place, claim in enumerate(CATALOGUE.claim)
    if claim.right is not None
    and claim.concedes is not None
    and any(one.check[0].tolerance for one in claim.interpretation[:1])
)
VOTES = CLAIM.interpretation[0].id in CLAIM.admitted()
AT = ("claims", PLACE)
MEANING = (*AT, "interpretations", 0)
CHECK = (*MEANING, "checks", 0)
PASSAGE = ("passages", 0)
SELF_CHECK = ("self_checks", 0)
JOINT = JointOutcome(distribution="gaussian", d_k=64, outcome=Verdict.SUPPORTED)
CASE = CaseOutcome(
    distribution="gaussian", d_k=64, region_low=1.0, outcome=Verdict.SUPPORTED
)
REFUSED = [
    (AT, "id", "other"),
    (AT, "topic", "training"),
    ((*AT, "sources", 0), "admits", ["other"]),
    (AT, "texts", {}),
    (MEANING, "id", "other"),
    (MEANING, "votes", not VOTES),
    (MEANING, "quantifier", "can"),
    (CHECK, "quantity", "entropy"),
    ((*CHECK, "domain"), "d_k", [1, 2]),
    (AT, "findings", []),
    (AT, "right", None),
    ((*AT, "right"), "checks", []),
    ((*AT, "right"), "holds", True),
    (PASSAGE, "id", "other"),
    (SELF_CHECK, "id", "other"),
    (("models", 0), "d_k", 63),
    (("records", 0), "year", 2016),
    ((), "claims", []),
]


def edited(record, path, field, value):
    """Return a record with one field changed."""
    changed = copy.deepcopy(record)
    place = changed
    for step in path:
        place = place[step]
    assert place[field] != value
    place[field] = value
    return changed


@pytest.mark.parametrize(
    ("path", "field", "value"),
    REFUSED,
    ids=[".".join(map(str, (*path, field))) for path, field, _ in REFUSED],
)
def test_an_edited_field_is_refused(written, path, field, value):
    """One line says where another part is."""
    changed = edited(written, path, field, value)
    record = validate(changed, ReportRecord, CLAIMS_FILE)
    with pytest.raises(ResultsError) as caught:
        require_fits(record, CATALOGUE)
    message = str(caught.value)
    assert message.startswith(f"{CLAIMS_FILE} must be of the claims of this version, ")
    assert re.search(r"another (\w+ of |self-check |models|records)", message)
    assert "\n" not in message


@pytest.mark.parametrize("path", [(), AT, MEANING, CHECK, (*AT, "right")])
def test_an_unknown_field_is_refused(written, path):
    """Another field is none of this version: the file is named, and the place."""
    changed = copy.deepcopy(written)
    place = changed
    for step in path:
        place = place[step]
    place["looks"] = []
    with pytest.raises(ResultsError, match=rf"{CLAIMS_FILE} .* unknown field `looks`"):
        validate(changed, ReportRecord, CLAIMS_FILE)


def test_what_was_written_reads_back(written, tmp_path):
    """With and without what pages show beside it."""
    write_json(tmp_path / CLAIMS_FILE, written)
    record = read_claims(tmp_path)
    assert record == validate(written, ReportRecord, CLAIMS_FILE)
    assert record.report_card is None
    write_json(tmp_path / CLAIMS_FILE, msgspec.to_builtins(record))
    assert read_claims(tmp_path) == record


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ((), "analyses"),
        (AT, "right"),
        (CHECK, "cases"),
        ((*CHECK, "cases", 0), "region_low"),
        ((*CHECK, "cases", 0), "estimate"),
        (("z_scores",), "groups"),
    ],
)
def test_a_field_that_was_taken_out_is_refused(written, tmp_path, path, field):
    """A region without its end would be an open one."""
    changed = copy.deepcopy(written)
    meaning = changed["claims"][PLACE]["interpretations"][0]
    meaning["cases"] = [msgspec.to_builtins(JOINT)]
    meaning["checks"][0]["cases"] = [msgspec.to_builtins(CASE)]
    write_json(tmp_path / CLAIMS_FILE, changed)
    assert read_claims(tmp_path).claims[PLACE].interpretations[0].cases == (JOINT,)
    place = changed
    for step in path:
        place = place[step]
    del place[field]
    write_json(tmp_path / CLAIMS_FILE, changed)
    with pytest.raises(ResultsError, match=field) as caught:
        read_claims(tmp_path)
    assert str(caught.value).startswith(f"{CLAIMS_FILE} must be as docs/")


def test_claims_in_another_order_are_refused(written):
    """They are numbered by their place."""
    changed = {**written, "claims": written["claims"][::-1]}
    with pytest.raises(ResultsError, match="another ids of claims"):
        require_fits(validate(changed, ReportRecord, CLAIMS_FILE), CATALOGUE)


@pytest.fixture(scope="module")
def studied(written):
    """The same with the studies that ship beside the claims."""
    studies = record._studies(read_record())
    return {**written, **msgspec.to_builtins(studies)}


def test_studies_that_ship_fit(studied, written):
    """With all of them, and without those that need not be there."""
    require_fits(validate(studied, ReportRecord, CLAIMS_FILE), CATALOGUE)
    only = {**written, "literature": studied["literature"]}
    require_fits(validate(only, ReportRecord, CLAIMS_FILE), CATALOGUE)


STUDIES = [
    (("literature", "claims", 0), "id", "x"),
    (("literature",), "claims", []),
    (("training", "lines", 0), "d_k", 1),
    (("training", "published", 0), "numbers", {}),
]


@pytest.mark.parametrize(
    ("path", "field", "value"),
    STUDIES,
    ids=[".".join(map(str, (*path, field))) for path, field, _ in STUDIES],
)
def test_an_edited_study_is_refused(studied, path, field, value):
    """Pages look these up: one line, with the place."""
    changed = validate(edited(studied, path, field, value), ReportRecord, CLAIMS_FILE)
    with pytest.raises(ResultsError, match="of the records of this version, got anoth"):
        require_fits(changed, CATALOGUE)


def test_numbers_of_a_study_are_its_own(studied):
    """One that was made again on another machine is shown as it was."""
    stated = ("literature", "claims", 0, "interpretations", 0)
    for path, field, value in (
        (("training", "lines", 0), "gradient", 3.0),
        ((*stated, "checks", 0, "cases", 0), "exact", 0.5),
        (stated[:3], "verdict", "refuted"),
    ):
        changed = copy.deepcopy(studied)
        place = changed
        for step in path:
            place = place[step]
        place[field] = value
        require_fits(validate(changed, ReportRecord, CLAIMS_FILE), CATALOGUE)


@pytest.mark.parametrize("value", [-1e308, -1.0])
def test_no_error_is_below_zero(written, value):
    """Neither is a rate, and none is more than 1."""
    for path, field in ((("claims", 0), "error_rate"), (CHECK, "cases")):
        changed = copy.deepcopy(written)
        case = {**msgspec.to_builtins(CASE), "std_error": value}
        place = changed
        for step in path:
            place = place[step]
        place[field] = value if field == "error_rate" else [case]
        with pytest.raises(ResultsError, match=CLAIMS_FILE):
            validate(changed, ReportRecord, CLAIMS_FILE)


def cases_with_intervals(found):
    """Every case of a claims.json that has an estimate and an interval."""
    if isinstance(found, dict):
        ends = {"simultaneous_low", "simultaneous_high"}
        if ends <= found.keys() and found["estimate"] is not None:
            yield found
        for part in found.values():
            yield from cases_with_intervals(part)
    elif isinstance(found, list | tuple):
        for part in found:
            yield from cases_with_intervals(part)


def without_estimate(found):
    """Those whose interval does not hold the estimate, and how many there are."""
    cases = list(cases_with_intervals([found[name] for name in JUDGED]))
    lacking = []
    for case in cases:
        low, high = case["simultaneous_low"], case["simultaneous_high"]
        least, most = (
            bound if end is None else end
            for end, bound in ((low, -math.inf), (high, math.inf))
        )
        if not least <= case["estimate"] <= most:
            lacking.append(case)
    return lacking, len(cases)


#: What of claims.json is judged in a run.
JUDGED = ("claims", "passages", "self_checks")


def test_every_interval_holds_its_estimate(written):
    """Rounded outwards, of whatever is on record; one that is moved is found."""
    lacking, n = without_estimate(written)
    assert (lacking, n > 100) == ([], True)
    moved = copy.deepcopy(written)
    case = next(cases_with_intervals(moved["claims"]))
    case["simultaneous_low"] = math.nextafter(case["estimate"], math.inf)
    assert without_estimate(moved)[0] == [case]


@pytest.mark.slow
def test_every_interval_of_a_report_holds_its_estimate(standard_report):
    """The same of all that the standard preset samples."""
    found = json.loads((standard_report / CLAIMS_FILE).read_bytes())
    lacking, n = without_estimate(found)
    assert (lacking, n > 1000) == ([], True)
