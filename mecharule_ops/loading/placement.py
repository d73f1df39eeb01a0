"""On which device and in which type a model is held, decided from its size before a weight is loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
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


def needed(shape: ModelShape, dtype: str) -> int:
    """Bytes for weights and to compute in; embedding and unembedding stay in float32 whatever the type."""
    size = _ITEM[dtype]
    outside = min(shape.parameters, shape.outside_blocks)
    weights = size * (shape.parameters - outside) + 4 * outside
    return weights + max(WORKING, weights // 10)


def place(shape: ModelShape, machine: Machine, device: str = AUTO, dtype: str = AUTO) -> Placement:
    """The device and type asked for, or chosen: a CUDA device if there is one, float32 if it fits, else bfloat16.

    Apple's device is taken only when it is named. Raises `UsageError` for a name that is none and for a device
    that is not here, `ModelUnavailable` for a model that fits nowhere it was allowed to go.
    """
    devices = _devices(machine, device)
    dtypes = ("float32", "bfloat16") if dtype == AUTO else (dtype,)
    if dtype not in DTYPES:
        raise UsageError(f"expected a dtype of: {', '.join(DTYPES)}; got {dtype!r}")
    for name in devices:
        for kind in dtypes:
            if needed(shape, kind) <= machine.free[name]:
                why = _why(machine, name) if device == AUTO else ""
                return Placement(device=name, dtype=kind, reason=_said(shape, machine, name, kind) + why)
    least = min(dtypes, key=lambda kind: needed(shape, kind))
    room = ", ".join(f"{name} has {_gb(machine.free[name])}" for name in devices)
    raise ModelUnavailable(
        f"expected room for {_gb(needed(shape, least))} ({shape.parameters:,} weights in {least} and space to "
        f"compute in), {room} free; free some, or choose a smaller model or another --device or --dtype"
    )


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
    cards = sorted((name for name in machine.free if name.startswith("cuda")), key=lambda n: -machine.free[n])
    if device == AUTO:
        return [*cards, "cpu"]
    if device == "cuda" and cards:
        return cards
    if device not in machine.free:
        raise UsageError(
            f"expected the device {device}, this machine has {', '.join(machine.free)}; choose another --device"
        )
    return [device]


def _said(shape: ModelShape, machine: Machine, device: str, dtype: str) -> str:
    fits = f"{_gb(needed(shape, dtype))} of {_gb(machine.free[device])} free"
    wide = f"; float32 would need {_gb(needed(shape, 'float32'))}" if dtype != "float32" else ""
    return f"{dtype} on {device}: {fits}{wide}"


def _why(machine: Machine, device: str) -> str:
    """Why the processor was chosen, where it was."""
    if device != "cpu":
        return ""
    return (
        "; no GPU has room" if any(name.startswith("cuda") for name in machine.free) else "; no CUDA device"
    )


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
