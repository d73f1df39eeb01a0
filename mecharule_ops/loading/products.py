"""Float32 matrix products through oneDNN on a processor.

PyTorch multiplies float32 matrices with MKL, which leaves half of an AVX-512 processor of another maker than
Intel unused: 85 against 180 GFLOP/s on one Zen 5 core, for the same precision. oneDNN is as fast on both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

_SHAPES = "64"
"""How many shapes of a product oneDNN, and PyTorch's layer over it, keep compiled and buffered; their own 1,024 grow
to half a gigabyte in 160 short searches. Read at the first product; a user's own setting stays."""
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, _SHAPES)

_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`hidden @ weight.T + bias`, differentiable by `hidden` only, backward and forward."""
    if not _suits(weight):
        return nn.functional.linear(hidden, weight, bias)
    forward_mode = forward_ad._current_level >= 0 and forward_ad.unpack_dual(hidden).tangent is not None
    if forward_mode or (torch.is_grad_enabled() and hidden.requires_grad):
        return cast(Tensor, _Product.apply(hidden, weight, bias))
    return _product(hidden, weight, bias)


class _Product(torch.autograd.Function):
    """A product whose input's gradient is one through oneDNN too; weight and bias get none."""

    @staticmethod
    def forward(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _product(hidden, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        ctx.weight = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _product(gradients[0].contiguous(), ctx.weight.t(), None), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _product(tangents[0].contiguous(), ctx.weight, None)


def _product(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(hidden, weight, bias, "none", [], "")


def _suits(weight: Tensor) -> bool:
    return (
        _ONEDNN and weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.is_contiguous()
    )


@contextmanager
def through_onednn(model: nn.Module) -> Iterator[None]:
    """Inside, the model's linear layers use `linear`; outside they are untouched."""
    layers = [module for module in model.modules() if type(module) is nn.Linear and _suits(module.weight)]
    for layer in layers:
        setattr(layer, "forward", partial(linear, weight=layer.weight, bias=layer.bias))  # noqa: B010
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
