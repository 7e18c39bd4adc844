"""A point query is a row of the table, sampled alone."""

import csv
import json
import math
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from montecarlo.attention.grids import DEEP
from montecarlo.claims.checks import Check
from montecarlo.cli.command_line import MeasureOptions
from montecarlo.errors import InputError
from montecarlo.estimation.engine import Budget
from montecarlo.estimation.estimates import bounded_estimate
from montecarlo.estimation.intervals import FEWEST_OUTLIERS, round_end
from montecarlo.study import measurement
from montecarlo.study.measured import summary_words
from montecarlo.study.measurement import MOST_WITH_OUTLIERS, PreciseRows, grid, measure
from montecarlo.study.table import COLUMNS
from montecarlo.theory import expected_row
from tests.commands import measure as main
from tests.commands import report
from tests.conftest import small_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a small report."""
    path = tmp_path_factory.mktemp("report")
    output = path / "output"
    asked = small_study(path, {"seed": 5}, d_k=[4, 16], n_keys=[8], first=8, most=8)
    assert report([*asked, "--output", str(output), "--quiet"]) == 0
    return output


def rows(folder):
    """Return some rows of a report: pairs, means, quantiles, ratios."""
    with (folder / "measurements.csv").open(encoding="utf-8", newline="") as file:
        table = [*csv.DictReader(file)]
    assert [*table[0]] == [name for name in COLUMNS if name != "mask"]  # there is none
    return table[:: max(1, len(table) // 12)]


def test_row_of_a_report_gives_the_same_number(folder, capsys):
    """`--row` repeats a number to the bit, whatever was sampled beside it, and prints
    the command that does so without the report.
    """
    for row in rows(folder):
        again = ["--row", row["row_id"], "--from", str(folder)]
        assert main([*again, "--seed", "1"]) == 2
        assert main(again) == 0
        command = capsys.readouterr().out.splitlines()[-1]
        before, options = command.split(" measure ")
        assert before.split() == ["again", "python", "-m", "montecarlo"]
        assert main([*shlex.split(options), "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["estimate"] == float(row["estimate"])
        assert again["row_id"] == row["row_id"]


def test_one_default_for_divisor():
    """The root, in measurements, grids, claims and exact rows; what has one value for
    all divisors has it under any.
    """
    point, effort = {"d_k": 16, "n_keys": 8}, {"first": 4, "most": 4}
    assert measure(**point, quantity="entropy", **effort).divisor == "sqrt"
    assert grid(**point, quantity="entropy", **effort)["divisor"].item() == "sqrt"
    assert Check("entropy", "at_least").divisor == "sqrt"
    assert MeasureOptions().divisor == "sqrt"
    usual = expected_row(8, d_k=16)["entropy"].value
    assert usual == expected_row(8, d_k=16, divisor="sqrt")["entropy"].value
    one = measure(d_k=16, quantity="entry_variance_q", divisor="linear", **effort)
    assert one.divisor == Check("entry_variance_q", "at_least").divisor == "none"
    found = grid(d_k=16, quantity="entry_variance_q", divisor=["sqrt", 2], **effort)
    assert found["row_id"].tolist() == [one.row_id]


def test_a_divisor_of_a_grid_is_what_was_typed():
    """A fraction of a formula is no ratio of two divisors."""
    found = grid(
        d_k=64, n_keys=8, quantity="entropy", divisor=["d_k/8", "none"], most=16
    )
    assert found["divisor"].tolist() == ["d_k/8", "none"]
    root = measure(d_k=64, n_keys=8, quantity="entropy", divisor=8, most=16)
    assert found["estimate"].iloc[0] == pytest.approx(root.estimate, rel=1e-12)


def test_q50_is_the_median_and_a_name_without_a_row_is_refused():
    """Also where other names of the list have rows."""
    asked = {"d_k": 4, "n_keys": 8, "quantity": "entropy", "most": 128}
    assert measure(summary="q50", **asked) == measure(summary="median", **asked)
    with pytest.raises(InputError, match="got 'averge'"):
        grid(summary=["q50", "averge"], **asked)


@pytest.mark.parametrize("divisor", ["sqrt", "d_k^-0.5", "none/(1/sqrt(d_k))"])
def test_a_divisor_below_one_is_noted(divisor):
    """It multiplies scores: with the divisor that multiplies them by its value."""
    noted = "scores are multiplied by 2; to multiply them by 0.5, divide by sqrt(d_k)"
    found = measure(d_k=4, n_keys=8, quantity="effective_keys", divisor=divisor, most=9)
    assert dict(found.lines()).get("note") == (None if divisor == "sqrt" else noted)


def test_precision_is_reached():
    """Replicates double until the standard error is small enough."""
    point = measure(
        d_k=64, quantity="score_variance", divisor="none", relative_error=5e-4
    )
    assert point.std_error <= 5e-4 * abs(point.estimate)
    assert point.n_replicates > 128
    assert math.log2(point.n_replicates).is_integer()


def test_budget_is_kept():
    """With too few replicates the query ends all the same, and says how many."""
    effort = {"relative_error": 0.007, "first": 64, "most": 128}
    point = measure(d_k=4, n_keys=8, quantity="entropy", divisor="none", **effort)
    assert point.n_replicates == 128
    assert point.std_error > 0.007 * point.estimate


def test_distribution_without_an_interval_is_told_at_once(capsys):
    """A distribution that lacks moments gives a value, no interval, and why; sampling
    stops.
    """
    wanted = ["--distribution", "student_t3", "--d-k", "4", "--divisor", "none"]
    assert main([*wanted, "--quantity", "score_variance", "--seed", "7"]) == 4
    text, told = capsys.readouterr()
    assert "no interval without the moments" in told
    assert "none: the distribution lacks the moments that it needs" in text
    assert "±" not in text
    assert "nan" not in text
    assert re.search(r"replicates +128,", text)


def test_mean_of_rare_replicates_has_no_interval(capsys):
    """An estimate that hangs on a few replicates says so, in words and as null."""
    wanted = "--distribution gaussian --d-k 256 --keys 32 --divisor none --seed 7 "
    wanted += "--dependence planted(0.5) --quantity gradient_query --relative-error .01"
    assert main(wanted.split()) == 4
    assert f"fewer than {FEWEST_OUTLIERS} replicates" in capsys.readouterr().out
    assert main([*wanted.split(), "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["ci_low"], found["ci_high"]) == (0.0, None)


def test_mean_of_rare_weights_is_bounded():
    """A weight is at most 1: where few replicates make all of the variance, its mean
    has Hoeffding's interval, as a share has where all rows agree.
    """
    place = {"dependence": "planted(0.5)", "divisor": "none", "most": 128, "seed": 7}
    weight, share = (
        measure(d_k=256, n_keys=32, quantity=name, **place)
        for name in ("weight_max", "saturated")
    )
    reach = (1.0 - 1.0 / 32.0) * math.sqrt(math.log(40.0) / 256.0)
    assert 1.0 - reach < weight.estimate <= weight.ci_high == 1.0
    assert weight.ci_low == pytest.approx(weight.estimate - reach, rel=1e-12)
    assert 0.9 < share.ci_low <= share.estimate <= share.ci_high <= 1.0


#: Quantities at a place where weights are 0 or 1 to many digits.
EDGE = ("saturated", "weight_max", "inverse_participation", "entropy", "planted_weight")


@pytest.mark.parametrize("divisor", ["none", "1e3"])
def test_intervals_stay_within_the_range(divisor):
    """Neither weights nor shares are below 0 or above 1, nor entropies above ln n, in
    grids as in measurements.
    """
    place = {"n_keys": 32, "divisor": divisor, "dependence": "planted(0.5)"}
    table = grid(d_k=64, quantity=EDGE, **place, most=128)
    for row in table.to_dict("records"):
        most = math.log(32.0) if row["quantity"] == "entropy" else 1.0
        assert 0.0 <= row["ci_low"] <= row["estimate"] <= row["ci_high"] <= most
    alone = measure(d_k=64, quantity="weight_max", most=128, **place)
    same = table[table.quantity.eq("weight_max")].iloc[0]
    assert (alone.ci_low, alone.ci_high) == (same.ci_low, same.ci_high)


def test_quantile_below_the_least_that_is_counted_is_a_bound(capsys):
    """It has no estimate and no standard error, but an interval that ends where
    counting begins; said in words, as null, and as an empty field.
    """
    place = {"dependence": "planted(0.5)", "divisor": "none", "most": 128}
    names = ["jacobian_trace", "jacobian_spectral"]
    table = grid(d_k=1024, n_keys=16, quantity=names, summary="median", **place)
    assert table[["estimate", "std_error"]].isna().all(axis=None)
    assert table.ci_low.eq(0.0).all()
    assert table.ci_high.eq(DEEP.edges()[1]).all()
    spread = measure(d_k=1024, n_keys=16, quantity=names[0], summary="spread", **place)
    assert math.isnan(spread.estimate)
    assert (spread.ci_low, spread.ci_high) == (0.0, math.inf)

    typed = ["--d-k", "1024", "--keys", "16", "--quantity", names[0], "--divisor"]
    typed += ["none", "--summary", "median", "--dependence", "planted(0.5)"]
    assert main([*typed, "--most", "128"]) == 4
    text, told = capsys.readouterr()
    above = round_end(float(DEEP.edges()[1]), 8, up=True)
    assert f"estimate    at most {above:.8g}:" in text
    assert "but a bound" in told
    assert "nan" not in text


@pytest.mark.parametrize("divisor", ["1e3", "1e5", "1e6"])
@pytest.mark.parametrize(("d_k", "n_keys"), [(64, 1024), (8, 8)])
def test_rounding_of_flat_rows_is_within_their_error(d_k, n_keys, divisor):
    """With s² = d_k/divisor² tiny, E H = ln n - s²/2 (1 - 1/n) and E tr J = 1 - 1/n -
    s²/n (1 - 1/n), but for terms of s⁴.  Within 7 standard errors, by t with 127
    degrees of freedom: of these 12, fewer than 1 in 100 million runs fails by chance.
    """
    names = ["entropy", "jacobian_trace"]
    table = grid(
        d_k=d_k, n_keys=n_keys, quantity=names, divisor=divisor, most=128, seed=2
    )
    square, left = d_k / float(divisor) ** 2, 1.0 - 1.0 / n_keys
    exact = [math.log(n_keys) - square / 2.0 * left, left * (1.0 - square / n_keys)]
    further = 4.0 * square**2
    off = np.abs(table.estimate - exact)
    assert (off < 7.0 * table.std_error + further).all()
    assert (table.ci_high <= [math.log(n_keys), left]).all()
    assert (table.std_error < square).all() or divisor == "1e6"


#: Odd sizes, and divisors that no table has.
PLACES = ((5, 37), (96, 300))
DIVISORS = (
    *("13.5", "d_k^0.6", "2*d_k^0.25", "sqrt(d_k*ln(n))", "0.7*d_k^0.45*ln(n)"),
    *("n^0.2", "d_k^(1/3)", "(d_k/ln(n))", "3", "d_k^0.5*ln(n)^-0.5"),
)


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize(("d_k", "n_keys"), PLACES)
def test_any_divisor_is_held_against_theory(d_k, n_keys, divisor):
    """Within 7 standard errors of the exact value, at 20 cells and for their ratios.

    Of 100 estimates of 128 replicates or more, by t with 127 degrees of freedom: fewer
    than 1 in 10 million runs fails by chance.
    """
    names = ["entropy", "jacobian_trace", "weight_max", "score_row_variance"]
    both = [divisor, f"({divisor})/sqrt"]
    table = grid(d_k=[d_k], n_keys=[n_keys], quantity=names, divisor=both, seed=3)
    assert table.quantity.tolist() == [names[0], names[1], names[1], *names[2:]]
    assert table.reference.notna().all()
    z = (table.estimate - table.reference) / table.std_error
    assert z.abs().max() < 7.0
    assert (table.std_error <= 0.01 * table.estimate).all()


def typed(more):
    """Return the words of a small question."""
    return ["--d-k", "64", "--keys", "64", "--quantity", *more.split()]


def test_a_typed_target_counts_beside_a_fixed_number(capsys):
    """Without one, four replicates are what was asked for."""
    fixed = ["--keys", "64", "--quantity", "entropy", "--first", "4", "--most", "4"]
    assert (main(fixed), main([*fixed, "--relative-error", "1e-9"])) == (0, 4)
    assert "the target error was not reached" in capsys.readouterr().err


def test_exact_values_are_had_without_sampling(monkeypatch, capsys):
    """What theory has, as a text and as JSON; what it lacks is told, with status 4."""
    monkeypatch.setattr(measurement, "run", lambda *_: pytest.fail("sampled"))
    wanted = [*typed("entropy --divisor sqrt"), "--exact"]
    assert main(wanted) == 0
    text = capsys.readouterr().out
    exact = expected_row(64, d_k=64)["entropy"].value
    assert f"exact       {exact:.12g}, known to " in text
    assert "estimate" not in text
    assert main([*wanted, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reference"] == pytest.approx(exact, rel=1e-9)
    assert (told["estimate"], told["n_replicates"], told["reached"]) == (None, 0, True)
    assert main([*typed("jacobian_spectral"), "--exact"]) == 4
    assert "--exact must be left out: theory has no value of" in capsys.readouterr().err
    for more in (["--seed", "2"], ["--markdown"], ["--relative-error", "0.1"]):
        assert main([*wanted, *more]) == 2
        assert f"--exact must stand without {more[0]}" in capsys.readouterr().err


def test_absolute_errors_are_reached(capsys):
    """The standard error is the one wanted, and only one of the two may be said."""
    wanted = typed("entropy --absolute-error 0.002")
    assert main([*wanted, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.001 < found["std_error"] <= 0.002
    assert main([*wanted, "--relative-error", "0.1"]) == 2
    assert (
        "--relative-error must stand without --absolute-error"
        in capsys.readouterr().err
    )


def test_an_interruption_gives_the_estimate_so_far(monkeypatch, capsys):
    """Ctrl-C in the second round: what the first has is told, with its own status."""
    advance = measurement.run

    def interrupted(plan, store, *rest):
        advance(
            replace(plan, budgets=dict.fromkeys(plan.budgets, Budget(16, 16))),
            store,
            *rest,
        )
        raise KeyboardInterrupt

    monkeypatch.setattr(measurement, "run", interrupted)
    assert main(typed("entropy")) == 130
    text, told = capsys.readouterr()
    assert re.search(r"replicates +16,", text)
    assert "interrupted: the estimate of 16 replicates" in told
    assert "again" not in text


def test_one_may_stand_for_a_list():
    """A single size, quantity or divisor needs no brackets, and what is named twice is
    one row; normal is gaussian, and NumPy's numbers are numbers.  Names of divisors and
    distributions stand as they were typed first.
    """
    names = ["distribution_q", "distribution_k", "divisor"]
    one = grid("normal", d_k=4, n_keys=8, quantity="entropy", divisor=2.0, most=64)
    lists = {"d_k": [4], "n_keys": [8], "quantity": ["entropy"], "divisor": ["2"]}
    other = grid("gaussian", **lists, most=64)
    assert one[names].values.tolist() == [["normal", "normal", 2.0]]
    assert other[names].values.tolist() == [["gaussian", "gaussian", "2"]]
    assert one.drop(columns=names).equals(other.drop(columns=names))
    twice = {"quantity": ["entropy", "entropy"], "divisor": ["sqrt", "d_k^0.5"]}
    one = grid(d_k=np.array([4, 8]), n_keys=np.int64(8), **twice, most=64)
    plain = grid(d_k=[4, 8], n_keys=8, quantity="entropy", divisor="sqrt", most=64)
    assert len(one) == 2
    assert one.equals(plain)


def test_a_share_of_no_row_is_an_answer(capsys):
    """Its bound is that of replicates that agree in all their rows: (1 - p)^N = 0.025,
    solved here; every one of them may hold one key that decides for all its rows.
    """
    assert main(typed("saturated --divisor sqrt --json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["estimate"], told["ci_low"], told["reached"]) == (0.0, 0.0, True)
    bound = 1.0 - math.exp(math.log(0.025) / told["n_replicates"])
    assert told["ci_high"] == pytest.approx(bound, rel=1e-9)
    assert main(typed("saturated --divisor sqrt --absolute-error 0.002")) == 0
    text = capsys.readouterr().out
    assert "0: none of the rows drawn" in text
    assert "whatever the rows of a replicate have in common" in text
    (replicates,) = map(int, re.findall(r"replicates +(\d+),", text))
    assert 1.0 - math.exp(math.log(0.025) / replicates) <= 2.0 * 1.98 * 0.002


def test_a_share_of_every_row_has_a_lower_bound():
    """As one of no row, from the other side."""
    found = measure(d_k=64, n_keys=8, quantity="saturated", divisor=1e-6, most=64)
    assert (found.estimate, found.ci_high) == (1.0, 1.0)
    assert found.ci_low == pytest.approx(0.025 ** (1.0 / 64.0), rel=1e-9)


def lines_with(**changed):
    """The lines of a measurement, some of whose columns are changed."""
    measured = measure(d_k=4, n_keys=8, quantity="entropy", most=128)
    return dict(replace(measured, **changed).lines())


@pytest.mark.parametrize(
    ("low", "high", "error", "shown"),
    [
        (0.12349, 0.45671, 0.08, "[0.123, 0.457]"),
        (0.12351, 0.45669, 0.08, "[0.123, 0.457]"),
        (-0.1, 0.1, 0.05, "[-0.100, 0.100]"),
        (123456.0, 133333.0, 2400.0, "[123400, 133400]"),
        (2.00049e-20, 2.00051e-20, 1e-23, "[2.0004e-20, 2.0006e-20]"),
        (0.3, 0.3, 0.0, "[0.3, 0.3]"),
        (1 / 3, 2 / 3, 0.0, "[0.33333333, 0.66666667]"),
    ],
)
def test_printed_intervals_are_rounded_outwards(low, high, error, shown):
    """Down to the second digit of the error, and never into the interval."""
    lines = lines_with(ci_low=low, ci_high=high, std_error=error)
    assert lines["95 %"] == shown


def test_quantiles_near_the_upper_end_are_known():
    """Of the trace of 512 keys, divided by d_k: 0.99801, which was 0.968 for any number
    of replicates.
    """
    point = {"d_k": 64, "n_keys": 512}
    asked = {"quantity": "jacobian_trace", "summary": "q10", "divisor": "linear"}
    measured = measure(**point, **asked, most=128)
    assert measured.estimate == pytest.approx(0.99801, abs=1e-4)
    assert 0.0 < measured.std_error < 1e-4


def test_what_is_known_to_a_bin_says_so(capsys):
    """It has an interval and no standard error, and asks for no replicates."""
    asked = {"quantity": "jacobian_frobenius", "summary": "median", "divisor": "1e4"}
    measured = measure(d_k=64, n_keys=16, **asked, most=512)
    assert measured.is_binned
    assert measured.ci_high / measured.ci_low == pytest.approx(10.0 ** (1 / 512))
    assert dict(measured.lines())["estimate"].startswith("in [0.24")
    assert "±" not in str(measured)
    typed = ["--d-k", "64", "--keys", "16", "--quantity", "jacobian_frobenius"]
    typed += ["--summary", "median", "--divisor", "1e4", "--relative-error", "1e-4"]
    assert main(typed) == 4
    text, told = capsys.readouterr()
    assert "a bin of a histogram" in text
    assert "which no replicates make smaller" in told
    assert re.search(r"replicates +128,", text)
    assert "nan" not in text + told


@pytest.mark.parametrize(
    ("quantity", "summary", "numbers", "shown"),
    [
        ("saturated", "mean", (2e-4, 0.02, 0.0, 0.0431), ("0.000", "at most 0.044")),
        ("saturated", "mean", (0.99, 0.02, 0.9511, 1.0), ("0.990", "at least 0.951")),
        ("format_error", "mean", (2e-4, 0.02, 0.0, 0.0431), ("0.000 ± 0.020", None)),
        (
            "jacobian_trace",
            "median",
            (4.2e-15, 2.8e-15, 1e-15, 1.2e-14),
            ("4.2e-15 ×/÷ 1.89", None),
        ),
        (
            "jacobian_trace",
            "median",
            (0.42, 0.028, 0.36, 0.48),
            ("0.420 ± 0.028", "[0.360, 0.480]"),
        ),
        ("entropy", "mean", (1e-3, 1e-3, 0.0, 3e-3), ("0.0010 ± 0.0010", None)),
    ],
)
def test_an_error_is_said_as_it_is(quantity, summary, numbers, shown):
    """Of a share that may be 0 or 1 by a bound on one side, of a quantile that is known
    to a factor by that; of anything else by what lies on either side.
    """
    names = ("estimate", "std_error", "ci_low", "ci_high")
    changed = dict(zip(names, numbers, strict=True))
    lines = lines_with(quantity=quantity, summary=summary, **changed)
    assert lines["estimate"] == shown[0]
    assert shown[1] in (None, lines["95 %"])


def test_lists_of_all_that_names_a_row():
    """Each combination that there is, as `measure` has it alone; what is none of a
    point is left out, what none has is refused, and an empty name is no name.
    """
    found = grid(
        ["gaussian", "laplace"],
        d_k=16,
        n_keys=[8],
        quantity=["entropy", "format_error", "planted_weight"],
        summary=["mean", "median"],
        number_format=["float64", "float16", "e4m3"],
        dependence=["none", "planted(0.5)"],
        normalisation=["none", "rms"],
        most=4,
    )
    sizes = found.groupby(["quantity", "number_format", "summary"]).size().to_dict()
    assert sizes == {
        ("entropy", "float64", "mean"): 8,
        ("entropy", "float64", "median"): 8,
        ("format_error", "float64", "mean"): 8,
        ("format_error", "float16", "mean"): 8,
        ("format_error", "e4m3", "mean"): 8,
        ("planted_weight", "float64", "mean"): 4,
        ("planted_weight", "float64", "median"): 4,
    }
    for row in found.to_dict("records")[::7]:
        names = ("distribution_q", "distribution_k", "dependence", "normalisation")
        parts = ("quantity", "summary", "number_format", "softmax")
        alone = measure(
            d_k=16, n_keys=8, most=4, **{name: row[name] for name in (*names, *parts)}
        )
        assert (alone.row_id, alone.estimate) == (row["row_id"], row["estimate"])
    assert set(found["initialisation"]) == {"none"}
    assert summary_words("share_above").startswith("share of rows above the mean")
    for wrong, what in (
        ({"quantity": "score_std", "divisor": "none/sqrt"}, "; got 'score_std'"),
        ({"quantity": "entropy"}, "n_keys must be given for entropy"),
        ({"quantity": "entropy", "n_keys": 8, "summary": "last"}, "last under a mask"),
        ({"quantity": "score_std", "first": 9, "most": 8}, "first must be at most 8"),
        ({"quantity": "score_std", "divisor": None}, "or a formula as text"),
        ({"quantity": "planted_weight", "n_keys": 8}, "planted_weight needs planted"),
        ({"quantity": "entropy", "n_keys": 8, "summary": []}, "summary must have"),
        ({"quantity": "score_std", "distribution_k": ""}, "distribution must be"),
        ({"quantity": "score_std", "normalisation": ["rms"] * 4097}, "at most 4096"),
    ):
        with pytest.raises(InputError, match=what):
            grid(d_k=4, **wrong)


@pytest.mark.parametrize("of", [lambda mean: mean, lambda mean: mean.root()])
def test_error_that_rests_on_one_replicate_ends_no_sampling(of):
    """Its bound says nothing of what more replicates make of it."""
    rare = np.r_[0.5, np.full(511, 0.002)]
    few = of(bounded_estimate(rare, (0.001, 1.0)))
    assert PreciseRows({}).replicates_needed(few) == 1024
    assert PreciseRows({}, absolute_error=1.0).replicates_needed(few) == 512
    many = of(bounded_estimate(np.repeat(rare, 8), (0.001, 1.0)))
    assert many.n_replicates == MOST_WITH_OUTLIERS
    assert PreciseRows({}).replicates_needed(many) > 2 * MOST_WITH_OUTLIERS
