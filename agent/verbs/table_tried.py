"""How often a model is right on some rows of a table, and what of its texts and tokens could mislead a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.numbers import k_of_n, plural
from mecharule_ops.tasks.prompt_table import FOIL, TARGET, PromptTable
from mecharule_ops.tasks.table_check import SHOWN, expected_few
from mecharule_ops.tasks.text import Row
from mecharule_ops.types import BehaviourRecord, Example, Regime, Share
from tools.result import A_MINUTE, Tell

TRIED = 50
"""Rows that the model answers."""
_TIMED = 4
"""Rows after which the price of the others is known."""
_TEXT = 60
_ANSWERS = 3
"""Of several right answers so many are printed."""


TableTried = tuple[list[str], list[str], Mapping[str, object]]
"""What a model made of some rows: lines, warnings, data."""


def tried(task: PromptTable, model: str, yes: bool, tell: Tell) -> TableTried:
    """The model's answers on rows drawn at random. Cost: at most `TRIED` completions.

    Raises `UsageError` for a price above a minute that nobody said yes to, and what loading the model raises.
    """
    tell(f"loading {model}")
    subject = load(model, told=tell)
    examples = task.examples(TRIED, np.random.default_rng(0))
    records = _answered(task, subject, examples, yes, tell)
    right = Share(count=sum(record.label for record in records), n=len(records))
    lines = [f"{model} is right on {k_of_n(right)} rows drawn at random", *_texts(task, records)]
    data = {"model": model, "right": right.count, "of": right.n, "max_new_tokens": task.max_new_tokens}
    if task.graded_by == TARGET:
        neither = Share(count=sum(_is_neither(task, record) for record in records), n=len(records))
        lines.append(f"its text begins with neither target nor foil on {k_of_n(neither)}")
        data["neither"] = neither.count
    return lines, list(_warnings(task, subject, records, right)), data


def _answered(
    task: PromptTable, subject: Subject, examples: Sequence[Example], yes: bool, tell: Tell
) -> tuple[BehaviourRecord, ...]:
    """The labelled completions, the first few before the price is told."""
    began = time.monotonic()
    first = behaviour_on(task, subject, examples[:_TIMED]).records
    seconds = (time.monotonic() - began) / _TIMED * max(0, len(examples) - _TIMED)
    price = f"{len(examples) - len(first)} more completions, ~{seconds:.0f} s"
    if seconds > A_MINUTE and not yes:
        raise UsageError(f"expected --yes for a price above a minute, this costs {price}")
    tell(f"price: {price}")
    return (*first, *behaviour_on(task, subject, examples[_TIMED:]).records)


def _texts(task: PromptTable, records: Sequence[BehaviourRecord]) -> Iterator[str]:
    wrong_first = sorted(records, key=lambda record: record.label)
    for record in wrong_first[:SHOWN]:
        prompt = record.example.prompt.removeprefix(task.prefix)
        cut = "…" if len(prompt) > _TEXT else ""
        wanted = " or ".join(map(repr, task.right(record.example.fields)[:_ANSWERS]))
        yield f"  {cut}{prompt[-_TEXT:]!r} → {record.completion!r}, wanted {wanted} ({task.words.of(record.label)})"


def _is_neither(task: PromptTable, record: BehaviourRecord) -> bool:
    return not task.met(record.completion, [str(record.example.fields[part]) for part in (TARGET, FOIL)])


def _warnings(
    task: PromptTable, subject: Subject, records: Sequence[BehaviourRecord], right: Share
) -> Iterator[str]:
    if right.count in (0, right.n):
        only = "1→0" if right.count else "0→1"
        cure = "harder rows" if right.count else "few-shot lines (--few-shot FILE), or another template"
        yield f"the outcome is the same on all {right.n}, so a run can only search {only}; {cure} would change that"
    yield from expected_few(right, len(task.questions), Regime.BASELINE_POSITIVE, task.words.of(True))
    if begun := subject.begun([record.example.prompt for record in records]):
        yield f"{plural(begun, 'prompt')} begin with the token that the tokenizer puts in front anyway: it is read once"
    strict = replace(task, twins=False)
    if alike := [each for each in records if each.label and not strict.label(each.example, each.completion)]:
        yield (
            f"{plural(len(alike), 'text')}, such as {alike[0].completion!r}, are right since typographic twins count "
            "as equal (curly quotes, minus signs, no-break spaces); --set task.twins=false counts them as wrong"
        )
    if silent := sum(not record.completion.strip() for record in records):
        yield f"{silent} of {len(records)} texts are empty: the model ends the line at once; try few-shot lines"
    if task.graded_by == TARGET and (same := _sharing_first(subject, task.rows())):
        yield (
            f"{plural(same, 'row')} have a target and a foil with the same first token: they part only at a later one"
        )


def _sharing_first(subject: Subject, rows: Sequence[Row]) -> int:
    """Rows whose target and foil have one first token."""
    words = sorted({str(row[part]).strip() for row in rows for part in (TARGET, FOIL)})
    ids = subject.tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
    first = {word: token[0] for word, token in zip(words, ids, strict=True)}
    return sum(first[str(row[TARGET]).strip()] == first[str(row[FOIL]).strip()] for row in rows)
