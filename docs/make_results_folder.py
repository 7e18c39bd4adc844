"""Write docs/results-folder.md and its schema, from the types that readers check by.

Run it where a field was changed; a test fails until it was.
"""

import json
import re
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, inspect

from montecarlo.claims.record import ObservationRun, ReportRun, Timing
from montecarlo.model.observing import COLUMNS as OBSERVED_COLUMNS
from montecarlo.model.scales import COLUMNS as APPLIED_COLUMNS
from montecarlo.report.content.record import ReportRecord
from montecarlo.study.columns import MeasurementLine
from montecarlo.study.curves import CURVE_FILES
from montecarlo.study.folder import SCHEMA

PAGE, SCHEMA_FILE = "results-folder.md", "results-folder.schema.json"
#: The types of whole files, or of a line of one.
FILES: dict[str, tuple[type[Struct], ...]] = {
    "run.json": (ReportRun, ObservationRun),
    "measurements.csv": (MeasurementLine,),
    "curves/*.csv": tuple(dict.fromkeys(CURVE_FILES.values())),
    "claims.json": (ReportRecord,),
    "timing.json": (Timing,),
}
#: Columns of tables without a type, by the mark that they replace.
COLUMNS = {
    "OBSERVED": OBSERVED_COLUMNS,
    "APPLIED": APPLIED_COLUMNS,
}
TOPS = {kind for kinds in FILES.values() for kind in kinds}
HERE = Path(__file__).parent
#: What names mean wherever they stand and nothing else is said.
GLOSSARY = {
    "d_k": "length of a query or key",
    "n_keys": "keys of a row",
    "distribution": "distribution of Q and K",
    "distributions": "distributions of Q and K; none: all",
    "distribution_d_k": "at which further distributions are looked at",
    "distribution_n_keys": "likewise",
    "divisors": "what scores are divided by",
    "dependence": "how K is drawn given Q",
    "initialisation": "what stands before q and k",
    "normalisation": "what is done to each query and key before the product",
    "context": "dependence, initialisation or normalisation",
    "part": "of what is on record, an optimiser for example; none: all",
    "quantifier": "how it is said",
    "form": "outright, or as an implication",
    "premises": "what is assumed first",
    "times": "a level is times · d_k^d_k_power · n^n_keys_power",
    "d_k_power": "likewise",
    "n_keys_power": "likewise",
    "name": "of the model",
    "d_model": "width of the model",
    "heads": "heads of a layer",
    "claim": "id of a claim",
    "year": "when it was published",
    "source": "where",
    "rates": "nominal error rates that were counted at",
    "not_counted": "families of statistics that were not counted",
    "stale": "rows left out: corrected after the count",
    "earlier_claims": "whether the studies judged other claims than there are now",
    "allowed": "factor that a rate may be off by",
    "simultaneous_error": "error rate of one end of a simultaneous interval",
    "samples": "samples of real replicates that were judged",
    "draws": "of each combination, at least",
    "grades": "one a distribution",
    "studies": "whole studies that were judged",
    "distances": "from the truth, in tolerances",
    "power": "one a quantity and number of replicates",
    "error_rate": "nominal",
    "quantity": "what is looked at",
    "relation": "what must hold",
    "summary": "value, mean or quantile",
    "divisor": "what scores are divided by",
    "number_format": "what they are kept in",
    "softmax": "how weights are made of them",
    "expected": "of `equals`: a value, or `reference`",
    "low": "lower bound; null: open",
    "high": "upper bound; null: open",
    "to": "of `tends_to`",
    "domain": "where a text speaks",
    "threshold": "what a vague word may stand for; null: no such word",
    "bound": "which one stands for it",
    "start": "least that it may be",
    "stop": "largest",
    "symbol": "LaTeX",
    "replicates": "of each estimate",
    "tolerance": "of `equals`, as a part of the value",
    "shares": "supported, undecided, refuted, by distance",
    "label": "of the interpretation; null: its quantity",
    "verdict": "how it came out",
    "false_alarm": "probability that a right simulator is called wrong",
    "largest_limit": "of the largest z score; null: none",
    "counted": "what the limits rest on",
    "groups": "one a family of quantities, and one a distribution",
    "kind": "`all`, `family` or `distribution`",
    "number": "z scores in it",
    "points": "points that they are of",
    "rms": "root mean square",
    "rms_low": "its lower limit",
    "rms_high": "its upper limit",
    "largest": "the largest",
    "preset": "of the seeds",
    "seeds": "how many",
}
LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def schema() -> str:
    """Return the JSON Schema of all types."""
    types = [kind for kinds in FILES.values() for kind in kinds]
    _, definitions = msgspec.json.schema_components(types)
    for name in _inside("ReportRecord", definitions) - {"ReportRecord"}:
        one = definitions[name]
        if "properties" in one:  # these are read whole
            one["required"] = list(one["properties"])
    record = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Results folder of montecarlo, schema {SCHEMA}",
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _inside(name: str, definitions: dict[str, Any]) -> set[str]:
    """Return the names of a type and of all types in its fields."""
    found, new = set(), {name}
    while new:
        found |= new
        text = json.dumps([definitions[one] for one in new])
        new = set(re.findall(r'"#/\$defs/(\w+)"', text)) - found
    return found


