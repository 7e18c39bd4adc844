"""The plugin of pytest: nothing until it is used, then the terminal's answer."""

import json
from importlib.metadata import entry_points

import numpy as np
import pytest

from montecarlo.__main__ import main
from tests.commands import run_python
from tests.model.heads import weighted

#: What a plugin may cost whoever runs pytest, in seconds of one core.
MOST_SECONDS = 0.020
TIMED = """
import json, sys, time
import pytest
before, start = set(sys.modules), time.process_time()
import montecarlo.pytest_plugin
print(json.dumps([time.process_time() - start, sorted(set(sys.modules) - before)]))
"""
TESTS = """
import numpy as np
import pytest

AXES = ("head", "token", "d")


@pytest.fixture
def arrays():
    with np.load({path!r}) as file:
        return dict(file)


def test_right(attention_scale, arrays):
    attention_scale(arrays, expect=3.7, axes=AXES)


def test_wrong(attention_scale, arrays):
    attention_scale(arrays, expect="sqrt", axes=AXES)


def test_no_source(attention_scale):
    attention_scale(3)


class Model:
    def register_forward_pre_hook(self, hook):
        return None


def test_without_with(attention_scale):
    attention_scale(Model())


def test_error_of_its_own(attention_scale, arrays):
    attention_scale(arrays, expect=3.7, axes=AXES)
    raise KeyError("own")
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of a head whose scores are divided by 3.7 where 4 is the root."""
    found = tmp_path_factory.mktemp("arrays") / "qk.npz"
    np.savez(found, **weighted(1.0 / 3.7, (4, 32, 16)))
    return found


def run(*arguments, cwd):
    """Run Python; returns what it printed."""
    done = run_python(*arguments, cwd=cwd, PYTEST_ADDOPTS="")
    return done.stdout + done.stderr


def test_loading_costs_next_to_nothing(tmp_path):
    """No library, and no module of ours but the plugin; the best of some starts."""
    found = [json.loads(run("-c", TIMED, cwd=tmp_path)) for _ in range(3)]
    assert min(seconds for seconds, _ in found) < MOST_SECONDS
    modules = set(found[0][1])
    assert {name for name in modules if name.startswith("montecarlo")} == {
        "montecarlo",
        "montecarlo.pytest_plugin",
    }
    assert not modules & {"numpy", "pandas", "scipy", "torch", "matplotlib"}


def test_pytest_finds_it():
    """By its entry point: nobody has to name it."""
    found = entry_points(group="pytest11", name="montecarlo")
    assert [one.value for one in found] == ["montecarlo.pytest_plugin"]


def test_a_failure_reads_like_the_terminal(path, tmp_path, capsys):
    """Its line, and the answer of `observe`; no line of ours is shown."""
    told = ["observe", str(path), "--axes", "head,token,d", "--expect", "sqrt"]
    assert main([*told, "--output", str(tmp_path / "observed")]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "scores divided by sqrt(d_k) = 4? no"
    (finding,) = [line for line in rest if line.startswith("  layer 0")]
    (tmp_path / "test_port.py").write_text(TESTS.format(path=str(path)), "utf-8")
    options = "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"
    shown = run("-m", "pytest", *options, "test_port.py", cwd=tmp_path)
    assert (
        "\n".join(
            (
                '>       attention_scale(arrays, expect="sqrt", axes=AXES)',
                f"E       AssertionError: {first}",
                f"E       {finding}",
                "",
                "test_port.py:",
            )
        )
        in shown
    )
    said = (
        "captured must be what `with capture() as it` gave, arrays by name, or a path"
    )
    assert f"{said}, got 3" in shown
    assert "attention_scale(model) must stand in a with statement" in shown
    assert "KeyError: 'own'" in shown
    assert "montecarlo/model" not in shown
    assert "pytest_plugin.py" not in shown
    assert "3 failed, 2 passed, 1 error" in shown


def test_wrong_arguments_are_refused(attention_scale):
    """Before the model runs, as Python refuses them."""
    with pytest.raises(TypeError, match="positional argument"):
        attention_scale(*"qkw")
    with pytest.raises(TypeError, match=r"^attention_scale got .* 'expected'"):
        attention_scale(expected="sqrt")
