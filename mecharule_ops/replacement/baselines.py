"""What an ablated unit is set to: the replacement baselines of the paper (appendix B), as one table a run.

- `zero`: 0.
- `mean`: the unit's mean over all intervened positions of the data.
- `mean-positional`: its mean at the same offset from the last prompt token; an offset that the data lacks takes
  the nearest one it has (the earlier on a tie).
- `mean-donor`, `mean-donor-positional`: the observed value closest to that mean, chosen coordinate by coordinate
  (each dimension of a head by itself), so that the coordinates need not come from one prompt or position.
- `slot0`: the unit's mean over prompts at the first token of the unpadded prompt, written at every position. The
  published code's "mean-positional" reads row 0 of its table when decoding, which holds that slot (mixed with
  padding when prompts differ in length); it carries an attention sink's massive activations into the answer.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mecharule_ops import errors, subsets
from mecharule_ops.loading import given
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.intervention import Units
from mecharule_ops.passes.spans import Span, first_offset, span_of
from mecharule_ops.replacement.statistics import Observed, first_slot_means, nearest_observed, observe_values
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron

RECORDS = 256
"""Prompts that the values are estimated from (paper, §5), and as many others at most that say their range."""
OTHERS = 4
"""Of this many records one is kept from the values, to say the range."""
ROUNDING = 1e-3
"""Share of what a unit ranges over by which two measurements of its replacement may differ: far more than another
processor's sums do, far less than moves an answer."""
_POSITIONAL = (Baseline.MEAN_POSITIONAL, Baseline.MEAN_DONOR_POSITIONAL)
Observe = Callable[[tuple[Span, ...], tuple[Basis, ...]], Mapping[Basis, Observed]]
"""What units of some bases hold at the positions of spans, as `observe_values` measures it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplacementTable:
    """Replacement values of every unit of an intervention's basis."""

    intervention: Intervention
    values: tuple[Float[Tensor, "row channel *head_dim"], ...]
    """By layer; a row an offset of `offsets`, or one when the value does not depend on it."""
    offsets: Int[Tensor, " offset"]
    """Ascending; not always contiguous."""
    records: tuple[int, ...]
    """Ids of the examples that the values were measured on."""
    others: Observed
    """What records hold at the intervened positions that the values were not measured on."""

    def value(
        self, layer: int, offsets: Int[Tensor, "*position"], channels: Int[Tensor, " channel"] | None = None
    ) -> Float[Tensor, "*position_and_channel"]:
        """Replacements at `offsets`, `[*position, channel(, head_dim)]`, for `channels` or all of the layer's."""
        table = self.values[layer] if channels is None else self.values[layer][:, channels.cpu()]
        if len(table) == 1:
            return table[torch.zeros_like(offsets.cpu())].to(offsets.device)
        return table[(offsets.cpu()[..., None] - self.offsets).abs().argmin(-1)].to(offsets.device)

    def units(
        self, group: Collection[Neuron], offsets: Int[Tensor, "record position"], device: torch.device
    ) -> dict[int, Units]:
        """A group's units by layer with their replacements at `offsets`, on `device`."""
        channels: dict[int, list[int]] = {}
        for neuron in group:
            channels.setdefault(neuron.layer, []).append(neuron.channel)
        held = {}
        for layer, chosen in channels.items():
            index = torch.tensor(chosen)
            values = self.value(layer, offsets, index).to(device)
            held[layer] = Units(channels=index.to(device), values=values)
        return held

    def take_away(self, unit: Neuron, model: Subject) -> None:
        """From now on the model is without the unit, as the table's intervention replaces it."""
        value = partial(self.value, unit.layer, channels=torch.tensor([unit.channel]))
        given.take_away(model, unit, first_offset(self.intervention.phase, 1 - given.EVERYWHERE), value)

    def agrees_with(self, other: "ReplacementTable") -> bool:
        """Whether another table, measured on the same records by other sums, holds the same values to a rounding."""
        same = (self.intervention, self.records) == (other.intervention, other.records)
        if not same or not torch.equal(self.offsets, other.offsets):
            return False
        return all(
            bool(((mine - theirs).abs() <= ROUNDING * (of.high - of.low).amax(0) + 1e-6).all())
            for mine, theirs, of in zip(self.values, other.values, self.others.layers, strict=True)
        )

    def out_of_range(self, neuron: Neuron) -> tuple[int, int]:
        """(replaced values outside what the unit takes at that offset in `others`, replaced values in all).

        A mean lies within the range of its own records, whatever they are: only others can show that it comes from
        another distribution, where it lies so far off; that it does not is for the draw to see to. A value counts as
        often as its offset occurs; every dimension of a head counts by itself.
        """
        statistics = self.others.layers[neuron.layer]
        replaced = self.value(neuron.layer, self.others.offsets)[:, neuron.channel]
        low, high = statistics.low[:, neuron.channel], statistics.high[:, neuron.channel]
        outside = ((replaced < low) | (replaced > high)).reshape(len(self.others.counts), -1)
        counts = self.others.counts
        return int((outside.sum(-1) * counts).sum()), int(counts.sum()) * outside.shape[1]

    @cached_property
    def hash(self) -> str:
        """16 hex digits of SHA-256 over the intervention, the offsets, the float32 values and the records' ids."""
        digest = hashlib.sha256(repr(self.intervention).encode())
        digest.update(self.offsets.numpy().tobytes())
        for table in self.values:
            digest.update(table.contiguous().numpy().tobytes())
        digest.update(" ".join(map(str, self.records)).encode())
        return digest.hexdigest()[:16]


