"""The lists of requests that can be fetched, and fetching one."""

from __future__ import annotations

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.request_files import data_file, data_names, fetch_data
from tools.arguments import Data
from tools.registry import Tell
from tools.result import ToolResult


def data(given: Data, tell: Tell) -> ToolResult:
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
