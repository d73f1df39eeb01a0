"""The models that can be named, and fetching one; beside them a file that can be asked questions."""

from __future__ import annotations

from dataclasses import asdict

from mecharule_ops.errors import UsageError
from mecharule_ops.loading import gguf, registry
from mecharule_ops.loading.fetch import fetch
from mecharule_ops.report.document import Table
from tools._tables import shown
from tools.arguments import Models, TableArguments
from tools.registry import Tell
from tools.result import ToolResult


def models(given: Models, tell: Tell) -> ToolResult:
    """Every named model with where it lies, or the directory of one after fetching it."""
    if given.action == "fetch":
        if given.name is None:
            raise UsageError("expected the name of a model to fetch, got none; see `mecharule models list`")
        if given.name == gguf.NAME:
            file = str(gguf.fetch_gguf(on_progress=tell))
            return ToolResult(data={"model": given.name, "file": file}, text=file)
        directory = fetch(given.name, on_progress=tell)
        return ToolResult(data={"model": given.name, "directory": str(directory)}, text=str(directory))
    if given.name is not None:
        raise UsageError(f"expected `models list` or `models fetch NAME`, got list {given.name}")
    known = [*registry.models(), _gguf_row()]
    rows = tuple((row.name, "yes" if row.present else "no", row.size, row.note, row.where) for row in known)
    table = Table(header=("model", "here", "size", "what", "where"), rows=rows, align="lllll")
    text = shown("models", table, TableArguments(limit=len(rows))).text
    return ToolResult(data={"models": [asdict(row) for row in known]}, text=text)


def _gguf_row() -> registry.ModelRow:
    """The file for `--llm local/NAME`: it answers questions and cannot be analysed."""
    file = gguf.gguf_file()
    return registry.ModelRow(
        name=gguf.NAME, where=str(file), present=file.is_file(), size=gguf.SIZE, note=gguf.NOTE
    )
