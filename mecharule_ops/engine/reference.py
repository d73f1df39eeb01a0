"""The plain path: prefill clean, then one hooked forward a token, one group at a time, on TransformerLens.

An implementation of `do(A)` and of greedy decoding that shares nothing with the fast engine but the replacement
table: TransformerLens' `TransformerBridge`, its own hook points, a growing cache. It is the oracle of the tests,
the engine behind `--engine plain`, and the second opinion that `verify` asks for.

Axes: group record token.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedTokenizerBase

from mecharule_ops import errors, plain_text
from mecharule_ops.engine.ablation import Group, check_numbers
from mecharule_ops.engine.outcomes import Completions, Outcomes
from mecharule_ops.loading import generation, model, placement
from mecharule_ops.loading.offers import Offer, among
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import Basis, BehaviourRecord, Intervention, Neuron, Phase

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Held:
    """Units held at what they were in a clean decoding of the same examples."""

    channels: dict[str, list[int]]
    """By hook name."""
    steps: list[dict[str, Tensor]] = field(default_factory=list)
    """What the clean decoding had at these hooks: the prompts first, then one token a step."""
    completions: list[tuple[int, ...]] = field(default_factory=list)
    """The clean completions."""


class ReferenceEngine:
    """The same interface as `AblationEngine`, slowly.

    `rows` bounds how many examples are decoded together. `evaluate` decodes whole completions too; its margins
    are those of every generated token in reach of the intervention.
    """

    def __init__(
        self,
        subject: model.Subject,
        task: Task,
        records: Sequence[BehaviourRecord],
        intervention: Intervention,
        replacement: ReplacementTable,
        *,
        rows: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        given: Mapping[Neuron, ReplacementTable] | None = None,
    ) -> None:
        """Units that the model is `given` without are replaced by their own tables in every pass, clean ones too."""
        self._subject = subject
        self._given = given or {}
        # TransformerLens computes on one device, so that weights on several cards are brought to the processor.
        self._device = subject.device if len(subject.devices) == 1 else torch.device("cpu")
        self._task = task
        self._records = records
        self._intervention = intervention
        self._replacement = replacement
        self._rows = rows or 64
        self._should_stop = should_stop
        self._prompts = subject.encode([record.example.prompt for record in records])
        self._stop_ids = subject.stop_ids(task.stop)
        self._offers = subject.offers(record.example for record in records)
        self._prefilled: tuple[tuple[int, ...], tuple[Tensor, Tensor, DynamicCache]] | None = None

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> Outcomes:
        """Labels after each group's ablation. Cost: up to `max_new_tokens` forwards a group and example."""
        return self.completions(groups, examples)

    def completions(
        self, groups: Sequence[Group], examples: Sequence[int], held: Sequence[Group] = ()
    ) -> Completions:
        """Every row's completion under each group's ablation; cost as `evaluate`.

        `held` is empty or names for each group further units, of any basis, held at their clean values while the
        text is the clean completion's; that costs a clean decoding of the examples once more.
        """
        assert not held or len(held) == len(groups), (len(held), len(groups))
        tokens: list[list[tuple[int, ...]]] = [[()] * len(examples) for _ in groups]
        margins = np.full((len(groups), len(examples)), np.inf, np.float32)
        labels = np.zeros(margins.shape, dtype=bool)
        for begin in range(0, len(examples), self._rows):
            columns = range(begin, min(begin + self._rows, len(examples)))
            for index, group in enumerate(groups):
                if self._should_stop():
                    raise errors.AblationStopped(
                        "the ablations were stopped between two batches; finished ones are kept"
                    )
                chosen = [examples[column] for column in columns]
                kept = self._clean(held[index], chosen) if held and held[index] else None
                decoded = self._decode(group, chosen, kept)
                leads = np.array([[margin for _, margin in decoded]])
                check_numbers(leads, self._subject, [group], [self._records[example] for example in chosen])
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
        """A bridge over a second model that shares the subject's weights, because booting rewires the modules.

        Weights in a lower type are widened for it. Raises `ModelUnavailable` when that has no room.
        """
        from transformer_lens.model_bridge import TransformerBridge

        state, device = self._subject.hf.state_dict(), self._device
        new = [one for one in state.values() if one.dtype != torch.float32 or one.device != device]
        wider, free = sum(4 * one.numel() for one in new), placement.free_bytes(device)
        if wider > free:
            raise errors.ModelUnavailable(
                f"expected {wider / 1e9:.2f} GB free on {device} to widen the weights for the reference "
                f"path, got {free / 1e9:.2f} GB; free some or choose another --device"
            )
        twin = AutoModelForCausalLM.from_config(self._subject.hf.config, dtype=torch.float32)
        twin.load_state_dict({name: tensor.to(device).float() for name, tensor in state.items()}, assign=True)
        return TransformerBridge.boot_transformers(
            f"local-{self._subject.hf.config.model_type}",
            hf_model=twin.eval(),
            tokenizer=_offline(self._subject.tokenizer),
            device=str(device),
        )

    def _clean(self, units: Group, examples: Sequence[int]) -> _Held:
        """The units' values in a clean decoding of the examples."""
        channels: dict[str, list[int]] = {}
        for neuron in units:
            channels.setdefault(_hook_name(neuron.basis, neuron.layer), []).append(neuron.channel)
        held = _Held(channels=channels)
        held.completions.extend(completion for completion, _ in self._decode((), examples, held))
        return held

    def _decode(
        self, group: Group, examples: Sequence[int], held: _Held | None = None
    ) -> list[tuple[tuple[int, ...], float]]:
        """(completion, smallest margin in reach) of each example, decoded together.

        `held` is filled while it holds no clean completions yet, and held to once it does.
        """
        done: list[tuple[int, ...]] = [()] * len(examples)
        margins = [float("inf")] * len(examples)
        with torch.inference_mode():
            logits, mask, cache = self._prefill(group, examples, held)
            for step in range(self._task.max_new_tokens):
                if step > 0:
                    mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
                    offsets = torch.full((len(examples), 1), step)
                    hooks = self._holding(held, step, done)
                    last = torch.tensor([text[-1:] for text in done], device=self._device)
                    logits = self._step(group, last, offsets, mask, cache, hooks)
                offers = [self._offers[example] for example in examples]
                logits = among(logits, list(map(Offer.next_tokens, offers, done)))
                # Of tokens that tie the first is taken, as in plain decoding; `topk` may name any of them.
                chosen, best = logits.argmax(-1), logits.topk(2, dim=-1).values
                for row, completion in enumerate(done):
                    if self._ended(examples[row], completion):
                        continue
                    done[row] = (*completion, int(chosen[row]))
                    if step > 0 or self._intervention.phase is not Phase.DECODE:
                        margins[row] = float(np.minimum(margins[row], float(best[row, 0] - best[row, 1])))
                if all(map(self._ended, examples, done)):
                    break
        return list(zip(done, margins, strict=True))

    def _ended(self, example: int, text: tuple[int, ...]) -> bool:
        return not self._stop_ids.isdisjoint(text[-1:]) or self._offers[example].is_settled(text)

    def _prefill(
        self, group: Group, examples: Sequence[int], held: _Held | None
    ) -> tuple[Tensor, Tensor, DynamicCache]:
        """(logits behind the prompts, mask, cache); a clean prefill is kept for the next group.

        What all prompts begin with is read once where it is clean, and moved in each row behind its padding.
        """
        clean = self._intervention.phase is Phase.DECODE
        if clean and held is not None and not held.completions:
            held.steps.append({})
        if clean and self._prefilled is not None and self._prefilled[0] == tuple(examples):
            return copy.deepcopy(self._prefilled[1])
        prompts = [self._prompts[example] for example in examples]
        longest = max(map(len, prompts))
        gaps = [longest - len(prompt) for prompt in prompts]
        padded = [[0] * gap + list(prompt) for gap, prompt in zip(gaps, prompts, strict=True)]
        ones = [[0] * gap + [1] * (longest - gap) for gap in gaps]
        ids, mask = (torch.tensor(rows, device=self._device) for rows in (padded, ones))
        cache, offsets = DynamicCache(), torch.arange(1 - longest, 1).expand(len(prompts), -1)
        shared = plain_text.alike([prompt[:-1] for prompt in prompts]) if clean else 0
        if shared:
            once, row = DynamicCache(), [gaps.index(0)]
            self._step(group, ids[row, :shared], offsets[row, :shared], mask[row, :shared], once, ())
            for layer, kept in enumerate(generation.contents(once)):
                keys, values = (torch.cat([tensor.roll(gap, 2) for gap in gaps]) for tensor in kept)
                cache.update(keys, values, layer)
        hooks = [] if clean else self._holding(held, 0, [()] * len(examples))
        logits = self._step(group, ids[:, shared:], offsets[:, shared:], mask, cache, hooks)
        if clean:
            self._prefilled = tuple(examples), copy.deepcopy((logits, mask, cache))
        return logits, mask, cache

    def _step(
        self,
        group: Group,
        ids: Tensor,
        offsets: Tensor,
        mask: Tensor,
        cache: DynamicCache,
        hooks: Sequence[tuple[str, Any]],
    ) -> Tensor:
        """Logits `[record, token]` behind the last of the fed `ids`."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        given = {"attention_mask": mask, "position_ids": positions, "past_key_values": cache}
        with self.bridge.hooks(fwd_hooks=[*self._hooks(group, offsets), *hooks]):
            logits = self.bridge(ids, **given, use_cache=True, logits_to_keep=1)
        return logits[:, -1]

    def _holding(
        self, held: _Held | None, step: int, done: Sequence[tuple[int, ...]]
    ) -> list[tuple[str, Any]]:
        """Hooks that note the clean values, or that write them into the rows whose text so far is the clean one."""
        if held is None:
            return []
        if not held.completions:
            held.steps.append({})
            return [(name, partial(_noted, into=held.steps[step], name=name)) for name in held.channels]
        clean = [
            completion[: len(text)] == text for completion, text in zip(held.completions, done, strict=True)
        ]
        rows = torch.tensor(clean, device=self._device)
        if step >= len(held.steps) or not rows.any():
            return []
        return [
            (name, partial(_held_back, channels=channels, values=held.steps[step][name], rows=rows))
            for name, channels in held.channels.items()
        ]

    def _hooks(self, group: Group, offsets: Tensor) -> list[tuple[str, Any]]:
        """One hook a unit given and one a layer of the group, which write the replacements at intervened offsets."""
        whole = int(offsets.min())
        lowest = {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: whole}[self._intervention.phase]
        acted = (offsets >= lowest).to(self._device)
        if not acted.any():
            return []
        channels: dict[int, list[int]] = {}
        for neuron in group:
            channels.setdefault(neuron.layer, []).append(neuron.channel)
        written = [(table, unit.layer, [unit.channel]) for unit, table in self._given.items()]
        written += [(self._replacement, layer, chosen) for layer, chosen in channels.items()]
        hooks = []
        for table, layer, chosen in written:
            values = table.value(layer, offsets).to(self._device)
            write = partial(_replaced, channels=chosen, values=values, acted=acted)
            hooks.append((_hook_name(table.intervention.basis, layer), write))
        return hooks


def _hook_name(basis: Basis, layer: int) -> str:
    return f"blocks.{layer}.{basis.row.hook}"


def _noted(tensor: Tensor, hook: Any, *, into: dict[str, Tensor], name: str) -> Tensor:
    into[name] = tensor.clone()
    return tensor


def _held_back(tensor: Tensor, hook: Any, *, channels: list[int], values: Tensor, rows: Tensor) -> Tensor:
    """The tensor with `channels` of the `rows` set to their clean `values`."""
    changed, index = tensor.clone(), torch.tensor(channels, device=tensor.device)
    place = rows.nonzero()[:, :1]
    changed[place, :, index] = values[place, :, index]
    return changed


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
