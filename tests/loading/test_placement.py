"""Where a model goes is decided from numbers alone, so that every machine can be tried here."""

from itertools import groupby
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.placement import WORKING, kept, needed, place, spread, weight_bytes

GB = 10**9
SEVEN = SimpleNamespace(parameters=7 * GB, outside_blocks=1_200_000_000, n_layers=28)
"""7 B weights, 1.2 B of them outside the blocks."""


def test_what_is_needed_by_hand() -> None:
    """28 GB in float32; 5.8 B at 2 bytes and 1.2 B at 4 in bfloat16; a tenth to compute in."""
    assert needed(SEVEN, "float32") == 28 * GB + 28 * GB // 10
    assert needed(SEVEN, "bfloat16") == 16_400_000_000 + 1_640_000_000


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
    outside=st.sampled_from([600_000_000, 1_200_000_000]),
)
def test_every_block_lies_on_one_card_with_room_for_it(
    cards: list[int], layers: int, dtype: str, outside: int
) -> None:
    """Spread where cards have room for all whole blocks; a run of them a card, none over what it has."""
    shape = SimpleNamespace(parameters=7 * GB, outside_blocks=outside, n_layers=layers)
    free = {f"cuda:{index}": card * GB for index, card in enumerate(cards)}
    weights = weight_bytes(shape, dtype)
    block = -(-(weights - 4 * outside) // layers)
    space = max(WORKING, weights // 10 // len(cards))
    rooms = [room - space - (4 * outside if name == "cuda:0" else 0) for name, room in free.items()]
    blocks = spread(shape, free, dtype)
    assert bool(blocks) == (min(rooms) >= 0 and sum(room // block for room in rooms) >= layers)
    if blocks:
        runs = [name for name, _ in groupby(blocks)]
        assert (len(blocks), len(runs)) == (layers, len(set(runs)))
        assert all(blocks.count(name) * block <= room for name, room in zip(free, rooms, strict=True))


def test_a_model_is_spread_where_no_card_alone_has_room() -> None:
    """Before the processor and after every card alone; never where one card is named; the reason has the numbers."""
    two = {"cuda:0": 10 * GB, "cuda:1": 12 * GB}
    for asked, least in (("auto", 64), ("cuda", 9)):
        found = place(SEVEN, {"cpu": least * GB, **two}, asked)
        assert (found.device, found.dtype) == ("cuda:1", "bfloat16")
        assert list(dict.fromkeys(found.blocks)) == ["cuda:1", "cuda:0"]
        assert found.reason == (
            "bfloat16 on cuda:1 and cuda:0: 18.04 GB of 22.00 GB free; float32 would need 30.80 GB"
        )
    wide = place(SEVEN, {"cpu": 0, "cuda:0": 17 * GB, "cuda:1": 17 * GB})
    assert (wide.dtype, len(set(wide.blocks))) == ("float32", 2)
    alone = place(SEVEN, {"cpu": 0, "cuda:0": 19 * GB, "cuda:1": 19 * GB})
    assert (alone.dtype, set(alone.blocks)) == ("bfloat16", {alone.device})
    with pytest.raises(ModelUnavailable, match=r"cuda:0 has 10\.00 GB free; free some"):
        place(SEVEN, {"cpu": 9 * GB, **two}, "cuda:0")


def test_names_that_are_none() -> None:
    for asked, said in (
        *(
            ({"device": name}, f"the device {name}, this machine has cpu")
            for name in ("cuda", "cuda:7", "mps", "tpu")
        ),
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
