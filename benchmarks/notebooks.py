"""Run the notebooks of `examples/` top to bottom, each in an empty folder, and write their outputs into them.

python benchmarks/notebooks.py

"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
SECONDS = 900
"""The longest that one cell may take."""


def notebooks() -> list[Path]:
    """Every notebook of the examples."""
    return sorted(EXAMPLES.glob("*.ipynb"))


def executed(file: Path, folder: Path) -> Any:
    """The notebook after all its cells, run in `folder`, where its runs are kept too. Raises `CellExecutionError`."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(file, as_version=4)
    root = os.pathsep.join(filter(None, (str(EXAMPLES.parent), os.environ.get("PYTHONPATH"))))
    own = {"PYTHONWARNINGS": "ignore", "MECHARULE_RUNS": str(folder / "runs"), "PYTHONPATH": root}
    client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, **own})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def main() -> None:
    """Every notebook, written back with its outputs."""
    import nbformat

    for file in notebooks():
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(file, Path(folder)), file)
        print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
