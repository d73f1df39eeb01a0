"""Write the API page from the docstrings: what a notebook uses, and the values that it meets.

python benchmarks/api_page.py site
"""

from __future__ import annotations

import sys
from pathlib import Path

import mecharule_ops

MODULES = (
    *("notebook.finished_run", "notebook.door", "pages.rows"),
    *("config", "errors", "events", "types", "bases", "cha", "predicates.language"),
    *(
        "findings.records",
        "findings.counts",
        "findings.controls",
        "findings.accounts",
        "findings.chain",
    ),
    *("gates.outcome", "gates.exported", "rules.families", "tasks.from_file", "tasks.text"),
)
"""Documented beside the package itself."""


def write_pages(folder: Path) -> list[str]:
    """The pages, one a module with an index; returns the modules' names."""
    import pdoc

    for name in mecharule_ops.__all__:
        getattr(mecharule_ops, name)
    names = ["mecharule_ops", *(f"mecharule_ops.{module}" for module in MODULES)]
    pdoc.render.configure(docformat="google", show_source=False, math=False)
    pdoc.pdoc(*names, output_directory=folder)
    return names


if __name__ == "__main__":
    print(f"{len(write_pages(Path(sys.argv[1])))} pages in {sys.argv[1]}", file=sys.stderr)
