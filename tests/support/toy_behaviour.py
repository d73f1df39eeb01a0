"""A tiny random model with a made-up behaviour, and the slowest possible way to ablate it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from tiny_models import CHARACTERS, FAMILIES, tiny_model

from mecharule_ops.engine.ablation import AblationEngine, Group
from mecharule_ops.loading.model import Subject
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text_pieces import SourceSpan, end_to_end
from mecharule_ops.types import (
    Basis,
    BehaviourRecord,
    Example,
    Intervention,
    Neuron,
    Phase,
    Value,
)


def turning(family: str, basis: Basis) -> Phase:
    """A phase to test them in, so that pairs of architecture and basis take the phases in turn."""
    return tuple(Phase)[(FAMILIES.index(family) + tuple(Basis).index(basis)) % len(Phase)]


class BareTask(Task):
    """What a made-up task leaves out: no columns, no predicates, no pieces of the text."""

    prompt_columns: ClassVar[frozenset[str]] = frozenset()

    def parse(self, example: Example, completion: str) -> Mapping[str, Value]:
        return {}

    def read(self, text: str) -> Example:
        return Example(id=0, prompt=text, fields={})

    def sources(self, example: Example, completion: str) -> tuple[SourceSpan, ...]:
        return ()

    def cells(self, record: BehaviourRecord) -> Mapping[str, Value]:
        return {}

    def seed_predicates(self) -> tuple[str, ...]:
        return ()

    def account_predicates(self) -> tuple[str, ...]:
        return ()

    def describe(self) -> Mapping[str, Value]:
        return {}

    @classmethod
    def settings_of(cls, description: Mapping[str, Value]) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, kw_only=True)
class ToyTask(BareTask):
    """The behaviour occurs when the codes of the second and third character have an even sum."""

    name = "toy"
    max_new_tokens: int = 6

    def examples(self, count: int, generator: np.random.Generator) -> tuple[Example, ...]:
        texts = [
            "".join(generator.choice(list(CHARACTERS[3:]), size=generator.integers(3, 9)))
            for _ in range(count)
        ]
        return tuple(Example(id=index, prompt=text, fields={}) for index, text in enumerate(texts))

    def label(self, example: Example, completion: str) -> bool:
        return len(completion) >= 3 and (ord(completion[1]) + ord(completion[2])) % 2 == 0

    def decide(self, example: Example, partial: str) -> bool | None:
        return self.label(example, partial) if len(partial) >= 3 else None

    def sources(self, example: Example, completion: str) -> tuple[SourceSpan, ...]:
        """The first half of the prompt, the second, and the answer."""
        half = len(example.prompt) // 2
        pieces = ("first half", example.prompt[:half]), ("second half", example.prompt[half:])
        return end_to_end([*pieces, ("answer", completion)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Toy:
    """A family's model with its behaviour on `count` prompts of different lengths."""

    subject: Subject
    task: ToyTask
    records: tuple[BehaviourRecord, ...]

    def table(self, intervention: Intervention) -> ReplacementTable:
        return replacement_table(self.subject, self.records, intervention)

    def engine(self, table: ReplacementTable, **settings: Any) -> AblationEngine:
        return AblationEngine(self.subject, self.task, self.records, table.intervention, table, **settings)

    def groups(self, basis: Basis, count: int, seed: int) -> list[Group]:
        """Random groups of one layer, and a last one that spans layers."""
        generator = np.random.default_rng(seed)
        width, depth = self.subject.width(basis), self.subject.n_layers
        found: list[Group] = []
        for _ in range(count - 1):
            layer, size = int(generator.integers(depth)), int(generator.integers(1, width // 2 + 1))
            chosen = generator.choice(width, size, replace=False)
            found.append(tuple(Neuron(basis, layer, int(channel)) for channel in chosen))
        across = {
            Neuron(basis, int(generator.integers(depth)), int(generator.integers(width))) for _ in range(5)
        }
        return [*found, tuple(sorted(across))]


@cache
def toy(family: str, count: int = 10) -> Toy:
    """Built once a test run."""
    model, tokenizer = tiny_model(family)
    subject = Subject(name=family, directory=Path(), hf=model, tokenizer=tokenizer)
    task = ToyTask()
    examples = task.examples(count, np.random.default_rng(3))
    prompts = subject.encode([example.prompt for example in examples])
    generation = subject.generate(prompts, task.max_new_tokens, subject.stop_ids(task.stop))
    records = []
    for example, tokens in zip(examples, generation.tokens, strict=True):
        text = subject.decode(tokens)
        label = task.label(example, text)
        records.append(
            BehaviourRecord(example=example, tokens=tokens, completion=text, parsed={}, label=label)
        )
    return Toy(subject=subject, task=task, records=tuple(records))


def naive_completion(
    bench: Toy, table: ReplacementTable, group: Collection[Neuron], record: BehaviourRecord
) -> tuple[int, ...]:
    """Greedy decoding of one prompt by a whole forward a token: no cache, no batch, no padding."""
    subject, phase = bench.subject, table.intervention.phase
    (prompt,) = subject.encode([record.example.prompt])
    stop_ids = subject.stop_ids(bench.task.stop)
    completion: tuple[int, ...] = ()
    while len(completion) < bench.task.max_new_tokens and not set(completion[-1:]) & stop_ids:
        ids = torch.tensor([[*prompt, *completion]])
        offsets = torch.arange(ids.shape[1]) - len(prompt) + 1
        acted = offsets >= {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: -len(prompt)}[phase]
        handles = [_hook(bench, table, neuron, offsets, acted) for neuron in group]
        try:
            with torch.no_grad():
                logits = subject.hf(ids, attention_mask=torch.ones_like(ids)).logits[0, -1]
        finally:
            for handle in handles:
                handle.remove()
        completion = (*completion, int(logits.argmax()))
    return completion


def _hook(
    bench: Toy, table: ReplacementTable, neuron: Neuron, offsets: torch.Tensor, acted: torch.Tensor
) -> Any:
    """Replaces one unit at the intervened positions."""
    block = bench.subject.wiring.blocks(bench.subject.hf)[neuron.layer]
    module, in_input = bench.subject.wiring.site(block, neuron.basis)
    size = bench.subject.unit_size(neuron.basis)
    values = table.value(neuron.layer, offsets)[:, neuron.channel].reshape(-1, size)

    def replaced(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone()
        changed[0, acted, neuron.channel * size : (neuron.channel + 1) * size] = values[acted]
        return changed

    if in_input:
        return module.register_forward_pre_hook(lambda module, inputs: (replaced(inputs[0]), *inputs[1:]))
    return module.register_forward_hook(lambda module, inputs, output: replaced(output))
