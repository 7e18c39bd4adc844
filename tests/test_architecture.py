"""The rules of the house: who may import whom, who may draw, where imports stand."""

import ast
import graphlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "montecarlo"

#: Each stage imports from itself and from what stands above it.
STAGES = (
    "plain_text",
    "errors",
    "names",
    "printing",
    "small_files",
    "attention",
    "sampling",
    "theory",
    "estimation",
    "study",
    "records",
    "claims",
    "model",
    "pytest_plugin",
    "report.language",
    "report.content",
    "report.pages",
    "report.figures",
    "report.render",
    "report",
    "cli",
)
#: Modules that are run, never imported: they import commands and the lowest stages.
ENTRIES = ("__main__", "report.__main__")
#: Where a library may be imported: the room, or the module, that alone does.
ONLY_IN = {
    "matplotlib": "report",
    "mpl_toolkits": "report",
    "jinja2": "report",
    "dask": "study.cluster",
    "distributed": "study.cluster",
    "random": "sampling",
    "secrets": "sampling",
    "numpy.random": "sampling",
}
#: Attributes and names that draw, or make a generator.
DRAWING_NAMES = {"default_rng", "RandomState", "SeedSequence", "rvs", "qmc", "urandom"}
#: The functions that import, and what: all that a command needs, so that it can be
#: interrupted while it loads; what needs an extra or takes long.
LATE = {
    ("study.executors", "make_executor", "montecarlo.study.cluster"),
    ("study.workers", "limit_blas", "numpy"),
    *(
        ("study.progress", "open_bar", target)
        for target in (
            "rich.progress.BarColumn",
            "rich.progress.Progress",
            "rich.progress.TextColumn",
            "rich.progress.TimeRemainingColumn",
            "montecarlo.study.console.open_console",
        )
    ),
    ("sampling.distributions", "_of_scipy", "scipy.stats"),
    ("theory.score_distribution", "largest_gap", "scipy.optimize.minimize_scalar"),
    ("model.captured", "capture", "montecarlo.model.torch_calls.recording"),
    ("model.watch", "_run", "montecarlo.model.torch_calls.recording"),
    ("model.watch", "_run", "montecarlo.model.torch_calls.uncompiled"),
    *(
        (module, function, "pandas")
        for module, function in (
            ("model.captured", "passed"),
            ("model.captured", "summary"),
            ("model.captured", "applied_scale"),
            ("model.checking", "compare"),
            ("model.observing", "tidy"),
            ("model.scales", "scales_table"),
            ("model.watch", "frame"),
        )
    ),
    ("pytest_plugin", "__enter__", "montecarlo.model.captured.capture"),
    ("pytest_plugin", "_check", "montecarlo.errors.InputError"),
    ("pytest_plugin", "_check", "montecarlo.model.captured.Captured"),
    ("pytest_plugin", "_check", "montecarlo.model.checking.answer_models"),
    ("pytest_plugin", "_check", "montecarlo.model.checking.assert_attention_scale"),
    ("pytest_plugin", "_require_options", "montecarlo.errors.InputError"),
    (
        "pytest_plugin",
        "_require_options",
        "montecarlo.model.checking.assert_attention_scale",
    ),
    ("pytest_plugin", "_require_options", "montecarlo.names.look_up"),
    ("model.files", "safetensors_file", "ml_dtypes"),
    ("model.files", "safetensors_file", "safetensors"),
    (
        "model.torch_calls",
        "_wrapped_interface",
        "transformers.modeling_utils.AttentionInterface",
    ),
}
#: The modules that import by a string what is asked for by its name.
BY_NAME = ("", "__main__", "report.formats")

Modules = dict[str, ast.Module]


class Import(NamedTuple):
    """An import of one thing: by which module, of what, where."""

    module: str
    target: str
    line: int
    within: tuple[str, ...]  # functions around it, outermost first

    def __str__(self) -> str:
        """Return the place and the target."""
        return f"{self.module}:{self.line} imports {self.target}"


