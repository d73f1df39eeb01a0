"""Where a model goes is decided from numbers alone, so that every machine can be tried here."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.placement import (
    WORKING,
    kept,
    needed,
    over_several,
    place,
    this_machine,
    weight_bytes,
)
from mecharule_ops.loading.shape import ModelShape, wiring_for

GB = 10**9
SEVEN = ModelShape(
    directory=Path("seven"),
    settings={
        "model_type": "qwen2",
        "vocab_size": 150_000,
        "hidden_size": 4000,
        "num_hidden_layers": 28,
        "tie_word_embeddings": False,
    },
    wiring=wiring_for("qwen2"),
    parameters=7 * GB,
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
    assert set(this_machine(tmp_path)) == {"cpu"}
    (tmp_path / "nvidiactl").touch()
    found = this_machine(tmp_path)
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
    found = place(SEVEN, free, *asked)
    assert (found.device, found.dtype) == expected
    assert ("GPU" in found.reason or "CUDA" in found.reason) == (asked[0] == "auto" and found.device == "cpu")
    assert f"{needed(SEVEN, found.dtype) / 1e9:.2f} GB" in found.reason


def test_a_model_that_fits_nowhere_is_refused_with_the_numbers() -> None:
    with pytest.raises(ModelUnavailable, match=r"room for 18\.04 GB .*cuda:0 has 8\.00 GB, cpu has 9\.00 GB"):
        place(SEVEN, {"cpu": 9 * GB, "cuda:0": 8 * GB})
    with pytest.raises(ModelUnavailable, match=r"30\.80 GB"):
        place(SEVEN, {"cpu": 24 * GB}, dtype="float32")


@given(
    cards=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    layers=st.integers(1, 40),
    dtype=st.sampled_from(["float32", "bfloat16"]),
    tied=st.booleans(),
)
def test_every_block_lies_on_one_card_with_room_for_it(
    cards: list[int], layers: int, dtype: str, tied: bool
) -> None:
    """Spread where several cards have room for all whole blocks; a run of them a card, none over what it has."""
    settings = {**SEVEN.settings, "num_hidden_layers": layers, "tie_word_embeddings": tied}
    shape = replace(SEVEN, settings=settings)
    machine = {"cpu": 0} | {f"cuda:{index}": card * GB for index, card in enumerate(cards)}
    blocks = over_several(shape, machine, dtype)
    outside = 4 * shape.outside_blocks
    weights = weight_bytes(shape, dtype)
    block = -(-(weights - outside) // layers)
    largest = sorted(machine.values(), reverse=True)
    enough = []
    for count in range(2, len(cards) + 1):
        rooms = [free - max(WORKING, weights // 10 // count) for free in largest[:count]]
        rooms[0] -= outside
        enough.append(min(rooms) >= 0 and sum(room // block for room in rooms) >= layers)
    assert bool(blocks) == any(enough)
    if not blocks:
        return
    assert len(blocks) == layers
    runs = [name for name, _ in groupby(blocks)]
    assert len(runs) == len(set(runs))
    first = max(machine, key=machine.__getitem__)
    for name in {first, *runs}:
        held = blocks.count(name) * (weights - outside) // layers + (outside if name == first else 0)
        assert held + WORKING <= machine[name], name


def test_a_model_is_spread_where_no_card_alone_has_room() -> None:
    """Before the processor and after every card alone; never where one card is named; the reason has the numbers."""
    two = {"cuda:0": 10 * GB, "cuda:1": 12 * GB}
    for asked, least in (("auto", 64), ("cuda", 9)):
        found = place(SEVEN, {"cpu": least * GB, **two}, asked)
        assert (found.device, found.dtype) == ("cuda:1", "bfloat16")
        assert list(dict.fromkeys(found.blocks)) == ["cuda:1", "cuda:0"]
        assert found.reason == (
            "bfloat16 on cuda:1 and cuda:0: 18.04 GB of 22.00 GB free; float32 would need 30.80 GB; "
            "no card alone has room"
        )
    wide = place(SEVEN, {"cpu": 0, "cuda:0": 17 * GB, "cuda:1": 17 * GB})
    assert (wide.dtype, len(set(wide.blocks))) == ("float32", 2)
    alone = place(SEVEN, {"cpu": 0, "cuda:0": 19 * GB, "cuda:1": 19 * GB})
    assert (alone.dtype, alone.blocks) == ("bfloat16", ())
    with pytest.raises(ModelUnavailable, match=r"cuda:0 has 10\.00 GB free; free some"):
        place(SEVEN, {"cpu": 9 * GB, **two}, "cuda:0")


def test_names_that_are_none() -> None:
    for asked, said in (
        *(
            ({"device": name}, f"the device {name}, this machine has cpu")
            for name in ("cuda", "cuda:7", "mps")
        ),
        ({"device": "tpu"}, "a device"),
        ({"dtype": "int8"}, "a dtype"),
    ):
        with pytest.raises(UsageError, match=f"expected {said}"):
            place(SEVEN, {"cpu": 64 * GB}, **asked)


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
    assert kept({"cpu": GB, "cuda:0": GB}, wanted, before) == expected
