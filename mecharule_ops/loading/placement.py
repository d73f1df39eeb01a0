"""On which device and in which type a model is held, decided from its size before a weight is loaded.

One device holds a model where one has room. A model that only several CUDA cards hold together is spread over them:
its blocks, whole and in order, a run of them on each card, everything outside the blocks on the first.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.memory import free_memory
from mecharule_ops.loading.shape import ModelShape

AUTO = "auto"
DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")
DTYPES = (AUTO, "float32", "bfloat16", "float16")
_ITEM = {"float32": 4, "bfloat16": 2, "float16": 2}
_DRIVERS = ("nvidia*", "nvhost*", "dxg", "kfd")
"""Files of the drivers of cards that torch calls CUDA devices: Nvidia's, Jetson's, Windows', AMD's."""
WORKING = 512 * 2**20
"""Bytes to compute in, at least; a tenth of the weights where that is more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is to put a model on."""

    free: Mapping[str, int]
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
        return Machine(free=free)
    import torch

    for index in range(torch.cuda.device_count()):
        free[f"cuda:{index}"] = torch.cuda.mem_get_info(index)[0]
    if torch.backends.mps.is_available():
        free["mps"] = free["cpu"]
    return Machine(free=free)


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
    alone = [name for name in devices if name != "cpu"]
    found = _on_one(shape, machine, alone, dtypes)
    if found is None and len(alone) > 1:
        found = _over_several(shape, machine, dtypes)
    if found is None and "cpu" in devices:
        found = _on_one(shape, machine, ["cpu"], dtypes)
        if found is not None and device == AUTO:
            found = replace(found, reason=found.reason + _why(machine))
    if found is not None:
        return found
    least = min(dtypes, key=lambda kind: needed(shape, kind))
    room = ", ".join(f"{name} has {_gb(machine.free[name])}" for name in devices)
    together = ", and there is none over several cards" if len(alone) > 1 else ""
    raise ModelUnavailable(
        f"expected room for {_gb(needed(shape, least))} ({shape.parameters:,} weights in {least} and space to "
        f"compute in), {room} free{together}; free some, or choose a smaller model or another --device or --dtype"
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
        left = {name: machine.free[name] - space for name in cards[:count]}
        left[cards[0]] -= outside
        held = Counter[str]()
        for _ in range(shape.n_layers):
            name = max(left, key=left.__getitem__)
            left[name] -= block
            held[name] += 1
        if min(left.values()) >= 0:
            return tuple(name for name in left for _ in range(held[name]))
    return ()


def _on_one(
    shape: ModelShape, machine: Machine, devices: Sequence[str], dtypes: Sequence[str]
) -> Placement | None:
    """On the first device that has room, in the first type in which it has."""
    for name in devices:
        for kind in dtypes:
            if needed(shape, kind) <= machine.free[name]:
                return Placement(device=name, dtype=kind, reason=_said(shape, machine, [name], kind))
    return None


def _over_several(shape: ModelShape, machine: Machine, dtypes: Sequence[str]) -> Placement | None:
    """Over several cards, in the first type in which they have room together."""
    for kind in dtypes:
        blocks = over_several(shape, machine, kind)
        if blocks:
            first = _cards(machine)[0]
            said = _said(shape, machine, list(dict.fromkeys((first, *blocks))), kind)
            return Placement(
                device=first, dtype=kind, blocks=blocks, reason=f"{said}; no card alone has room"
            )
    return None


def kept(machine: Machine, wanted: str, before: str | None) -> str:
    """The device to ask for where a run goes on: the one that it names, else of the kind it was on, else any.

    `before` is where it was, None for a new run, which gets what it asks for or nothing.
    """
    if before is None:
        return wanted
    here = {
        AUTO: False,
        **dict.fromkeys([*machine.free, *(name.split(":")[0] for name in machine.free)], True),
    }
    return next((name for name in (wanted, before.split(":")[0]) if here.get(name)), AUTO)


def _devices(machine: Machine, device: str) -> list[str]:
    """The devices to try, best first."""
    if not DEVICE.fullmatch(device):
        raise UsageError(f"expected a device auto, cpu, cuda, cuda:N or mps, got {device!r}")
    cards = _cards(machine)
    if device == AUTO:
        return [*cards, "cpu"]
    if device == "cuda" and cards:
        return cards
    if device not in machine.free:
        raise UsageError(
            f"expected the device {device}, this machine has {', '.join(machine.free)}; choose another --device"
        )
    return [device]


def _cards(machine: Machine) -> list[str]:
    """CUDA devices, the one with most room first."""
    return sorted((name for name in machine.free if name.startswith("cuda")), key=lambda n: -machine.free[n])


def _said(shape: ModelShape, machine: Machine, devices: Sequence[str], dtype: str) -> str:
    free, together = sum(machine.free[name] for name in devices), " together" * (len(devices) > 1)
    fits = f"{_gb(needed(shape, dtype))} of {_gb(free)} free{together}"
    wide = f"; float32 would need {_gb(needed(shape, 'float32'))}" if dtype != "float32" else ""
    over = "over" if len(devices) > 1 else "on"
    return f"{dtype} {over} {' and '.join(devices)}: {fits}{wide}"


def _why(machine: Machine) -> str:
    """Why the processor was chosen, where it was not asked for."""
    count = len(_cards(machine))
    return ("; no CUDA device", "; no GPU has room", "; no GPU has room, nor have all together")[
        min(count, 2)
    ]


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