def read_modules(package: Path) -> Modules:
    """Parse a package; names are dotted, without the package's, which is ``""``."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = ast.parse(path.read_text(encoding="utf-8"))
    return modules


def imports_of(modules: Modules) -> Iterator[Import]:
    """Yield every import, wherever it stands: in a function, under TYPE_CHECKING."""

    def visit(name: str, node: ast.AST, within: tuple[str, ...]) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inner = within
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(name, alias.name, child.lineno, within)
            elif isinstance(child, ast.ImportFrom):
                source = "." * child.level + (child.module or "")
                for alias in child.names:
                    yield Import(name, f"{source}.{alias.name}", child.lineno, within)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = (*within, child.name)
            yield from visit(name, child, inner)

    for name, tree in modules.items():
        yield from visit(name, tree, ())


def own_imports(modules: Modules) -> Iterator[tuple[Import, str]]:
    """Yield the imports of modules of the package, each with the module's name."""
    for item in imports_of(modules):
        package, _, target = item.target.partition(".")
        if package == "montecarlo":
            while target and target not in modules:
                target = target.rpartition(".")[0]
            yield item, target


def stage_of(name: str) -> str:
    """Return the stage of a module: in report/, the room of it."""
    room = ".".join(name.split(".")[:2])
    return room if room in STAGES else name.partition(".")[0]


def order(modules: Modules) -> Iterator[str]:
    """Each module has a stage and imports only from it and from those above it."""
    for name in modules:
        if name not in ("", *ENTRIES) and stage_of(name) not in STAGES:
            yield f"{name} has no place in STAGES"
    for item in imports_of(modules):
        if item.target.startswith("."):
            yield f"{item}, which must be absolute"
    for item, target in own_imports(modules):
        if item.module not in ("", *ENTRIES) and stage_of(item.module) in STAGES:
            allowed = STAGES[: STAGES.index(stage_of(item.module)) + 1]
            if stage_of(target) not in allowed:
                yield str(item)


def cycles(modules: Modules) -> Iterator[str]:
    """No module imports itself by way of others."""
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for item, target in own_imports(modules):
        graph[item.module].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield " -> ".join(error.args[1])


def entries(modules: Modules) -> Iterator[str]:
    """Nobody imports an entry, and an entry only commands and what stands lowest."""
    lowest = STAGES[: STAGES.index("attention")]
    for item, target in own_imports(modules):
        if target.split(".")[-1] == "__main__":
            yield str(item)
        if item.module in ENTRIES and stage_of(target) not in (*lowest, "cli", ""):
            yield str(item)


def libraries(modules: Modules) -> Iterator[str]:
    """Some libraries are imported by one room only."""
    for item in imports_of(modules):
        for library, room in ONLY_IN.items():
            is_library = f"{item.target}.".startswith(f"{library}.")
            if is_library and not f"{item.module}.".startswith(f"{room}."):
                yield str(item)


def drawing(modules: Modules) -> Iterator[str]:
    """Only sampling/ draws or makes a generator."""
    for name, tree in modules.items():
        for node in ast.walk(tree) if stage_of(name) != "sampling" else ():
            match node:
                case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                    yield f"{name}:{node.lineno} uses numpy.random"
                case ast.Attribute(attr=used) | ast.Name(id=used):
                    if used in DRAWING_NAMES:
                        yield f"{name}:{node.lineno} uses {used}"


def late_imports(modules: Modules) -> Iterator[str]:
    """Only a command's work(), and what is listed, imports inside a function; by a
    string only what is asked for by its name.  The package itself imports nothing.
    """
    for item in imports_of(modules):
        is_work = item.module.startswith("cli.") and item.within == ("work",)
        listed = (item.module, *item.within, item.target) in LATE
        if item.within and not (is_work or listed):
            yield f"{item} inside {item.within[-1]}()"
    for name, tree in modules.items():
        for node in ast.walk(tree) if name not in BY_NAME else ():
            match node:
                case (
                    ast.Name(id="__import__" | "import_module" as used)
                    | ast.Attribute(attr="import_module" as used)
                ):
                    yield f"{name}:{node.lineno} uses {used}"
    top = {"": ast.Module(list(getattr(modules.get(""), "body", [])), [])}
    top[""].body = [node for node in top[""].body if not isinstance(node, ast.If)]
    yield from (str(item) for item, _ in own_imports(top))


