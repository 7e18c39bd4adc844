"""Execute docs/ask.ipynb and write it back: ``python docs/run_notebook.py``.

It needs nbclient and ipykernel.  Nothing of the machine is kept: no times, no versions.
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("ask.ipynb")
#: Seconds that a cell may take.
LIMIT = 120
KERNEL = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run every cell in order, in a kernel of its own."""
    NotebookClient(notebook, timeout=LIMIT, record_timing=False).execute()
    notebook.metadata = nbformat.from_dict(KERNEL)
    return notebook


if __name__ == "__main__":
    found = execute(nbformat.read(NOTEBOOK, as_version=4))
    NOTEBOOK.write_text(nbformat.writes(found) + "\n", encoding="utf-8")
