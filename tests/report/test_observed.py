"""Pages of a model observed, and the command that writes them."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fontTools.ttLib import TTFont

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.cli.observe import main
from montecarlo.observation.evidence import label_here, select_claims
from montecarlo.report.content.observed import trained as trained_model
from montecarlo.report.content.observed.record import RECORD, TABLE
from montecarlo.report.content.observed.trained import TRAINED_FILE, view_trained
from montecarlo.report.figures import render_svg
from montecarlo.report.figures.drawing import palette
from montecarlo.report.figures.observed.applied import APPLIED_FIGURES, tables_of
from montecarlo.report.figures.observed.heads import OBSERVED_FIGURES
from montecarlo.report.language.catalogues import LANGUAGES, Language
from montecarlo.report.language.messages import source_messages
from montecarlo.report.language.templates import template_folder
from montecarlo.report.observed import command
from montecarlo.results.folder import STAGING
from montecarlo.results.reading import read_run
from montecarlo.results.validating import validate
from montecarlo.study.run_record import ObservationRun, Timing

CODES = tuple(LANGUAGES)


@pytest.fixture(params=CODES)
def page(observed, request):
    """The page in each language."""
    return observed.page(request.param)


def test_numbers_are_those_of_the_table(observed, page):
    """Each number that names a head and a quantity is the value in the table."""
    table = pd.read_csv(observed.folder / TABLE, dtype={"layer": str, "head": str})
    places = table["layer"] + "/" + table["head"] + "/" + table["quantity"]
    values = dict(zip(places, table["value"], strict=True))
    named = [number for number in page.numbers() if number.row]
    assert len(named) > 80
    for number in named:
        assert number.value == values[number.row]
        assert abs(number.shown - number.value) <= number.half_unit * 1.001


def test_numbers_are_the_same_in_every_language(observed, page):
    """A page shows what the English one shows."""
    have = Counter(number.value for number in page.numbers())
    assert have == Counter(number.value for number in observed.page("en").numbers())


def test_verdicts_are_those_of_the_record(observed, page):
    """Each interpretation has its verdict and its counts of heads."""
    record = json.loads((observed.folder / RECORD).read_text())
    lines = page.by_id["table-claims"].findall("tbody/tr")
    assert len(lines) == len(record["interpretations"]) > 10
    for line, interpretation in zip(lines, record["interpretations"], strict=True):
        assert page.verdicts(line) == [interpretation["verdict"]]
        counts = [number.value for number in page.numbers(line[2])]
        names = ("supported", "refuted", "undecided")
        assert counts == [interpretation["heads"].get(name, 0) for name in names]
        assert sum(counts) == len(record["heads"])


def test_states_are_counted(observed, page):
    """The short answer counts every head once."""
    counts = next(e for e in page.root.iter("ul") if e.get("class") == "counts")
    shown = [number.value for number in page.numbers(counts)]
    assert sum(shown) == len(observed.observation.heads)


def test_parts_add_up(observed, page):
    """The parts on the page are the variance of the table, with that of the mask."""
    lines = page.by_id["table-parts"].findall("tbody/tr")
    parts = [page.numbers(line[2])[0].value for line in lines]
    overall = observed.observation.overall["score_variance"].value
    assert sum(parts) == pytest.approx(overall, rel=1e-12)
    assert len(parts) == 6
    shares = [page.numbers(line[3])[0].value for line in lines]
    assert sum(shares) == pytest.approx(1.0)


def test_assumptions_are_counted(observed, page):
    """Each assumption has the heads in which it holds, fails and cannot be told."""
    record = json.loads((observed.folder / RECORD).read_text())
    found = Counter(
        (one["name"], one["verdict"])
        for head in record["heads"]
        for one in head["assumptions"]
    )
    lines = page.by_id["table-assumptions"].findall("tbody/tr")
    assert len(lines) == len({name for name, _ in found}) == 6
    for line in lines:
        (name,) = {n.row.partition("/factor_")[2] for n in page.numbers(line) if n.row}
        shown = [page.numbers(cell)[0].value for cell in line[4:7]]
        verdicts = ("supported", "refuted", "undecided")
        assert shown == [found[name, verdict] for verdict in verdicts]
    assert {verdict for _, verdict in found} >= {"supported", "refuted"}


def test_rows_are_compared_with_keys_from_elsewhere(page):
    """Each line has the quantity, that of drawn keys, and the difference."""
    lines = page.by_id["table-dependence"].findall("tbody/tr")
    assert len(lines) == 6
    for line in lines:
        cells = [page.numbers(cell)[0] for cell in line[1:]]
        name = cells[0].row
        rows = [name, f"{name}_permuted", f"{name}_dependence"]
        assert [cell.row for cell in cells] == rows
        first, second, third = (cell.value for cell in cells)
        assert first - second == pytest.approx(third, rel=1e-9)


def test_scales_are_those_of_the_record(observed, page):
    """Each line has the divisor that was found of its heads, and all heads have one."""
    record = json.loads((observed.folder / RECORD).read_text())["applied"]
    lines = page.by_id["table-scales"].findall("tbody/tr")
    told = [
        (finding, place)
        for finding in record["findings"]
        for place in finding["places"]
    ]
    assert len(lines) == len(told) == 8
    for line, (finding, (layers, heads)) in zip(lines, told, strict=True):
        shown = [number.value for number in page.numbers(line[0])]
        assert set(shown) == {layers[0], layers[-1]}
        if heads != [0, 1, 2, 3]:
            shown = [number.value for number in page.numbers(line[1])]
            assert {shown[0], shown[-1]} == {heads[0], heads[-1]}
        divisor = [number.value for number in page.numbers(line[2])]
        assert divisor[:1] == ([finding["divisor"]] if finding["divisor"] else [])
    heads = {(n, h) for _, (layers, hs) in told for n in layers for h in hs}
    assert len(heads) == 8
    told = [one["outcome"] for one in record["findings"]]
    assert Counter(told) == {"scale": 5, "uniform": 1, "no_fit": 1}
    verdicts = page.verdicts(page.by_id["scale"])
    assert verdicts == ["refuted"]
    first = next(e for e in page.by_id["scale"].iter("p"))
    shown = [number.value for number in page.numbers(first)]
    # all, right, the divisor, the tolerance in per cent, wrong, and open, in an order
    # that a language may change
    assert Counter(shown) == Counter([8, 5, 4.0, 1.0, 2, 1])


def test_without_weights_no_scale_is_told(observed_few):
    """Queries and keys alone do not tell it, and the page says so."""
    page = observed_few.page("en")
    assert "table-scales" not in page.by_id
    text = "".join(page.by_id["scale"].itertext())
    assert "From queries and keys alone it cannot be told" in text
    assert page.verdicts(page.by_id["scale"]) == ["undecided"]


def test_what_else_is_in_the_scores_is_in_words(observed):
    """Every additive part that was planted, and every hint, by its name."""
    text = "".join(observed.page("en").by_id["table-scales"].itertext())
    for words in (
        "is the scale applied twice?",
        "a bias of −0.250 per position of distance",
        "capped at 2.00 by",
        "add up to 0.80 on average",
        "every key that is not hidden counts the same",
        "no scale fits",
        "causal mask",
    ):
        assert words in text


def test_few_sequences_say_so(observed_few):
    """Without intervals no error is shown and no claim is decided."""
    page = observed_few.page("en")
    text = "".join(page.root.find("body").itertext())
    assert "fewer than five sequences" in text
    assert "no keys from elsewhere" in text
    assert "±" not in text
    assert set(page.verdicts(page.by_id["table-claims"])) == {"undecided"}
    assert "fewer than five" not in "".join(observed_few_text(page, "claims"))


def observed_few_text(page, name):
    """Return the words of a section."""
    return page.by_id[name].itertext()


def test_every_word_is_a_message(observed):
    """No word of the page stands in a template without being translated."""
    messages = {source: f"⟦{source}⟧" for source in source_messages()}
    page = observed.render(Language("de", "de", "Deutsch", messages))
    depth = 0
    for text, element in page.texts():
        tags = {e.tag.rpartition("}")[2] for e in page.above(element)}
        allowed = tags & {"math", "code"} or element.get("lang") is not None
        allowed = allowed or element.get("href") == text
        for sign in text:
            depth += (sign == "⟦") - (sign == "⟧")
            assert not sign.isalpha() or depth > 0 or allowed, text
    assert depth == 0


def test_formulas_are_in_the_font(page):
    """The font of the page has every sign of its formulas."""
    font = TTFont(str(template_folder().joinpath("fonts", "math.woff2")))
    known = {chr(code) for code in font.getBestCmap()}
    signs = {
        sign
        for text, element in page.texts()
        for sign in text
        if element.tag.rpartition("}")[2] in {"mi", "mo", "mn"} and not sign.isspace()
    }
    italic = {
        "λ",
        "μ",
        "σ",
        "ρ",
    }  # drawn as letters of the mathematical italic alphabet
    assert signs - known - italic - set("\u2061\u2062\ufe00") == set()
    assert "Σ" in signs


@pytest.mark.parametrize("name", OBSERVED_FIGURES)
def test_figures_have_no_words(observed, name):
    """Figures are paths in colours with dark counterparts, the same bytes each time."""
    table = observed.observed.table
    spec = OBSERVED_FIGURES[name]
    svg = render_svg(spec, table, pd.DataFrame())
    assert svg == render_svg(spec, table, pd.DataFrame())
    assert "<text" not in svg
    light = svg.partition("@media")[0]
    used = set(re.findall(r"#[0-9a-f]{6}", light))
    assert used
    assert used <= set(palette.DARK)


@pytest.mark.parametrize("name", APPLIED_FIGURES)
def test_figures_of_the_scale_have_no_words(observed, name):
    """As above; the row is drawn where there are weights."""
    tables = tables_of(observed.observed)
    svg = render_svg(APPLIED_FIGURES[name], *tables)
    assert svg == render_svg(APPLIED_FIGURES[name], *tables)
    assert "<text" not in svg
    used = set(re.findall(r"#[0-9a-f]{6}", svg.partition("@media")[0]))
    assert used <= set(palette.DARK)
    if name == "applied-row":
        empty = tables[1].iloc[:0]
        assert render_svg(APPLIED_FIGURES[name], tables[0], empty) is None


@pytest.fixture
def files(tmp_path):
    """Write queries and keys of five sequences."""
    rng = np.random.default_rng(1)
    q, k = (rng.normal(size=(5, 1, 2, 24, 16)) for _ in "qk")
    path = tmp_path / "qk.npz"
    np.savez(path, q=q, k=k)
    return path


def run(*arguments):
    """Run the command."""
    return main([str(argument) for argument in arguments])


def test_command_writes_a_folder_of_results(files, tmp_path, capsys):
    """Pages, figures, table, record; hashes that hold; the same bytes again."""
    outputs = [tmp_path / "a", tmp_path / "b"]
    for output in outputs:
        assert run(files, "--output", output, "--lang", "de", "--lang", "en") == 0
    printed = capsys.readouterr().out
    assert "2 heads, d_k = 16" in printed
    assert str(outputs[0] / TABLE) in printed
    record = read_run(outputs[0])
    validate(record, ObservationRun, "run.json")
    validate(json.loads((outputs[0] / "timing.json").read_bytes()), Timing, "timing")
    assert (
        record["files"][0]["sha256"] == hashlib.sha256(files.read_bytes()).hexdigest()
    )
    assert record["command"] == "python -m montecarlo observe qk.npz --seed 1"
    assert set(record["sha256"]) == {
        TABLE,
        RECORD,
        "de.html",
        "en.html",
        "index.html",
        *(f"figures/{name}.svg" for name in OBSERVED_FIGURES),
    }
    assert record == read_run(outputs[1])
    assert not (outputs[0] / STAGING).exists()
    columns = pd.read_csv(outputs[0] / TABLE).columns
    assert columns[:4].tolist() == ["layer", "head", "quantity", "value"]


def test_command_is_told_again(files, tmp_path):
    """The command on the page names every option that changes the numbers."""
    more = ["--axes", "sequence,layer,head,token,d", "--causal", "--divisor", "5"]
    assert run(files, "--output", tmp_path / "o", "--lang", "en", "--quiet", *more) == 0
    assert read_run(tmp_path / "o")["command"] == (
        "python -m montecarlo observe qk.npz --axes sequence,layer,head,token,d "
        "--causal --divisor 5 --seed 1"
    )


def test_arrays_of_other_names_are_told(tmp_path, capsys):
    """Else it would seem that they were looked at."""
    rng = np.random.default_rng(1)
    q, k, probs = rng.standard_normal((3, 6, 1, 2, 8, 16))
    np.savez(tmp_path / "qk.npz", q=q, k=k, probs=probs)
    assert run(tmp_path / "qk.npz", "--output", tmp_path / "o", "--lang", "en") == 0
    assert "not read: probs (--names tells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "divisor", "status"),
    [("flat", "1000", 1), ("saturated", "0.01", 1), ("flat,saturated", "4", 0)],
)
def test_states_fail_a_run(files, tmp_path, state, divisor, status):
    """A head in a state that was named is an exit status of 1, and only that."""
    arguments = ["--fail-on", state, "--divisor", divisor, "--lang", "en", "--quiet"]
    assert run(files, "--output", tmp_path / "o", *arguments) == status
    assert (tmp_path / "o" / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-on", "hot"], "fail-on must be one of saturated, peaked"),
        (["--divisor", "root"], "divisor must be one of none, sqrt"),
        (["--divisor", "-1"], "divisor must be one of none, sqrt"),
        (["--seed", "x"], "seed must be a whole number"),
        (["--lang", "xx"], "language must be one of"),
        (["--axes", "head,token,d"], "must have the axes head,token,d, got shape"),
        (["--names", "{side}"], "names of arrays must name q and k"),
    ],
)
def test_bad_options_are_refused(files, tmp_path, capsys, arguments, message):
    """One line on standard error, status 2, and nothing is written."""
    output = tmp_path / "o"
    assert run(files, "--output", output, *arguments) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert message in found.err
    assert not output.exists() or not list(output.iterdir())


def test_bad_numbers_leave_the_old_report(files, tmp_path, capsys):
    """What is found while reading leaves a finished folder as it was."""
    output = tmp_path / "o"
    assert run(files, "--output", output, "--lang", "en", "--quiet") == 0
    before = read_run(output)
    with np.load(files) as held:
        q, k = held["q"], held["k"]
    q[3, 0, 1, 7, 2] = np.nan
    np.savez(files, q=q, k=k)
    assert run(files, "--output", output, "--lang", "en") == 2
    assert "got nan at sequence 3, layer 0, head 1, token 7, d 2" in (
        capsys.readouterr().err
    )
    assert read_run(output) == before


def test_failure_leaves_the_old_report(files, tmp_path, capsys, monkeypatch):
    """A run that cannot finish is status 3, and leaves a finished folder as it was."""
    output = tmp_path / "o"
    assert run(files, "--output", output, "--lang", "en", "--quiet") == 0
    before = read_run(output)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(command, "make_observed_report", fail)
    assert run(files, "--output", output, "--lang", "en") == 3
    assert "no space left" in capsys.readouterr().err
    assert read_run(output) == before
    assert not (output / STAGING).exists()


def test_a_folder_of_others_is_left_alone(files, tmp_path, capsys):
    """A folder that holds something else is not written to."""
    output = tmp_path / "o"
    output.mkdir()
    (output / "thesis.tex").write_text("mine")
    assert run(files, "--output", output) == 2
    assert "must be empty or hold an earlier report" in capsys.readouterr().err
    assert [path.name for path in output.iterdir()] == ["thesis.tex"]


def test_files_count_once(tmp_path, capsys):
    """Sequences that count twice are refused; queries that are the keys are not."""
    q = np.random.default_rng(1).normal(size=(5, 8, 4))
    np.savez(tmp_path / "a.npz", q=q, k=-q)
    np.save(tmp_path / "q.npy", q)
    options = ["--axes", "sequence,token,d", "--lang", "en", "--quiet"]
    options += ["--output", str(tmp_path / "o")]
    assert main([str(tmp_path / "a.npz")] * 2 + options) == 2
    assert "files must be different ones" in capsys.readouterr().err
    assert main([str(tmp_path / "q.npy")] * 2 + options) == 0


def test_claims_are_shown_on_a_trained_model(report):
    """Each claim's evidence tells in how many heads each interpretation was seen."""
    trained = report.results.claims.trained_model
    page = report.page("evidence-en")
    for claim, interpretations in trained.interpretations.items():
        article = page.by_id[f"claim-{claim}"]
        lines = [e for e in article.iter("p") if e.get("class") == "trained"]
        shown = [number.value for line in lines for number in page.numbers(line)]
        assert shown == [
            n for one in interpretations for n in (one.holds, trained.n_heads)
        ]
    assert sum(map(len, trained.interpretations.values())) > 10


