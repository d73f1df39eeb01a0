"""A tiny random model with a made-up behaviour, and the slowest possible way to ablate it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_models import CHARACTERS, FAMILIES, tiny_model
from torch import nn
from torch.utils.hooks import RemovableHandle

from mecharule_ops.engine.ablation import AblationEngine, Group
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.mediation import first_change
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text import TextTask
from mecharule_ops.tasks.text_pieces import SourceSpan, end_to_end
from mecharule_ops.types import Basis, BehaviourRecord, Example, Intervention, Neuron, Phase, Value


def turning(family: str, basis: Basis) -> Phase:
    """A phase to test them in, so that pairs of architecture and basis take the phases in turn."""
    return tuple(Phase)[(FAMILIES.index(family) + tuple(Basis).index(basis)) % len(Phase)]


@dataclass(frozen=True, kw_only=True)
class ToyTask(TextTask):
    """The behaviour occurs when the codes of the second and third character have an even sum."""

    name = "toy"
    max_new_tokens: int = 6

    def rows(self) -> Sequence[Mapping[str, Value]]:
        return [{"text": "".join(CHARACTERS[3:])}]

    def question(self, row: Mapping[str, Value]) -> str:
        return str(row["text"])

    def success(self, row: Mapping[str, Value], completion: str) -> bool:
        return len(completion) >= 3 and (ord(completion[1]) + ord(completion[2])) % 2 == 0

    def examples(self, count: int, generator: np.random.Generator) -> tuple[Example, ...]:
        """Made-up texts, as many as are wanted."""
        texts = [
            "".join(generator.choice(list(CHARACTERS[3:]), size=generator.integers(3, 9)))
            for _ in range(count)
        ]
        return tuple(Example(id=index, prompt=text, fields={}) for index, text in enumerate(texts))

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

    def reference(self, table: ReplacementTable, **settings: Any) -> ReferenceEngine:
        return ReferenceEngine(self.subject, self.task, self.records, table.intervention, table, **settings)

    def copy(self) -> "Toy":
        """One whose weights may be changed."""
        hf, tokenizer = deepcopy(self.subject.hf), self.subject.tokenizer
        return replace(self, subject=Subject(name="copy", directory=Path(), hf=hf, tokenizer=tokenizer))

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


@dataclass(frozen=True, kw_only=True)
class Choosing(ToyTask):
    """One of several texts of two sides is written, some of which begin alike."""

    def examples(self, count: int, generator: np.random.Generator) -> tuple[Example, ...]:
        sets = ["a/b", "ab d/ac", "a ab/c +1", "12 14/13 25", "aab/aac"]
        made = [tuple(tuple(side.split()) for side in each.split("/")) for each in sets]
        found = enumerate(super().examples(count, generator))
        return tuple(replace(example, offered=made[at % len(made)]) for at, example in found)

    decide = Task.decide

    def label(self, example: Example, completion: str) -> bool:
        return len(completion) > 0 and ord(completion[-1]) % 2 == 0


@cache
def toy(family: str, count: int = 10, kind: type[ToyTask] = ToyTask) -> Toy:
    """Built once a test run."""
    model, tokenizer = tiny_model(family)
    subject, task = Subject(name=family, directory=Path(), hf=model, tokenizer=tokenizer), kind()
    examples = task.examples(count, np.random.default_rng(3))
    return Toy(subject=subject, task=task, records=behaviour_on(task, subject, examples).records)


def forward(subject: Subject, ids: Sequence[int]) -> torch.Tensor:
    """Logits `[position, token]` of one sequence: no cache, no batch, no padding."""
    tokens = torch.tensor([list(ids)])
    with torch.no_grad():
        return subject.hf(tokens, attention_mask=torch.ones_like(tokens)).logits[0]


def hooked(module: nn.Module, in_input: bool, change: Callable[[torch.Tensor], Any]) -> RemovableHandle:
    """A hook that gives `change` what a module reads or writes, and puts what comes back, if anything, in its place."""

    def before(_: nn.Module, inputs: tuple[Any, ...]) -> Any:
        changed = change(inputs[0])
        return None if changed is None else (changed, *inputs[1:])

    if in_input:
        return module.register_forward_pre_hook(before)
    return module.register_forward_hook(lambda _, inputs, output: change(output))


@contextmanager
def at_sites(
    subject: Subject, units: Collection[Neuron], change: Callable[[Neuron, torch.Tensor], torch.Tensor | None]
) -> Iterator[None]:
    """Inside, `change` gets the part `[position, scalar]` of its site that each unit is, and may give another."""
    with ExitStack() as hooks:
        for unit in units:
            module, in_input = subject.wiring.site(subject.wiring.blocks(subject.hf)[unit.layer], unit.basis)
            size = subject.unit_size(unit.basis)
            scalars = slice(unit.channel * size, (unit.channel + 1) * size)

            def changed(
                site: torch.Tensor, unit: Neuron = unit, scalars: slice = scalars
            ) -> torch.Tensor | None:
                part = change(unit, site[0, :, scalars])
                if part is None:
                    return None
                other = site.clone()
                other[0, :, scalars] = part
                return other

            hooks.enter_context(hooked(module, in_input, changed))
        yield


def first_offset(phase: Phase, prompt: int) -> int:
    """Where a phase begins; the last token of a prompt of so many is at 0."""
    return {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: 1 - prompt}[phase]


def moved(
    table: ReplacementTable, unit: Neuron, part: torch.Tensor, prompt: int, share: float = 1.0
) -> torch.Tensor:
    """A unit's values, moved a share of the way to its replacement where its phase intervenes."""
    offsets = torch.arange(len(part)) - prompt + 1
    values = table.value(unit.layer, offsets)[:, unit.channel].reshape(len(part), -1).to(part)
    acted = offsets >= first_offset(table.intervention.phase, prompt)
    return torch.where(acted[:, None], part + share * (values - part) if share != 1 else values, part)


