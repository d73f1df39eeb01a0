"""How many positions go through the model at once, which records share a chunk, and what memory that may take."""

from collections.abc import Sequence
from typing import Any

from mecharule_ops.loading import model, placement

CHUNK_POSITIONS = 128
"""Positions that one copy of a chunk feeds: enough for a matrix product to be fast with a single group, few
enough for many groups to share one batch."""
_ROWS = {"cpu": 1024, "cuda": 16384}
"""Beyond these a larger batch gains nothing, measured on a processor, estimated for an accelerator."""
SHARE = 512 * 2**20
"""Bytes of a processor's memory that one purpose takes at most (clean tensors that are kept, the graph of a batch); one
for each of the model's weights where that is more."""


def share(subject: model.Subject) -> int:
    """Bytes that one purpose may take on each of its devices: a quarter of what is free, on a processor `SHARE`."""
    quarter = placement.free_bytes(*subject.devices) // 4
    return quarter if subject.device.type == "cuda" else min(quarter, max(SHARE, subject.parameters))


def default_rows(subject: model.Subject) -> int:
    """Positions a forward: what fits a share of memory, and no more than the device gains from."""
    config = subject.hf.config
    widest = max(getattr(config, "intermediate_size", 0) or 0, 4 * subject.d_model)
    heads = getattr(config, "num_key_value_heads", None) or subject.n_heads
    kept = 2 * subject.n_layers * heads * subject.head_dim
    per_row = 4 * (4 * widest + 8 * subject.d_model + subject.n_heads * 1024 + kept)
    return max(1, min(_ROWS.get(subject.device.type, _ROWS["cpu"]), share(subject) // per_row))


def chunks_by_length(
    lengths: Sequence[int], keys: Sequence[int], positions: int = CHUNK_POSITIONS
) -> list[list[int]]:
    """Indices of positive `lengths` in chunks of (nearly) equal length, at most a quarter above the shortest.

    Equal lengths are ordered by `keys`, so that the same records make the same chunks in whatever order they
    are asked for.
    """
    order = sorted(
        (index for index, length in enumerate(lengths) if length),
        key=lambda index: (lengths[index], keys[index]),
    )
    chunks: list[list[int]] = []
    for index in order:
        if chunks:
            shortest = lengths[chunks[-1][0]]
            fits = (len(chunks[-1]) + 1) * lengths[index] <= positions
            if fits and 4 * (lengths[index] - shortest) <= shortest:
                chunks[-1].append(index)
                continue
        chunks.append([index])
    return chunks


def parts(items: list[Any], size: int) -> list[list[Any]]:
    """`items` cut into runs of `size`, the last one shorter."""
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
