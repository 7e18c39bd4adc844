"""Where the templates are: beside the package in a checkout, inside it in a wheel."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def template_folder() -> Traversable:
    """Return the folder of the templates.

    Raises
    ------
    FileNotFoundError
        If the package was installed without them.
    """
    inside = files("montecarlo").joinpath("report_templates")
    if inside.is_dir():
        return inside
    beside = Path(str(files("montecarlo"))).parent / "report_templates"
    if beside.is_dir():
        return beside
    raise FileNotFoundError("report_templates must stand in or beside the package")


def read_template(name: str) -> str:
    """Return the text of a template by its path below the folder."""
    return template_folder().joinpath(*name.split("/")).read_text(encoding="utf-8")
