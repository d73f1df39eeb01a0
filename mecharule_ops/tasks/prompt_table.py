"""A task that is a table and nothing else: a prompt a row, what answers it, and columns that rules may read.

A success is a greedy text that begins with the answer (`beginning`). It is said in one of three ways: a column
`answer`; a column `answers`, a list of which any is right; or `target` and `foil`, where only the target is right, and
the foil, like any other text, is a failure. Logits of target and foil are not compared: an outcome of an ablation is
the label of what the ablated model writes. All other columns are the vocabulary of rules.

A run keeps the hash of the rows, so that a table which changed meanwhile is refused; one that was moved is looked for
in the folder that the command runs in.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path
from mecharule_ops.tasks.beginning import begins, begins_with_any, telling
from mecharule_ops.tasks.from_file import Cell, raw_rows, typed_rows
from mecharule_ops.tasks.text import Row, TextTask, content_of
from mecharule_ops.tasks.text_pieces import SourceSpan
from mecharule_ops.types import Example, Phase, Value

EXAMPLE_SETS = ("ioi", "agreement", "greater-than")
"""Tables that come with the package; `benchmarks/example_sets.py` makes them."""
_SETS = Path(__file__).with_name("example_sets")
PROMPT = "prompt"
ANSWER, ANSWERS, TARGET, FOIL = "answer", "answers", "target", "foil"
OR = "|"
"""Between the entries of `answers`; none holds it."""
_COLUMN = re.compile(r"\{([^{}]+)\}")
_LONGEST = 64
"""Most tokens that are generated unless a setting says so."""
Write = Callable[[str], Sequence[tuple[int, str]]]
"""The ways in which a tokenizer writes a text: so many tokens, and what they read."""


@dataclass(frozen=True, kw_only=True)
class PromptTable(TextTask):
    """The rows of a table as prompts with answers."""

    unread = frozenset({ANSWERS})
    kind: ClassVar[str] = "table"
    """What a description calls it, whatever the file's name."""
    file: str = ""
    """The table, or the name of an example set."""
    template: str = ""
    """The prompt of a row, with its columns in braces; empty takes the column `prompt` as it stands."""
    max_new_tokens: int = 0
    """0: as many as the longest answer takes with what tells that its last word or number has ended (`telling`)."""
    phase: Phase = Phase.LAST_PROMPT
    """From the last prompt token on, since the first generated token may be the whole answer."""
    twins: bool = True
    """Whether typographic twins count as equal: curly quotes, the minus sign and other hyphens, no-break spaces."""
    content: str = ""
    """Hash of the rows that a run was begun with; empty takes any."""

    def __post_init__(self) -> None:
        if self.max_new_tokens == 0:
            object.__setattr__(self, "max_new_tokens", self.tokens_for(lambda answer: len(answer.encode())))
        TextTask.__post_init__(self)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The file's name without its ending, or that of the example set."""
        return Path(self.file).stem

    @property
    def path(self) -> Path:
        """Where the table lies: as named, else of that name in this folder."""
        if self.file in EXAMPLE_SETS:
            return _SETS / f"{self.file}.jsonl"
        named = typed_path(self.file)
        here = Path(named.name)
        return here if here.exists() and not named.exists() else named

    @property
    def notes(self) -> tuple[str, ...]:
        """How success is decided, and for an example set whose sentences it has."""
        made = "The sentences are templates of this tool, not a published set."
        return (self.graded, made) if self.file in EXAMPLE_SETS else (self.graded,)

    @property
    def graded(self) -> str:
        """A sentence: when a completion counts as a success."""
        if self.graded_by == TARGET:
            return (
                "Success is a greedy text that begins with the target; the foil, like any other text, is a failure, "
                "and logits are not compared."
            )
        return "Success is a greedy text that begins with the right answer, or one of them; any other is a failure."

    @cached_property
    def graded_by(self) -> str:
        """The column that says what is right: `answer`, `answers` or `target`. Raises `UsageError`."""
        names = self._raw[0]
        found = [name for name in (ANSWER, ANSWERS, TARGET) if name in names]
        if len(found) != 1 or (found == [TARGET] and FOIL not in names):
            raise UsageError(
                f"expected a column answer, answers, or target and foil, one of these alone, in {self.path}, got "
                f"{', '.join(names)}; rename or drop one"
            )
        return found[0]

    @property
    def solution_columns(self) -> frozenset[str]:
        """The columns that say what is right."""
        return frozenset({ANSWER, ANSWERS, TARGET, FOIL}) & self._raw[0].keys()

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns that the prompt is made of. Raises `UsageError` for a template that names none."""
        if self.template and not _COLUMN.search(self.template):
            raise UsageError(
                f"expected columns in braces, such as {{question}}, in the prompt template, got {self.template!r}"
            )
        return tuple(dict.fromkeys(_COLUMN.findall(self.template))) or (PROMPT,)

    def rows(self) -> Sequence[Row]:
        """The table's rows, its columns typed; a list of answers is one text. Raises `UsageError`."""
        return self._typed_rows

    def question(self, row: Row) -> str:
        """The prompt of one row, without the few-shot lines. Raises `KeyError` for a column that is not there."""
        return _COLUMN.sub(lambda part: str(row[part[1]]), self.template or f"{{{PROMPT}}}")

    @property
    def questions(self) -> tuple[str, ...]:
        """Every row's prompt without the few-shot lines, those that repeat another left out."""
        return tuple(self.question(row) for row in self._items)

    def success(self, row: Row, completion: str) -> bool:
        """Whether the completion begins with what is right."""
        return self.met(completion, self.right(row))

    def met(self, completion: str, answers: Sequence[str]) -> bool:
        """Whether the completion begins with one of these."""
        return any(begins(completion, answer, self.twins) for answer in answers)

    def right(self, row: Row) -> tuple[str, ...]:
        """The texts of which any is right."""
        text = str(row[self.graded_by])
        return tuple(text.split(OR)) if self.graded_by == ANSWERS else (text,)

    def decide(self, example: Example, partial: str) -> bool | None:
        """The label once no continuation can change it."""
        return begins_with_any(partial, self.right(example.fields), self.twins)

    def sources(self, example: Example, completion: str) -> tuple[SourceSpan, ...]:
        """Pieces by the names of columns other than the prompt itself and what is right."""
        hidden = {PROMPT, *self.solution_columns}
        fields = {name: value for name, value in example.fields.items() if name not in hidden}
        return super().sources(replace(example, fields=fields), completion)

    def describe(self) -> Mapping[str, Value]:
        """Every setting, and the hash of the rows."""
        return {**super().describe(), "task": self.kind}

    def tokens_for(self, length: Callable[[str], int]) -> int:
        """How many tokens to generate, given how many a text takes."""
        answers = {answer for row in self._typed_rows for answer in self.right(row)}
        return min(_LONGEST, max(length(answer.strip() + telling(answer)) for answer in answers))

    @cached_property
    def _raw(self) -> list[Mapping[str, Cell]]:
        return raw_rows(self.path)

    @cached_property
    def _typed_rows(self) -> tuple[Row, ...]:
        """The rows as settings want them. Raises `UsageError`."""
        names, where = self._raw[0], self.path
        if missing := [name for name in self.shown_columns if name not in names]:
            raise UsageError(
                f"expected a column {missing[0]!r} in {where}, got {', '.join(names)}; name others with "
                "--prompt-template"
            )
        raw = self._raw
        if self.graded_by == ANSWERS:
            raw = [
                {**row, ANSWERS: _joined(row[ANSWERS], number, where)} for number, row in enumerate(raw, 1)
            ]
        rows = typed_rows(raw, where, {*self.shown_columns, *self.solution_columns})
        for number, row in enumerate(rows, 1):
            if not all(text.strip() for text in self.right(row)):
                raise UsageError(
                    f"expected an answer in row {number}, column {self.graded_by!r} of {where}, got an empty one"
                )
            if self.graded_by == TARGET and begins(str(row[FOIL]), str(row[TARGET])):
                raise UsageError(
                    f"expected a foil that does not begin with its target in row {number} of {where}, got "
                    f"{row[FOIL]!r} and {row[TARGET]!r}"
                )
        return rows

    @cached_property
    def _items(self) -> tuple[Row, ...]:
        """The rows, of several with one question the first. Raises `UsageError` where they changed meanwhile."""
        items = super()._items
        if self.content and (found := content_of(items)) != self.content:
            raise UsageError(
                f"expected the rows that the run was begun with (content {self.content}) in {self.path}, got others "
                f"({found}); put the old ones back, or begin a new run"
            )
        return items


def prompt_settings(few_shot: str | None, template: str | None) -> Iterator[tuple[str, str]]:
    """What a command says about prompts, as `task.prefix` and `task.template`. Raises `UsageError`."""
    if few_shot is not None:
        try:
            text = typed_path(few_shot).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise UsageError(f"expected a text file of few-shot lines, got {few_shot!r}: {error}") from error
        if not text.strip():
            raise UsageError(f"expected few-shot lines in {few_shot!r}, it is empty")
        yield "task.prefix", text if text.endswith("\n") else text + "\n"
    if template is not None:
        yield "task.template", template.replace("\\n", "\n").replace("\\t", "\t")


def _joined(cell: Cell, number: int, where: Path) -> str:
    """A row's answers as one text; a text has them with `|` between already. Raises `UsageError` for none."""
    answers = [str(each) for each in cell] if isinstance(cell, list) else str(cell).split(OR)
    if not answers or any(OR in answer for answer in answers):
        raise UsageError(
            f"expected one answer or more, without {OR} in any, in row {number} of {where}, got {cell!r}"
        )
    return OR.join(answers)
