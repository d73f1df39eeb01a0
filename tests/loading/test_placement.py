"""Where a model goes is decided from numbers alone, so that every machine can be tried here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from tiny_models import save_tiny

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.placement import (
    WORKING,
    Machine,
    kept,
    needed,
    over_several,
    place,
    this_machine,
    weight_bytes,
)
from mecharule_ops.loading.registry import load
from mecharule_ops.loading.shape import ModelShape
from mecharule_ops.loading.wiring import wiring_for

GB = 10**9
SEVEN = ModelShape(
    directory=Path("seven"),
    settings={
        "model_type": "qwen2",
        "vocab_size": 150_000,
        "hidden_size": 4000,
        "tie_word_embeddings": False,
    },
    wiring=wiring_for("qwen2"),
    parameters=7 * GB,
    stored_as="bfloat16",
)
"""7 B weights, 1.2 B of them outside the blocks."""


def test_what_is_needed_by_hand() -> None:
    """28 GB in float32; 5.8 B at 2 bytes and 1.2 B at 4 in bfloat16; a tenth to compute in."""
    assert needed(SEVEN, "float32") == 28 * GB + 28 * GB // 10
    assert needed(SEVEN, "bfloat16") == 16_400_000_000 + 1_640_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /dev to look in")
def test_torch_is_asked_for_cards_only_where_a_driver_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty folder of devices has the processor alone, whatever torch would say; a driver's file asks it."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (5 * GB + index, 80 * GB))
    (tmp_path / "nvme0").touch()
    assert set(this_machine(tmp_path).free) == {"cpu"}
    (tmp_path / "nvidiactl").touch()
    found = this_machine(tmp_path).free
    assert {name: found[name] for name in found if name != "cpu"} == {"cuda:0": 5 * GB, "cuda:1": 5 * GB + 1}


@pytest.mark.parametrize(
    ("free", "asked", "expected"),
    [
        ({"cpu": 64 * GB}, ("auto", "auto"), ("cpu", "float32")),
        ({"cpu": 24 * GB}, ("auto", "auto"), ("cpu", "bfloat16")),
        ({"cpu": 64 * GB, "cuda:0": 80 * GB}, ("auto", "auto"), ("cuda:0", "float32")),
        ({"cpu": 64 * GB, "cuda:0": 24 * GB}, ("auto", "auto"), ("cuda:0", "bfloat16")),
        ({"cpu": 64 * GB, "cuda:0": 8 * GB}, ("auto", "auto"), ("cpu", "float32")),
        ({"cpu": 64 * GB, "cuda:0": 8 * GB, "cuda:1": 40 * GB}, ("cuda", "auto"), ("cuda:1", "float32")),
        ({"cpu": 64 * GB, "cuda:0": 80 * GB}, ("cpu", "bfloat16"), ("cpu", "bfloat16")),
        ({"cpu": 64 * GB, "mps": 64 * GB}, ("auto", "auto"), ("cpu", "float32")),
        ({"cpu": 64 * GB, "mps": 64 * GB}, ("mps", "auto"), ("mps", "float32")),
        ({"cpu": 64 * GB, "cuda:0": 80 * GB, "cuda:1": 40 * GB}, ("cuda:1", "auto"), ("cuda:1", "float32")),
    ],
)
def test_the_choice(free: dict[str, int], asked: tuple[str, str], expected: tuple[str, str]) -> None:
    """A GPU if there is one, float32 if it fits, else bfloat16; the reason carries the numbers."""
    found = place(SEVEN, Machine(free=free), *asked)
    assert (found.device, found.dtype) == expected
    assert f"{needed(SEVEN, found.dtype) / 1e9:.2f} GB" in found.reason


def test_a_model_that_fits_nowhere_is_refused_with_the_numbers() -> None:
    with pytest.raises(ModelUnavailable, match=r"room for 18\.04 GB .*cuda:0 has 8\.00 GB, cpu has 9\.00 GB"):
        place(SEVEN, Machine(free={"cpu": 9 * GB, "cuda:0": 8 * GB}))
    with pytest.raises(ModelUnavailable, match=r"30\.80 GB"):
        place(SEVEN, Machine(free={"cpu": 24 * GB}), dtype="float32")


@pytest.mark.parametrize(
    ("cards", "dtype", "expected"),
    [
        ((), "bfloat16", ()),
        ((20,), "bfloat16", ()),
        ((8,), "bfloat16", ()),
        ((8, 8), "bfloat16", ()),
        ((10, 10), "bfloat16", ("cuda:0", "cuda:1")),
        ((6, 8, 6), "bfloat16", ("cuda:1", "cuda:0", "cuda:2")),
        ((40, 10), "float32", ()),
        ((16, 16, 2), "float32", ("cuda:0", "cuda:1")),
    ],
)
def test_cards_that_hold_a_model_only_together(
    cards: tuple[int, ...], dtype: str, expected: tuple[str, ...]
) -> None:
    """As few as will do, the largest first; none where one alone would do, or all of them would not."""
    machine = Machine(free={"cpu": GB} | {f"cuda:{index}": card * GB for index, card in enumerate(cards)})
    found = over_several(SEVEN, machine, dtype)
    assert found == expected
    if found:
        assert sum(machine.free[name] for name in found) >= weight_bytes(SEVEN, dtype) + len(found) * WORKING
        assert max(machine.free.values()) < needed(SEVEN, dtype)


def test_a_model_is_not_spread_over_cards_and_the_sentence_says_so() -> None:
    """Refused with the numbers where only several cards together had room; the processor is taken where it has."""
    two = {"cuda:0": 10 * GB, "cuda:1": 12 * GB}
    said = r"cuda:1 and cuda:0 have 22\.00 GB together, but a model is not spread over several cards"
    for asked in ("auto", "cuda"):
        with pytest.raises(ModelUnavailable, match=rf"room for 18\.04 GB .*{said}; free some"):
            place(SEVEN, Machine(free={"cpu": 9 * GB, **two}), asked)
    with pytest.raises(ModelUnavailable, match=r"cuda:0 has 10\.00 GB free; free some"):
        place(SEVEN, Machine(free={"cpu": 9 * GB, **two}), "cuda:0")
    found = place(SEVEN, Machine(free={"cpu": 64 * GB, **two}))
    assert found.device == "cpu"
    assert found.reason.endswith(
        "no GPU has room; cuda:1 and cuda:0 have 22.00 GB together, but a model is not spread over several cards"
    )


def test_names_that_are_none() -> None:
    machine = Machine(free={"cpu": 64 * GB})
    for absent in ("cuda", "cuda:0", "mps"):
        with pytest.raises(UsageError, match=f"expected the device {absent}, this machine has cpu"):
            place(SEVEN, machine, absent)
    with pytest.raises(UsageError, match="expected the device cuda:7, this machine has cpu, cuda:0"):
        place(SEVEN, Machine(free={"cpu": 64 * GB, "cuda:0": 80 * GB}), "cuda:7")
    with pytest.raises(UsageError, match="expected a device"):
        place(SEVEN, machine, "tpu")
    with pytest.raises(UsageError, match="expected a dtype"):
        place(SEVEN, machine, dtype="int8")


@pytest.mark.parametrize(
    ("wanted", "before", "expected"),
    [
        ("auto", None, "auto"),
        ("cuda:1", None, "cuda:1"),
        ("auto", "cpu", "cpu"),
        ("auto", "cuda:3", "cuda"),
        ("cuda:0", "cpu", "cuda:0"),
        ("cuda:1", "cuda:1", "cuda"),
        ("mps", "mps", "auto"),
    ],
)
def test_where_a_run_goes_on(wanted: str, before: str | None, expected: str) -> None:
    """A new run gets what it asks for; one that began stays on its kind of device where there is one."""
    assert kept(Machine(free={"cpu": GB, "cuda:0": GB}), wanted, before) == expected


def test_why_the_processor_was_chosen() -> None:
    assert place(SEVEN, Machine(free={"cpu": 64 * GB})).reason.endswith("no CUDA device")
    small = Machine(free={"cpu": 64 * GB, "cuda:0": GB})
    assert place(SEVEN, small).reason.endswith("no GPU has room")
    assert "GPU" not in place(SEVEN, small, "cpu").reason


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_model_is_loaded_as_it_was_placed(dtype: str, tmp_path: Path) -> None:
    """The type of the matrices in the blocks; the reason is told once."""
    told: list[str] = []
    subject = load(str(save_tiny(tmp_path, "llama")), "cpu", dtype, told.append)
    assert subject.dtype == getattr(torch, dtype)
    assert len(told) == 1
    assert f"{dtype} on cpu" in told[0]
    assert WORKING > 0
