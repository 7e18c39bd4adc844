"""Where the templates are: beside the package in a checkout, inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[2]


def template_folder() -> Path:
    """Return the folder of the templates.

    Raises
    ------
    FileNotFoundError
        If the package was installed without them.
    """
    for place in (_PACKAGE, _PACKAGE.parent):
        if (folder := place / "report_templates").is_dir():
            return folder
    raise FileNotFoundError("report_templates must stand in or beside the package")


def read_template(name: str) -> str:
    """Return the text of a template by its path below the folder."""
    return (template_folder() / name).read_text(encoding="utf-8")
