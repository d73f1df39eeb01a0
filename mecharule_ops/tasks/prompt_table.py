"""A task that is a table and nothing else: a prompt a row, what answers it, and columns that rules may read.

A success is a greedy text that begins with the answer (`beginning`). It is said in one of three ways: a column
`answer`; a column `answers`, a list of which any is right; or `target` and `foil`, where only the target is right, and
the foil, like any other text, is a failure. With the score `logits` targets and foils are all that the model may write:
a success is that it goes on to a target. All other columns are the vocabulary of rules.

A run keeps the hash of the rows, so that a table which changed meanwhile is refused; one that was moved is looked for
in the folder that the command runs in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mecharule_ops import plain_text, types
from mecharule_ops.errors import UsageError
from mecharule_ops.loading import model_names
from mecharule_ops.loading.shape import first_line, read_tokenizer
from mecharule_ops.numbers import plural
from mecharule_ops.predicates import language
from mecharule_ops.tasks import from_file, layout, text, text_pieces
from mecharule_ops.tasks.beginning import begins, begins_with_any, joined, telling
from mecharule_ops.tasks.layout import ANSWER, ANSWERS, COLUMN, FOIL, OR, PROMPT, TARGET, LaidTable, filled
from mecharule_ops.tasks.text import Row, content_of, spelt

_ASKED = "\ue000"
_CHAT = ("chat_before", "chat_behind")
_LONGEST = 64
"""Most tokens that are generated unless a setting says so."""
Write = Callable[[str], Sequence[tuple[int, str]]]
"""The ways in which a tokenizer writes a text: so many tokens, and what they read."""


@dataclass(frozen=True, kw_only=True)
class PromptTable(LaidTable):
    """The rows of a table as prompts with answers."""

    unread = frozenset({ANSWERS})
    kind: ClassVar[str] = "table"
    """What a description calls it, whatever the file's name."""
    max_new_tokens: int = 0
    """0: as many as the longest answer takes with what tells that its last word or number has ended (`telling`)."""
    phase: types.Phase = types.Phase.LAST_PROMPT
    """From the last prompt token on, since the first generated token may be the whole answer."""
    twins: bool = True
    """Whether typographic twins count as equal: curly quotes, the minus sign and other hyphens, no-break spaces."""
    chat_before: str = ""
    """What stands before the few-shot lines, as it is written: of a model's chat template, with a system message."""
    chat_behind: str = ""
    """What stands behind the question: the rest of that template."""
    score: str = ""
    """`logits`: targets and foils are all that the model chooses from; empty: its text is read."""

    def __post_init__(self) -> None:
        if self.max_new_tokens == 0:
            object.__setattr__(self, "max_new_tokens", self.tokens_for(lambda answer: len(answer.encode())))
        LaidTable.__post_init__(self)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The file's name without its ending, or that of the example set."""
        return Path(self.file).stem

    @property
    def notes(self) -> tuple[str, ...]:
        """How success is decided, how the table was read, and for an example set whose sentences it has."""
        made = ("The sentences are templates of this tool, not a published set.",)
        split = (f"Its split train is read; name another behind it: {self.file}#SPLIT.",)
        unnamed = self.file.startswith(from_file.HUB) and "#" not in self.file
        return (self.graded, *split * unnamed, *self._read[1], *made * (self.file in layout.EXAMPLE_SETS))

    @property
    def graded(self) -> str:
        """A sentence: when a completion counts as a success."""
        if self.score:
            return "Success is that the model prefers a target to all foils at the first token where they differ."
        if self.graded_by == TARGET:
            return "Success is a greedy text that begins with the target; --score logits compares it with the foil."
        return "Success is a greedy text that begins with the right answer, or one of them; any other is a failure."

    @property
    def graded_by(self) -> str:
        """The column that says what is right: `answer`, `answers` or `target`. Raises `UsageError`."""
        return next(name for name in (ANSWER, ANSWERS, TARGET) if name in self._laid.rows[0])

    @property
    def solution_columns(self) -> frozenset[str]:
        """The columns that say what is right."""
        return frozenset({ANSWER, ANSWERS, TARGET, FOIL}) & self._laid.rows[0].keys()

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns that the prompt is made of."""
        return tuple(dict.fromkeys(COLUMN.findall(self._laid.template)))

    def rows(self) -> Sequence[Row]:
        """The table's records, its columns typed; several answers are one text. Raises `UsageError`."""
        return self._read[0]

    def question(self, row: Row) -> str:
        """The prompt of one row, without what stands around all."""
        return filled(self._laid.template, row)

    @property
    def questions(self) -> tuple[str, ...]:
        """Every record's prompt without the few-shot lines."""
        return tuple(self.chat_before + self.question(row) + self.chat_behind for row in self._items)

    def success(self, row: Row, completion: str) -> bool:
        """Whether the completion begins with what is right, or is what was preferred."""
        if self.score:
            return bool(self._prefers(row, completion, True))
        return self.met(completion, self.right(row))

    def met(self, completion: str, answers: Sequence[str]) -> bool:
        """Whether the completion begins with one of these."""
        return any(begins(completion, answer, self.twins) for answer in answers)

    def right(self, row: Row) -> tuple[str, ...]:
        """The texts of which any is right."""
        text = str(row[self.graded_by])
        return (text,) if self.graded_by == ANSWER else tuple(text.split(OR))

    def decide(self, example: types.Example, partial: str) -> bool | None:
        """The label once no continuation can change it."""
        if self.score:
            return self._prefers(example.fields, partial, False)
        return begins_with_any(partial, self.right(example.fields), self.twins)

    def offered(self, row: Row) -> tuple[tuple[str, ...], ...]:
        """Targets, then foils, as they stand behind the prompt, where these are all that is written."""
        before, sides = self.question(row) + self.chat_behind, (TARGET, FOIL) if self.score else ()
        return tuple(tuple(joined(before, word) for word in str(row[side]).split(OR)) for side in sides)

    def _prefers(self, row: Row, text: str, ended: bool) -> bool | None:
        """Whether a text is, or can but become, a target; None while it may become either."""
        text, sides = text.lstrip(), zip((True, False), self.offered(row), strict=True)
        words = {word.strip(): is_right for is_right, side in sides for word in side}
        open_to = {is_right for word, is_right in words.items() if word.startswith(text)}
        return words[text] if ended and text in words else open_to.pop() if len(open_to) == 1 else None

    def _example(self, place: int) -> types.Example:
        return replace(super()._example(place), offered=self.offered(self._items[place]))

    def sources(self, example: types.Example, completion: str) -> tuple[text_pieces.SourceSpan, ...]:
        """Pieces by the names of columns other than the prompt itself and what is right."""
        hidden = {PROMPT, *self.solution_columns}
        fields = {name: value for name, value in example.fields.items() if name not in hidden}
        return super().sources(replace(example, fields=fields), completion)

    def describe(self) -> Mapping[str, types.Value]:
        """Every setting, of how a table is read those that were chosen, and the hash of the rows."""
        told = {**super().describe(), "task": self.kind}
        return {name: value for name, value in told.items() if value or name not in READING}

    def tokens_for(self, length: Callable[[str], int]) -> int:
        """How many tokens to generate, given how many a text takes."""
        answers = {word for row in self.rows() for word in chain(self.right(row), *self.offered(row))}
        return min(_LONGEST, max((length(word.strip() + telling(word)) for word in answers), default=1))

    @cached_property
    def _read(self) -> tuple[tuple[Row, ...], tuple[str, ...]]:
        """(rows as settings want them, what was made of the file). Raises `UsageError`."""
        laid, told = self._laid, list(self._laid.told)
        rows = from_file.typed_rows(laid.rows, {*self.shown_columns, *self.solution_columns})
        if self.score and (self.score, self.graded_by) != ("logits", TARGET):
            raise UsageError(f"expected logits of target and foil, got {self.score} of {self.graded_by}")
        if self.graded_by != TARGET:
            return rows, tuple(told)
        numbered = list(zip(laid.numbers, rows, strict=True))
        wanted = "a foil that does not begin with its target"
        wanted = "a target and a foil of which neither begins the other" if self.score else wanted
        faults = {
            number: f"expected {wanted} in row {number} of {self.path}, got {row[FOIL]!r} and {row[TARGET]!r}"
            for number, row in numbered
            for both in [product(*(str(row[side]).split(OR) for side in (FOIL, TARGET)))]
            if any(begins(foil, target) or (self.score and begins(target, foil)) for foil, target in both)
        }
        told += self.sifted(faults, len(rows)) if faults else []
        return tuple(row for number, row in numbered if number not in faults), tuple(told)

    @cached_property
    def _laid(self) -> layout.Laid:
        """Of the rows where the condition holds. Raises `UsageError` where it does not read, or holds nowhere."""
        if not self.where:
            return self._lay()
        single = self._lay(apart=True)
        as_written = {*COLUMN.findall(single.template), ANSWER, ANSWERS, TARGET, FOIL}
        rows = from_file.typed_rows(single.rows, as_written)
        columns = {spelt(name): np.array([row[name] for row in rows]) for name in rows[0]}
        columns[PROMPT] = np.array([filled(single.template, row) for row in rows])
        held = language.evaluate(language.parse_predicate(self.where, language.schema_of(columns)), columns)
        if not held.any():
            raise UsageError(f"expected rows of {self.path} where {self.where}, got none of {len(rows):,}")
        laid = self._lay({*compress(single.numbers, held.tolist())})
        used = f"{held.sum():,} of {plural(len(rows), 'record')} are used, those where {self.where}."
        return laid._replace(told=[*laid.told, used])

    @cached_property
    def _items(self) -> tuple[Row, ...]:
        """The rows, of several with one question the first. Raises `UsageError` where they changed meanwhile."""
        # `super()` would keep them under this name before they are checked.
        items = text.TextTask._items.func(self)  # type: ignore[attr-defined]
        if self.content and (found := content_of(items)) != self.content:
            raise UsageError(
                f"expected the rows that the run was begun with (content {self.content}) in {self.path}, got others "
                f"({found}); put the old ones back, or begin a new run"
            )
        return items


