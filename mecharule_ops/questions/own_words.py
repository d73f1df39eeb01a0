"""What a question names of a run's own table: a column, a value of one, a word that only some prompts have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np

from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.tasks.prompt_table import PROMPT
from mecharule_ops.tasks.rival_families import MOST_VALUES

LEAST_LETTERS = 3
"""Of a column's name or value that a question is taken to name."""
_NAME = re.compile(r"(?<![\w.])[A-Z][\w-]{2,}(?![\w.])")


def few_valued(run: Run) -> dict[str, list[str | int]]:
    """The columns of the prompt with 2 to `MOST_VALUES` distinct values, texts or whole numbers.

    None of a task that has words of its own for what its columns hold.
    """
    task = run.task
    if getattr(task, "rival_families", None) is not None or task.concealed:
        return {}
    columns = run.observed.columns
    plain = {
        name: np.unique(columns[name]).tolist()
        for name in columns
        if name in task.prompt_columns - task.solution_columns and columns[name].dtype.kind in "iU"
    }
    return {name: values for name, values in plain.items() if 2 <= len(values) <= MOST_VALUES}


def own_words(run: Run, question: str, known: Collection[str] = ()) -> dict[str, str]:
    """Words of the question, each with the column or condition that they name; none for a name that no prompt has.

    Two values of one column name the column. A name that is a `known` word is taken for a column only as in `each
    number`, `by number` or `the column number`.
    """
    found = dict[str, str]()
    for name, values in few_valued(run).items():
        named = {said: value for value in values for said in _values(question, name, value, known)}
        several = len(set(named.values())) > 1
        found |= {said: name if several else f"{name} == {value!r}" for said, value in named.items()}
        for said in _columns(question, name, known):
            if not any(said in longer for longer in found):
                found[said] = name
    held = {word for said in found for word in said.split()}
    for match in _NAME.finditer(question) if PROMPT in run.observed.columns else ():
        said = match[0]
        if match.start() and said.lower() not in known and said not in held:
            condition = f"has_word({PROMPT}, {said!r})"
            holds = fires(run, condition)
            if not holds.all():
                found[said] = condition if holds.any() else ""
    return found


def _values(question: str, name: str, value: str | int, known: Collection[str]) -> Iterator[str]:
    """Where the question says that a column is a value; a word that can be no other's says so alone.

    Of a name those of it too: `African` is `Africa`.
    """
    plain = re.escape(str(value))
    of_column = (
        rf"(?:the\s+)?(?:column\s+)?{_spelt(name)}(?:\s+(?:is\s+|equals\s+)?|\s*==?\s*)['\"]?{plain}['\"]?"
    )
    alone = isinstance(value, str) and len(value) >= LEAST_LETTERS and value.lower() not in known
    people = "(?:i?a?ns?)?" if str(value).istitle() else ""
    pattern = rf"(?<!\w)(?:{of_column}{f'|{plain}{people}' if alone else ''})(?!\w|\.\w)"
    return (match[0] for match in re.finditer(pattern, question, re.IGNORECASE))


def _columns(question: str, name: str, known: Collection[str]) -> Iterator[str]:
    if len(name) < LEAST_LETTERS:
        return iter(())
    before = r"(?:each|every|by|per|which|what|the\s+column)\s+"
    optional = "" if name.lower() in known else "?"
    pattern = rf"(?<!\w)(?:{before}){optional}{_spelt(name)}(?!\w)"
    return (match[0] for match in re.finditer(pattern, question, re.IGNORECASE))


def _spelt(name: str) -> str:
    """A pattern for a column's name, also of many (`countries`), with blanks for its underscores."""
    stem, end = (name[:-1], "(?:y|ies)") if name.endswith("y") else (name, "(?:e?s)?")
    return re.escape(stem).replace("_", r"[_\s]") + end
