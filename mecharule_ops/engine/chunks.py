"""Records that are verified together, with the clean tensors they share, kept as long as memory allows.

Axes: record token; a chunk's records index the records given at construction.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mecharule_ops import plain_text
from mecharule_ops.engine.settling import Reader
from mecharule_ops.loading import generation, model
from mecharule_ops.passes import batches, clean_passes, forward, greedy, intervention
from mecharule_ops.passes.clean import CleanSpans, clean_spans
from mecharule_ops.passes.spans import Span, first_offset, span_of
from mecharule_ops.types import Basis, Phase, Tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """Some records' clean spans, their baseline tokens and where in the spans these are predicted."""

    records: tuple[int, ...]
    early: bool
    """Whether the spans end where the baseline's label is decided."""
    spans: tuple[Span, ...]
    clean: CleanSpans
    near: greedy.NearClean
    predicting: tuple[Tensor, Tensor, Tensor]
    """(record, token, position) of every predicted token, flat."""
    targets: Int[np.ndarray, "record token"]
    """Baseline tokens from the first predicted one on; −1 past the end."""
    layout: Callable[[int], forward.BlockCalls]
    """The blocks bound to so many copies of the spans; those used last are kept."""
    sites: dict[tuple[Basis, int], Tensor] = field(default_factory=dict)
    """What the clean pass held at the sites asked for, by basis and layer."""

    @property
    def bytes(self) -> int:
        """Memory held between calls, layouts left out."""
        return self.clean.bytes + self.near.bytes + sum(site.nbytes for site in self.sites.values())

    def site(
        self, subject: model.Subject, blocks: forward.Blocks, basis: Basis, layer: int
    ) -> Float[Tensor, "record position channel *head_dim"]:
        """The clean values of every unit of a layer. Cost: one call of the block when first asked."""
        if (basis, layer) not in self.sites:
            module, in_input = subject.wiring.site(blocks.stack[layer], basis)
            seen: list[Tensor] = []
            with intervention.hooked(module, in_input, lambda site: seen.append(site.clone())):
                self.layout(1)(layer, self.clean.inputs[layer])
            self.sites[basis, layer] = seen[0].unflatten(-1, subject.unit_shape(basis))
        return self.sites[basis, layer]