def page() -> str:
    """Return the page: words that are written here, and a table for each type."""
    text = (HERE / "results-folder.in.md").read_text(encoding="utf-8")
    text = text.replace("@SCHEMA@", str(SCHEMA))
    for mark, columns in COLUMNS.items():
        names = ", ".join(f"`{name}`" for name in columns)
        text = text.replace(f"@{mark}_COLUMNS@", names)
    told: set[type] = set()
    for name, kinds in FILES.items():
        whole = [name == "claims.json"] * len(kinds)
        tables = "\n".join(map(_tables, kinds, repeat(told), whole))
        assert f"@{name}@" in text, name  # noqa: S101 - the page has its place
        text = text.replace(f"@{name}@", tables.rstrip())
    return text


def _tables(kind: type, told: set[type], whole: bool = False) -> str:  # noqa: FBT001, FBT002 - one a file
    """Return the table of a type, and those of the types in its fields.

    Of a file that is read whole, only fields of the file itself may be left out.
    """
    told.add(kind)
    info: Any = inspect.type_info(kind)
    title = (kind.__doc__ or kind.__name__).splitlines()[0]
    lines = [f"**{kind.__name__}**: {title}", ""]
    lines += ["| field | type | unit | what |", "|---|---|---|---|"]
    inner: list[type] = []
    explained: dict[str, str] = {}
    for one in kind.__mro__:  # a check that came out is a check
        explained = _explained(one.__doc__ or "") | explained
    for field in info.fields:
        words, unit = _words(field.type)
        name = field.encode_name
        words = words or explained.get(name) or GLOSSARY.get(name, "")
        shown = _name(field.type, inner)
        if not field.required and (kind in TOPS or not whole):
            shown += "; may be left out"
        lines.append(f"| `{field.encode_name}` | {shown} | {unit} | {words} |")
    parts = ["\n".join([*lines, ""])]
    parts += [
        _tables(one, told, whole) for one in dict.fromkeys(inner) if one not in told
    ]
    return "\n".join(parts)


def _explained(docstring: str) -> dict[str, str]:
    """Return what the section on attributes of a docstring says of each."""
    _, _, section = docstring.partition("Attributes\n")
    found = {}
    for names, words in re.findall(
        r"^    (\w[\w, ]*) : .*\n((?: {8}.*\n)*)", section, re.MULTILINE
    ):
        for name in names.split(", "):
            found[name] = " ".join(words.split()).replace("``", "`").replace("|", "\\|")
    return found


def _words(kind: Any) -> tuple[str, str]:  # noqa: ANN401 - msgspec's descriptions
    """Return what is said of a field, and its unit."""
    if not isinstance(kind, inspect.Metadata):
        return "", ""
    said = (kind.extra_json_schema or {}).get("description", "")
    return said.replace("|", "\\|"), (kind.extra or {}).get("unit", "")


def _name(kind: Any, inner: list[type]) -> str:  # noqa: ANN401, PLR0911 - a table
    """Return a type as a reader of JSON knows it; types of parts go to ``inner``."""
    match kind:
        case inspect.Metadata():
            return _name(kind.type, inner)
        case inspect.UnionType():
            return " or ".join(_name(one, inner) for one in kind.types)
        case inspect.StructType() | inspect.DataclassType():
            inner.append(kind.cls)
            return f"*{kind.cls.__name__}*"
        case inspect.VarTupleType() | inspect.ListType() | inspect.CollectionType():
            return f"list of {_name(kind.item_type, inner)}"
        case inspect.TupleType():
            return f"[{', '.join(_name(one, inner) for one in kind.item_types)}]"
        case inspect.DictType():
            return f"object: name → {_name(kind.value_type, inner)}"
        case inspect.LiteralType():
            return " or ".join(f"`{json.dumps(value)}`" for value in kind.values)
        case inspect.EnumType():
            return " or ".join(f"`{json.dumps(str(one))}`" for one in kind.cls)
    plain = {"Int": "whole number", "Float": "number", "Str": "text", "Bool": "boolean"}
    name = type(kind).__name__.removesuffix("Type")
    limits = [
        f"{sign} {_number(limit)}"
        for which, sign in LIMITS.items()
        if (limit := getattr(kind, which, None)) is not None and abs(limit) < 1e308
    ]
    named = {"None": "null", "Any": "anything"}.get(name) or plain[name]
    return " ".join([named, *[f"({', '.join(limits)})"] * bool(limits)])


def _number(value: float) -> str:
    power = int(value).bit_length() - 1
    if isinstance(value, int) and value > 10**6:
        return f"2^{power}" if value == 2**power else f"2^{power + 1} - 1"
    return str(value)


def main() -> None:
    """Write both files."""
    (HERE / PAGE).write_text(page(), encoding="utf-8")
    (HERE / SCHEMA_FILE).write_text(schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