def namespaces(modules: Modules) -> Iterator[str]:
    """Only cli/ knows argparse: what is below gets arguments with types."""
    for item in imports_of(modules):
        known = item.target.split(".")[0] == "argparse"
        if known and not item.module.startswith("cli."):
            yield str(item)


RULES: dict[str, Callable[[Modules], Iterator[str]]] = {
    rule.__name__: rule
    for rule in (order, cycles, entries, libraries, drawing, late_imports, namespaces)
}
#: What breaks which rule: the module, its source, what the report of it holds.
BAD = [
    ("order", "sampling.x", "from montecarlo import study", "x:1 imports montecarlo"),
    ("order", "report.content.x", "import montecarlo.report.figures", "figures"),
    ("order", "study.x", "from montecarlo.cli.judge import work", "cli.judge"),
    ("order", "attention.x", "from . import softmax", "absolute"),
    ("order", "stray.x", "", "stray.x has no place"),
    ("cycles", "attention", "from montecarlo.sampling import rng", "sampling"),
    ("entries", "report.__main__", "from montecarlo import study", "imports"),
    ("entries", "cli.x", "import montecarlo.report.__main__", "cli.x:1"),
    ("libraries", "study.x", "import matplotlib.pyplot as plt", "study.x:1"),
    ("libraries", "study.x", "from distributed import Client", "study.x:1"),
    ("libraries", "study.x", "from numpy import random", "numpy.random"),
    ("drawing", "study.x", "import numpy as np\nnp.random.normal()", "x:2"),
    ("drawing", "study.x", "from scipy import stats\nstats.norm.rvs()", "rvs"),
    ("namespaces", "report.x", "from argparse import Namespace", "report.x:1"),
    ("late_imports", "study.executors", "def f():\n    import json", "inside f()"),
    ("late_imports", "cli.x", "def f():\n def work():\n  import re", "inside work()"),
    ("late_imports", "study.x", "import importlib\nimportlib.import_module", "x:2"),
    ("late_imports", "", "from montecarlo.study import plan", "montecarlo.study"),
]
#: A small package that keeps every rule.
GOOD = {
    "": "if TYPE_CHECKING:\n    from montecarlo.study import plan",
    "attention": "import numpy as np",
    "sampling": "import numpy as np\nimport montecarlo.attention\nnp.random.rvs",
    "study": "from montecarlo.sampling import rng",
    "report.__main__": "from montecarlo.cli.judge import work",
    "report.content": "",
    "report.figures": "import matplotlib\nfrom montecarlo.report.content import views",
    "cli.judge": "def work():\n    from montecarlo import study",
    "__main__": "import montecarlo\nfrom montecarlo.cli import judge",
}


@pytest.fixture(scope="module")
def modules():
    """The package's own modules."""
    return read_modules(PACKAGE)


@pytest.mark.parametrize("rule", RULES)
def test_package_keeps_rule(modules, rule):
    """The package keeps every rule of the house."""
    assert {"names", "attention.softmax", "sampling.distributions"} <= set(modules)
    assert list(RULES[rule](modules)) == []


@pytest.mark.parametrize(("rule", "module", "source", "message"), BAD)
def test_broken_rule_is_reported(rule, module, source, message):
    """A small package keeps the rule, until a planted breach breaks it."""
    good = {name: ast.parse(text) for name, text in GOOD.items()}
    assert list(RULES[rule](good)) == []
    found = " | ".join(RULES[rule]({**good, module: ast.parse(source)}))
    assert message in found


def test_every_rule_has_a_negative_control():
    """No rule is left that has never been seen to fail."""
    assert {rule for rule, *_ in BAD} == set(RULES)
