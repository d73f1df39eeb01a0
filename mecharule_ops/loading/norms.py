"""A normalisation of the residual stream, taken apart: norm(x) = gain ⊙ (x [− its mean]) / scale(x) + bias.

LayerNorm centres and has a bias, RMSNorm does neither. The gain is what the module multiplies by, whatever it
stores: Gemma stores the gain less 1.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


def normalised(norm: nn.Module, residual: Tensor) -> Tensor:
    """A normalisation before its gain and bias: LayerNorm centres and scales, RMSNorm only scales."""
    if isinstance(norm, nn.LayerNorm):
        return functional.layer_norm(residual, norm.normalized_shape, eps=norm.eps)
    return residual * torch.rsqrt(residual.square().mean(-1, keepdim=True) + _epsilon(norm))


def scale(norm: nn.Module, residual: Float[Tensor, "*row channel"]) -> Float[Tensor, "*row 1"]:
    """What a residual is divided by, σ(x)."""
    if isinstance(norm, nn.LayerNorm):
        return torch.sqrt(residual.var(-1, keepdim=True, correction=0) + norm.eps)
    return torch.sqrt(residual.square().mean(-1, keepdim=True) + _epsilon(norm))


def gain(norm: nn.Module) -> Float[Tensor, " channel"]:
    """γ; of an RMSNorm it is read off what the module makes of a vector of ones."""
    weight = norm.get_parameter("weight").detach()
    if isinstance(norm, nn.LayerNorm):
        return weight
    ones = torch.ones_like(weight)
    with torch.no_grad():
        return norm(ones) / normalised(norm, ones)


def before(
    norm: nn.Module, scales: Float[Tensor, "*#row 1"], direction: Float[Tensor, "*#row channel"]
) -> Float[Tensor, "*#row channel"]:
    """⟨direction, norm(x)⟩ as a direction on x with the scale frozen: (γ ⊙ direction [− its mean]) / σ."""
    pulled = direction * gain(norm)
    if isinstance(norm, nn.LayerNorm):
        pulled = pulled - pulled.mean(-1, keepdim=True)
    return pulled / scales


def _epsilon(rms_norm: nn.Module) -> float:
    """The field's name differs between families."""
    return float(getattr(rms_norm, "variance_epsilon" if hasattr(rms_norm, "variance_epsilon") else "eps"))
