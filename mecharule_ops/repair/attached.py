"""Exported gates on a plain Hugging Face model: inside the context its `generate` acts where a gate fires.

An input gate decides from the prompts, and everything is generated in one pass. A gate of the other families decides
from the model's own answer: everything is generated once as it is, and the rows on which a gate fires once more, from
the prompt's keys and values of the first time where the intervention leaves them as they are. A prompt that is none
of the task's is left alone. Rows may be padded on the left; caches and stopping are the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.generation import Tokens, select_rows
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.leads import leads_of_logits
from mecharule_ops.repair.acting_rows import ablating_rows
from mecharule_ops.repair.gate_folder import GateFile
from mecharule_ops.repair.gates import Acts
from mecharule_ops.repair.readings import decided, first_in_reach
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.rules.families import Family
from mecharule_ops.tasks.base import Task
from mecharule_ops.thresholds import COMPETITORS
from mecharule_ops.types import BehaviourRecord, Example, Phase

_REFUSED = ("assistant_model", "prompt_lookup_num_tokens", "prefill_chunk_size")


class LoadedGate:
    """Gates with their replacement values, ready to be attached to the model that they were made on."""

    def __init__(self, stated: GateFile, table: ReplacementTable, task: Task) -> None:
        self.stated, self.table, self.task = stated, table, task

    @contextmanager
    def attached(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> Iterator[PreTrainedModel]:
        """Inside, `model.generate` acts where a gate fires; afterwards the model is as before.

        Raises `ModelUnavailable` for weights or a tokenizer that the gates were not made on, or numbers other than
        float32, `UsageError` for a model in training.
        """
        if model.training:
            raise UsageError("expected a model in evaluation mode, got one in training; call model.eval()")
        subject = self._checked(model, tokenizer)
        acting_on = _Acting(subject, self)
        # Through `Any`: an instance's own attribute hides the method, and goes away again.
        opened: Any = model
        opened.generate = partial(acting_on.generate, opened.generate)
        try:
            yield model
        finally:
            del opened.generate

    def _checked(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Subject:
        if model.dtype is not torch.float32:
            raise ModelUnavailable(
                f"expected a model in float32, as the gates were tested, got {model.dtype}"
            )
        subject = Subject(name=self.stated.model, directory=Path(), hf=model, tokenizer=tokenizer)
        pairs = (
            ("weights", self.stated.model_hash, subject.model_hash),
            ("a tokenizer", self.stated.tokenizer_hash, subject.tokenizer_hash),
        )
        for what, wanted, here in pairs:
            if wanted != here:
                raise ModelUnavailable(
                    f"expected {what} {wanted} of {self.stated.model}, got {here}; the gates are of that model alone"
                )
        return subject

    @property
    def from_prompt(self) -> bool:
        """Whether every gate decides before the model answers."""
        return all(gate.family is Family.INPUT for gate in self.stated.gates)


@dataclass(frozen=True, slots=True, eq=False)
class _Acting:
    """`generate` of one attached model."""

    subject: Subject
    gate: LoadedGate

    def generate(self, plain: Callable[..., Any], inputs: Tensor | None = None, **given: Any) -> Any:
        """What the model's own `generate` gives, with units ablated where gates fire."""
        ids = given.pop("input_ids", inputs)
        if ids is None:
            raise UsageError("expected input_ids, got none; gates decide from the prompt's tokens")
        if refused := [name for name in _REFUSED if given.get(name) is not None]:
            raise UsageError(f"expected plain decoding under a gate, got {', '.join(refused)}; leave it out")
        prompts = _prompts(ids, given.get("attention_mask"))
        examples = self._examples(prompts)
        if self.gate.from_prompt:
            acts = self._acts(examples, [()] * len(prompts))
            with ablating_rows(self.subject, self.gate.table, prompts, ids.shape[1], acts):
                return plain(ids, **given)
        return self._twice(plain, ids, given, prompts, examples)

    def _twice(
        self,
        plain: Callable[..., Any],
        ids: Tensor,
        given: dict[str, Any],
        prompts: Sequence[Tokens],
        examples: Mapping[int, Example],
    ) -> Tensor:
        """Generated as it is, then the rows on which a gate fires once more."""
        if given.get("num_return_sequences", 1) != 1 or given.get("return_dict_in_generate"):
            raise UsageError("expected one sequence a prompt as a tensor: these gates decide from the answer")
        clean, logits, cache = self._clean(plain, ids, given)
        answers = [self._cut(row) for row in clean[:, ids.shape[1] :].tolist()]
        acts = self._acts(examples, answers, logits)
        rows = [row for row, units in enumerate(acts) if units]
        if not rows:
            return clean
        chosen = torch.tensor(rows, device=ids.device)
        if (mask := given.get("attention_mask")) is not None:
            given = {**given, "attention_mask": mask[chosen]}
        if cache is not None:
            select_rows(cache, chosen)
            cache.crop(ids.shape[1] - 1 - cache.get_seq_length())
            given = {**given, "past_key_values": cache}
        again, units = [prompts[row] for row in rows], [acts[row] for row in rows]
        with ablating_rows(self.subject, self.gate.table, again, ids.shape[1], units):
            changed = plain(ids[chosen], **given)
        padding = _padding(given, self.subject)
        length = max(clean.shape[1], changed.shape[1])
        merged = clean.new_full((len(clean), length), padding)
        merged[:, : clean.shape[1]] = clean
        merged[chosen] = padding
        merged[chosen, : changed.shape[1]] = changed
        return merged

    def _clean(
        self, plain: Callable[..., Any], ids: Tensor, given: dict[str, Any]
    ) -> tuple[Tensor, Tensor | None, DynamicCache | None]:
        """(tokens, logits of each answered token, keys and values), the last two where the decoding leaves them."""
        config = self.subject.hf.config
        if (
            given.get("num_beams", self.subject.hf.generation_config.num_beams) not in (None, 1)
            or given.get("use_cache") is False
            or given.get("past_key_values") is not None
            or getattr(config, "sliding_window", None) is not None
        ):
            return plain(ids, **given), None, None
        cache = DynamicCache()
        kept = plain(ids, past_key_values=cache, output_logits=True, return_dict_in_generate=True, **given)
        logits = torch.stack(kept.logits[: self.gate.task.max_new_tokens], 1)
        whole = self.gate.stated.phase is Phase.WHOLE
        return kept.sequences, logits, None if whole else cache

    def _cut(self, tokens: Sequence[int]) -> Tokens:
        """A row's answer as the task reads it: up to the first stop, at most so many tokens."""
        task = self.gate.task
        stops = self.subject.stop_ids(task.stop)
        kept = tuple(tokens[: task.max_new_tokens])
        end = next((place + 1 for place, token in enumerate(kept) if token in stops), len(kept))
        return kept[:end]

    def _examples(self, prompts: Sequence[Tokens]) -> dict[int, Example]:
        """The task's example of each row whose prompt is one of the task's."""
        read = dict[int, Example]()
        for row, prompt in enumerate(prompts):
            with suppress(UsageError):
                read[row] = self.gate.task.read(self.subject.decode(prompt))
        again = self.subject.encode([example.prompt for example in read.values()])
        return {
            row: example
            for (row, example), prompt in zip(read.items(), again, strict=True)
            if prompt == prompts[row]
        }

    def _acts(
        self,
        examples: Mapping[int, Example],
        answers: Sequence[Tokens],
        logits: Float[Tensor, "row position word"] | None = None,
    ) -> Acts:
        """The units that are ablated on each row; `logits` of the answers spare a forward over them."""
        task, table, stated, leads = self.gate.task, self.gate.table, self.gate.stated, None
        records = []
        for row, example in examples.items():
            text = self.subject.decode(answers[row])
            records.append(
                BehaviourRecord(
                    example=example,
                    tokens=answers[row],
                    completion=text,
                    parsed=task.parse(example, text),
                    label=False,
                )
            )
        if logits is not None and records:
            written = [record.tokens for record in records]
            leads = leads_of_logits(logits[list(examples)], written, first_in_reach(table), COMPETITORS)
        found = decided(self.subject, task, table, stated.gates, stated.policy, records, leads)
        units = dict(zip(examples, found, strict=True))
        return [units.get(row, ()) for row in range(len(answers))]


def _prompts(ids: Tensor, mask: Tensor | None) -> list[Tokens]:
    """Each row's prompt without padding. Raises `UsageError` for padding on the right."""
    if mask is None:
        return [tuple(row) for row in ids.tolist()]
    if not bool(mask[:, -1].all()):
        raise UsageError(
            "expected prompts padded on the left, got padding on the right; set padding_side='left'"
        )
    rows = zip(ids.tolist(), mask.bool().tolist(), strict=True)
    return [tuple(np.array(row)[np.array(kept)].tolist()) for row, kept in rows]


def _padding(given: dict[str, Any], subject: Subject) -> int:
    """What the model puts behind a row that has stopped."""
    config = given.get("generation_config") or subject.hf.generation_config
    found = given.get("pad_token_id", config.pad_token_id)
    if found is None:
        ends = given.get("eos_token_id", config.eos_token_id)
        found = ends[0] if isinstance(ends, list) else ends
    return int(found) if found is not None else 0
