"""What a task offers: examples, how to read and label a completion, first predicates, and its own words.

Nothing here assumes numbers or an exact answer; most of a task over texts is ready in `text`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from mecharule_ops import numbers, types
from mecharule_ops.errors import UsageError
from mecharule_ops.tasks import column_words, text_pieces

OWN = -1
"""The id of a prompt of one's own, which is no example of a task and has no label."""


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A behaviour to explain. Implementations are frozen and hold settings only."""

    prefix: str = ""
    """Few-shot lines put before every question, last newline included."""
    chat_before = chat_behind = ""
    """What a model's chat template puts around few-shot lines and question; settings where a task has them."""
    skip_bad = False
    """Whether rows that cannot be used are left out; a setting where a task has rows."""
    max_new_tokens: int = 8
    """Greedy generation stops here."""
    stop: tuple[str, ...] = ("\n",)
    """Generation stops at the first token whose text contains one of these."""
    phase: types.Phase = types.Phase.DECODE
    """The intervention phase that suits the task."""
    name: ClassVar[str]
    """The word on the command line."""
    words: ClassVar[types.OutcomeWords] = types.RIGHT_OR_WRONG
    """What a person calls the two outcomes, and whether the first one is harm."""
    concealed: ClassVar[bool] = False
    """Whether prompts and completions are shown only to who asks for them (`--show-text`)."""
    between: ClassVar[str] = "\x1f"
    """Between the entries of a list in a description; no setting holds it."""
    cluster_column: ClassVar[str] = ""
    """The column whose values name items that are not independent (of one template); empty for none."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.default is not MISSING:
                object.__setattr__(self, each.name, _typed(each.name, getattr(self, each.name), each.default))
        if self.max_new_tokens < 1:
            raise UsageError(f"expected max_new_tokens of 1 or more, got {self.max_new_tokens}")

    @property
    @abstractmethod
    def prompt_columns(self) -> frozenset[str]:
        """Columns known before generation; every other column reads the output."""

    @property
    def solution_columns(self) -> frozenset[str]:
        """Of these the ones that tell the right answer, which a gate does not read unless it is told to."""
        return frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that every report of the task must say: where its items and its labels come from."""
        return ()

    @property
    def wording(self) -> Mapping[str, column_words.ColumnWords]:
        """What a person calls the columns."""
        return {**column_words.OF_EVERY_TASK, **column_words.COLUMNS.get(type(self).name, {})}

    @property
    def domain(self) -> column_words.Domain:
        """What the task makes possible; nothing is ruled out where it does not say.

        Items of a file are a sample of more: that none of them has a property is no reason to leave it unsaid.
        """
        return column_words.Domain()

    @abstractmethod
    def examples(self, count: int, generator: np.random.Generator) -> tuple[types.Example, ...]:
        """`count` distinct examples, or all there are; the same generator state gives the same ones."""

    def sifted(self, faults: Mapping[int, str], total: int) -> list[str]:
        """That of so many rows these, by place with what is wrong, are left out. Raises `UsageError` where none may."""
        first, bad = faults[min(faults)], f"{len(faults):,} of {numbers.plural(total, 'row')}"
        if not self.skip_bad or len(faults) == total:
            raise UsageError(f"{first}; {bad} cannot be used: mend them, or leave them out with --skip-bad")
        return [f"{bad} are left out, such as: {first}."]

    @abstractmethod
    def parse(self, example: types.Example, completion: str) -> Mapping[str, types.Value]:
        """Fields read off a completion; always the same keys with the same types."""

    @abstractmethod
    def label(self, example: types.Example, completion: str) -> bool:
        """B(x) of a finished completion."""

    def decide(self, example: types.Example, partial: str) -> bool | None:
        """The label every continuation of `partial` must get, or None while it can still go either way.

        A task that cannot know returns None always: then every completion is generated to its end.
        """
        return None

    @abstractmethod
    def read(self, text: str) -> types.Example:
        """The example of a typed prompt; the few-shot prefix may be left out.

        Raises `UsageError` when the text is none of the task's prompts.
        """

    def holding(self, words: str) -> types.Example:
        """Words as a prompt of one's own, `OWN`, which has no label: its fields are those of another example."""
        (other,) = self.examples(1, np.random.default_rng(0))
        return types.Example(id=OWN, prompt=self.around(self.within(words)), fields=other.fields)

    def around(self, question: str) -> str:
        """The prompt of a question, with all that stands around each."""
        return self.chat_before + self.prefix + question + self.chat_behind

    def within(self, prompt: str) -> str:
        """The question of a prompt."""
        return prompt.removeprefix(self.chat_before).removesuffix(self.chat_behind).removeprefix(self.prefix)

    def edits(self, example: types.Example) -> tuple[types.Example, ...]:
        """Examples of the task that differ from this one by one small edit, the smallest first; may be empty."""
        return ()

    @abstractmethod
    def sources(self, example: types.Example, completion: str) -> tuple[text_pieces.SourceSpan, ...]:
        """Named pieces of the prompt followed by a completion, end to end: what an attention head can read."""

    def columns(self, records: Sequence[types.BehaviourRecord]) -> types.Columns:
        """Columns over records, typed by their values: the prompt's fields, the output's fields, and their texts."""
        cells = [self.cells(record) for record in records]
        return {name: np.array([row[name] for row in cells]) for name in cells[0]} if cells else {}

    @abstractmethod
    def cells(self, record: types.BehaviourRecord) -> Mapping[str, types.Value]:
        """What the columns hold of one record."""

    @abstractmethod
    def seed_predicates(self) -> tuple[str, ...]:
        """The task's hand-written predicates in the predicate language (paper, §4.2)."""

    @abstractmethod
    def account_predicates(self) -> tuple[str, ...]:
        """A larger vocabulary over the prompt, from which one unit's flips are told apart."""

    def describe(self) -> Mapping[str, types.Value]:
        """Every setting that changes an example or a label; hashed into run and certificate."""
        return {
            "task": self.name,
            **{each.name: self._told(getattr(self, each.name)) for each in fields(self)},
        }

    def _told(self, setting: Any) -> types.Value:
        if isinstance(setting, tuple):
            return self.between.join(setting)
        return setting.value if isinstance(setting, types.Phase) else setting

    @classmethod
    def settings_of(cls, description: Mapping[str, types.Value]) -> Mapping[str, Any]:
        """Settings that `describe` told. Raises `KeyError` or `ValueError` on another text."""
        told = {field.name: description[field.name] for field in fields(cls) if field.name in description}
        lists = {field.name for field in fields(cls) if isinstance(field.default, tuple)}
        return {
            name: (str(value).split(cls.between) if value else []) if name in lists else value
            for name, value in told.items()
        }


