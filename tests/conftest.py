"""Options and markers of all tests; a browser where there is one."""

import contextlib
import fcntl
import json
import os
import shutil
import sys
from dataclasses import make_dataclass
from pathlib import Path

import pytest

#: Of records that take long to make again and seldom change: before a release.
remade = pytest.mark.skipif(
    "MONTECARLO_TRIAL" not in os.environ, reason="by `make remade`"
)
#: The options of a command that has none.
NOTHING = make_dataclass("Nothing", [])

#: Set to 1 where what is missing must not pass unnoticed.
REQUIRED = "MONTECARLO_REQUIRE_BROWSER"
FONTS_REQUIRED = "MONTECARLO_REQUIRE_FONTS"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

# Tests run on every core: threads of BLAS would only wait for each other there.  Where
# this is read, no test has imported NumPy, and workers have it from who starts them.
for library in ("MKL", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def pytest_configure(config):
    """Register what marks the tests that need a browser."""
    config.addinivalue_line("markers", "browser: needs Chromium, Playwright and axe")


def pytest_runtest_logreport(report):
    """Say what failed at once: a run may be ended before its summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        sys.stdout.write(f"\nFAILED {report.nodeid}\n{report.longreprtext[-2000:]}\n")
        sys.stdout.flush()


def contents(folder, *apart):
    """Return the bytes of every file of a folder, but of its times and some others."""
    from montecarlo.study.folder import TIMING_FILE, files_of  # noqa: PLC0415

    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files_of(folder)
        if not {TIMING_FILE, *apart} & {*path.relative_to(folder).parts}
    }


#: One worker, and pages in one language.
ALONE = ("--jobs", "1", "--lang", "en")
#: A configuration of a moment, which tests change by its lines.
TINY_GRID = """
[grid]
d_k = [4, 16]
n_keys = [8]
distributions = ["laplace"]
distribution_d_k = [4]
distribution_n_keys = []
first = 4
most = 4
"""
#: A grid of a moment.
SMALL_GRID = {"d_k": [16, 64], "n_keys": [32], "distributions": []}


def small_study(folder, settings=None, **grid):
    """Write study.toml, of a report of a moment; returns what a command is told.

    That is with one worker and in English.
    """
    sizes = SMALL_GRID | {"first": 16, "most": 16} | grid
    told = (settings or {}).items()
    lines = [f"{name} = {json.dumps(value)}" for name, value in told]
    lines += ["[grid]", *(f"{name} = {json.dumps(sizes[name])}" for name in sizes)]
    path = folder / "study.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return ["--config", str(path), *ALONE]


def claim_text(what, domain, quantity="score_variance", summary="value"):
    """Return a file of claims of one's own, with one check."""
    return f"""
[[claim]]
id = "mine"
topic = "variance"
statement = "So it is."
[[claim.interpretation]]
id = "r"
[[claim.interpretation.check]]
quantity = "{quantity}"
summary = "{summary}"
{what}
domain = {{ {domain} }}
"""


def gaussian(d_k, n_keys, **more):
    """Return a domain of Gaussian rows of one size."""
    sizes = {"d_k": [d_k, d_k], "n_keys": [n_keys, n_keys]}
    return {**sizes, "distributions": ["gaussian"], **more}


def forbidden(*_):
    """Stand in for sampling where nothing must be sampled."""
    pytest.fail("sampled before the input was found wrong")


def claims_of(check, topic="weights"):
    """Return what a file of claims of one's own holds: one claim of one check."""
    words = {"id": "mine", "topic": topic, "statement": "It is what it is."}
    meaning = {"id": "r", "label": "It is.", "check": [check]}
    return {"claim": [{**words, "interpretation": [meaning]}]}


def skip_or_fail(reason, required=REQUIRED):
    """Skip a test, or fail where what it needs is required."""
    if os.environ.get(required) == "1":
        pytest.fail(f"{reason}, and {required} is set")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cjk_fonts():
    """Chinese and Japanese can be drawn as PDF and PNG; skipped without their fonts."""
    from montecarlo.errors import InputError  # noqa: PLC0415
    from montecarlo.report.figures.files import drawn_fonts  # noqa: PLC0415
    from montecarlo.report.language.catalogues import read_language  # noqa: PLC0415

    for code in ("ja", "zh"):
        try:
            drawn_fonts(read_language(code))
        except InputError as error:
            skip_or_fail(str(error), FONTS_REQUIRED)


@pytest.fixture(scope="module")
def one_figure():
    """Reports have no other figure: drawing takes most of the time of a small one."""
    from montecarlo.report.figures import FIGURES  # noqa: PLC0415

    only = {"variance": FIGURES["variance"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("montecarlo.report.making.FIGURES", only)
        yield


@pytest.fixture(scope="session")
def browser():
    """A browser without a window; skipped without one, or failed if required."""
    try:
        from axe_playwright_python import sync_playwright as _  # noqa: F401, PLC0415
        from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415
    except ImportError as error:
        skip_or_fail(f"no browser: {error}")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        skip_or_fail(f"no browser: none of {', '.join(BROWSERS)} is installed")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=path, args=arguments)
        except Error as error:
            skip_or_fail(f"no browser: {path} does not start: {error}")
        yield found
        found.close()


@pytest.fixture
def new_page(browser):
    """Open an empty page in a context of its own, until the test is over."""
    with contextlib.ExitStack() as opened:

        def open_page(**options):
            context = browser.new_context(**options)
            opened.callback(context.close)
            return context.new_page()

        yield open_page


def axe_faults(page, *rules):
    """Return what axe finds on a page, by all of its rules or by some."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = Axe().run(page, options=options).response["violations"]
    return [
        (fault["id"], node["html"][:200]) for fault in found for node in fault["nodes"]
    ]


@pytest.fixture(scope="session")
def standard_report(tmp_path_factory):
    """The folder of a standard report, made once for all workers.

    MONTECARLO_REPORT names one that was made of this checkout, as .ci/run does.
    """
    from tests.commands import report as main  # noqa: PLC0415

    if made := os.environ.get("MONTECARLO_REPORT"):
        return Path(made)
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "standard"
    with (base / "standard.lock").open("w") as lock, pytest.MonkeyPatch.context() as m:
        fcntl.flock(lock, fcntl.LOCK_EX)
        m.setattr(sys, "argv", ["report"])
        if not (folder / "timing.json").exists():
            assert main(["--seed", "1", "--quiet", "--output", str(folder)]) == 0
    return folder
