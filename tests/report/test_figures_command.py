"""``python -m montecarlo figures``: files for documents, and captions beside them."""

import io
import re

import matplotlib as mpl
import pytest
from PIL import Image

from montecarlo.report import running
from montecarlo.report.figures import FIGURES
from montecarlo.report.figures.palette import DARK, INK, PAGE, THEMES
from montecarlo.report.render.contents import canonical_command
from montecarlo.study.executors import make_executor
from tests.commands import figures
from tests.conftest import small_study

DRAWN = ("en", "de", "es")


@pytest.fixture
def run(capsys):
    """Run the command; returns its status and what it printed."""

    def run_command(*arguments):
        status = figures([str(a) for a in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run_command


@pytest.fixture(scope="module")
def drawn(report, tmp_path_factory):
    """Two figures in every format, from the results of the report."""
    folder = tmp_path_factory.mktemp("figures")
    arguments = ["--from", str(report.folder), "--output", str(folder), "--quiet"]
    arguments += ["--only", "variance", "--only", "weights"]
    arguments += ["--lang", ",".join(DRAWN)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "make_executor", lambda *_, **__: make_executor(1))
        assert figures([*arguments, "--format", "svg,pdf,png"]) == 0
    return folder


def test_files_are_those_that_were_asked_for(drawn):
    """Each figure in each format, captions in each language; the data stay there."""
    names = {path.name for path in drawn.iterdir()}
    assert names == {
        *(
            f"{name}.{code}.{kind}"
            for name in ("variance", "weights")
            for code in DRAWN
            for kind in KINDS
        ),
        *(f"captions.{code}.md" for code in DRAWN),
        *("run.json", "timing.json"),
    }
    assert (drawn / "variance.de.svg").read_text().startswith('<svg lang="de"')
    assert (drawn / "variance.es.pdf").read_bytes().startswith(b"%PDF")
    with Image.open(drawn / "variance.es.png") as picture:
        assert picture.width == 1000


KINDS = ("svg", "pdf", "png")


@pytest.mark.parametrize("code", DRAWN)
def test_captions_are_those_of_the_page(drawn, report, code):
    """Caption and alternative text are the page's, in its language."""
    text = (drawn / f"captions.{code}.md").read_text(encoding="utf-8")
    pages = (report.page(code), report.page(f"evidence-{code}"))
    by_id = {**pages[0].by_id, **pages[1].by_id}
    for name in ("variance", "weights"):
        figure = by_id[f"figure-{name}"]
        alternative = figure.find("img").get("alt")
        assert f"![{alternative.replace('_', chr(92) + '_')}]" in text
        caption = figure.find("figcaption")
        after_its_number = (caption.find("b").tail or "").strip()
        assert after_its_number[:12]
        assert after_its_number[:12] in text
    run = report.results.run
    command = text.rsplit("~~~\n", 2)[1]
    sampled = canonical_command(run | {"languages": DRAWN})
    assert command == (
        f"{sampled}\npython -m montecarlo figures --from output "
        "--lang en,de,es --only variance,weights --format svg,pdf,png\n"
    )


@pytest.mark.usefixtures("drawn_here")
def test_one_figure_is_all_that_is_written(run, tmp_path, monkeypatch):
    """No data of others beside it; typed again, its command draws the same."""
    monkeypatch.chdir(tmp_path)
    typed = small_study(tmp_path, {"only": ["linear-variance"]})
    assert run(*typed, "--only", "variance", "--quiet")[0] == 0
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"variance.en.svg", "captions.en.md", "run.json", "timing.json"}
    text = (tmp_path / "figures" / "captions.en.md").read_text(encoding="utf-8")
    _, lines, command = re.split("<<'END'\n|END\n", text.rsplit("~~~\n", 2)[1])
    assert command.startswith("python -m montecarlo figures --config report.toml ")
    (tmp_path / "report.toml").write_text(lines, encoding="utf-8")
    again = command.split()[4:]
    assert run(*again, "--jobs", 1, "--quiet", "--output", "again")[0] == 0
    drawn = [
        (tmp_path / folder / "variance.en.svg").read_bytes()
        for folder in ("figures", "again")
    ]
    assert drawn[0] == drawn[1]


@pytest.mark.usefixtures("drawn_here")
@pytest.mark.parametrize("theme", THEMES)
def test_theme_sets_ground_and_ink(report, run, tmp_path, theme):
    """A theme has its own page and letters, in vectors and in pixels."""
    ground, ink = THEMES[theme][PAGE], THEMES[theme][INK]
    arguments = ["--from", report.folder, "--output", tmp_path, "--theme", theme]
    status, *_ = run(*arguments, "--only", "weights", "--format", "svg,png")
    assert status == 0
    text = (tmp_path / "weights.en.svg").read_text()
    assert f"fill:{ground}" in text
    assert f"fill:{ink}" in text
    assert "@media" not in text
    if theme == "dark":
        assert not set(re.findall(r"#[0-9a-f]{6}", text)) - {*DARK.values()}
    pixels = (tmp_path / "weights.en.png").read_bytes()
    with Image.open(io.BytesIO(pixels)) as picture:
        red, green, blue = picture.convert("RGB").getpixel((1, 1))
    assert f"#{red:02x}{green:02x}{blue:02x}" == ground


def test_without_a_theme_an_svg_suits_light_and_dark(drawn, report):
    """It is the very figure of the pages: transparent, with the dark style inside."""
    page_figure = report.folder / "figures" / "variance.svg"
    assert (drawn / "variance.en.svg").read_bytes() == page_figure.read_bytes()


#: What is typed, and what the refusal says; REPORT is a report, MINE somebody's folder.
REFUSED = """
--only varience | figure must be one of .* Did you mean 'variance'
--format svg,gif | format must be one of svg, pdf, png; got 'gif'
--theme drak | theme must be .* Did you mean 'dark'
--lang xx | language must be
--output REPORT | --output must name another folder
--output MINE | mine.txt
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_wrong_option_is_refused(run, report, tmp_path, line):
    """In one line, before anything is drawn; never into the report's folder."""
    (tmp_path / "mine.txt").write_text("x")
    words, message = line.split(" | ")
    known = {"REPORT": str(report.folder), "MINE": str(tmp_path)}
    typed = [known.get(word, word) for word in words.split()]
    before = set(report.folder.iterdir())
    output = ["--output", tmp_path / "out"] * ("--output" not in typed)
    status, printed, complaint = run("--from", report.folder, *output, *typed)
    assert (status, printed) == (2, "")
    (told,) = complaint.splitlines()
    assert re.search(message, told)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert set(report.folder.iterdir()) == before


@pytest.mark.usefixtures("drawn_here")
@pytest.mark.parametrize("asked", ["variance", "variance,weights"])
def test_figure_without_data_is_named(run, report, tmp_path, monkeypatch, asked):
    """Status 4 and a line; of several that were asked for, the others are drawn."""
    empty = type(FIGURES["variance"])("variance", lambda *_: None)
    monkeypatch.setitem(FIGURES, "variance", empty)
    typed = ["--from", report.folder, "--output", tmp_path, "--lang", "en"]
    status, _, complaint = run(*typed, "--only", asked)
    assert status == 4
    (line,) = complaint.splitlines()
    assert "variance (" in line
    assert bool(list(tmp_path.iterdir())) == ("," in asked)
    assert (tmp_path / "weights.en.svg").exists() == ("," in asked)


@pytest.mark.slow
@pytest.mark.usefixtures("drawn_here")
def test_same_results_give_the_same_bytes(drawn, report, run, tmp_path):
    """Neither a clock, a worker nor the user's style is in a file."""
    arguments = ["--from", report.folder, "--output", tmp_path, "--quiet"]
    arguments += ["--only", "weights", "--only", "variance", "--lang", "de,es"]
    with mpl.rc_context({"lines.linewidth": 9.0, "savefig.facecolor": "red"}):
        assert run(*arguments, "--format", "svg,pdf,png")[0] == 0
    for path in sorted(tmp_path.iterdir()):
        if path.suffix[1:] in KINDS:
            assert (drawn / path.name).read_bytes() == path.read_bytes(), path
