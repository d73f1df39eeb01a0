"""What a question names of a run's own table: a column, a value of one, a word that only some prompts have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np

from mecharule_ops.plain_text import last_line, what_differs
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.prompt_table import PROMPT
from mecharule_ops.tasks.rival_families import MOST_VALUES

LEAST_LETTERS = 3
"""Of a column's name or value that a question is taken to name."""
_NARROWS = (
    r"(?:on|for|in|among|about|of|than|and|or|flips?|breaks?|does|handles?|why|more|many|which|what|these|"
    r"those)\s+(?:the\s+)?"
)
"""Before a word that a question may use otherwise: that it is a value."""
_DENIED = r"(?:\b(?:not|except|but|without|non)|n't)[\s-]+(?:(?:an?|the|on|in|it)\s+)*"
_BECOMES = re.compile(
    r"\b(?:does|did|would|will)\s+(?:the\s+)?(?P<said>\w[\w' -]*?)\s+"
    r"(?:turn\s+into|become|change\s+(?:in)?to|end\s+up)\b",
    re.IGNORECASE,
)
"""What is asked to be told of one prompt."""
_QUOTES = "\"'“‘`"
_FEWEST_WORDS = 3
"""Of a question that holds a prompt."""
_ANSWERS = frozenset({"yes", "no", "true", "false"})
"""Values that a question may hold as words of its own: only with their column's name."""
_WORD = re.compile(r"(?<![\w.])[^\W\d][\w-]{2,}(?![\w]|\.\w)")


def has_own_words(task: Task) -> bool:
    """Whether questions may use the words of its table: not where the task has words of its own, or conceals them."""
    return getattr(task, "rival_families", None) is None and not task.concealed


def few_valued(run: Run) -> dict[str, list[str | int]]:
    """The columns of the prompt with 2 to `MOST_VALUES` distinct values, texts or whole numbers.

    None of a task that has words of its own for what its columns hold.
    """
    plain = {name: np.unique(values).tolist() for name, values in _own_columns(run, "iU")}
    return {name: values for name, values in plain.items() if 2 <= len(values) <= MOST_VALUES}


def yes_or_no(run: Run) -> tuple[str, ...]:
    """The columns of the prompt that are true of some records only, as `few_valued`."""
    return tuple(name for name, values in _own_columns(run, "b") if values.any() and not values.all())


def _own_columns(run: Run, kinds: str) -> Iterator[tuple[str, np.ndarray]]:
    """The columns of a table of one's own, with values of some kinds."""
    task = run.task
    if not has_own_words(task):
        return
    own = task.prompt_columns - task.solution_columns
    for name, values in run.observed.columns.items():
        if name in own and values.dtype.kind in kinds:
            yield name, values


def own_words(run: Run, question: str, known: Collection[str] = ()) -> dict[str, str]:
    """Words of the question, each with the column or condition that they name; none for a name that no prompt has.

    Two values of one column name the column. A name that is a `known` word is taken for a column only as in `each
    number`, `by number` or `the column number`. A word that is not known and stands in some prompts only, not in all,
    names these. What is denied has no condition.
    """
    found = dict[str, str]()
    for name, values in few_valued(run).items():
        named = {said: value for value in values for said in _values(question, name, value, known)}
        if named:  # Beside one value another needs no such word before it.
            named |= {said: value for value in values for said in _values(question, name, value, ())}
        several = len(set(named.values())) > 1
        found |= {said: name if several else f"{name} == {value!r}" for said, value in named.items()}
        for said in _columns(question, name, known):
            if not any(said in longer for longer in found):
                found[said] = name
    for name in yes_or_no(run):
        found |= _holds(question, name, known)
    found |= _of_prompts(run, question, known, found)
    return {said: "" if _is_denied(said, question) else named for said, named in found.items()}


def with_prompt_quoted(run: Run, question: str) -> str:
    """The question with the prompt that it holds in quotes: whole, or as examples show it, in two words or more.

    `what does fish turn into?` is of the prompt that alone holds the word; one with quotes stays as it is.
    """
    if len(question.split()) < _FEWEST_WORDS or any(sign in question for sign in _QUOTES if sign != "'"):
        return question
    lines, asked = (last_line(record.example.prompt) for record in run.records), question.lower()
    prompts = [line for line in lines if '"' not in line]
    parts = {*prompts, *(part.rstrip(":") for part in what_differs(prompts))}
    for text in sorted((part for part in parts if part.lower() in asked), key=len, reverse=True):
        if len(text.split()) > 1 and (found := _alone(text, question)):
            return f'{question[: found.start()]}"{text}"{question[found.end() :]}'
    of_one = _BECOMES.search(question)
    said = of_one["said"] if of_one else ""
    held = {prompt for prompt in prompts if said and said.lower() in prompt.lower() and _alone(said, prompt)}
    if of_one is None or len(held) != 1:
        return question
    return f'{question[: of_one.start("said")]}"{held.pop()}"{question[of_one.end("said") :]}'


