"""Clean passes over records, kept so that any of these records can be put together again without a forward.

Questions overlap in their examples but seldom ask for the same ones: what was computed for one chunk of records
serves every other chunk that holds some of them, for the price of a copy. A pass runs over whole completions; where a
span ends earlier, its part is taken.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mecharule_ops.passes import forward, greedy
from mecharule_ops.passes.clean import CleanSpans
from mecharule_ops.passes.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanPass:
    """Clean tensors of some records, and the likeliest tokens where theirs are predicted."""

    clean: CleanSpans
    likeliest: greedy.Likeliest
    """Rows run over the records and, within each, over its predicted tokens."""
    predicted: tuple[int, ...]
    """Predicted tokens of each record."""


class CleanPasses:
    """What `run(records)` gave, the passes used last within `memory` bytes; those of a home the longest."""

    def __init__(self, run: Callable[[tuple[int, ...]], CleanPass], memory: int) -> None:
        self.run, self._memory = run, memory
        self._kept: OrderedDict[tuple[int, ...], CleanPass] = OrderedDict()
        self.homes: dict[int, tuple[int, ...]] = {}
        """With which others a record is always passed; none once memory ran out."""

    def of(
        self, records: tuple[int, ...], spans: Sequence[Span], predicted: Sequence[int], *, alone: bool
    ) -> CleanPass:
        """The records' pass over the beginnings of their whole spans, at so many predicted tokens of each.

        `alone` it hangs on nothing asked before: what has no home is of one pass over just that.
        Cost: `run` for the records that no kept pass holds, and those that live with them.
        """
        passes = [] if alone else [*self._kept]
        known = self.homes.keys() | set(chain.from_iterable(passes))
        missing = tuple(dict.fromkeys(each for each in records if each not in known))
        needed = [missing, *dict.fromkeys(self.homes[each] for each in records if each in self.homes)]
        home = {record: (made, row) for made in (*passes, *needed) for row, record in enumerate(made)}
        try:
            self._kept.update({made: self.run(made) for made in needed if made and made not in self._kept})
        except (MemoryError, RuntimeError):
            self.homes.clear()  # So that whoever asks for fewer records gets by with less.
            raise
        for record in records:
            self._kept.move_to_end(home[record][0])
        rows = [(self._kept[made], row) for made, row in map(home.__getitem__, records)]
        self._shrink()
        whole = rows[0][0]
        same = home[records[0]][0] == records and whole.predicted == tuple(predicted)
        return whole if same else _gathered(rows, spans, predicted)

    def _shrink(self) -> None:
        held = sum(kept.clean.bytes for kept in self._kept.values())
        for made in sorted([*self._kept][:-1], key={*self.homes.values()}.__contains__):
            if held > self._memory:
                held -= self._kept.pop(made).clean.bytes

    def forget(self) -> None:
        """Give all kept memory back."""
        self._kept.clear()


def _gathered(
    rows: Sequence[tuple[CleanPass, int]], spans: Sequence[Span], predicted: Sequence[int]
) -> CleanPass:
    """One pass made of records of several, cut to their spans and padded anew."""
    fed = [len(span.fed) for span in spans]
    prefix_lengths = torch.stack([source.clean.batch.prefix_lengths[row] for source, row in rows])
    shared = rows[0][0].clean.batch.prefix.shared
    own = [length - sum(keys.shape[2] for keys, _ in shared[:1]) for length in prefix_lengths.tolist()]

    def padded(sources: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
        """The records' own rows, cut to their lengths."""
        places = zip(sources, rows, lengths, strict=True)
        return pad_sequence([source[row, :length] for source, (_, row), length in places], batch_first=True)

    def layers(of: str) -> tuple[Tensor, ...]:
        by_layer = zip(*(getattr(source.clean, of) for source, _ in rows), strict=True)
        return tuple(padded(tensors, fed) for tensors in by_layer)

    below = []
    for layer in zip(*(source.clean.batch.prefix.own for source, _ in rows), strict=True):
        keys, values = (padded([part.transpose(1, 2) for part in of], own) for of in zip(*layer, strict=True))
        below.append((keys.transpose(1, 2), values.transpose(1, 2)))
    clean = CleanSpans(
        batch=forward.SpanBatch.of(spans, forward.PrefixCache(shared, below), prefix_lengths),
        inputs=layers("inputs"),
        writes=layers("writes"),
        rests=layers("rests"),
        residual=padded([source.clean.residual for source, _ in rows], fed),
        final=padded([source.clean.final for source, _ in rows], fed),
    )
    parts = []
    for (source, row), count in zip(rows, predicted, strict=True):
        start = sum(source.predicted[:row])
        parts.append(source.likeliest[start : start + count])
    return CleanPass(clean=clean, likeliest=greedy.Likeliest.joined(parts), predicted=tuple(predicted))