def drawn(total: int, count: int, generator: np.random.Generator) -> Sequence[int]:
    """`count` distinct places of `total`, drawn uniformly, or all in order. Raises `UsageError` for less than none."""
    if count < 0:
        raise UsageError(f"expected a count of 0 or more, got {count}")
    return range(total) if count >= total else generator.choice(total, size=count, replace=False).tolist()


def check_template(template: str, *parts: str) -> None:
    """Raises `UsageError` for a template in which a part does not stand once."""
    if any(template.count(part) != 1 for part in parts):
        raise UsageError(f"expected a template with {', '.join(parts)} once each, got {template!r}")


def _typed(name: str, value: object, default: object) -> object:
    """A setting of its default's type. Raises `UsageError` on another type."""
    if isinstance(default, types.Phase):
        known = [phase.value for phase in types.Phase]
        if value not in known:
            raise UsageError(f"expected task.{name} of {', '.join(known)}, got {value!r}")
        return types.Phase(str(value))
    wanted = (int, float) if isinstance(default, float) else type(default)
    if isinstance(value, list) and isinstance(default, tuple):
        value = tuple(map(str, value))
    if not isinstance(value, wanted) or (isinstance(value, bool) and not isinstance(default, bool)):
        raise UsageError(f"expected task.{name} of type {type(default).__name__}, got {value!r}")
    return value
