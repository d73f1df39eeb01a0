"""How often a model is right on some rows of a table, and what of its texts and tokens could mislead a run."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.numbers import k_of_n, plural
from mecharule_ops.tasks.layout import FOIL, OR, TARGET
from mecharule_ops.tasks.prompt_table import PromptTable
from mecharule_ops.tasks.table_check import SHOWN, expected_few
from mecharule_ops.types import BehaviourRecord, Regime, Share
from tools.result import Tell

TRIED = 50
"""Rows that the model answers."""
_TEXT = 60
_ANSWERS = 3
"""Of several right answers so many are printed."""


def tried(task: PromptTable, model: str, tell: Tell) -> tuple[list[str], list[str], Mapping[str, object]]:
    """Lines, warnings and data of the model's answers on rows drawn at random. Cost: at most `TRIED` completions.

    Raises what loading the model raises.
    """
    tell(f"loading {model}, for {TRIED} completions")
    subject = load(model, told=tell)
    records = behaviour_on(task, subject, task.examples(TRIED, np.random.default_rng(0))).records
    right = Share(count=sum(record.label for record in records), n=len(records))
    lines = [f"{model} is right on {k_of_n(right)} rows drawn at random", *_texts(task, records)]
    data = {"model": model, "right": right.count, "of": right.n, "max_new_tokens": task.max_new_tokens}
    if task.graded_by == TARGET:
        sides = [[str(record.example.fields[part]) for part in (TARGET, FOIL)] for record in records]
        both = [OR.join(each).split(OR) for each in sides]
        met = [task.met(record.completion, words) for record, words in zip(records, both, strict=True)]
        neither = Share(count=met.count(False), n=len(records))
        lines.append(f"its text begins with neither target nor foil on {k_of_n(neither)}")
        data["neither"] = neither.count
    return lines, list(_warnings(task, subject, records, right)), data


def _texts(task: PromptTable, records: Sequence[BehaviourRecord]) -> Iterator[str]:
    wrong_first = sorted(records, key=lambda record: record.label)
    for record in wrong_first[:SHOWN]:
        prompt = task.within(record.example.prompt)
        cut = "…" if len(prompt) > _TEXT else ""
        wanted = " or ".join(map(repr, task.right(record.example.fields)[:_ANSWERS]))
        yield f"  {cut}{prompt[-_TEXT:]!r} → {record.completion!r}, wanted {wanted} ({task.words.of(record.label)})"


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
