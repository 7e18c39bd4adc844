"""The rules of the house: who may import whom, who may draw, where imports stand."""

import ast
import graphlib
import inspect
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
    "model",
    "pytest_plugin",
    "study",
    "claims",
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
    "distributed": "study.cluster",
    "random": "sampling",
    "secrets": "sampling",
    "numpy.random": "sampling",
}
#: All that model/ imports of the house: what it says of heads is its own.
OPEN_TO_MODEL = (
    *STAGES[: STAGES.index("attention") + 1],
    "sampling.streams",
    "estimation.intervals",
    "model",
)
#: Attributes and names that draw, or make a generator.
DRAWING_NAMES = {"default_rng", "RandomState", "SeedSequence", "rvs", "qmc", "urandom"}

Modules = dict[str, ast.Module]


class Import(NamedTuple):
    """An import of one thing: by which module, of what, in which line."""

    module: str
    target: str
    line: int

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
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                source = "." * getattr(node, "level", 0)
                if isinstance(node, ast.ImportFrom):
                    source += f"{node.module or ''}."
                for alias in node.names:
                    yield Import(name, f"{source}{alias.name}", node.lineno)


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


def independence(modules: Modules) -> Iterator[str]:
    """Of what it is to check, theory imports the divisors and masks that there are."""
    for item, target in own_imports(modules):
        named = target in {"attention.divisors", "attention.masks"}
        checked = stage_of(target) == "attention" and not named
        if stage_of(item.module) == "theory" and checked:
            yield str(item)


def closed(modules: Modules) -> Iterator[str]:
    """What looks at models imports little, and no judgements of others."""
    for item, target in own_imports(modules):
        is_open = {target, stage_of(target)} & set(OPEN_TO_MODEL)
        if stage_of(item.module) == "model" and not is_open:
            yield str(item)


RULES: dict[str, Callable[[Modules], Iterator[str]]] = {
    rule.__name__: rule
    for rule in (order, cycles, entries, libraries, drawing, independence, closed)
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


def test_closed_room_is_watched():
    """A judgement, a sampler or another estimator that model/ imports is seen."""
    code = """
    from montecarlo.claims.verdicts import decide
    from montecarlo.sampling.replicates import draw
    from montecarlo.estimation import estimates
    from montecarlo.sampling.streams import row_positions
    from montecarlo.errors import InputError
    """
    names = ("claims.verdicts", "sampling.replicates", "estimation.estimates")
    more = ("sampling.streams", "errors")
    planted = {name: ast.parse("") for name in (*names, *more)}
    planted["model.one"] = ast.parse(inspect.cleandoc(code))
    assert [line.split()[-1].rpartition(".")[0] for line in closed(planted)] == [
        "montecarlo.claims.verdicts",
        "montecarlo.sampling.replicates",
        "montecarlo.estimation",
    ]
