"""The plain path: prefill clean, then one hooked forward a token, one group at a time, on TransformerLens.

An implementation of `do(A)` and of greedy decoding that shares nothing with the fast engine but the replacement
table: TransformerLens' `TransformerBridge`, its own hook points, a growing cache. It is the oracle of the tests,
the engine behind `--engine plain`, and the second opinion that `verify` asks for.

Axes: group record token.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedTokenizerBase

from mecharule_ops.engine.ablation import Completions, Group, Outcomes
from mecharule_ops.errors import AblationStopped
from mecharule_ops.loading.model import Subject
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import Basis, BehaviourRecord, Intervention, Phase

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge

_HOOKS = {Basis.MLP_OUT: "hook_mlp_out", Basis.MLP_HIDDEN: "mlp.hook_post", Basis.ATTN_HEAD: "attn.hook_z"}


class ReferenceEngine:
    """The same interface as `AblationEngine`, slowly.

    `rows` bounds how many examples are decoded together. `evaluate` decodes whole completions too; its margins
    are those of every generated token in reach of the intervention.
    """

    def __init__(
        self,
        subject: Subject,
        task: Task,
        records: Sequence[BehaviourRecord],
        intervention: Intervention,
        replacement: ReplacementTable,
        *,
        rows: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._subject = subject
        self._task = task
        self._records = records
        self._intervention = intervention
        self._replacement = replacement
        self._rows = rows or 64
        self._should_stop = should_stop
        self._prompts = subject.encode([record.example.prompt for record in records])
        self._stop_ids = subject.stop_ids(task.stop)
        self._prefilled: tuple[tuple[int, ...], tuple[Tensor, Tensor, DynamicCache]] | None = None

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> Outcomes:
        """Labels after each group's ablation. Cost: up to `max_new_tokens` forwards a group and example."""
        found = self.completions(groups, examples)
        return Outcomes(labels=found.labels, margins=found.margins, example_forwards=found.example_forwards)

    def completions(self, groups: Sequence[Group], examples: Sequence[int]) -> Completions:
        """Every row's completion under each group's ablation; cost as `evaluate`."""
        tokens: list[list[tuple[int, ...]]] = [[()] * len(examples) for _ in groups]
        margins = np.full((len(groups), len(examples)), np.inf, np.float32)
        labels = np.zeros(margins.shape, dtype=bool)
        for begin in range(0, len(examples), self._rows):
            columns = range(begin, min(begin + self._rows, len(examples)))
            for index, group in enumerate(groups):
                if self._should_stop():
                    raise AblationStopped(
                        "the ablations were stopped between two batches; finished ones are kept"
                    )
                decoded = self._decode(group, [examples[column] for column in columns])
                for column, (completion, margin) in zip(columns, decoded, strict=True):
                    tokens[index][column] = completion
                    margins[index, column] = margin
                    example = self._records[examples[column]].example
                    labels[index, column] = self._task.label(example, self._subject.decode(completion))
        return Completions(
            tokens=tuple(tuple(row) for row in tokens),
            labels=labels,
            margins=margins,
            example_forwards=labels.size,
        )

    @cached_property
    def bridge(self) -> TransformerBridge:
        """A bridge over a second model that shares the subject's weights, because booting rewires the modules."""
        from transformer_lens.model_bridge import TransformerBridge

        twin = AutoModelForCausalLM.from_config(self._subject.hf.config, dtype=torch.float32)
        twin.load_state_dict(self._subject.hf.state_dict(), assign=True)
        return TransformerBridge.boot_transformers(
            f"local-{self._subject.hf.config.model_type}",
            hf_model=twin.eval(),
            tokenizer=_offline(self._subject.tokenizer),
            device=str(self._subject.device),
        )

    def _decode(self, group: Group, examples: Sequence[int]) -> list[tuple[tuple[int, ...], float]]:
        """(completion, smallest margin in reach) of each example, decoded together."""
        done: list[tuple[int, ...]] = [()] * len(examples)
        margins = [float("inf")] * len(examples)
        with torch.inference_mode():
            logits, mask, cache = self._prefill(group, examples)
            chosen = logits.argmax(-1, keepdim=True)
            for step in range(self._task.max_new_tokens):
                if step > 0:
                    mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
                    logits = self._step(group, chosen, torch.full((len(examples), 1), step), mask, cache)
                top = logits.topk(2, dim=-1)
                chosen = top.indices[:, :1]
                for row, completion in enumerate(done):
                    if completion and completion[-1] in self._stop_ids:
                        continue
                    done[row] = (*completion, int(chosen[row]))
                    if step > 0 or self._intervention.phase is not Phase.DECODE:
                        margins[row] = min(margins[row], float(top.values[row, 0] - top.values[row, 1]))
                if all(completion[-1] in self._stop_ids for completion in done):
                    break
        return list(zip(done, margins, strict=True))

    def _prefill(self, group: Group, examples: Sequence[int]) -> tuple[Tensor, Tensor, DynamicCache]:
        """(logits behind the prompts, mask, cache); a clean prefill is kept for the next group."""
        clean = self._intervention.phase is Phase.DECODE
        if clean and self._prefilled is not None and self._prefilled[0] == tuple(examples):
            return copy.deepcopy(self._prefilled[1])
        prompts = [self._prompts[example] for example in examples]
        longest = max(map(len, prompts))
        ids = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
        ones = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        mask = torch.tensor(ones, device=self._subject.device)
        cache = DynamicCache()
        offsets = torch.arange(1 - longest, 1).expand(len(prompts), -1)
        logits = self._step(group, torch.tensor(ids, device=mask.device), offsets, mask, cache)
        if clean:
            self._prefilled = tuple(examples), copy.deepcopy((logits, mask, cache))
        return logits, mask, cache

    def _step(self, group: Group, ids: Tensor, offsets: Tensor, mask: Tensor, cache: DynamicCache) -> Tensor:
        """Logits `[record, token]` behind the last of the fed `ids`."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        with self.bridge.hooks(fwd_hooks=self._hooks(group, offsets)):
            logits = self.bridge(
                ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
            )
        return logits[:, -1]

    def _hooks(self, group: Group, offsets: Tensor) -> list[tuple[str, Any]]:
        """One hook a layer that writes the replacements at intervened offsets."""
        whole = int(offsets.min())
        lowest = {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: whole}[self._intervention.phase]
        acted = offsets >= lowest
        if not acted.any():
            return []
        layers = sorted({neuron.layer for neuron in group})
        return [
            (
                f"blocks.{layer}.{_HOOKS[self._intervention.basis]}",
                self._hook(
                    layer, [neuron.channel for neuron in group if neuron.layer == layer], offsets, acted
                ),
            )
            for layer in layers
        ]

    def _hook(self, layer: int, channels: list[int], offsets: Tensor, acted: Tensor) -> Callable[..., Tensor]:
        values = self._replacement.value(layer, offsets).to(self._subject.device)
        acted = acted.to(self._subject.device)

        return partial(_replaced, channels=channels, values=values, acted=acted)


def _replaced(tensor: Tensor, hook: Any, *, channels: list[int], values: Tensor, acted: Tensor) -> Tensor:
    """The tensor with `channels` set to `values` at the positions `acted` on."""
    changed = tensor.clone()
    for channel in channels:
        changed[:, :, channel][acted] = values[:, :, channel][acted]
    return changed


def _offline(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A copy that the bridge does not look up by name: it is only ever handed token ids."""
    twin = copy.deepcopy(tokenizer)
    twin.init_kwargs |= {"name_or_path": "", "add_bos_token": True}
    return twin
