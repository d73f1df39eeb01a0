"""What else lies on this machine beside runs: models and lists of requests; and fetching one."""

from __future__ import annotations

from dataclasses import asdict

from mecharule_ops.errors import UsageError
from mecharule_ops.loading import gguf, model_names
from mecharule_ops.loading.fetch import fetch
from mecharule_ops.report.document import Table
from mecharule_ops.tasks.request_files import data_file, data_names, fetch_data
from tools._tables import shown
from tools.arguments import DataArguments, ModelsArguments, TableArguments
from tools.registry import Tell, ToolResult


def models(given: ModelsArguments, tell: Tell) -> ToolResult:
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
    known = [*model_names.models(), _gguf_row()]
    rows = tuple((row.name, "yes" if row.present else "no", row.size, row.note, row.where) for row in known)
    table = Table(header=("model", "here", "size", "what", "where"), rows=rows, align="lllll")
    text = shown("models", table, TableArguments(limit=len(rows))).text
    return ToolResult(data={"models": [asdict(row) for row in known]}, text=text)


def _gguf_row() -> model_names.ModelRow:
    """The file for `--llm local/NAME`: it answers questions and cannot be analysed."""
    file = gguf.gguf_file()
    return model_names.ModelRow(
        name=gguf.NAME, where=str(file), present=file.is_file(), size=gguf.SIZE, note=gguf.NOTE
    )


def data(given: DataArguments, tell: Tell) -> ToolResult:
    """Every list with where it lies, or the file of one after fetching it; no content is shown."""
    if given.action == "list":
        if given.name is not None:
            raise UsageError(f"expected `data list` or `data fetch NAME`, got list {given.name}")
        here = {name: data_file(name).is_file() for name in data_names()}
        lines = [
            f"{name}  {'here' if there else 'not here'}  {data_file(name)}" for name, there in here.items()
        ]
        return ToolResult(data={"data": here}, text="\n".join(lines))
    if given.name is None:
        raise UsageError(f"expected the name of data to fetch of: {', '.join(data_names())}; got none")
    file = fetch_data(given.name, on_progress=tell)
    return ToolResult(
        data={"data": given.name, "file": str(file)},
        text=f"{file}\nuse it with `mecharule run jailbreak -m MODEL --set task.requests={given.name}`",
    )