def test_what_was_kept_fits_the_catalogue():
    """Each interpretation that a model of that size can decide is kept, and no other.

    Those that a text says are shown.
    """
    trained = view_trained(read_catalogue())
    path = Path(trained_model.__file__).with_name(TRAINED_FILE)
    record = json.loads(path.read_text(encoding="utf-8"))
    kept = {(one["claim"], one["interpretation"]) for one in record["interpretations"]}
    told = select_claims(read_catalogue(), trained.d_k)
    assert kept == {
        (claim.id, one.id) for claim in told for one in claim.interpretation
    }
    voting = {
        (claim.id, interpretation.id)
        for claim in read_catalogue().claim
        for interpretation in claim.interpretation
        if not interpretation.beyond
    }
    assert len(kept & voting) == sum(map(len, trained.interpretations.values()))


def test_own_claims_are_not_shown_on_it(own_report):
    """A report of one's own claims has no such column."""
    text = "".join(own_report.page("de").root.find("body").itertext())
    assert "trainierten Modell" not in text


def test_labels_that_name_a_distribution_are_left_out():
    """Interpretations that differ by the distribution of the entries alone have no
    label on a model.
    """
    claims = {claim.id: claim for claim in read_catalogue().claim}
    assert label_here(claims["scaled-mean-zero"], "premise") is None
    assert label_here(claims["unscaled-one-hot"], "typically") is not None
    assert label_here(claims["scaled-variance-one"], "equals") is None
