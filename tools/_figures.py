"""Figures as files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mecharule_ops.errors import StoreError


def written(figures: Mapping[str, tuple[str, str]], folder: Path) -> list[str]:
    """The SVG files written, one a figure. Raises `StoreError` when the folder cannot be written."""
    from mecharule_ops.report.drawing import standalone

    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (svg, _) in figures.items():
            file = folder / f"{name}.svg"
            file.write_text(standalone(svg), encoding="utf-8")
            files.append(str(file))
    except OSError as error:
        raise StoreError(
            f"expected to write figures to {folder}, the system says: {error.strerror}"
        ) from error
    return files
