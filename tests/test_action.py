"""The action for others' CI runs as a shell would; the citation is of this version."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest
import yaml

HERE = Path(__file__).parents[1]
ACTION = yaml.safe_load((HERE / "action.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((HERE / "docs" / "workflow.yml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((HERE / "CITATION.cff").read_text(encoding="utf-8"))
DEFAULTS = {name: entry["default"] for name, entry in ACTION["inputs"].items()}


@pytest.mark.parametrize("file", [".github/workflows/release.yml", "docs/workflow.yml"])
def test_actions_are_pinned(file):
    """By commit, with the version beside it: tags and branches move."""
    used = re.findall(r"uses: (\S+@.*)", (HERE / file).read_text(encoding="utf-8"))
    others = [one for one in used if not one.startswith("OWNER/")]
    assert others
    for one in others:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


def test_a_release_is_tested_before_it_is_published():
    """By the README's command on three systems and four Pythons, and by the linters."""
    text = (HERE / ".github/workflows/release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert {*jobs["publish"]["needs"]} == {"tests", "style", "use"}
    assert jobs["use"]["needs"] == "build"
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert [one.partition("-")[0] for one in matrix["os"]] == [
        "ubuntu",
        "macos",
        "windows",
    ]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    command, again = (s["run"] for s in jobs["tests"]["steps"] if "run" in s)
    assert again == "make remade"
    assert f"\n{command}\n" in (HERE / "README.md").read_text(encoding="utf-8")
    steps = "".join(step.get("run", "") for step in jobs["style"]["steps"])
    assert "ruff check" in steps
    assert "mypy --strict" in steps


def value(expression, inputs, action):
    """Return what GitHub puts in the place of an expression of a step's environment."""
    name = expression.removeprefix("${{ ").removesuffix(" }}")
    return {"github.action_path": str(action)}.get(name) or inputs[name.split(".")[1]]


def run_step(name, tmp_path, python=sys.executable, cwd=HERE, action=HERE, **given):
    """Run one step as a shell would; returns its status, or None if it is left out."""
    (step,) = (one for one in ACTION["runs"]["steps"] if one["name"] == name)
    assert step["shell"] == "bash"
    inputs = DEFAULTS | given
    if condition := step.get("if"):
        left, _, right = condition.partition(" != ")
        assert right == "''"
        if not inputs[left.removeprefix("inputs.")]:
            return None
    environment = {
        **os.environ,
        **{key: value(text, inputs, action) for key, text in step["env"].items()},
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "PYTHONPATH": str(HERE),
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
    }
    (tmp_path / "runner").mkdir(exist_ok=True)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, cwd=cwd, env=environment, check=False)  # noqa: S603
    return done.returncode


def model(path, divisor, axes=(1,)):
    """Write queries, keys and weights of a head with a divisor."""
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(2, *axes, 48, 16))
    scores = q @ k.swapaxes(-1, -2) / divisor
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    np.savez(path, q=q, k=k, weights=weights)
    return str(path)


#: Modules that the steps import, or that Python itself does for them.
PLANTED = ("montecarlo", "msgspec", "pip", "numpy", "multiprocessing", "json", "runpy")


