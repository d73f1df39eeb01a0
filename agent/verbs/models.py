"""The models that lie on this machine; and fetching one."""

from dataclasses import replace

from agent.verbs.options import ModelsOptions
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.fact import fact
from mecharule_ops.loading.model_names import fetch
from mecharule_ops.loading.model_names import models as known
from mecharule_ops.pages.document import Table
from tools import arguments, result


def models(given: ModelsOptions, tell: result.Tell) -> result.ToolResult:
    """Every named model with where it lies, or the directory of one after fetching it."""
    if given.action == "fetch":
        if given.name is None:
            raise UsageError("expected the name of a model to fetch, got none; see `mecharule models list`")
        place = str(fetch(given.name, on_progress=tell))
        told = fact(f"{given.name} lies in {place}", key=f"models.{given.name}", value=place)
        return replace(result.of_facts([told]), text=place)
    if given.name is not None:
        raise UsageError(f"expected `models list` or `models fetch NAME`, got list {given.name}")
    rows = tuple((row.name, "yes" if row.where else "no", row.size, row.note, row.where) for row in known())
    table = Table(header=("model", "here", "size", "what", "where"), rows=rows, align="lllll")
    return result.shown("models", table, arguments.TableArguments(limit=len(rows)), key="models")
