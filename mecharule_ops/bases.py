"""The intervention bases: which scalar, or head's vector, of a layer counts as one unit (paper, §3).

A basis is one row here. A new one is a member with its row, and a path in `loading.shape` where no field there names
its module yet; everything else asks the row.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """The basis of an intervention, by the word on the command line."""

    MLP_OUT = "mlp_out"
    """One coordinate of the MLP output written into the residual stream; the paper's basis."""
    MLP_HIDDEN = "mlp_hidden"
    """One hidden neuron: one input coordinate of the MLP's down projection."""
    ATTN_HEAD = "attn_head"
    """One attention head's output vector before W_O."""

    @property
    def row(self) -> "BasisRow":
        """Everything that sets it apart."""
        return ROWS[self]

    @property
    def letter(self) -> str:
        """`m`, `n` or `a`: how the names of its units and layers begin."""
        return self.row.letter


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisRow:
    """How the units of a basis are named, and where they live."""

    letter: str
    """Begins a unit's name."""
    site: str
    """The path of `loading.shape.Wiring` whose module holds the units."""
    in_input: bool
    """True when they are that module's input, False when its output, which the block adds to the residual stream."""
    heads: bool = False
    """Whether a unit is a whole head's vector; else it is one scalar."""
    last_write: bool = False
    """Whether nothing else of a block depends on them, so that an ablation can be added behind it."""
    noun: str
    """What a sentence calls one unit."""
    hook: str
    """The place below `blocks.N.` in TransformerLens' names."""

    @property
    def mark(self) -> str:
        """Between layer and number in a unit's name."""
        return ".h" if self.heads else "."


ROWS = {
    Basis.ATTN_HEAD: BasisRow(
        letter="a", site="attention_projection", in_input=True, heads=True, noun="head", hook="attn.hook_z"
    ),
    Basis.MLP_OUT: BasisRow(
        letter="m", site="mlp_write", in_input=False, last_write=True, noun="channel", hook="hook_mlp_out"
    ),
    Basis.MLP_HIDDEN: BasisRow(
        letter="n", site="down_projection", in_input=True, noun="neuron", hook="mlp.hook_post"
    ),
}
"""In the order in which a report recommends them."""
_NAMES = (rf"{row.letter}\d+{re.escape(row.mark)}\d+" for row in ROWS.values())
UNIT_NAME = f"(?:{'|'.join(_NAMES)})"
"""A regular expression of every printed unit name."""
