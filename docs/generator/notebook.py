"""Execute the notebook of the documentation and write its outputs: ``python docs/generator/notebook.py``.

Needs the packages of ``tests/requirements/notebook.txt``. A test checks that the notebook's outputs are up to date.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "how-to" / "notebook.ipynb"


def executed(notebook: Any) -> Any:
    """Return a notebook with fresh outputs, without what differs between two executions: times and addresses."""
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output.data.pop("text/plain", None)
    return notebook


def main() -> int:
    """Write the notebook."""
    nbformat.write(executed(nbformat.read(NOTEBOOK, as_version=4)), NOTEBOOK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
