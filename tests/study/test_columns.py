"""Lines of tables are held against their types."""

import pytest

from montecarlo.study.columns import MEASUREMENTS, MeasurementLine, validate_table
from montecarlo.study.curves import CURVE_FILES
from montecarlo.study.folder import ResultsError

WEIGHTS, LOSS = "curves/weight_by_rank.csv", "curves/training_budget.csv"
LINES = {MEASUREMENTS: MeasurementLine, **CURVE_FILES}
WEIGHT = "gaussian,gaussian,none,none,4,8,none,1,0.5,0.1"
ROW = (
    "gaussian,gaussian,none,none,none,4,256,,none,float64,shifted,score_variance,value,"
    "1.0,0.1,-inf,inf,8,,,r0123456789a"
)


def table(tmp_path, name, line):
    """Write a table of one line."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    text = f"{','.join(LINES[name].__struct_fields__)}\n{line}\n"
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path, name, LINES[name]


def test_lines_are_read(tmp_path):
    """A right line is returned as text, empty fields as None."""
    (line,) = validate_table(*table(tmp_path, MEASUREMENTS, ROW))
    assert (line["d_k"], line["initialisation"], line["ci_low"]) == (
        "4",
        "none",
        "-inf",
    )
    assert len(validate_table(*table(tmp_path, WEIGHTS, WEIGHT))) == 1
    bound = ROW.replace("1.0,0.1,-inf,inf", ",,0.0,1e-60")
    (line,) = validate_table(*table(tmp_path, MEASUREMENTS, bound))
    assert (line["estimate"], line["ci_high"]) == (None, "1e-60")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (MEASUREMENTS, ",4,256", ",0,256", "line 2, .* >= 1 at d_k, got '0'"),
        (MEASUREMENTS, ",4,256", ",four,256", "line 2, .*`int`.* at d_k, got 'four'"),
        (MEASUREMENTS, "1.0,0.1", "1.0,-0.1", ">= 0.* at std_error, got '-0.1'"),
        (MEASUREMENTS, "1.0,0.1", "nan,0.1", "must leave empty what is no number"),
        (MEASUREMENTS, "1.0,0.1,-inf,inf", ",0.1,0.0,1.0", "std_error without an est"),
        (MEASUREMENTS, "-inf,inf", ",inf", "two ends of an interval .* got None"),
        (MEASUREMENTS, "-inf,inf", "2.0,1.0", "in order, or none, got '2.0' and '1.0'"),
        (MEASUREMENTS, "r0123456789a", "row", "at row_id, got 'row'"),
        (MEASUREMENTS, ",value", "", "must have 21 fields, got 20"),
        (MEASUREMENTS, ",value", ',"value', "must be a table, got none"),
        (WEIGHTS, "1,0.5", "0,0.5", "at rank, got '0'"),
        (WEIGHTS, "1,0.5", "1,", "at mean_weight, got None"),
    ],
)
def test_other_lines_are_refused(tmp_path, name, old, new, message):
    """One line names the table, the line, the column, what is required and came."""
    line = ROW if name == MEASUREMENTS else WEIGHT
    with pytest.raises(ResultsError, match=message) as error:
        validate_table(*table(tmp_path, name, line.replace(old, new, 1)))
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_tables_have_lines_and_columns(tmp_path):
    """A table of nothing is one, if all rests on records; a missing column is named."""
    folder, name, kind = table(tmp_path, LOSS, "")
    (folder / name).write_text("most_steps,learned_loss", encoding="utf-8")
    assert validate_table(folder, name, kind) == []
    (folder / name).write_text("most_steps", encoding="utf-8")
    with pytest.raises(ResultsError, match="got 'none' for 'learned_loss'"):
        validate_table(folder, name, kind)