def _alone(words: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)


def _is_denied(said: str, question: str) -> bool:
    """Whether the contrary is meant: `not a verb`, `all but verbs`."""
    return re.search(_DENIED + re.escape(said), question, re.IGNORECASE) is not None


def _holds(question: str, name: str, known: Collection[str]) -> dict[str, str]:
    """Where the question says that a column that is true or false is so: `where alive is false`, `not alive`."""
    value = r"(?:\s+(?:is|are|=+)(?P<nor>\s+not|n't)?\s+(?P<is>true|yes|false|no))?(?!\w)"
    said = rf"(?P<no>not\s+|un-?)?(?<!\w){_spelt(name)}{value}"
    found = dict[str, str]()
    for match in re.finditer(said, question, re.IGNORECASE):
        if match["is"] or name.lower() not in known:
            denials = [match["no"], match["nor"], (match["is"] or "").lower() in ("false", "no")]
            found[match[0]] = f"not {name}" if sum(map(bool, denials)) % 2 else name
    return found


def _of_prompts(run: Run, question: str, known: Collection[str], named: Collection[str]) -> dict[str, str]:
    """Words that only some prompts have: names with a capital, and others that no question of the program holds."""
    if not has_own_words(run.task) or PROMPT not in run.observed.columns:
        return {}
    found = dict[str, str]()
    held = {word for said in named for word in said.split()}
    for match in _WORD.finditer(question):
        said = match[0]
        is_quoted = question[: match.start()].endswith(tuple(_QUOTES))
        is_name = said[:1].isupper() and match.start() > 0
        if (said.lower() in known and not is_quoted) or said in held:
            continue
        condition = f"has_word({PROMPT}, {said!r})"
        holds = fires(run, condition)
        narrows = is_name or is_quoted or re.search(_NARROWS + "$", question[: match.start()], re.IGNORECASE)
        if narrows and holds.any() and not holds.all():
            found[said] = condition
        elif is_name and not holds.any():
            found[said] = ""
    return found


def _values(question: str, name: str, value: str | int, known: Collection[str]) -> Iterator[str]:
    """Where the question says that a column is a value; a word that can be no other's says so alone, others after `on`.

    Of a name those of it too: `African` is `Africa`; of others many of them.
    """
    plain = re.escape(str(value))
    of_column = (
        rf"(?:the\s+)?(?:column\s+)?{_spelt(name)}(?:\s+(?:is\s+|equals\s+)?|\s*==?\s*)['\"]?{plain}['\"]?"
    )
    people = "(?:i?a?ns?)?" if str(value).istitle() else "(?:e?s)?"
    pattern = rf"(?<!\w)(?P<said>{of_column})(?!\w|\.\w)"
    if isinstance(value, str) and len(value) >= LEAST_LETTERS and value.lower() not in _ANSWERS:
        before = _NARROWS if value.lower() in known else ""
        pattern = rf"(?:{pattern}|(?<!\w){before}(?P<alone>{plain}{people})(?!\w|\.\w))"
    for match in re.finditer(pattern, question, re.IGNORECASE):
        yield match["said"] or match["alone"]


def _columns(question: str, name: str, known: Collection[str]) -> Iterator[str]:
    if len(name) < LEAST_LETTERS:
        return iter(())
    before = r"(?:each|every|by|per|which|what|the\s+column)\s+"
    optional = "" if name.lower() in known else "?"
    pattern = rf"(?<!\w)(?:{before}){optional}{_spelt(name)}(?!\w)"
    return (match[0] for match in re.finditer(pattern, question, re.IGNORECASE))


def _spelt(name: str) -> str:
    """A pattern for a column's name, also of many (`countries`), with blanks for its underscores."""
    of_y = re.search(r"[^aeiou]y$", name) is not None
    stem, end = (name[:-1], "(?:y|ies)") if of_y else (name, "(?:e?s)?")
    return re.escape(stem).replace("_", r"[_\s]") + end
