"""On which device and in which type a model is held, decided from its size before a weight is loaded.

A model is held by one device. Passes, edits and attribution all take a tensor's device to be the model's, so one that
only several cards could hold together is refused by that name, not spread over them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    dtype: str
    reason: str
    """The choice with its numbers, for a person."""


def this_machine(devices: Path = Path("/dev")) -> Machine:
    """The processor, every CUDA device and Apple's, with what is free on each.

    Imports torch only where there may be a card: on Linux its driver has files among the `devices`.
    """
    free = {"cpu": free_memory()}
    if sys.platform == "linux" and not any(one for name in _DRIVERS for one in devices.glob(name)):
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

    Apple's device is taken only when it is named. Raises `UsageError` for a name that is none and for a device
    that is not here, `ModelUnavailable` for a model that fits on no single device it was allowed to go to.
    """
    devices = _devices(machine, device)
    dtypes = ("float32", "bfloat16") if dtype == AUTO else (dtype,)
    if dtype not in DTYPES:
        raise UsageError(f"expected a dtype of: {', '.join(DTYPES)}; got {dtype!r}")
    for name in devices:
        for kind in dtypes:
            if needed(shape, kind) <= machine.free[name]:
                why = _why(shape, machine, name) if device == AUTO else ""
                return Placement(device=name, dtype=kind, reason=_said(shape, machine, name, kind) + why)
    least = min(dtypes, key=lambda kind: needed(shape, kind))
    room = ", ".join(f"{name} has {_gb(machine.free[name])}" for name in devices)
    shared = over_several(shape, machine, least) if len(devices) > 1 else ()
    raise ModelUnavailable(
        f"expected room for {_gb(needed(shape, least))} ({shape.parameters:,} weights in {least} and space to "
        f"compute in), {room} free; {_not_spread(shared, machine)}free some, or choose a smaller model or another "
        "--device or --dtype"
    )


def over_several(shape: ModelShape, machine: Machine, dtype: str) -> tuple[str, ...]:
    """The CUDA devices, largest first, that have room for the weights only together; empty where none or one does.

    Each needs space to compute in of its own: `WORKING`, or a tenth of the weights shared out among them.
    """
    cards = _cards(machine)
    weights, space = weight_bytes(shape, dtype), 0
    for count, name in enumerate(cards, 1):
        space += machine.free[name]
        if weights + max(count * WORKING, weights // 10) <= space:
            return tuple(cards[:count]) if count > 1 else ()
    return ()


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


def _said(shape: ModelShape, machine: Machine, device: str, dtype: str) -> str:
    fits = f"{_gb(needed(shape, dtype))} of {_gb(machine.free[device])} free"
    wide = f"; float32 would need {_gb(needed(shape, 'float32'))}" if dtype != "float32" else ""
    return f"{dtype} on {device}: {fits}{wide}"


def _why(shape: ModelShape, machine: Machine, device: str) -> str:
    """Why the processor was chosen, where it was."""
    if device != "cpu":
        return ""
    if not _cards(machine):
        return "; no CUDA device"
    shared = over_several(shape, machine, "bfloat16")
    return f"; no GPU has room; {_not_spread(shared, machine)}".rstrip("; ")


def _not_spread(shared: Sequence[str], machine: Machine) -> str:
    """The sentence about cards that would hold a model together only; nothing where there are none."""
    if not shared:
        return ""
    together = _gb(sum(machine.free[name] for name in shared))
    return f"{' and '.join(shared)} have {together} together, but a model is not spread over several cards; "


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