def replacement_table(
    subject: Subject,
    records: Sequence[BehaviourRecord],
    intervention: Intervention,
    seed: int = 0,
    *,
    observe: Observe | None = None,
    ranged: bool = True,
) -> ReplacementTable:
    """The table of an intervention, from the prompts and baseline completions of some of the records.

    They are a draw (`subsets`), `RECORDS` for the values and as many others for the range; of few records one in
    `OTHERS` goes to the range; of fewer than that, or if it is not to be `ranged`, the range is the values' own. What
    `observe` measured for another baseline is not measured again. Cost: one forward over both, a second
    over the former for the donor baselines. Raises `UsageError`
    when no record has an intervened position, for example when every completion is a single token in the decode phase.
    """
    drawn = subsets.some_records(records, of="replacement", seed=seed)
    measured = min(RECORDS, len(drawn) - len(drawn) // OTHERS)
    chosen, others = drawn[:measured], drawn[measured : measured + RECORDS]
    spans = _spans(subject, chosen, intervention)
    if not spans:
        raise errors.UsageError(
            f"expected completions with positions in the {intervention.phase} phase, got none in {len(chosen)} "
            "records; choose the last-prompt or whole phase"
        )
    baseline, basis = intervention.baseline, intervention.basis
    observe = observe or partial(observe_values, subject)
    observed = observe(tuple(spans), (basis,))[basis]
    if baseline is Baseline.SLOT0:
        prompts = subject.encode([record.example.prompt for record in chosen])
        values = tuple(mean[None] for mean in first_slot_means(subject, prompts, basis))
    else:
        values = _means(observed, baseline)
        if "donor" in baseline:
            positional = baseline in _POSITIONAL
            values = nearest_observed(subject, spans, basis, values, observed.offsets, positional)
    held_back = _spans(subject, others, intervention) if ranged else []
    return ReplacementTable(
        intervention=intervention,
        values=values,
        offsets=observed.offsets,
        records=tuple(record.example.id for record in chosen),
        others=observe(tuple(held_back), (basis,))[basis] if held_back else observed,
    )


def _spans(subject: Subject, records: Sequence[BehaviourRecord], intervention: Intervention) -> list[Span]:
    """The intervened positions of each record that has some."""
    pairs = zip(subject.encode([record.example.prompt for record in records]), records, strict=True)
    spans = (span_of(prompt, record.tokens, intervention.phase) for prompt, record in pairs)
    return [span for span in spans if span.fed]


def _means(observed: Observed, baseline: Baseline) -> tuple[Tensor, ...]:
    """By layer: zeros, the mean over all positions, or the means by offset."""
    means = [layer.mean for layer in observed.layers]
    if baseline is Baseline.ZERO:
        return tuple(torch.zeros_like(mean[:1]) for mean in means)
    if baseline in _POSITIONAL:
        return tuple(means)
    assert baseline in (Baseline.MEAN, Baseline.MEAN_DONOR), baseline
    weight = observed.counts.double() / observed.counts.sum()
    return tuple(torch.tensordot(weight, mean.double(), 1)[None].float() for mean in means)
