"""The rules of the house: who may import whom, who may draw, what a module may be."""

import ast
import graphlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "montecarlo"

#: Each stage imports from itself and from what stands above it.
STAGES = (
    "errors",
    "names",
    "printing",
    "small_files",
    "attention",
    "sampling",
    "theory",
    "estimation",
    "study",
    "training",
    "claims",
    "literature",
    "calibration",
    "model",
    "report.language",
    "report.content",
    "report.figures",
    "report.render",
    "report",
    "cli",
)
#: What is there to be run: `__main__` modules, of which only these import commands.
ENTRIES = ("__main__", "report.__main__")
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "core"} | {
    "manager",
    "misc",
}
PRESENTATION = {"matplotlib", "mpl_toolkits", "jinja2"}
CLUSTER = {"dask", "distributed"}
DRAWING_NAMES = {"default_rng", "RandomState", "SeedSequence", "rvs", "qmc", "urandom"}
#: In one folder of report/: what is looked for is found by looking.
#: Where a command imports: what takes long, within its work, which can be interrupted.
PLACE = ("work",)
#: Who imports by a string what is asked for by its name.
LAZY = ("", "__main__", "report.formats")
#: The functions beside a command's work() that import, and what: it needs an extra, or
#: takes long and is not needed to say which workers there are.
OPTIONAL = {
    ("study.executors", "make_executor", "montecarlo.study.cluster"),
    (
        "study.executors",
        "make_executor",
        "montecarlo.study.certificates.make_certificate",
    ),
    ("study.local_workers", "limit_blas", "numpy"),
    ("model.captured", "capture", "montecarlo.model.torch_calls.recording"),
    ("model.files", "safetensors_file", "ml_dtypes"),
    ("model.files", "safetensors_file", "safetensors"),
    (
        "model.torch_calls",
        "_wrapped_interface",
        "transformers.modeling_utils.AttentionInterface",
    ),
}


