"""Final hidden states under `do(A)`, for many groups at once or for rows with tokens of their own.

`ablated_copies` gives each group a copy of the same clean spans and lets a group join the forward at its lowest
layer: below it everything is clean and known. `ablated_rows` runs rows whose tokens differ from the baseline
through all blocks. Both return what the unembedding reads. Either way further units, of any basis, can be held
at values of their own, such as those of the clean pass.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import as_changes
from mecharule_ops.passes.clean import CleanSpans
from mecharule_ops.passes.forward import BlockCalls, Blocks, SpanBatch
from mecharule_ops.passes.intervention import Edit, Units, apply, editing
from mecharule_ops.types import Basis

GroupUnits = Mapping[int, Units]
"""A group's units by layer."""
HeldUnits = Mapping[tuple[Basis, int], Units]
"""Units held beside a group, by basis and layer."""


def ablated_copies(
    subject: Subject,
    clean: CleanSpans,
    basis: Basis,
    groups: Sequence[GroupUnits],
    bind: Callable[[int], BlockCalls],
    held: Sequence[HeldUnits] = (),
    of_change: bool = False,
) -> Float[Tensor, "record copy position channel"]:
    """Final normalised hidden states of the clean spans under each group, groups in order of lowest layer.

    `bind(n)` gives the blocks bound to n copies of the spans; `held` is empty or has an entry for each group.
    Below a group's lowest layer holding a unit at its clean value changes nothing, and is not done. Cost: for
    each group, and with `of_change` a clean copy, the blocks above its lowest layer, and its own but in `mlp_out`.
    """
    joins = [min(group) for group in groups]
    assert joins == sorted(joins), joins
    if of_change:
        joins, groups, held = [joins[0], *joins], [{}, *groups], held and [{}, *held]
    records, length, width = clean.final.shape
    hidden = clean.final.new_empty((records, 0, width))
    for layer, block in enumerate(subject.wiring.blocks(subject.hf)):
        joining = [group for group, join in zip(groups, joins, strict=True) if join == layer]
        hidden = hidden.to(clean.inputs[layer].device)
        if joining and not basis.row.last_write:
            hidden = torch.cat([hidden, clean.inputs[layer].repeat(1, len(joining), 1)], 1)
        copies = hidden.shape[1] // length
        if copies:
            some = enumerate(groups[:copies])
            edits = {basis: [Edit(units=group[layer], copy=copy) for copy, group in some if layer in group]}
            for copy, kept in enumerate(held[:copies]):
                for at, units in _of_layer(kept, layer):
                    edits.setdefault(at, []).append(Edit(units=units, copy=copy))
            with editing(subject, block, copies, edits), as_changes(copies * of_change):
                hidden = bind(copies)(layer, hidden)
        if joining and basis.row.last_write:
            hidden = torch.cat([hidden, _replaced_writes(clean, layer, joining)], 1)
    final_norm, _ = subject.wiring.head(subject.hf)
    return final_norm(hidden).view(records, len(groups), length, width)[:, of_change:]


def _of_layer(held: HeldUnits, layer: int) -> list[tuple[Basis, Units]]:
    return [(basis, units) for (basis, at), units in held.items() if at == layer]


def _replaced_writes(clean: CleanSpans, layer: int, groups: Sequence[GroupUnits]) -> Tensor:
    """The block's output when only its MLP write is edited, one copy a group."""
    writes = clean.writes[layer].repeat(1, len(groups), 1)
    apply(writes, [Edit(units=at[layer], copy=copy) for copy, at in enumerate(groups) if at], len(groups))
    return writes.add_(clean.rests[layer].repeat(1, len(groups), 1))


def ablated_rows(
    subject: Subject,
    blocks: Blocks,
    batch: SpanBatch,
    basis: Basis,
    rows: Sequence[GroupUnits],
    held: Sequence[tuple[HeldUnits, int]] = (),
) -> Float[Tensor, "record position channel"]:
    """Final normalised hidden states of spans with any tokens, each under its own group.

    Each row's `Units.values` hold that row only. `held` is empty or has for each row the units held beside the
    group, and at how many of its first positions. Cost: every block, over all rows' spans.
    """
    calls = blocks.bind(batch, 1)
    hidden = calls.embedded
    for layer, block in enumerate(blocks.stack):
        edits = {
            basis: [Edit(units=group[layer], row=row) for row, group in enumerate(rows) if layer in group]
        }
        for row, (kept, until) in enumerate(held):
            for at, units in _of_layer(kept, layer):
                edits.setdefault(at, []).append(Edit(units=units, row=row, until=until))
        with editing(subject, block, 1, edits):
            hidden = calls(layer, hidden)
    final_norm, _ = subject.wiring.head(subject.hf)
    return final_norm(hidden)
