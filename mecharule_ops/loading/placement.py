"""On which device and in which type a model is held, decided from its size before a weight is loaded.

One device holds a model where one has room. A model that only several CUDA cards hold together is spread over them:
its blocks, whole and in order, a run of them on each card, everything outside the blocks on the first.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.shape import ModelShape

if TYPE_CHECKING:
    import torch

AUTO = "auto"
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")
DTYPES = (AUTO, "float32", "bfloat16", "float16")
_ITEM = {"float32": 4, "bfloat16": 2, "float16": 2}
_DRIVERS = ("nvidia*", "nvhost*", "dxg", "kfd")
"""Files of the drivers of cards that torch calls CUDA devices: Nvidia's, Jetson's, Windows', AMD's."""
WORKING = 512 * 2**20
"""Bytes to compute in, at least; a tenth of the weights where that is more."""


Machine = Mapping[str, int]
"""Free bytes of each device, by the name that torch gives it; the processor is always there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a model goes."""

    device: str
    """Of a model on several cards the first: embedding, final normalisation and unembedding lie there."""
    dtype: str
    reason: str
    """The choice with its numbers, for a person."""
    blocks: tuple[str, ...] = ()
    """The card of each block of a model on several; empty where one device holds all."""


def this_machine(devices: Path = Path("/dev")) -> Machine:
    """The processor, every CUDA device and Apple's, with what is free on each.

    Imports torch only where there may be a card: on Linux its driver has files among the `devices`.
    """
    free = {"cpu": free_memory()}
    if sys.platform == "linux" and not any(file for name in _DRIVERS for file in devices.glob(name)):
        return free
    import torch

    for index in range(torch.cuda.device_count()):
        free[f"cuda:{index}"] = torch.cuda.mem_get_info(index)[0]
    if torch.backends.mps.is_available():
        free["mps"] = free["cpu"]
    return free


def weight_bytes(shape: ModelShape, dtype: str) -> int:
    """Bytes of the weights; embedding and unembedding stay in float32 whatever the type."""
    outside = min(shape.parameters, shape.outside_blocks)
    return _ITEM[dtype] * (shape.parameters - outside) + 4 * outside


def needed(shape: ModelShape, dtype: str) -> int:
    """Bytes for weights and to compute in."""
    weights = weight_bytes(shape, dtype)
    return weights + max(WORKING, weights // 10)


def place(shape: ModelShape, machine: Machine, device: str = AUTO, dtype: str = AUTO) -> Placement:
    """The device and type asked for, or chosen: a CUDA device if there is one, float32 if it fits, else bfloat16.

    Several CUDA cards are taken only where none alone has room, in either type, and before the processor. Apple's
    device is taken only when it is named. Raises `UsageError` for a name that is none and for a device that is not
    here, `ModelUnavailable` for a model that fits nowhere that it was allowed to go to.
    """
    devices = _devices(machine, device)
    dtypes = ("float32", "bfloat16") if dtype == AUTO else (dtype,)
    if dtype not in DTYPES:
        raise UsageError(f"expected a dtype of: {', '.join(DTYPES)}; got {dtype!r}")
    cards = [name for name in devices if name != "cpu"]
    several = [cards] if len(cards) > 1 else []
    for names in (*([name] for name in cards), *several, *(["cpu"] for name in devices if name == "cpu")):
        for kind in dtypes:
            need = needed(shape, kind)
            blocks = over_several(shape, machine, kind) if len(names) > 1 else ()
            if not blocks and (len(names) > 1 or need > machine[names[0]]):
                continue
            used = list(dict.fromkeys((names[0], *blocks)))
            free = sum(machine[name] for name in used)
            reason = f"{kind} on {' and '.join(used)}: {_gb(need)} of {_gb(free)} free"
            if kind != "float32":
                reason += f"; float32 would need {_gb(needed(shape, 'float32'))}"
            if blocks:
                reason += "; no card alone has room"
            elif device == AUTO and used == ["cpu"]:
                reason += "; no GPU has room" if cards else "; no CUDA device"
            return Placement(device=used[0], dtype=kind, reason=reason, blocks=blocks)
    least = min(dtypes, key=lambda kind: needed(shape, kind))
    room = ", ".join(f"{name} has {_gb(machine[name])}" for name in devices)
    raise ModelUnavailable(
        f"expected room for {_gb(needed(shape, least))} ({shape.parameters:,} weights in {least} and space to "
        f"compute in), {room} free; free some, or choose a smaller model or another --device or --dtype"
    )


def over_several(shape: ModelShape, machine: Machine, dtype: str) -> tuple[str, ...]:
    """The card of each block where several CUDA devices have room together; empty where they have none.

    As few cards as will do, those with most room first. Each keeps space to compute in, `WORKING` or its part of a
    tenth of the weights; the first also takes what is outside the blocks. Blocks, taken to be of one size, go one by
    one where most room is left, so that what remains free is about the same on every card.
    """
    cards, weights = _cards(machine), weight_bytes(shape, dtype)
    outside = 4 * min(shape.parameters, shape.outside_blocks)
    block = -(-(weights - outside) // shape.n_layers)
    for count in range(2, len(cards) + 1):
        space = max(WORKING, weights // 10 // count)
        left = {name: machine[name] - space for name in cards[:count]}
        left[cards[0]] -= outside
        held = Counter[str]()
        for _ in range(shape.n_layers):
            name = max(left, key=left.__getitem__)
            left[name] -= block
            held[name] += 1
        if min(left.values()) >= 0:
            return tuple(name for name in left for _ in range(held[name]))
    return ()


def kept(machine: Machine, wanted: str, before: str | None) -> str:
    """The device to ask for where a run goes on: the one that it names, else of the kind it was on, else any.

    `before` is where it was, None for a new run, which gets what it asks for or nothing.
    """
    if before is None:
        return wanted
    here = {*machine, *(name.split(":")[0] for name in machine)}
    return next((name for name in (wanted, before.split(":")[0]) if name in here), AUTO)


def _devices(machine: Machine, device: str) -> list[str]:
    """The devices to try, best first."""
    if not DEVICE.fullmatch(device):
        raise UsageError(f"expected a device auto, cpu, cuda, cuda:N or mps, got {device!r}")
    cards = _cards(machine)
    if device == AUTO:
        return [*cards, "cpu"]
    if device == "cuda" and cards:
        return cards
    if device not in machine:
        raise UsageError(
            f"expected the device {device}, this machine has {', '.join(machine)}; choose another --device"
        )
    return [device]


def _cards(machine: Machine) -> list[str]:
    """CUDA devices, the one with most room first."""
    return sorted((name for name in machine if name.startswith("cuda")), key=lambda n: -machine[n])


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"


def free_bytes(*devices: torch.device) -> int:
    """Free memory of the device, of several that of the one with least."""
    from torch.cuda import mem_get_info

    return min(mem_get_info(device)[0] if device.type == "cuda" else free_memory() for device in devices)


def free_memory() -> int:
    """What the system can hand out without swapping."""
    return int(psutil.virtual_memory().available)


def is_out_of_memory(error: BaseException) -> bool:
    """True for `MemoryError` and for the errors torch raises when an allocation fails, on any device."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
