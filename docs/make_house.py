"""Draw the rooms of the package, and who imports whom: ``python docs/make_house.py``.

Out: ``docs/house.svg``, read from the imports of ``montecarlo/``.  A room stands below
those that it imports from; a test holds that the picture is fresh.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "house.svg"
#: The rooms in their order, and what each is for.
ROOMS = {
    "attention": "scores, softmax, gradients: arrays in, arrays out",
    "sampling": "distributions and replicates: the only one that draws",
    "theory": "exact values",
    "estimation": "replicates to estimates and intervals",
    "model": "the scale that a model applies",
    "study": "plan, run and keep many points; measure and grid",
    "claims": "what texts say, checks, evidence, the judge",
    "report": "pages, figures, languages",
    "cli": "one module a command",
}
ROW, LEFT, WIDTH, BOX = 34, 150, 640, 110


def read_imports(package: Path) -> dict[str, set[str]]:
    """Return from which rooms each room imports."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in package.rglob("*.py"):
        if path.name == "__main__.py":  # is run, and imports commands
            continue
        room = path.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                parts = name.split(".")
                if room in found and parts[0] == "montecarlo" and parts[1] in ROOMS:
                    found[room].add(parts[1])
    return {room: rooms - {room} for room, rooms in found.items()}


def draw(imports: dict[str, set[str]]) -> str:
    """Return the picture: a room a line, an arc for each pair, to the left."""
    height = ROW * len(ROOMS) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' role="img" font-family="sans-serif" font-size="13">',
        "<title>The rooms of the package, and from which others each imports</title>",
        "<style>text{fill:#222}rect{fill:#e8eaf6;stroke:#3f51b5}",
        "path{fill:none;stroke:#7986cb}",
        "@media(prefers-color-scheme:dark){text{fill:#eee}rect{fill:#303650}}</style>",
    ]
    place = {room: ROW * at + 22 for at, room in enumerate(ROOMS)}
    for room, others in imports.items():
        for other in sorted(others, key=list(ROOMS).index):
            low, high = place[room], place[other]
            out = LEFT - 12 - (low - high) * 0.4
            lines.append(
                f'<path d="M{LEFT} {low}C{out:.0f} {low} {out:.0f} {high} '
                f'{LEFT} {high}"/>'
            )
    for room, told in ROOMS.items():
        y = place[room]
        lines += [
            f'<rect x="{LEFT}" y="{y - 13}" width="{BOX}" height="26" rx="4"/>',
            f'<text x="{LEFT + 8}" y="{y + 5}">{room}</text>',
            f'<text x="{LEFT + BOX + 12}" y="{y + 5}">{told}</text>',
        ]
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(
        draw(read_imports(ROOT / "montecarlo")), encoding="utf-8", newline="\n"
    )