class Chunks:
    """Makes chunks of some records in one phase, and keeps those used last within a share of memory.

    Nothing in them depends on a baseline, and on the basis no more than whether it is the last write of a block.
    """

    def __init__(
        self, subject: model.Subject, reader: Reader, prompts: Sequence[Tokens], phase: Phase, basis: Basis
    ) -> None:
        self.blocks = forward.Blocks(subject)
        self.unembedding = greedy.unembedding_of(subject)
        self._subject = subject
        self._reader = reader
        self.prompts = prompts
        self._phase = phase
        self._basis = basis
        self._memory = batches.share(subject) // 2
        self._passes = clean_passes.CleanPasses(self._pass, self._memory)
        self._together: set[int] = set()
        self._places = {prompt: place for place, prompt in reversed([*enumerate(prompts)])}
        self._kept: OrderedDict[tuple[tuple[int, ...], bool], Chunk] = OrderedDict()

    def take(self, before: "Chunks | None") -> None:
        """The passes of fewer records, the first of these, where prompts begin alike."""
        if before and "_shared" in before.__dict__ and before._beginning == self._beginning:
            self._shared, self._together, self._passes = before._shared, before._together, before._passes
            self._passes.run = self._pass
            before._kept.clear()

    def span(self, record: int, completion: Tokens) -> Span:
        """The intervened positions of a record's prompt followed by `completion`."""
        return span_of(self.prompts[record], completion, self._phase)

    def length(self, record: int, early: bool) -> int:
        """How many positions verifying a record feeds; 0 when no token is in reach of the intervention."""
        return len(self.span(record, self._reader.baseline(record, early)).fed)

    def of(self, records: tuple[int, ...], early: bool) -> Chunk:
        """The chunk of these records, all with positions to feed; made when it is not kept."""
        key = (records, early)
        if key not in self._kept:
            self._kept[key] = self._make(records, early)
            while len(self._kept) > 1 and sum(kept.bytes for kept in self._kept.values()) > self._memory:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def clean(self, spans: Sequence[Span]) -> CleanSpans:
        """Of spans that begin those of records, hanging on nothing asked before. Cost: as `of`.

        Chunks are let go: whoever feeds spans back asks for long, and a chunk is copied from kept passes.
        """
        self._kept.clear()
        records = tuple(self._places[span.prompt] for span in spans)
        pairs = zip(self._spans(records, early=False)[0], spans, strict=True)
        if all(whole.fed[: len(span.fed)] == span.fed for whole, span in pairs):
            return self._passes.of(records, spans, [0] * len(spans), alone=True).clean
        # Another record of the same prompt has another completion.
        return clean_spans(self._subject, self.blocks, spans, self._basis, self._shared)

    def keep_together(self, records: Sequence[int]) -> None:
        """Pass these always with the same of them, and keep their passes before others'; what was kept is forgotten.

        Nothing is done where the passes of all such records do not fit into memory.
        """
        if self._together.issuperset(records):
            return
        self._together |= set(records)
        subject, beginning = self._subject, len(self._beginning)
        heads = getattr(subject.hf.config, "num_key_value_heads", None) or subject.n_heads
        below, fed = 2 * heads * subject.head_dim, subject.d_model * (1 + 2 * self._basis.row.last_write)
        own = sum(len(self.prompts[each]) - beginning for each in self._together)
        reached = sum(self.length(each, False) for each in self._together)
        if 4 * (subject.n_layers + 2) * (below * own + fed * reached) <= self._memory:
            for block in batches.chunks_by_length([self.length(each, False) for each in records], records):
                home = tuple(records[place] for place in block)
                self._passes.homes |= dict.fromkeys(home, home)
            self.forget()

    def forget(self) -> None:
        """Give all kept memory back."""
        self._kept.clear()
        self._passes.forget()

    @cached_property
    def _beginning(self) -> Tokens:
        """What all prompts begin with, below every span."""
        below = [
            prompt[: len(prompt) - 1 + first_offset(self._phase, len(prompt))] for prompt in self.prompts
        ]
        return below[0][: plain_text.alike(below)]

    @cached_property
    def _shared(self) -> generation.SharedPrefix:
        return generation.SharedPrefix.of(self._subject.hf, [self._beginning])

    def _make(self, records: tuple[int, ...], early: bool) -> Chunk:
        """Cost: `_pass` for the records that no earlier chunk held; of whole completions for all."""
        spans, expected = self._spans(records, early)
        # What a certificate holds shall not hang on what was asked before, as a resumed run asks less.
        passes, counts = self._passes, list(map(len, expected))
        held = passes.of(records, spans, counts, alone=not early)
        rows, at, positions = _predicting(spans, expected, self._subject.device)
        targets = np.full((len(records), max(counts)), -1)
        offered: list[list[int]] = []
        for row, tokens in enumerate(expected):
            targets[row, : len(tokens)] = tokens
            whole = self._reader.baseline(records[row], early)
            offered += self._reader.offers[records[row]].along(whole, spans[row].first_predicted)
        return Chunk(
            records=records,
            early=early,
            spans=spans,
            clean=held.clean,
            layout=lru_cache(8)(partial(self.blocks.bind, held.clean.batch)),
            near=greedy.NearClean(
                self.unembedding, held.clean.final[rows, positions], held.likeliest, offered
            ),
            predicting=(rows, at, positions),
            targets=targets,
        )

    def _pass(self, records: tuple[int, ...]) -> clean_passes.CleanPass:
        """Cost: `clean_spans` and the clean logits."""
        spans, expected = self._spans(records, early=False)
        clean = clean_spans(self._subject, self.blocks, spans, self._basis, self._shared)
        rows, _, positions = _predicting(spans, expected, self._subject.device)
        return clean_passes.CleanPass(
            clean=clean,
            likeliest=greedy.Likeliest.of(self.unembedding, clean.final[rows, positions]),
            predicted=tuple(map(len, expected)),
        )

    def _spans(self, records: tuple[int, ...], early: bool) -> tuple[tuple[Span, ...], list[Tokens]]:
        """The records' spans, and the baseline tokens that each predicts."""
        baselines = [self._reader.baseline(record, early) for record in records]
        spans = tuple(self.span(record, tokens) for record, tokens in zip(records, baselines, strict=True))
        return spans, [tokens[span.first_predicted :] for tokens, span in zip(baselines, spans, strict=True)]


def _predicting(
    spans: Sequence[Span], expected: Sequence[Tokens], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """(record, token, position) of every predicted token, record by record."""
    flat = [
        (row, token, span.prompt_part + token)
        for row, (span, tokens) in enumerate(zip(spans, expected, strict=True))
        for token in range(len(tokens))
    ]
    rows, at, positions = torch.tensor(flat, device=device).T
    return rows, at, positions
