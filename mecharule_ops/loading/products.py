"""Matrix products: of float32 through oneDNN on a processor, of weights in half the memory, and of what changed.

PyTorch multiplies float32 matrices with MKL, which leaves half of an AVX-512 processor of another maker than
Intel unused: 85 against 180 GFLOP/s on one Zen 5 core, for the same precision. oneDNN is as fast on both.

Of a model in a low type the matrices inside the blocks stay in bfloat16 or float16; everything else, and every sum, is
in float32. A product widens one matrix at a time, for the moment that it is used, so that the model is the float32 one
on these weights.

A pass that starts from a clean one can do with less. W is linear, so W x = W x₀ + W (x − x₀): the clean copy goes along
in float32, and only the product of the *change* is computed in bfloat16. Its rounding error is
a share of the change, not of the activation: an ablation that moves little is decided almost exactly, one that moves
much is far from a tie or is decided again in float32 (`engine.precision`).
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from transformers.pytorch_utils import Conv1D

LOW = (torch.bfloat16, torch.float16)
# How many shapes of a product oneDNN, and PyTorch's layer over it, keep compiled and buffered; their own 1,024 grow
# to half a gigabyte in 160 short searches. Read at the first product; a user's own setting stays.
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "64")
# To a processor a mask is no hindrance: heads that share keys and values read them without a copy for each.
os.environ.setdefault("TRANSFORMERS_SDPA_FORCE_GQA", str(int(not torch.accelerator.is_available())))

_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`hidden @ weight.T + bias`, differentiable by `hidden` only."""
    if not _suits(weight):
        return nn.functional.linear(hidden, weight, bias)
    if torch.is_grad_enabled() and hidden.requires_grad:
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


def _product(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    value, moved = forward_ad.unpack_dual(hidden)
    product: Tensor = torch.ops.mkldnn._linear_pointwise(value, weight, bias, "none", [], "")
    return product if moved is None else forward_ad.make_dual(product, _product(moved, weight, None))


def _suits(weight: Tensor) -> bool:
    return (
        _ONEDNN and weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.is_contiguous()
    )


@contextmanager
def through_onednn(model: nn.Module) -> Iterator[None]:
    """Inside, the model's linear layers use `linear`; outside they are untouched."""
    layers = [module for module in model.modules() if type(module) is nn.Linear and _suits(module.weight)]
    for layer in layers:
        setattr(layer, "forward", partial(_multiplied, layer))  # noqa: B010
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


@dataclass(slots=True, eq=False)
class Changes:
    """So many copies of a span side by side, the first of them clean."""

    copies: int
    last: tuple[Tensor, Tensor] | None = None
    """What was multiplied last, and its change in bfloat16: several matrices read the same."""

    def of(self, hidden: Tensor) -> Float[Tensor, "record copy position channel"]:
        """Of the copies behind the first x − x₀."""
        if self.last is None or self.last[0] is not hidden:
            split = hidden.unflatten(1, (self.copies, -1))
            self.last = hidden, (split[:, 1:] - split[:, :1]).bfloat16()
        return self.last[1]


_CHANGES: ContextVar[Changes | None] = ContextVar("copies whose change is multiplied", default=None)


def as_changes(copies: int) -> AbstractContextManager[None]:
    """Inside, of so many copies products are those of their change from the first, which is clean; none for 0."""
    return inside(_CHANGES, Changes(copies) if copies else None)


@contextmanager
def inside(variable: ContextVar[Any], value: object) -> Iterator[None]:
    """Inside, the variable has the value."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def prepare(model: nn.Module, blocks: nn.ModuleList) -> None:
    """Has a model that was loaded in a low type compute as this module says; does nothing to one in float32."""
    narrow = [
        module
        for module in blocks.modules()
        if isinstance(module, nn.Linear | Conv1D) and module.get_parameter("weight").dtype in LOW
    ]
    if not narrow:
        return
    kept = {id(tensor) for module in narrow for tensor in module.parameters()}
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.dtype in LOW and id(tensor) not in kept:
            tensor.data = tensor.data.float()
    for module in narrow:
        setattr(module, "forward", partial(_multiplied, module))  # noqa: B010


def _multiplied(module: nn.Module, hidden: Tensor) -> Tensor:
    own, bias = module.get_parameter("weight"), getattr(module, "bias", None)
    weight = own.t() if isinstance(module, Conv1D) else own
    bias = None if bias is None else bias.float()
    changes = _CHANGES.get()
    if changes is None or hidden.dim() != 3:
        return linear(hidden, weight.float(), bias)
    clean = linear(hidden[:, : hidden.shape[1] // changes.copies].contiguous(), weight.float(), bias)[:, None]
    output = clean.new_empty((len(hidden), changes.copies, *clean.shape[2:]))
    output[:, :1] = clean
    torch.add(nn.functional.linear(changes.of(hidden), weight.bfloat16()), clean, out=output[:, 1:])
    return output.flatten(1, 2)


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the device is a processor with instructions for bfloat16 matrices.

    On one without them such products are slower than those in float32.
    """
    # torch 2.10 tells none.
    known = getattr(torch.cpu, "get_capabilities", dict[str, bool])() if device.type == "cpu" else {}
    return bool(known.get("avx512_bf16") or known.get("amx_tile"))
