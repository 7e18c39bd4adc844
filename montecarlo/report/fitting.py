"""Whether claims.json fits the catalogue that it is of, and tables fit themselves."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from montecarlo.attention.quantities import QUANTITIES
from montecarlo.claims.frame import catalogue_frame
from montecarlo.claims.schema import Catalogue
from montecarlo.errors import InputError
from montecarlo.estimation.failures import OVERFLOW
from montecarlo.estimation.summaries import RowKey
from montecarlo.names import look_up
from montecarlo.results.columns import MEASUREMENTS
from montecarlo.results.folder import ResultsError
from montecarlo.results.table import row_id
from montecarlo.run_record import CLAIMS_FILE
from montecarlo.sampling.design_points import DesignPoint

Line = Mapping[str, str | None]


def require_rows(lines: Iterable[Line], claims: Mapping[str, Any]) -> None:
    """Make sure that lines have their names, and that claims name lines that are there.

    Parameters
    ----------
    lines : iterable of mapping
        Of measurements.csv, as text.
    claims : mapping
        What claims.json holds.

    Raises
    ------
    ResultsError
        One line: file, line, requirement, what came.
    """
    there: set[str] = set()
    for number, line in enumerate(lines, start=2):
        place, name = f"{MEASUREMENTS}, line {number},", str(line["row_id"])
        try:
            made = _name_of(line)
        except InputError as error:
            raise ResultsError(f"{place} must say what was sampled: {error}") from None
        if made != name:
            raise ResultsError(f"{place} must have the row_id {made}, got {name}")
        if name in there:
            raise ResultsError(f"{place} must stand once, got {name} again")
        there.add(name)
    for name in _named(claims):
        if name and name not in there:
            raise ResultsError(
                f"{CLAIMS_FILE} must name lines of {MEASUREMENTS}, got {name!r:.40}"
            )


def _name_of(line: Line) -> str:
    """Return the name that a line has by what identifies it."""
    text = {name: value or "" for name, value in line.items()}
    look_up("quantity", text["quantity"], {**QUANTITIES, OVERFLOW: None})
    point = DesignPoint(
        text["distribution_q"],
        text["distribution_k"],
        int(text["d_k"]),
        int(text["n_keys"]) if text["n_keys"] else None,
        text["dependence"],
        text["initialisation"],
    )
    key = RowKey(
        text["divisor"],
        text["quantity"],
        text["summary"],
        text["number_format"],
        text["softmax"],
    )
    return row_id(point, key)


def _named(record: Any) -> Iterator[str]:  # noqa: ANN401 - plain data
    """Yield every name of a line that a record holds."""
    if isinstance(record, list):
        for one in record:
            yield from _named(one)
    elif isinstance(record, dict):
        for name, value in record.items():
            if name == "rows":
                yield from value
            elif name == "row":
                yield value
            else:
                yield from _named(value)


def require_catalogue(claims: Mapping[str, Any], catalogue: Catalogue) -> None:
    """Make sure that outcomes are those of a catalogue: each of its parts, in order.

    Parameters
    ----------
    claims : mapping
        What claims.json holds.
    catalogue : Catalogue

    Raises
    ------
    ResultsError
        One line: the file, the place, what the catalogue has, what came.
    """
    _require_same(catalogue_frame(catalogue), claims, "")
    for claim, record in zip(catalogue.claim, claims["claims"], strict=True):
        said = {source.text for source in claim.source}
        if set(record["texts"]) != said:
            _refuse_part(f"texts of claim {claim.id!r}", said, set(record["texts"]))
        pairs = zip(claim.finding, record["findings"], strict=True)
        sentences = [(finding.value, one) for finding, one in pairs]
        if claim.right is not None:
            sentences.append((claim.right.value, record["right"]))
        if claim.concedes is not None:
            sentences.append((claim.concedes.value, record["concedes"]))
        for values, sentence in sentences:
            _require_numbers(values, sentence, f"claim {claim.id!r}")
    for passage, record in zip(catalogue.passage, claims["passages"], strict=True):
        _require_numbers(passage.sentence.value, record, f"passage {passage.id!r}")


def _require_same(frame: object, record: Any, place: str) -> None:  # noqa: ANN401
    """Make sure that a record has what a frame has, at the same places."""
    if isinstance(frame, dict) and isinstance(record, dict):
        for name, part in frame.items():
            _require_same(part, record[name], f"{place}.{name}")
    elif isinstance(frame, list):
        if len(frame) != len(record):
            _refuse_part(place.lstrip("."), f"{len(frame)} entries", len(record))
        for number, (part, one) in enumerate(zip(frame, record, strict=True)):
            _require_same(part, one, f"{place}[{number}]")
    elif frame != record:
        _refuse_part(place.lstrip("."), frame, record)


def _require_numbers(
    values: Mapping[str, object], sentence: Mapping[str, Any], place: str
) -> None:
    wanted = set(values) if sentence["holds"] else set()
    if set(sentence["numbers"]) != wanted:
        _refuse_part(f"numbers of {place}", wanted, set(sentence["numbers"]))


def _refuse_part(place: str, wanted: object, came: object) -> NoReturn:
    raise ResultsError(
        f"{CLAIMS_FILE} must be of the claims of this version: {place} must be "
        f"{_shown(wanted)}, got {_shown(came)}"
    )


def _shown(value: object) -> str:
    text = str(sorted(value)) if isinstance(value, set) else repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
