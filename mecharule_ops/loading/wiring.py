"""Where each architecture keeps the modules that an intervention touches.

One row a family. Attention and MLP each add one write to the residual stream: the output of their projection, or
of a normalisation behind it where the family has one. A basis is intervened on at one tensor, the input or the
output of one of these modules, as its row in `bases` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.types import Basis

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True)
class Wiring:
    """Dotted paths: `layers`, `final_norm` and `unembed` from the causal model, the others from one layer.

    Left out they are those of Llama, which most families keep.
    """

    layers: str = "model.layers"
    attention_projection: str = "self_attn.o_proj"
    down_projection: str = "mlp.down_proj"
    final_norm: str = "model.norm"
    unembed: str = "lm_head"
    attention_norm: str | None = None
    """The normalisation between W_O and the residual stream, where the family has one."""
    mlp_norm: str | None = None
    """The same behind the down projection."""

    @property
    def mlp_write(self) -> str:
        """What an MLP adds to the residual stream is the output of this."""
        return self.mlp_norm or "mlp"

    def blocks(self, model: nn.Module) -> nn.ModuleList:
        """The model's layers, first to last."""
        return attrgetter(self.layers)(model)

    def site(self, block: nn.Module, basis: Basis) -> tuple[nn.Module, bool]:
        """(module, True when the unit lives in its input, False when in its output)."""
        return attrgetter(getattr(self, basis.row.site))(block), basis.row.in_input

    def norm_behind(self, block: nn.Module, basis: Basis) -> nn.Module | None:
        """The normalisation between a basis's projection and the residual stream, if there is one."""
        norms = {"attention_projection": self.attention_norm, "down_projection": self.mlp_norm}
        path = norms.get(basis.row.site)
        return None if path is None else attrgetter(path)(block)

    def head(self, model: nn.Module) -> tuple[nn.Module, nn.Module]:
        """(final normalisation, unembedding)."""
        return attrgetter(self.final_norm)(model), attrgetter(self.unembed)(model)


_NORMED = {"attention_norm": "post_attention_layernorm", "mlp_norm": "post_feedforward_layernorm"}
_WIRINGS = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma"), Wiring()),
    **dict.fromkeys(("gemma2", "gemma3_text"), Wiring(**_NORMED)),
    "gpt2": Wiring("transformer.h", "attn.c_proj", "mlp.c_proj", "transformer.ln_f"),
    "gptj": Wiring("transformer.h", "attn.out_proj", "mlp.fc_out", "transformer.ln_f"),
    "gpt_neox": Wiring(
        "gpt_neox.layers", "attention.dense", "mlp.dense_4h_to_h", "gpt_neox.final_layer_norm"
    ),
}


def wiring_for(model_type: str) -> Wiring:
    """The wiring of a Hugging Face `model_type`. Raises `ModelUnavailable` for a family not listed here."""
    if model_type not in _WIRINGS:
        known = ", ".join(sorted(_WIRINGS))
        raise ModelUnavailable(
            f"expected an architecture of: {known}; got {model_type!r}; choose another model"
        )
    return _WIRINGS[model_type]
