"""Bad input of every kind, for every reader and option: one line and a status, always.

Inputs are small seeds with a few bytes, fields or words changed, by a seeded generator;
commands run in this process, and what would sample or draw is replaced by a signal that
the input was taken.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from montecarlo.cli import exits
from montecarlo.cli.command_line import build_parser
from montecarlo.report import running
from tests.commands import judge, observe, report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux'"),
    pytest.mark.filterwarnings("ignore"),
]

SEED = 12
#: How many times as many inputs: more are tried by hand.
MORE = float(os.environ.get("MONTECARLO_FUZZ", "1"))
#: Inputs of each kind.
N_FILES, N_TEXTS, N_OPTIONS = (round(MORE * n) for n in (50, 50, 60))
STATUSES = {
    value
    for name, value in vars(exits).items()
    if name.isupper() and isinstance(value, int)
}
SECONDS, MOST_BYTES, MOST_LINE = 10.0, 2**30, 4000


class Taken(BaseException):
    """The input was taken: what comes next would be work."""


class Hang(BaseException):
    """An input took too long."""


def taken(*_args, **_options):
    """Stand for what would sample."""
    raise Taken


#: What would take long, module and name.
WORK = (
    ("montecarlo.report.running", "run_study"),
    ("montecarlo.report.running", "make_executor"),
    ("montecarlo.cli.judge", "run_study"),
    ("montecarlo.cli.judge", "make_executor"),
    ("montecarlo.study.measurement", "run"),
    ("montecarlo.study.measurement", "ThreadPoolExecutor"),
    ("montecarlo.study.failures", "sample"),
    ("montecarlo.model.observing", "observe_model"),
)


@pytest.fixture
def fuzz(monkeypatch, tmp_path, capsys):
    """Run inputs, and fail with all that ended badly."""
    for module, name in WORK:
        monkeypatch.setattr(import_module(module), name, taken)
    workers = SimpleNamespace(kind="processes", jobs=1, map=map)
    alone = contextlib.nullcontext(workers)
    monkeypatch.setattr(running, "make_executor", lambda *_, **__: alone)
    monkeypatch.chdir(tmp_path)

    def ring(*_):
        raise Hang

    monkeypatch.setattr(signal, "getsignal", lambda _: None)  # leave Ctrl-C alone
    before = signal.signal(signal.SIGALRM, ring)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0])
    limit = held * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limits[1]))
    found = Fuzz(capsys)
    yield found
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGALRM, before)
    assert not found.failures, "\n".join(found.failures[:20])


class Fuzz:
    """Inputs that ended badly."""

    def __init__(self, capsys):
        self.capsys = capsys
        self.may_fail = False  # a file that is bad is bad input
        self.failures = []

    def run(self, main, arguments, label):
        """Run a command on an input: one line and a status, or it is taken."""
        self.capsys.readouterr()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            ended = main([str(one) for one in arguments])
        except Taken:
            ended = exits.DONE
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            ended = f"{type(error).__name__}: {error!s:.200}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        complaint = self.capsys.readouterr().err
        bad = ended not in STATUSES - {exits.BUG} or "out of memory" in complaint
        bad = bad or (ended == exits.FAILED and not self.may_fail)
        if ended in STATUSES - {exits.DONE, exits.FAILING}:
            bad = bad or complaint.count("\n") != 1 or len(complaint) > MOST_LINE
        if bad:
            told = f"{label} {arguments!s:.300}: {ended} {complaint[-300:]}"
            self.failures.append(told)


# --- How bytes, words and values are changed ----------------------------------------

NUMBERS = (0, 1, -1, True, False, None, 2**31, -(2**63), 10**30)
FLOATS = (0.5, -0.0, 1e308, 1e-320)
WORDS = ("", " ", "a", "nan", "inf", "-1", "\x00", "\x1b[31m", "\u202eabc", "é" * 40)
VALUES = (*NUMBERS, *FLOATS, *WORDS, [], {}, [[]], {"a": {}}, "x" * 5000, [None] * 50)
PIECES = (b"", b"\x00", b"\xff" * 8, b"(True,", b"{", b"[" * 300, b"9" * 40, b"-", b"'")


def spoil(rng, content):
    """Change some bytes: overwrite, cut, repeat, or put something in."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        # headers are where formats are
        at = rng.randrange(min(len(content), rng.choice((16, 200, 10**9))) or 1)
        stop = at + rng.choice((0, 1, 1, 2, 4, 8, 60))
        match rng.randrange(5):
            case 0:
                content[at:stop] = rng.randbytes(stop - at)
            case 1:
                del content[at:stop]
            case 2:
                content[at:at] = content[at:stop] * rng.choice((1, 2, 50))
            case 3:
                content[at:stop] = rng.choice(PIECES)
            case _:
                del content[at + rng.randrange(400) :]
    return bytes(content)


def spoil_value(rng, value, depth=0):
    """Change one place of plain data: another value, one less, one twice."""
    if isinstance(value, dict | list) and value and (depth < 2 or rng.random() < 0.75):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        match rng.randrange(12):
            case 0:
                del value[key]
            case 1 if isinstance(value, dict):
                value[rng.choice(WORDS)] = value[key]
            case 1:
                value.append(value[key])
            case _:
                value[key] = spoil_value(rng, value[key], depth + 1)
        return value
    if isinstance(value, int | float) and rng.random() < 0.3:
        return rng.choice((value + 1, -value, value * 1e9, 0))
    return rng.choice(VALUES)


# --- Arrays -------------------------------------------------------------------------


