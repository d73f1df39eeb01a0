"""What a person calls the columns of a task, and the expressions over them that its vocabulary uses.

A task gives its own as `wording`; a table's columns go by their names. What every run has beside the task's columns,
such as the lead of a token, is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mecharule_ops.types import Columns, Value

Said = tuple[str, str]
"""What is said where a condition is true, and where it is false."""
DENIED = {
    **{"is": "is not", "has": "does not have", "carries": "does not carry", "matches": "does not match"},
    **{"stand": "do not stand", "add up to": "do not add up to"},
}
"""Verbs that are not denied as `begins`, *does not begin*, is."""


def both_ways(sentence: str) -> Said:
    """A sentence whose verb stands between stars, as it is and denied.

    >>> both_ways("it *ends* here")
    ('it ends here', 'it does not end here')
    """
    before, verb, after = sentence.split("*")
    return f"{before}{verb}{after}", f"{before}{DENIED.get(verb, f'does not {verb[:-1]}')}{after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWords:
    """The words of one column."""

    noun: str
    """`the right answer`: it *is* something, or has digits and words."""
    unit: str = ""
    """Of a column that counts: the noun *has* so many of these, `words`; empty for any other."""
    said: Said | None = None
    """The two sentences of a condition."""
    values: Mapping[str, Said] = field(default_factory=dict)
    """Values with sentences of their own."""
    whole: bool = False
    """Whether it holds whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """What the task makes possible."""

    whole: Columns | None = None
    """Prompt columns of every input that there is, a row each; None where these are too many, or not all known."""
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Least and largest value of columns of whole numbers, over all inputs."""
    plainer: Sequence[str] = ()
    """Predicates that a person grasps at once: one stands for another that is true of the same inputs."""

    @property
    def inputs(self) -> int:
        """How many are enumerated."""
        return 0 if self.whole is None else len(next(iter(self.whole.values())))


OF_EVERY_TASK: Mapping[str, ColumnWords] = {
    "prompt": ColumnWords(noun="the question"),
    "completion": ColumnWords(noun="the reply"),
    "first_word": ColumnWords(noun="the reply's first word"),
    "reply_words": ColumnWords(noun="the reply", unit="words", whole=True),
}
_OF_TOKENS = {
    "lead": "the lead at token {}",
    "runner_up": "the runner-up at token {}",
    "token": "the model's token {}",
    "drop": "the drop at token {}",
    "push": "the push at token {}",
}
_OF_RUNS: Mapping[str, ColumnWords] = {
    "least_lead": ColumnWords(noun="the least lead"),
    "least_at": ColumnWords(noun="the place of the least lead"),
    "least_token": ColumnWords(noun="the token of the least lead"),
    "least_runner_up": ColumnWords(noun="the runner-up of the least lead"),
    "drop_minus_lead": ColumnWords(noun="the drop less the lead"),
    "changes": ColumnWords(
        noun="the predicted change",
        said=("first order says that what the model writes changes", "first order says no change"),
    ),
    "changes_at": ColumnWords(noun="the place of the predicted change"),
    "changes_to": ColumnWords(noun="the token predicted instead"),
}


def column_words(wording: Mapping[str, ColumnWords], name: str) -> ColumnWords | None:
    """The words of a column: the task's, else those of a clean or a backward pass; None where it has none."""
    kind, _, place = name.rpartition("_")
    if kind in _OF_TOKENS and place.isdecimal() and name not in wording:
        return ColumnWords(noun=_OF_TOKENS[kind].format(place))
    return wording.get(name) or _OF_RUNS.get(name)


def table_words(columns: Mapping[str, Sequence[Value]]) -> dict[str, ColumnWords]:
    """Words of a table's columns, made from their names: `the column sentiment`."""
    return {name: _of_table(name, values) for name, values in columns.items()}


def _of_table(name: str, values: Sequence[Value]) -> ColumnWords:
    noun = f"the column {name}"
    kind = np.array(values[:1]).dtype.kind
    said = (f"{noun} is true", f"{noun} is false") if kind == "b" else None
    whole = kind == "i" and all(isinstance(value, int) for value in values)
    return ColumnWords(noun=noun, said=said, whole=whole)
