"""Verifies baseline completions under many interventions in one forward, and continues the rows that differ.

Greedy decoding under most ablations reproduces the baseline completion. So the whole completion is fed at once
above the cached clean prefix, under the intervention, and each greedy token is compared with the baseline's
next one. By induction over tokens, a row without a difference has exactly the completion that decoding token by
token gives. A row that differs keeps its tokens up to and including the first new one (see `continuation`).

A group may have units held at their clean values beside it. A clean value exists where the text fed so far is the
clean one: at every position of the verified span, and in a continued row below its first new token. From there on
the held units are released.

Axes: record token group; a chunk's records index the records given at construction.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int
from torch import Tensor

from mecharule_ops.engine.chunks import Chunk, Chunks
from mecharule_ops.engine.continuation import OpenRow, advanced, feed, trimmed
from mecharule_ops.engine.settling import Reader, Tokens
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.ablated import GroupUnits, HeldUnits, ablated_copies
from mecharule_ops.passes.intervention import Units
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Basis, Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verified:
    """What became of every record of a chunk under every group."""

    labels: Bool[np.ndarray, "record group"]
    margins: Float32[np.ndarray, "record group"]
    """Smallest top-1 − top-2 logit margin over the tokens that settled the row; NaN where a logit is no number."""
    changed: dict[tuple[int, int], Tokens]
    """(record, group) → completion, or its settling part, where it differs from the baseline's."""
    forwards: int
    """Record × group evaluations, those of rows fed again included."""
    decided_again: int = 0
    """Rows whose lead was too small for products of the change, and which were fed again in float32."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupLeads:
    """What groups make of the predicted tokens of some records."""

    tokens: Int[np.ndarray, "token group"]
    """The greedy ones."""
    margins: Float32[np.ndarray, "token group"]
    """Their leads over the next best."""
    moved: Float32[np.ndarray, "token group"]
    """How far the hidden state that is unembedded lies from the clean one."""

    @classmethod
    def joined(cls, parts: "Sequence[GroupLeads]", axis: int) -> "GroupLeads":
        """All parts along the axis of tokens (0) or of groups (1)."""
        tokens, margins, moved = (
            np.concatenate([getattr(part, name) for part in parts], axis)
            for name in ("tokens", "margins", "moved")
        )
        return cls(tokens=tokens, margins=margins, moved=moved)


class Speculation:
    """Verifies chunks of records under groups of one intervention.

    With a `slope`, products are those of the change, in the type of the model's weights, and a row is fed again in
    float32 when a token that settles it has a lead below `slope` × how far the ablation moved its hidden state.
    """

    def __init__(
        self,
        subject: Subject,
        reader: Reader,
        chunks: Chunks,
        labels: Bool[np.ndarray, " record"],
        replacement: ReplacementTable,
        slope: float | None = None,
    ) -> None:
        self._slope = slope
        self._subject = subject
        self._reader = reader
        self._chunks = chunks
        self._labels = labels
        self._replacement = replacement
        self._basis = replacement.intervention.basis

    def verify(
        self,
        chunk: Chunk,
        groups: Sequence[Collection[Neuron]],
        limit: int,
        held: Sequence[Collection[Neuron]] = (),
    ) -> Verified:
        """Every record of the chunk under every group, groups in order of lowest layer.

        At most `limit` positions are fed at once when rows are continued. `held` is empty or names for each group
        the units held at their clean values.
        """
        kept = [self._held(chunk, units) for units in held]
        tokens, margins, unsure = self._greedy_tokens(chunk, groups, kept)
        differs = tokens != chunk.targets[:, :, None]
        changed = differs.any(1)
        first = np.where(changed, differs.argmax(1), tokens.shape[1])
        settling = np.arange(tokens.shape[1])[:, None] <= first[:, None, :]
        again = (unsure & settling).any(1)
        margins = np.where(settling & ~again[:, None], margins, np.float32(np.inf)).min(1)
        verified = Verified(
            labels=np.repeat(self._labels[list(chunk.records), None], len(groups), axis=1),
            margins=margins,
            changed={},
            forwards=changed.size,
            decided_again=int(again.sum()),
        )
        first = np.where(again, 0, first)
        rows = [
            self._opened(
                chunk, row, group, int(first[row, group]), tokens[row, :, group], bool(again[row, group])
            )
            for row, group in np.argwhere(changed | again).tolist()
        ]
        return self._settled(chunk, groups, kept, verified, rows, limit)

    def _greedy_tokens(
        self, chunk: Chunk, groups: Sequence[Collection[Neuron]], held: Sequence[HeldUnits]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(greedy tokens, margins, whether in doubt) `[record, token, group]`; −1, ∞, False past a record's end."""
        slope = None if held else self._slope
        found = self.leads(chunk, groups, held, of_change=slope is not None)
        shape = (*chunk.targets.shape, len(groups))
        tokens, margins = np.full(shape, -1), np.full(shape, np.inf, np.float32)
        unsure = np.zeros(shape, bool)
        places = tuple(place.cpu().numpy() for place in chunk.predicting[:2])
        tokens[places], margins[places] = found.tokens, found.margins
        if slope is not None:
            unsure[places] = ~(found.margins >= slope * found.moved)
        return tokens, margins, unsure

    def leads(
        self,
        chunk: Chunk,
        groups: Sequence[Collection[Neuron]],
        held: Sequence[HeldUnits] = (),
        *,
        of_change: bool,
    ) -> GroupLeads:
        """What each group makes of the chunk's predicted tokens, groups in order of lowest layer.

        With `of_change` products are those of the change from the clean pass.
        """
        length = max(len(span.fed) for span in chunk.spans)
        # They run on over the padding.
        offsets = torch.tensor([[span.offset] for span in chunk.spans]) + torch.arange(length)
        units = [self._units(group, offsets) for group in groups]
        final = ablated_copies(
            self._subject,
            chunk.clean,
            self._basis,
            units,
            partial(chunk.layout, self._chunks.blocks),
            held,
            chunk.products(self._chunks.blocks) if of_change else None,
        )
        rows, _, positions = chunk.predicting
        near = torch.arange(len(rows), device=rows.device).repeat_interleave(len(groups))
        hidden = final[rows, :, positions].flatten(0, 1)
        greedy = chunk.near.greedy(hidden, near)
        found = greedy.tokens, greedy.margins, chunk.near.moved(hidden, near)
        tokens, margins, moved = (each.view(len(rows), -1).cpu().numpy() for each in found)
        return GroupLeads(tokens=tokens, margins=margins, moved=moved)

    def _opened(
        self, chunk: Chunk, row: int, group: int, at: int, greedy: np.ndarray, again: bool
    ) -> OpenRow:
        """A row whose greedy token `at` is the first that differs from the baseline's, or that is decided `again`."""
        baseline = self._reader.baseline(chunk.records[row], chunk.early)
        kept = baseline[: chunk.spans[row].first_predicted + at]
        true = () if again else (int(greedy[at]),)
        guess = tuple(token for token in greedy[at + len(true) :].tolist() if token >= 0)
        return OpenRow(row=row, group=group, accepted=kept + true, guess=guess, margin=np.inf)

    def _settled(
        self,
        chunk: Chunk,
        groups: Sequence[Collection[Neuron]],
        held: Sequence[HeldUnits],
        verified: Verified,
        rows: list[OpenRow],
        limit: int,
    ) -> Verified:
        """The results with every row entered, rows fed again until their tokens settle them."""
        labels, margins, forwards = verified.labels.copy(), verified.margins.copy(), verified.forwards
        changed = {}
        while rows:
            unsettled = []
            for row in rows:
                label = self._reader.label(chunk.records[row.row], row.accepted, chunk.early)
                if label is None:
                    unsettled.append(trimmed(self._reader, row))
                    continue
                labels[row.row, row.group] = label
                margins[row.row, row.group] = np.minimum(margins[row.row, row.group], row.margin)
                changed[row.row, row.group] = row.accepted
            rows = self._fed(chunk, groups, held, unsettled, limit)
            forwards += len(unsettled)
        return replace(verified, labels=labels, margins=margins, changed=changed, forwards=forwards)

    def _fed(
        self,
        chunk: Chunk,
        groups: Sequence[Collection[Neuron]],
        held: Sequence[HeldUnits],
        rows: Sequence[OpenRow],
        limit: int,
    ) -> list[OpenRow]:
        """The rows one turn on."""
        spans = [self._chunks.span(chunk.records[row.row], (*row.accepted, *row.guess, -1)) for row in rows]
        at_once = max(1, limit // max((len(span.fed) for span in spans), default=1))
        after = []
        for begin in range(0, len(rows), at_once):
            part, of = rows[begin : begin + at_once], spans[begin : begin + at_once]
            places = [(row.group, span.offset) for row, span in zip(part, of, strict=True)]
            length = max(len(span.fed) for span in of)
            units = {
                place: self._units(groups[place[0]], torch.arange(place[1], place[1] + length)[None])
                for place in set(places)
            }
            given = feed(
                self._subject,
                self._chunks.blocks,
                self._chunks.unembedding,
                self._basis,
                chunk.clean.batch,
                part,
                of,
                [units[place] for place in places],
                [self._held_below_change(chunk, row, held[row.group]) for row in part] if held else (),
            )
            after += [
                advanced(self._reader, chunk.records[row.row], row, tokens, margins, chunk.early)
                for row, (tokens, margins) in zip(part, given, strict=True)
            ]
        return after

    def _held(self, chunk: Chunk, units: Collection[Neuron]) -> HeldUnits:
        """The units with the clean values of the chunk's records."""
        channels: dict[tuple[Basis, int], list[int]] = {}
        for neuron in units:
            channels.setdefault((neuron.basis, neuron.layer), []).append(neuron.channel)
        held = {}
        for (basis, layer), chosen in channels.items():
            site = chunk.site(self._subject, self._chunks.blocks, basis, layer)
            index = torch.tensor(chosen, device=site.device)
            held[basis, layer] = Units(channels=index, values=site[:, :, index])
        return held

    def _held_below_change(self, chunk: Chunk, row: OpenRow, held: HeldUnits) -> tuple[HeldUnits, int]:
        """(the row's own held units, at how many positions of its span the text is the clean one)."""
        baseline = self._reader.baseline(chunk.records[row.row], chunk.early)
        pairs = enumerate(zip(row.accepted, baseline, strict=False))
        changed = next(place for place, (new, old) in pairs if new != old)
        until = len(self._chunks.span(chunk.records[row.row], row.accepted[: changed + 1]).fed)
        only = slice(row.row, row.row + 1)
        return {
            site: Units(channels=units.channels, values=units.values[only]) for site, units in held.items()
        }, until

    def _units(self, group: Collection[Neuron], offsets: Tensor) -> GroupUnits:
        """A group's units by layer with their replacements at `offsets`."""
        return self._replacement.units(group, offsets, self._subject.device)