@pytest.fixture
def checkout(tmp_path):
    """A folder of the caller's, whose modules say that they were run."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in PLANTED:
        code = f"open({str(folder / 'planted')!r}, 'a').write({name!r}); import os\n"
        (folder / f"{name}.py").write_text(f"{code}os._exit(0)\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_what_is_refuted_fails_a_job_whatever_lies_there(tmp_path, checkout):
    """The example has one refuted claim, also in a second line of files; 1.07 times the
    root is no root, and the record is there to be kept.

    A step runs in the caller's checkout: no module of it is run, by workers neither.
    """
    sound, example = tmp_path / "sound.toml", HERE / "docs" / "own-claim.toml"
    text = example.read_text(encoding="utf-8")
    second = text.index("[[claim]]", text.index("[[claim]]") + 1)
    sound.write_text(text[:second], encoding="utf-8")
    given = {"claims": f"{sound}\n{example}\n", "fail-on": "fails"}
    assert run_step("judge", tmp_path, cwd=checkout, **given) == 1
    file = model(tmp_path / "qk.npz", 4.0 * 1.07)
    given = {"model": file, "axes": "head,token,d"}
    assert run_step("observe", tmp_path, cwd=checkout, **given) == 1
    assert (tmp_path / "runner" / "montecarlo" / "observation.json").exists()
    assert not (checkout / "planted").exists()


@pytest.mark.slow
def test_inputs_are_no_options(tmp_path, checkout):
    """A file of that name is looked for, and a job is not green without one: any that
    was taken for an option would end with status 0.
    """
    typed = "--version -h"
    given = {"claims": typed, "fail-on": "-h"}
    assert run_step("judge", tmp_path, cwd=checkout, **given) == 2
    given = {"model": typed, "expect": "--help", "axes": "--help"}
    assert run_step("observe", tmp_path, cwd=checkout, **given) == 2


def test_what_is_not_asked_for_is_left_out(tmp_path):
    """Without claims or a model a step does nothing, and cannot fail."""
    assert run_step("judge", tmp_path) is None
    assert run_step("observe", tmp_path) is None


@pytest.mark.slow
def test_the_action_installs_its_own_release(tmp_path, checkout):
    """What a tag is unpacked to, without a history, is installed: its commands and its
    version; nothing of the caller's is run meanwhile.  What it asks for is here: that
    it can be had is seen where CI installs the wheel.
    """
    release = tmp_path / "release"
    ignored = shutil.ignore_patterns(
        ".git", "build", "output", "__pycache__", ".*_cache"
    )
    shutil.copytree(HERE, release, ignore=ignored)
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    (site,) = tmp_path.glob("env/lib/*/site-packages")
    (site / "ours.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    assert run_step("install", tmp_path, python, cwd=checkout, action=release) == 0
    assert not (checkout / "planted").exists()
    told = subprocess.run(  # noqa: S603 - the environment's own
        [python, "-m", "montecarlo", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["montecarlo", CITATION["version"]]


@pytest.mark.slow
def test_the_example_runs(tmp_path):
    """The inputs of the workflow, with the claims of its page and what its own script
    would have saved, pass; with a claim that is refuted they do not.
    """
    (*_, last) = WORKFLOW["jobs"]["scaling"]["steps"]
    given = last["with"]
    page = (HERE / "docs" / "claim-in-ci.md").read_text(encoding="utf-8")
    claims = page.partition('title="claims.toml"\n')[2].partition("```")[0]
    (tmp_path / given["claims"]).write_text(claims, encoding="utf-8")
    model(tmp_path / given["model"], 4.0, axes=(1, 1, 1))
    assert run_step("judge", tmp_path, cwd=tmp_path, **given) == 0
    assert run_step("observe", tmp_path, cwd=tmp_path, **given) == 0
    given["claims"] = str(HERE / "docs" / "own-claim.toml")
    assert run_step("judge", tmp_path, cwd=tmp_path, **given) == 1


def test_the_citation_is_of_this_project():
    """It holds the version, which stands nowhere else, and the year."""
    settings = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    project, place = settings["project"], settings["tool"]["hatch"]["version"]
    assert "version" in project["dynamic"]
    text = (HERE / place["path"]).read_text(encoding="utf-8")
    (found,) = re.finditer(place["pattern"], text, re.MULTILINE)
    assert found["version"] == CITATION["version"]
    assert str(CITATION["date-released"])[:4].isdigit()
    assert CITATION["license"] == project["license"]
    assert CITATION["authors"] == project["authors"]
    log = (HERE / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {CITATION['version']} - {CITATION['date-released']}\n" in log


@pytest.mark.parametrize("page", ["docs/workflow.yml", "docs/claim-in-ci.md"])
def test_the_action_is_named_by_the_tag_of_this_version(page):
    """What others copy runs this release, and no branch or earlier tag."""
    tags = re.findall(r"@(v\d[^\s`]*)", (HERE / page).read_text(encoding="utf-8"))
    assert {*tags} == {f"v{CITATION['version']}"}


def test_tools_of_the_build_are_locked():
    """A release installs them with their hashes alone, and builds with no others."""
    text = (HERE / ".github/workflows/release.yml").read_text(encoding="utf-8")
    build = text.partition("  build:\n")[2].partition("  use:\n")[0]
    assert re.findall("pip install (.*)", build) == [
        "--require-hashes --only-binary :all: -r build-tools.lock"
    ]
    assert "pip wheel --no-deps --no-build-isolation " in build
    # twine before 7 refuses the metadata 2.5 that hatchling writes from 1.32 on, and
    # the action that publishes has it from 1.14.2 on
    (publishing,) = re.findall(r"pypi-publish@\S+ # v([\d.]+)", text)
    assert [*map(int, publishing.split("."))] >= [1, 14, 2]
    for name in ("build-tools.lock", "requirements.lock", "action.lock"):
        lock = (HERE / name).read_text(encoding="utf-8")
        blocks = re.split(r"\n(?=\w)", lock)[1:]
        assert all("==" in one and "--hash=sha256:" in one for one in blocks)
        assert "://" not in lock
