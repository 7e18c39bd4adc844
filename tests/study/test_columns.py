"""Lines of tables are held against their types."""

import pytest

from montecarlo.study.columns import CURVES, MEASUREMENTS, validate_table
from montecarlo.study.folder import ResultsError
from montecarlo.study.table import COLUMNS, CURVE_COLUMNS

CURVE = "gaussian,gaussian,none,,4,8,none,,,weight_by_rank,,,,,1.0,0.5,0.1"
ROW = (
    "gaussian,gaussian,none,,4,256,,none,float64,shifted,score_variance,value,"
    "1.0,0.1,-inf,inf,8,,,r0123456789a"
)


def table(tmp_path, name, line):
    """Write a table of one line."""
    columns = COLUMNS if name == MEASUREMENTS else CURVE_COLUMNS
    path = tmp_path / name
    path.write_text(f"{','.join(columns)}\n{line}\n", encoding="utf-8")
    return path


def test_lines_are_read(tmp_path):
    """A right line is returned as text, empty fields as None."""
    (line,) = validate_table(table(tmp_path, MEASUREMENTS, ROW))
    assert (line["d_k"], line["initialisation"], line["ci_low"]) == ("4", None, "-inf")
    assert len(validate_table(table(tmp_path, CURVES, CURVE))) == 1
    bound = ROW.replace("1.0,0.1,-inf,inf", ",,0.0,1e-60")
    (line,) = validate_table(table(tmp_path, MEASUREMENTS, bound))
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
        (MEASUREMENTS, ",value", "", "must have 20 fields, got 19"),
        (MEASUREMENTS, ",value", ',"value', "must be a table, got none"),
        (CURVES, "1.0,0.5", "inf,0.5", "at x, got 'inf'"),
        (CURVES, "1.0,0.5", ",0.5", "at x, got None"),
    ],
)
def test_other_lines_are_refused(tmp_path, name, old, new, message):
    """One line names the table, the line, the column, what is required and came."""
    line = ROW if name == MEASUREMENTS else CURVE
    with pytest.raises(ResultsError, match=message) as error:
        validate_table(table(tmp_path, name, line.replace(old, new, 1)))
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_tables_have_lines_and_columns(tmp_path):
    """A table of nothing is one, if all rests on records; a missing column is named."""
    path = tmp_path / CURVES
    path.write_text(",".join(CURVE_COLUMNS), encoding="utf-8")
    validate_table(path)
    path.write_text(",".join(CURVE_COLUMNS[:-1]), encoding="utf-8")
    with pytest.raises(ResultsError, match="got 'none' for 'std_error'"):
        validate_table(path)