def naive_completion(
    bench: Toy,
    table: ReplacementTable,
    group: Collection[Neuron],
    record: BehaviourRecord,
    held: Collection[Neuron] = (),
) -> tuple[int, ...]:
    """Greedy decoding of one prompt by a whole forward a token; held units keep their clean values up to the first
    token that differs."""
    subject = bench.subject
    (prompt,) = subject.encode([record.example.prompt])
    stop_ids, clean = subject.stop_ids(bench.task.stop), dict[Neuron, torch.Tensor]()
    completion: tuple[int, ...] = ()
    with at_sites(subject, held, lambda unit, part: clean.update({unit: part.clone()})):
        forward(subject, [*prompt, *record.tokens])

    def edited(unit: Neuron, part: torch.Tensor) -> torch.Tensor:
        if unit not in clean:
            return moved(table, unit, part, len(prompt))
        changed = first_change(record.tokens[: len(completion)], completion)
        same = len(prompt) + (len(completion) if changed is None else changed)
        return torch.cat([clean[unit][:same], part[same:]])

    with at_sites(subject, [*group, *held], edited):
        while len(completion) < bench.task.max_new_tokens and not set(completion[-1:]) & stop_ids:
            following = offered_letters(record, subject.decode(completion))
            if following is None:
                break
            logits = forward(subject, [*prompt, *completion])[-1]
            ids = [CHARACTERS.index(letter) for letter in following] or list(range(len(logits)))
            completion = (*completion, ids[int(logits[ids].argmax())])
    return completion


def offered_letters(record: BehaviourRecord, written: str) -> dict[str, set[int]] | None:
    """What may follow, one letter a token, and to which sides; empty for anything, None where the side is told."""
    found: dict[str, set[int]] = {}
    for side, texts in enumerate(record.example.offered):
        for text in texts:
            if text.startswith(written):
                found.setdefault(text[len(written) : len(written) + 1], set()).add(side)
    return None if len(set().union(*found.values())) == 1 else found


def told(bench: Toy) -> Any:
    """The prompts and completions of its records."""
    prompts = bench.subject.encode([record.example.prompt for record in bench.records])
    return prompts, [record.tokens for record in bench.records]