def stage_of(name: str) -> str:
    """Return the stage of a module: the longest beginning of its name that is one."""
    room = ".".join(name.split(".")[:2])
    return room if room in STAGES else name.split(".", maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its dotted name without the package's, its path, source and tree."""

    name: str
    path: Path
    source: str
    tree: ast.Module

    @property
    def stage(self) -> str:
        """The folder or root module it belongs to; in report/, the room of it."""
        return stage_of(self.name)

    @property
    def is_entry(self) -> bool:
        """Whether it is there to be run, not to be imported."""
        return self.name.split(".")[-1] == "__main__"


@dataclass(frozen=True, slots=True)
class Import:
    """An import of one thing: ``package.thing``, and where it stands."""

    target: str
    line: int
    within: tuple[str, ...]  # functions around it, outermost first


def read_modules(package: Path) -> dict[str, Module]:
    """Parse every module of a package; the package itself is called ``""``."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        parts = inside.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = path.read_text(encoding="utf-8")
        modules[name] = Module(name, inside, source, ast.parse(source))
    return modules


def imports_of(module: Module) -> Iterator[Import]:
    """Yield every import, wherever it stands: in a function, under TYPE_CHECKING."""

    def visit(node: ast.AST, within: tuple[str, ...]) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, within)
            elif isinstance(child, ast.ImportFrom):
                source = "." * child.level + (child.module or "")
                for alias in child.names:
                    yield Import(f"{source}.{alias.name}", child.lineno, within)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from visit(child, (*within, child.name))
            else:
                yield from visit(child, within)

    yield from visit(module.tree, ())


def own_imports(module: Module, modules: dict[str, Module]) -> dict[str, int]:
    """Map the modules of the package that a module imports to line numbers."""
    found = {}
    for item in imports_of(module):
        package, _, target = item.target.partition(".")
        if package == "montecarlo":
            while target and target not in modules:
                target = target.rpartition(".")[0]
            found[target] = item.line
    return found


def order(modules: dict[str, Module]) -> Iterator[str]:
    """Each module has a stage and imports only from it and from those above it."""
    for module in modules.values():
        if module.name in ("", "__main__"):
            continue
        if module.stage not in STAGES:
            yield f"{module.name} has no place in STAGES"
            continue
        if module.name in ENTRIES:
            continue
        for target, line in own_imports(module, modules).items():
            stage = stage_of(target)
            below = STAGES[STAGES.index(module.stage) + 1 :]
            if stage in below or stage == "":
                yield f"{module.name}:{line} imports {target or 'the package'}"


def cycles(modules: dict[str, Module]) -> Iterator[str]:
    """No module imports itself by way of others."""
    graph = {
        name: set(own_imports(module, modules)) for name, module in modules.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield " -> ".join(error.args[1])


def commands(modules: dict[str, Module]) -> Iterator[str]:
    """Nobody imports an entry, and an entry only commands and what stands lowest."""
    lowest = STAGES[: STAGES.index("attention")]
    for module in modules.values():
        for target, line in own_imports(module, modules).items():
            if modules[target].is_entry:
                yield f"{module.name}:{line} imports the entry {target}"
            stage = modules[target].stage
            if module.name in ENTRIES and stage not in (*lowest, "cli", ""):
                yield f"{module.name}:{line} imports {target} beside a command"


def light(modules: dict[str, Module]) -> Iterator[str]:
    """The package itself imports nothing of its own, but for types."""
    if package := modules.get(""):
        for node in package.tree.body:
            match node:
                case ast.ImportFrom(module=str(source)) if source.startswith("monte"):
                    yield f"the package itself imports {source}"
                case ast.Import(names=found):
                    yield from (
                        f"the package itself imports {alias.name}"
                        for alias in found
                        if alias.name.startswith("monte")
                    )


def presentation(modules: dict[str, Module]) -> Iterator[str]:
    """Only report/ imports matplotlib and jinja2."""
    for module in modules.values():
        for item in imports_of(module):
            library = item.target.split(".")[0]
            if library in PRESENTATION and module.name.split(".")[0] != "report":
                yield f"{module.name}:{item.line} imports {library}"


def clusters(modules: dict[str, Module]) -> Iterator[str]:
    """Only one module imports the extra for clusters."""
    for module in modules.values():
        for item in imports_of(module):
            library = item.target.split(".")[0]
            if library in CLUSTER and module.name != "study.cluster":
                yield f"{module.name}:{item.line} imports {library}"


def drawing(modules: dict[str, Module]) -> Iterator[str]:
    """Only sampling/ draws or makes a generator."""
    for module in modules.values():
        if module.stage == "sampling":
            continue
        for item in imports_of(module):
            parts = item.target.split(".")
            if parts[0] in {"random", "secrets"} or parts[:2] == ["numpy", "random"]:
                yield f"{module.name}:{item.line} imports {item.target}"
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                    yield f"{module.name}:{node.lineno} uses numpy.random"
                case ast.Attribute(attr=name) | ast.Name(id=name):
                    if name in DRAWING_NAMES:
                        yield f"{module.name}:{node.lineno} uses {name}"


def late_imports(modules: dict[str, Module]) -> Iterator[str]:
    """Only a command's work() imports inside a function, and what is not always there
    or needed; by a string only what is asked for by its name.
    """
    for module in modules.values():
        for item in imports_of(module):
            if (module.name, *item.within, item.target) in OPTIONAL:
                continue
            if item.within and not (module.stage == "cli" and item.within == PLACE):
                yield f"{module.name}:{item.line} imports inside {item.within[-1]}()"
        for node in ast.walk(module.tree) if module.name not in LAZY else ():
            match node:
                case (
                    ast.Name(id="__import__" as name)
                    | ast.Attribute(attr="import_module" as name)
                ):
                    yield f"{module.name}:{node.lineno} uses {name}"
                case ast.ImportFrom(module="importlib", names=names):
                    if any(alias.name == "import_module" for alias in names):
                        yield f"{module.name}:{node.lineno} uses import_module"


def names(modules: dict[str, Module]) -> Iterator[str]:
    """No module or folder has a name that says nothing."""
    for module in modules.values():
        for word in module.name.replace("_", ".").split("."):
            if word in FORBIDDEN_NAMES:
                yield f"{module.name} is called {word}"


def relative(modules: dict[str, Module]) -> Iterator[str]:
    """Imports are absolute, so that the rules above see them."""
    for module in modules.values():
        for item in imports_of(module):
            if item.target.startswith("."):
                yield f"{module.name}:{item.line} imports {item.target}"


Rule = Callable[[dict[str, Module]], Iterator[str]]
RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        order,
        cycles,
        commands,
        light,
        presentation,
        clusters,
        drawing,
        late_imports,
        names,
        relative,
    )
}

#: A small package that keeps every rule.
GOOD = {
    "__init__": '"""A package."""',
    "names": "import difflib",
    "attention/__init__": "",
    "attention/softmax": "import numpy as np\nfrom montecarlo import names",
    "attention/gradients": "from montecarlo.attention import softmax",
    "sampling/__init__": "",
    "sampling/streams": "import numpy as np\nrng = np.random.default_rng(1)",
    "estimation/__init__": "",
    "study/__init__": "",
    "claims/__init__": "",
    "study/tasks": "from montecarlo import estimation",
    "study/running": "from montecarlo.sampling.streams import rng",
    "report/__init__": "",
    "report/content/__init__": "",
    "report/content/views": "from montecarlo import names",
    "report/figures/__init__": "from matplotlib.figure import Figure",
    "report/render/__init__": "",
    "report/render/pages": "import jinja2\nfrom montecarlo.report.content import views",
    "report/__main__": "from montecarlo.cli.judge import work",
    "cli/judge": "def work():\n    from montecarlo import study",
    "__main__": "import montecarlo\nfrom importlib import import_module",
}
#: What breaks which rule, and what the report of it must hold.
BAD = [
    ("order", "attention/x", "import montecarlo.sampling.streams", "sampling.streams"),
    ("order", "sampling/x", "from montecarlo import study", "x:1 imports study"),
    ("order", "estimation/x", "import montecarlo.study.tasks", "study.tasks"),
    ("order", "names", "import montecarlo.attention.softmax", "attention.softmax"),
    ("order", "study/x", "import montecarlo.report.render.pages", "render.pages"),
    ("order", "report/content/x", "import montecarlo.report.figures", "report.figures"),
    ("order", "report/figures/x", "import montecarlo.report.render.pages", "x:1"),
    ("order", "report/language/x", "import montecarlo.report.content.views", "views"),
    ("order", "report/render/x", "import montecarlo.report.options", "imports report"),
    ("order", "study/x", "import montecarlo", "the package"),
    ("order", "study/x", "from montecarlo import claims", "x:1 imports claims"),
    ("light", "__init__", "from montecarlo.study import rng", "imports montecarlo.st"),
    ("light", "__init__", "import montecarlo.study", "imports montecarlo.study"),
    ("order", "study/x", "from montecarlo.cli.judge import work", "imports cli.judge"),
    ("order", "stray", "", "stray has no place"),
    ("order", "stray/x", "", "stray.x has no place"),
    (
        "cycles",
        "attention/softmax",
        "from montecarlo.attention import gradients",
        "attention.softmax",
    ),
    (
        "cycles",
        "attention/softmax",
        "if TYPE_CHECKING:\n    from montecarlo.attention.gradients import softmax",
        "attention.gradients",
    ),
    (
        "commands",
        "report/__main__",
        "from montecarlo.study import rng",
        "imports study",
    ),
    ("commands", "cli/x", "import montecarlo.report.__main__", "report.__main__"),
    ("presentation", "study", "import matplotlib.pyplot as plt", "study:1"),
    (
        "presentation",
        "cli/judge",
        "def work():\n    from jinja2 import Template",
        "jinja2",
    ),
    ("clusters", "study", "from distributed import Client", "study:1"),
    ("clusters", "study/x", "import dask.config", "imports dask"),
    ("drawing", "study", "from numpy.random import Generator", "numpy.random"),
    ("drawing", "study", "from numpy import random", "numpy.random"),
    ("drawing", "study", "import random", "random"),
    ("drawing", "study", "import numpy as np\nnp.random.normal()", "study:2"),
    ("drawing", "study", "from scipy import stats\nstats.norm.rvs()", "rvs"),
    ("drawing", "study", "def f(default_rng):\n    default_rng()", "default_rng"),
    ("late_imports", "study", "def f():\n    import json", "inside f()"),
    ("late_imports", "study", "def main():\n    import json", "inside main()"),
    (
        "late_imports",
        "study/executors",
        "def make_executor():\n    import distributed",
        "inside make_executor()",
    ),
    (
        "late_imports",
        "study/executors",
        "def f():\n    from montecarlo.study import cluster",
        "inside f()",
    ),
    ("late_imports", "cli/judge", "def f():\n    import json", "inside f()"),
    ("late_imports", "study", "def work():\n    import json", "inside work()"),
    ("late_imports", "cli/x", "def main():\n def work():\n  import re", "work()"),
    ("late_imports", "study", "class A:\n    def f(self):\n        import json", "f()"),
    ("late_imports", "study", "import importlib\nimportlib.import_module", "study:2"),
    ("late_imports", "study", "from importlib import import_module", "study:1"),
    ("names", "attention/utils", "", "called utils"),
    ("names", "attention/row_helpers", "", "called helpers"),
    ("names", "sampling/core/x", "", "called core"),
    ("relative", "attention/x", "from . import softmax", "x:1"),
]


def write_package(folder: Path, files: dict[str, str]) -> Path:
    """Write a package of the given files; names are paths without ``.py``."""
    for name, source in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    """The package's own modules."""
    return read_modules(PACKAGE)


@pytest.mark.parametrize("rule", RULES)
def test_package_keeps_rule(modules, rule):
    """The package keeps every rule of the house."""
    assert list(RULES[rule](modules)) == []


def test_package_is_found(modules):
    """The rules are held against the real package, not against an empty folder."""
    assert {"names", "attention.softmax", "sampling.distributions"} <= set(modules)


@pytest.mark.parametrize("rule", RULES)
def test_good_package_passes(tmp_path, rule):
    """A package that keeps the rules is not complained of."""
    assert list(RULES[rule](read_modules(write_package(tmp_path, GOOD)))) == []


@pytest.mark.parametrize(("rule", "where", "source", "message"), BAD)
def test_broken_rule_is_reported(tmp_path, rule, where, source, message):
    """A planted breach is reported by its own rule, with the place."""
    modules = read_modules(write_package(tmp_path, {**GOOD, where: source}))
    assert message in " | ".join(RULES[rule](modules))


def test_every_rule_has_a_negative_control():
    """No rule is left that has never been seen to fail."""
    assert {rule for rule, *_ in BAD} == set(RULES)