READING = {*_CHAT, "score", *LaidTable.__annotations__} - {"file", "template", "content"}
"""Settings of how a table is read."""


def prompt_settings(
    few_shot: str | None = None,
    prompt_template: str | None = None,
    chat_template: bool = False,
    system: str | None = None,
    model: Any = None,
    **reading: Any,
) -> Iterator[tuple[str, Any]]:
    r"""What a command says about prompts and how a table is read, as settings of the task.

    `few_shot` names a file whose lines stand before every prompt; in `prompt_template` a typed `\n` ends a line.
    The template of the `model` stands around both. Raises `UsageError`.
    """
    yield from ((f"task.{name}", value) for name, value in reading.items() if value)
    if any(str(value).startswith(layout.TOKEN) for value in reading.values()):
        yield "task.tokenizer", model or ""
    template = prompt_template and prompt_template.replace("\\n", "\n").replace("\\t", "\t")
    if few_shot is not None:
        try:
            text = from_file.decoded_text(plain_text.typed_path(few_shot).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"expected a text file of few-shot lines, got {few_shot!r}: {error}") from error
        if not text.strip():
            raise UsageError(f"expected few-shot lines in {few_shot!r}, it is empty")
        yield "task.prefix", text if text.endswith("\n") else text + "\n"
    if template:
        yield "task.template", template
    if chat_template or system is not None:
        yield from zip(map("task.{}".format, _CHAT), chat_around(model, system), strict=True)


def chat_around(model: str | None, system: str | None = None) -> tuple[str, str]:
    """What a model's chat template puts before and behind what a person asks. Raises `UsageError` without one."""
    tokenizer = read_tokenizer(model_names.resolve(model or ""))
    said = [{"role": "user", "content": _ASKED}]
    if system is not None:
        said.insert(0, {"role": "system", "content": system})
    try:
        text = tokenizer.apply_chat_template(
            said, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        before, behind = str(text).split(_ASKED)
    except Exception as error:  # A template is a program of its author.
        raise UsageError(f"expected a chat template of {model} for this, got {first_line(error)}") from error
    return before, behind


def unused(task: PromptTable, model: str) -> Iterator[str]:
    """That the model has a chat template and the prompts do not end with it, in a sentence."""
    with suppress(UsageError):
        if not task.questions[0].endswith(chat_around(model)[1]):
            yield f"{model} has a chat template, which the prompts do not use; --chat-template puts it around them"