def array_seeds(folder):
    """Write small valid files of each kind; yields the arguments that open them."""
    rng = np.random.default_rng(SEED)
    q, k = rng.normal(size=(2, 2, 1, 2, 3, 2)).astype(np.float32)
    np.savez(folder / "plain.npz", q=q, k=k)
    yield folder / "plain.npz", []
    np.savez_compressed(folder / "packed.npz", q=q, k=k)
    yield folder / "packed.npz", []
    weights = np.full((2, 1, 2, 3, 3), 1 / 3, dtype=np.float32)
    np.savez(folder / "weights.npz", q=q, k=k, weights=weights)
    yield folder / "weights.npz", ["--expect", "sqrt"]
    np.savez(folder / "outputs.npz", q=q, k=k, v=k, outputs=q)
    yield folder / "outputs.npz", ["--expect", "sqrt"]


def test_arrays(fuzz, tmp_path):
    """Files of arrays whose bytes are changed."""
    rng = random.Random(SEED)  # noqa: S311 - no secret
    for path, rest in array_seeds(tmp_path):
        content = path.read_bytes()
        for number in range(2 * N_FILES):
            spoilt = tmp_path / f"spoilt{path.suffix}"
            spoilt.write_bytes(spoil(rng, content))
            arguments = [spoilt, *rest, "--output", "o", "--quiet"]
            fuzz.run(observe, arguments, f"{path.name} {number}")


GRID = """
[grid]
d_k = [4, 16]
n_keys = [8]
distributions = ["laplace"]
distribution_d_k = [4]
first = 4
most = 4
"""


# --- What users write ---------------------------------------------------------------


def spoil_text(rng, text):
    """Change a file that somebody wrote, by bytes or by lines."""
    if rng.random() < 0.4:
        return spoil(rng, text.encode())
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(lines))
        name, equals, value = lines[at].partition("=")
        other = rng.choice(VALUES)
        match rng.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, rng.choice(lines))
            case 2 if equals:
                lines[at] = f"{name}= {json.dumps(other)}"
            case _:
                lines[at] = f"{name}{equals}{value[: rng.randrange(9)]}{other!s:.300}"
    return "\n".join(lines or [""]).encode(errors="surrogatepass")


ROOT = Path(__file__).parents[1]
CONFIGURATION = f"""
seed = 3
only = ["unscaled-one-hot"]
error_rate = 0.01
{GRID}
[[grid.blocks]]
d_k = [8]
distribution_q = "gaussian(mean=1.0)"
dependence = "none"
"""


def test_configurations(fuzz, tmp_path):
    """Configuration files that are nearly right."""
    rng = random.Random(SEED)  # noqa: S311 - no secret
    path = tmp_path / "c.toml"
    for number in range(2 * N_TEXTS):
        path.write_bytes(spoil_text(rng, CONFIGURATION))
        fuzz.run(report, ["--config", path, "--output", "o"], f"config {number}")


def test_own_claims(fuzz, tmp_path):
    """Claims of one's own that are nearly right."""
    rng = random.Random(SEED)  # noqa: S311 - no secret
    path = tmp_path / "own.toml"
    seeds = [ROOT / "docs/own-claim.toml", ROOT / "tests/report/own_claims.toml"]
    texts = [seed.read_text(encoding="utf-8") for seed in seeds]
    for number in range(2 * N_TEXTS):
        path.write_bytes(spoil_text(rng, texts[number % 2]))
        fuzz.run(judge, [path], f"claims {number}")


# --- Options ------------------------------------------------------------------------

WORDS_TYPED = """
0 1 -1 -- - 1e3 1.5 nan inf 0x10 a é \u0661 a,b , 1:2 0:9 2:1 : sqrt none
none/sqrt gaussian gaussian(mean=1.0) gaussian(std=nan) planted(0.5) pairs(0.5)
planted(2) score_variance entropy mean bfloat16 naive all en de= = {side} {layer} ~/x ..
a/b/c html markdown quick unscaled-one-hot threads processes
init(kind=xavier,norm=layer,shape=head,width=64)"""
UNUSUAL = ("", " ", "9" * 30, "9" * 3000, "x" * 300, "\x1b[31m", "a\nb", "\ud800")
TYPED = (*WORDS_TYPED.split(), *UNUSUAL)
COMMANDS = ("report", "figures", "measure", "judge", "observe")


@pytest.mark.parametrize("command", COMMANDS)
def test_options(fuzz, tmp_path, command):
    """A few options of a command with whatever somebody may type."""
    rng, fuzz.may_fail = random.Random(f"{SEED} {command}"), True  # noqa: S311
    actions = [
        action
        for action in build_parser(command)._actions
        if action.option_strings and action.dest not in {"help", "version"}
    ]
    np.savez(
        tmp_path / "qk.npz", q=np.ones((1, 1, 1, 2, 2)), k=np.ones((1, 1, 1, 2, 2))
    )
    shutil.copy(ROOT / "docs/own-claim.toml", tmp_path / "own.toml")
    first = {"judge": ["own.toml"], "observe": ["qk.npz"]}.get(command, [])
    if command == "measure":
        first = ["--quantity=entropy", "--keys=8"]
    for number in range(N_OPTIONS):
        typed = list(first)
        for action in rng.sample(actions, rng.choice((1, 1, 2, 3))):
            flag = rng.choice(action.option_strings)
            value = rng.choice(TYPED)
            typed.append(flag if action.nargs == 0 else f"{flag}={value}")
        fuzz.run(partial(exits.run, command), typed, f"{command} {number}")
