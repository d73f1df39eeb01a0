"""A task names the pieces of its texts: end to end, by place and field, and each token has one of them."""

from pathlib import Path

import numpy as np
import pytest
from tiny_models import tiny_model
from toy_behaviour import toy

from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.token_sources import decoded_offsets, prompt_offsets, token_sources
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.prompt_table import PromptTable
from mecharule_ops.tasks.task_names import make_task
from mecharule_ops.types import BehaviourRecord, Example

ROOT = Path(__file__).parent.parent.parent


def pieces(task: Task, example: Example, completion: str) -> list[tuple[str, str]]:
    text = example.prompt + completion
    return [(span.name, text[span.start : span.stop]) for span in task.sources(example, completion)]


def test_an_arithmetic_question_by_hand() -> None:
    """Digits by place, the operator and every space by what follows it."""
    task = Arithmetic(prefix="1 + 1 = 2\n")
    assert pieces(task, task.example("+", 30, 7), " 37\n") == [
        *(("few-shot lines", "1 + 1 = 2\n"), ("a's tens digit", "3"), ("a's units digit", "0")),
        *(("space before operator", " "), ("operator", "+"), ("space before b", " ")),
        *(("b's units digit", "7"), ("space before =", " "), ("=", "=")),
        *(("space before the written answer", " "), ("the written answer's tens digit", "3")),
        *(("the written answer's units digit", "7"), ("after the written answer", "\n")),
    ]


@pytest.mark.parametrize("completion", ["", " ", "-5\n", " 1.5", "yes", " 1234567890123"])
def test_pieces_cover_every_text_end_to_end(completion: str) -> None:
    """Whatever the model wrote, every character has exactly one name."""
    sentiment = make_task(f"{ROOT / 'examples' / 'own_task.py'}:SentimentTask")
    for task in (Arithmetic(operators=("+", "-"), template="{a}{op}{b}="), make_task("hans"), sentiment):
        for example in task.examples(20, np.random.default_rng(0)):
            text = example.prompt + completion
            spans = task.sources(example, completion)
            assert "".join(text[span.start : span.stop] for span in spans) == text
            assert all(span.start < span.stop for span in spans)


def test_text_tasks_name_their_fields() -> None:
    """A hypothesis that is part of its premise is found in its own place."""
    task = PromptTable(file="hans", template="Premise: {premise}\nHypothesis: {hypothesis}\nyes or no?")
    row = {"premise": "the cat saw the dog", "hypothesis": "the cat", "heuristic": "x", "entailed": True}
    assert pieces(task, Example(id=0, prompt=task.question(row), fields=row), " yes") == [
        *(("template", "Premise: "), ("premise", "the cat saw the dog"), ("template", "\nHypothesis: ")),
        *(("hypothesis", "the cat"), ("template", "\nyes or no?"), ("the written answer", " yes")),
    ]


def test_tokens_are_named_by_the_pieces_they_hold() -> None:
    """One character a token: the beginning, then the pieces' own characters; completion tokens follow."""
    model, tokenizer = tiny_model("llama")
    subject = Subject(name="llama", directory=Path(), hf=model, tokenizer=tokenizer)
    task = Arithmetic()
    example, completion = task.example("+", 12, 5), " 17"
    tokens = tuple(tokenizer(completion, add_special_tokens=False)["input_ids"])
    record = BehaviourRecord(example=example, tokens=tokens, completion=completion, parsed={}, label=True)
    wanted = [name for name, text in pieces(task, example, completion) for _ in text]
    assert token_sources(subject, task, record) == ("beginning of text", *wanted)


def test_offsets_and_decoding_agree() -> None:
    """Two routes to the characters of a token: the tokenizer's offsets, and decoding token by token."""
    bench = toy("gpt2")
    for record in bench.records:
        (ids,) = bench.subject.encode([record.example.prompt])
        asked = prompt_offsets(bench.subject, record.example.prompt)
        assert list(asked) == list(decoded_offsets(bench.subject, ids))
