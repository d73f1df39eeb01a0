"""Simulated CUDA cards: tensors that say `cuda:N` and refuse to meet those of another, computed on the processor.

What torch refuses on real cards is refused here: one operation on tensors of two devices. Allowed are, as there, a
number (a tensor without axes) from the processor, indices from the processor, and copies from one device to another.
Torch's own core, which gradients and indexing are written in, takes the tensors to be the processor's; what it makes
by itself for forward derivatives and for masked attention is, so models here compute attention eagerly.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from mecharule_ops.loading import model, model_names, placement, shape
from mecharule_ops.loading.placement import weight_bytes

_ATEN = torch.ops.aten
_COPIES = {_ATEN.copy_, _ATEN.copy}
_INDEXING = {_ATEN.index, _ATEN.index_put, _ATEN.index_put_, _ATEN._index_put_impl_, _ATEN._unsafe_index}
_PROCESSOR = torch.device("cpu")


class OnCard(Tensor):
    """A tensor of a simulated card: `held` has its numbers, on the processor."""

    held: Tensor
    card: torch.device

    @staticmethod
    def __new__(cls, held: Tensor, card: torch.device) -> "OnCard":
        made: OnCard = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype
        )
        made.held, made.card = held, card
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The card."""
        return self.card

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        """The tensor outside any graph."""
        return self.detach()

    @data.setter
    def data(self, other: "OnCard") -> None:
        torch._C.TensorBase.data.__set__(self, other)
        self.held = other.held

    def data_ptr(self) -> int:
        """Where the numbers lie."""
        return self.held.data_ptr()

    def tolist(self) -> Any:
        """The numbers; torch itself gives none of a subclass."""
        return self.held.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Refused, as of a real card."""
        raise TypeError(f"can't convert {self.card} tensor to numpy")

    def cpu(self, *settings: Any) -> Tensor:
        """A copy on the processor."""
        return self.to(_PROCESSOR)

    def to(self, *where: Any, **settings: Any) -> Tensor:
        """Itself, or a copy in another type or on another device; its gradient comes back to its card."""
        asked = (where[0].device, where[0].dtype) if where and isinstance(where[0], Tensor) else where
        named = {name: value for name, value in settings.items() if name in ("device", "dtype")}
        device, dtype, *_ = torch._C._nn._parse_to(*asked, **named)
        moved = self if dtype is None or dtype == self.dtype else _ATEN._to_copy(self, dtype=dtype)
        if device is None or _indexed(device) == self.card:
            return cast(Tensor, moved)
        return cast(Tensor, _Moved.apply(moved, _indexed(device)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return OnCard(self.held.clone(), self.card)


class _Moved(torch.autograd.Function):
    """A copy on another device."""

    @staticmethod
    def forward(tensor: Tensor, device: torch.device) -> Tensor:
        return cast(Tensor, _ATEN._to_copy(tensor, device=device))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.back = inputs[0].device

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0].to(ctx.back), None


class _Generator(torch.Generator):
    """The processor's, whatever device is asked for."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        return super().__new__(cls, "cpu")


class _Simulated(TorchDispatchMode):
    """Has tensors that are made on a card, or copied to one, made there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What `func` gives, on the one device that its tensors lie on or the one that it is told."""
    given = _tensors((args, dict(kwargs)))
    target = _one_device(func, args, given)
    settings = dict(kwargs)
    told = settings.get("device")
    # Torch's core, which takes a card for the processor, passes that on where gradients need zeros.
    if told is not None and not (func.overloadpacket.__name__.startswith("new_") and target != _PROCESSOR):
        target = _indexed(told)
    if told is not None:
        settings["device"] = _PROCESSOR
    result = func(*_with(_held, args), **_with(_held, settings))
    if target == _PROCESSOR:
        return result
    if func.overloadpacket is _ATEN.detach:
        with torch.inference_mode(given[0].is_inference()):
            return OnCard(result, target)
    same = {id(one.held): one for one in given if isinstance(one, OnCard)}
    return _with(lambda one: same[id(one)] if id(one) in same else OnCard(one, target), result)


def _tensors(values: Any) -> list[Tensor]:
    """Those among what an operation is given, lists of them included."""
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _with(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """What an operation is given or gives, its tensors changed."""
    return tree_map_only(Tensor, change, value)


def _held(tensor: Tensor) -> Tensor:
    return tensor.held if isinstance(tensor, OnCard) else tensor


def _one_device(func: Any, args: tuple[Any, ...], given: list[Tensor]) -> torch.device:
    """The device of the tensors that `func` is given. Raises `RuntimeError` where there are several."""
    if func.overloadpacket in _COPIES:
        return cast(torch.device, args[0].device)
    cards = {one.card for one in given if isinstance(one, OnCard)}
    # Forward derivatives that are zero are made on the processor by torch's core, and hold nothing.
    beside = [one for one in given if not isinstance(one, OnCard) and one.dim() and not one._is_zerotensor()]
    if func.overloadpacket in _INDEXING:
        indices = {id(one) for one in _tensors(args[1:2])}
        beside = [one for one in beside if id(one) not in indices]
    if len(cards) > 1 or (cards and beside):
        found = sorted({str(one.device) for one in given})
        raise RuntimeError(f"expected all tensors of {func} on one device, found {', '.join(found)}")
    return next(iter(cards), _PROCESSOR)


def _indexed(device: Any) -> torch.device:
    """A device with its number."""
    found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    return torch.device("cuda:0") if found.type == "cuda" and found.index is None else found


@contextmanager
def simulated_cards(monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[None]:
    """Inside, there are so many CUDA cards, with 4 GB free each."""
    with monkeypatch.context() as patch, _Simulated():
        patch.setattr(torch.cuda, "_lazy_init", lambda: None)
        patch.setattr(torch.cuda, "device_count", lambda: count)
        patch.setattr(torch.cuda, "mem_get_info", lambda device=0: (4 * 10**9, 4 * 10**9))
        patch.setattr(torch.cuda, "memory_reserved", lambda device=None: 0)
        patch.setattr(torch.cuda, "memory_allocated", lambda device=None: 0)
        patch.setattr(torch, "Generator", _Generator)
        patch.setattr(torch, "tensor", partial(_tensor, torch.tensor))
        yield


def _tensor(make: Callable[..., Tensor], data: Any, *, device: Any = None, **settings: Any) -> Tensor:
    """`torch.tensor`, which asks no mode where a tensor is to be made."""
    made = make(data, **settings)
    return made if device is None else made.to(device)


def on_cards(
    monkeypatch: pytest.MonkeyPatch, directory: str, shares: Sequence[float], dtype: str = "float32"
) -> model.Subject:
    """The model of a directory, loaded where there are cards with room for these shares of it each."""
    size = weight_bytes(shape.read_shape(model_names.resolve(directory)), dtype)
    free = {f"cuda:{index}": int(share * size) for index, share in enumerate(shares)}
    with monkeypatch.context() as patch:
        patch.setattr(placement, "WORKING", 0)
        patch.setattr(placement, "this_machine", lambda: {"cpu": 0, **free})
        # Tensors are read one after the other: a thread of its own would not see the cards.
        patch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
        subject = model_names.load(directory, "cuda", dtype)
    subject.hf.set_attn_implementation("eager")
    return subject
