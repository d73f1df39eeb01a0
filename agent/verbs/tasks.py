"""The tasks that there are, with a prompt of each, and what a table of one's own was understood to be."""

from dataclasses import replace

import numpy as np

from agent.verbs.options import TasksOptions
from mecharule_ops.config import make_config
from mecharule_ops.errors import UsageError
from mecharule_ops.numbers import plural
from mecharule_ops.pages.document import Table
from mecharule_ops.run.outlook import settled, writing
from mecharule_ops.tasks import prompt_table, table_check
from mecharule_ops.tasks.task_names import BUNDLED, findable, make_task, task_of
from tools import arguments, result


def tasks(given: TasksOptions, tell: result.Tell) -> result.ToolResult:
    """Every task with one prompt, or what a table was understood to be. Loads a model only where one is named.

    Raises `UsageError` for a table that does not read, and what loading a model raises.
    """
    if given.action == "list":
        if given.table is not None:
            raise UsageError(f"expected `tasks list` or `tasks check FILE`, got list {given.table}")
        return _listed()
    if given.table is None:
        raise UsageError("expected a table to check, got none; such as `mecharule tasks check prompts.jsonl`")
    return _checked(given.table, given, tell)


def _listed() -> result.ToolResult:
    rows = tuple((name, asks, _prompt(name)) for name, asks in BUNDLED.items())
    table = Table(header=("task", "what it asks", "a prompt"), rows=rows, align="lll")
    listed = result.shown("tasks", table, arguments.TableArguments(limit=len(rows)), key="tasks")
    own = (
        "Your own: a table with columns prompt and answer; `mecharule tasks check prompts.jsonl`, then "
        "`mecharule run prompts.jsonl -m MODEL`."
    )
    return replace(listed, text=f"{listed.text}\n{own}")


def _prompt(name: str) -> str:
    """The first prompt of a task that comes with some."""
    if make_task(name).concealed:
        return "concealed; bring requests with --set task.requests=FILE"
    (example,) = make_task(name).examples(1, np.random.default_rng(0))
    return example.prompt.replace("\n", "\\n")


def _checked(table: str, given: TasksOptions, tell: result.Tell) -> result.ToolResult:
    """What was read and how it is graded, then some prompts; with settings that suit the model where one is named."""
    settings = prompt_table.prompt_settings(**given.reading, model=given.model)
    said = {key.removeprefix("task."): value for key, value in settings}
    if given.model is None:
        task = make_task(table, **said)
    else:
        task = task_of(settled(make_config(task=findable(table), model=given.model, task_settings=said)))
    if not isinstance(task, prompt_table.PromptTable):
        raise UsageError(f"expected a table of prompts and answers to check, got the task {table!r}")
    table_check.rehearse(task)
    write = None if given.model is None else writing(task, given.model)
    roles, warnings = table_check.column_roles(task), list(table_check.warnings_of(task, write))
    prompts = [example.prompt for example in task.examples(table_check.SHOWN, np.random.default_rng(0))]
    data: dict[str, object] = {"table": str(task.path), "records": len(task.questions), "graded": task.graded}
    data |= {"columns": list(roles), "prompts": prompts}
    header, rows = (
        ("column", "type", "what it is for", "in the first row"),
        [(*role.values(),) for role in roles],
    )
    columns = Table(header=header, rows=tuple(rows), align="llll")
    title = f"{task.path.name}: {plural(len(task.questions), 'record')}"
    asked = "by the template" if task.template or task.chat_before else "as the column has them"
    lines = [result.shown(title, columns, arguments.TableArguments(limit=len(rows))).text, *task.notes, ""]
    lines += [
        f"{plural(len(prompts), 'prompt')} as the model reads them, {asked}:",
        *map("  {!r}".format, prompts),
    ]
    if given.model is not None:
        from agent.verbs.table_tried import tried

        told, more, found = tried(task, given.model, tell)
        warnings += [*more, *prompt_table.unused(task, given.model)]
        lines, data = [*lines, "", *told], {**data, **found}
    data["warnings"] = warnings
    wrong = [f"could go wrong: {warning}" for warning in warnings]
    lines += ["", *(wrong or ["nothing was seen that could go wrong"])]
    return result.ToolResult(data=data, text="\n".join(lines))
