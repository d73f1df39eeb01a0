"""Units replaced in some rows of a batch of a plain Hugging Face model, whoever calls it.

Rows are padded on the left; every call of the model inside the context is acted on, with a cache or without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from mecharule_ops.loading.generation import Tokens
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.passes.spans import first_offset
from mecharule_ops.repair.gates import Acts
from mecharule_ops.replacement.baselines import ReplacementTable


@contextmanager
def ablating_rows(
    subject: Subject,
    table: ReplacementTable,
    prompts: Sequence[Tokens],
    width: int,
    acts: Acts,
) -> Iterator[None]:
    """Inside, each row's units are replaced at every intervened position; prompts fill `width` from the right."""
    begins = [0]

    def note(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        cache = kwargs.get("past_key_values")
        begins[0] = 0 if cache is None else int(cache.get_seq_length())

    if not any(acts):
        yield
        return
    lowest = [first_offset(table.intervention.phase, len(prompt)) for prompt in prompts]
    blocks = subject.wiring.blocks(subject.hf)
    with ExitStack() as stack:
        hook = subject.hf.register_forward_pre_hook(note, with_kwargs=True)
        stack.callback(hook.remove)
        for layer, basis in dict.fromkeys((unit.layer, unit.basis) for units in acts for unit in units):
            replaced = [
                (row, unit) for row, units in enumerate(acts) for unit in units if unit.layer == layer
            ]
            rows = [row for row, _ in replaced]
            here = _Rows(
                layer=layer,
                rows=torch.tensor(rows),
                channels=torch.tensor([unit.channel for _, unit in replaced]),
                lowest=torch.tensor([lowest[row] for row in rows])[:, None],
                batch=len(acts),
            )
            module, in_input = subject.wiring.site(blocks[layer], basis)
            see = partial(_write, table, here, subject.unit_shape(basis), begins, width)
            stack.callback(hooked(module, in_input, see).remove)
        yield


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """Rows of a batch on which units of one layer are replaced, aligned; a row comes as often as it has units."""

    layer: int
    rows: Int[Tensor, " row"]
    channels: Int[Tensor, " row"]
    """The unit in the layer."""
    lowest: Int[Tensor, "row 1"]
    """The first intervened offset of each."""
    batch: int
    """Rows in all, before beams."""


def _write(
    table: ReplacementTable,
    here: _Rows,
    shape: tuple[int, ...],
    begins: Sequence[int],
    width: int,
    site: Tensor,
) -> None:
    """Set the units of one layer in their rows, in place: a site is a fresh tensor that is read once."""
    offsets = torch.arange(site.shape[1]) + begins[0] - (width - 1)
    beams = site.shape[0] // here.batch
    acted = (offsets >= here.lowest).repeat_interleave(beams, 0)
    if not acted.any():
        return
    rows = (here.rows[:, None] * beams + torch.arange(beams)).flatten()
    channels = here.channels.repeat_interleave(beams)
    values = table.value(here.layer, offsets, channels).transpose(0, 1)
    row, position = acted.nonzero(as_tuple=True)
    split = site.unflatten(-1, shape)
    split[rows[row], position, channels[row]] = values[row, position].to(site)
