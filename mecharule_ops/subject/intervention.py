"""`do(A)` on the model: replaces units at the tensor where their basis lives (paper, §3).

An edit sets some units of one layer, for some records of a batch and one of its copies, at every position of
the span; spans begin at the first intervened position, so nothing else needs to be told where to act.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from mecharule_ops.subject.model import Subject
from mecharule_ops.types import Basis


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """Some units of one layer and what they are replaced by."""

    channels: Int[Tensor, " channel"]
    values: Float[Tensor, "record position channel *head_dim"]
    """Replacement per record and span position."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """`units` replaced in one copy of every record, or of one."""

    units: Units
    copy: int = 0
    row: int | None = None


@contextmanager
def editing(
    subject: Subject, block: nn.Module, basis: Basis, copies: int, edits: Sequence[Edit]
) -> Iterator[None]:
    """Inside, every call of `block` replaces the edited units before anything downstream reads them."""
    if not edits:
        yield
        return
    module, in_input = subject.wiring.site(block, basis)
    shape = (-1, subject.unit_size(basis)) if basis is Basis.ATTN_HEAD else (-1,)

    def edit_input(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        apply(inputs[0], edits, copies, shape)

    def edit_output(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        apply(output, edits, copies, shape)

    register: Any = module.register_forward_pre_hook if in_input else module.register_forward_hook
    handle = register(edit_input if in_input else edit_output)
    try:
        yield
    finally:
        handle.remove()


def apply(site: Tensor, edits: Sequence[Edit], copies: int, unit_shape: tuple[int, ...] = (-1,)) -> None:
    """Write the edits into `[record, copy × position, width]` in place: a site is a fresh tensor read once."""
    split = site.unflatten(1, (copies, -1)).unflatten(-1, unit_shape)
    for edit in edits:
        rows = slice(None) if edit.row is None else slice(edit.row, edit.row + 1)
        split[rows, edit.copy][:, :, edit.units.channels] = edit.units.values
