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
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int

from mecharule_ops import plain_text, types
from mecharule_ops.engine.chunks import Chunk, Chunks
from mecharule_ops.engine.continuation import OpenRow, advanced, trimmed
from mecharule_ops.engine.settling import Reader
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.ablated import HeldUnits, ablated_copies, ablated_rows
from mecharule_ops.passes.batches import parts
from mecharule_ops.passes.forward import SpanBatch
from mecharule_ops.passes.intervention import Units
from mecharule_ops.replacement.baselines import ReplacementTable

Groups = Sequence[Collection[types.Neuron]]
Placed = list[tuple[int, OpenRow]]
"""Rows with their places in a batch that was fed."""
FEWEST = 3
"""Groups at once from which products of their change pay for the clean copy beside them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verified:
    """What became of every record of a chunk under every group."""

    labels: Bool[np.ndarray, "record group"]
    margins: Float32[np.ndarray, "record group"]
    """Smallest top-1 − top-2 logit margin over the tokens that settled the row; NaN where a logit is no number."""
    changed: dict[tuple[int, int], types.Tokens]
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

    With a `slope`, products for `FEWEST` groups or more are those of the change in bfloat16, and a row is fed again in
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
        self._subject, self._reader, self._chunks, self._labels = subject, reader, chunks, labels
        self._replacement, self._slope = replacement, slope
        self._basis = replacement.intervention.basis

    def verify(self, chunk: Chunk, groups: Groups, limit: int, held: Groups = ()) -> Verified:
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
        labels, completions = np.repeat(self._labels[list(chunk.records), None], len(groups), axis=1), {}
        forwards, first = changed.size, np.where(again, 0, first)

        def unsettled(turn: Placed) -> Placed:
            left = []
            for place, row in turn:
                label = self._reader.label(row.record, row.accepted, chunk.early)
                if label is None:
                    left.append((place, trimmed(self._reader, row)))
                    continue
                at = row.row, row.group
                labels[at], margins[at] = label, np.minimum(margins[at], row.margin)
                completions[at] = row.accepted
            return left

        opened = [
            self._opened(chunk, row, group, first[row, group], tokens[row, :, group], again[row, group])
            for row, group in np.argwhere(changed | again).tolist()
        ]
        rows = unsettled([(row.row, row) for row in opened])
        most = max((len(self._chunks.span(row.record, row.fed).fed) for _, row in rows), default=1)
        for turn in parts(rows, max(1, limit // most)):
            below = chunk.clean.batch
            while turn:
                forwards += len(turn)
                after, below = self._fed(chunk, groups, kept, turn, below)
                turn = unsettled(after)
        return Verified(
            labels=labels,
            margins=margins,
            changed=completions,
            forwards=forwards,
            decided_again=int(again.sum()),
        )

    def _greedy_tokens(
        self, chunk: Chunk, groups: Groups, held: Sequence[HeldUnits]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(greedy tokens, margins, whether in doubt) `[record, token, group]`; −1, ∞, False past a record's end."""
        slope = None if held or len(groups) < FEWEST else self._slope
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
        self, chunk: Chunk, groups: Groups, held: Sequence[HeldUnits] = (), *, of_change: bool
    ) -> GroupLeads:
        """What each group makes of the chunk's predicted tokens, groups in order of lowest layer.

        With `of_change` products are those of the change from the clean pass.
        """
        length = max(len(span.fed) for span in chunk.spans)
        # They run on over the padding.
        offsets = torch.tensor([[span.offset] for span in chunk.spans]) + torch.arange(length)
        units = [self._replacement.units(group, offsets, self._subject.device) for group in groups]
        final = ablated_copies(self._subject, chunk.clean, self._basis, units, chunk.layout, held, of_change)
        rows, _, positions = chunk.predicting
        near = torch.arange(len(rows), device=rows.device).repeat_interleave(len(groups))
        hidden = final[rows, :, positions].flatten(0, 1)
        greedy = chunk.near.greedy(hidden, near)
        found = greedy.tokens, greedy.margins, chunk.near.moved(hidden, near)
        tokens, margins, moved = (each.view(len(rows), -1).cpu().numpy() for each in found)
        return GroupLeads(tokens=tokens, margins=margins, moved=moved)

    def _opened(
        self, chunk: Chunk, row: int, group: int, at: np.int64, greedy: np.ndarray, again: np.bool_
    ) -> OpenRow:
        """A row whose greedy token `at` is the first that differs from the baseline's, or that is decided `again`."""
        record = chunk.records[row]
        kept = self._reader.baseline(record, chunk.early)[: chunk.spans[row].first_predicted + at]
        true = () if again else (int(greedy[at]),)
        guess = tuple(token for token in greedy[at + len(true) :].tolist() if token >= 0)
        return OpenRow(row=row, record=record, group=group, accepted=kept + true, guess=guess, margin=np.inf)

    def _fed(
        self, chunk: Chunk, groups: Groups, held: Sequence[HeldUnits], places: Placed, below: SpanBatch
    ) -> tuple[Placed, SpanBatch]:
        """The rows one turn on, by the greedy tokens behind the last accepted and every guessed token of each.

        The batch below them is the chunk's own or that of the last turn. Cost: every block over the rows' whole spans,
        from the second turn on over what was not fed before.
        """
        rows, known = [row for _, row in places], below is not chunk.clean.batch
        starts = [len(self._chunks.span(row.record, row.accepted).fed) * known for row in rows]
        placed = list(zip(rows, starts, strict=True))
        spans = [self._chunks.span(row.record, row.fed).after(start) for row, start in placed]
        joins = [(place, span.offset) for (place, _), span in zip(places, spans, strict=True)]
        batch = SpanBatch.of(spans, *below.prefixes(*torch.tensor(joins, device=below.tokens.device).T))
        steps, device = torch.arange(batch.tokens.shape[1])[None], self._subject.device
        units = cache(lambda group, offset: self._replacement.units(groups[group], offset + steps, device))
        replaced = [units(row.group, span.offset) for row, span in zip(rows, spans, strict=True)]
        kept = [self._held_below_change(chunk, row, start, held) for row, start in placed if held]
        final = ablated_rows(self._subject, self._chunks.blocks, batch, self._basis, replaced, kept)
        sizes, hidden, offered = [len(row.guess) + 1 for row in rows], [], list[list[int]]()
        for index, (row, span, size) in enumerate(zip(rows, spans, sizes, strict=True)):
            hidden.append(final[index, len(span.fed) - size : len(span.fed)])
            offered += self._reader.offers[row.record].along(row.fed, len(row.accepted))
        greedy = self._chunks.unembedding.greedy(torch.cat(hidden), offered)
        given = greedy.tokens.cpu().split(sizes), greedy.margins.cpu().split(sizes)
        after = [
            advanced(self._reader, row, tokens.tolist(), margins.tolist(), chunk.early)
            for row, tokens, margins in zip(rows, *given, strict=True)
        ]
        return [*enumerate(after)], batch

    def _held(self, chunk: Chunk, units: Collection[types.Neuron]) -> HeldUnits:
        """The units with the clean values of the chunk's records."""
        channels: dict[tuple[types.Basis, int], list[int]] = {}
        for neuron in units:
            channels.setdefault((neuron.basis, neuron.layer), []).append(neuron.channel)
        held = {}
        for (basis, layer), chosen in channels.items():
            site = chunk.site(self._subject, self._chunks.blocks, basis, layer)
            index = torch.tensor(chosen, device=site.device)
            held[basis, layer] = Units(channels=index, values=site[:, :, index])
        return held

    def _held_below_change(
        self, chunk: Chunk, row: OpenRow, start: int, held: Sequence[HeldUnits]
    ) -> tuple[HeldUnits, int]:
        """(the row's own held units from `start` on, at how many positions from there the text is the clean one)."""
        changed = plain_text.alike((row.accepted, self._reader.baseline(row.record, chunk.early)))
        return {
            site: Units(channels=units.channels, values=units.values[row.row : row.row + 1, start:])
            for site, units in held[row.group].items()
        }, max(0, len(self._chunks.span(row.record, row.accepted[: changed + 1]).fed) - start)
