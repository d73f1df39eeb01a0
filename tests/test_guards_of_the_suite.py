"""What `conftest` watches over in every test fails where it should; the house stays within its budget."""

import socket
import tomllib
from importlib.util import find_spec
from pathlib import Path

import house
import jaxtyping
import numpy as np
import pytest
from array_checks import UNCHECKED, modules_with_arrays
from conftest import NetworkBlockedError

from mecharule_ops.engine.settling import Reader
from mecharule_ops.gates.material import acting_units
from mecharule_ops.types import Regime


def test_a_wrong_array_is_refused() -> None:
    """Numbers where labels are asked for, and a list."""
    flipped = Regime.BASELINE_POSITIVE.flipped
    assert flipped(np.array([True, False])).tolist() == [False, True]
    for wrong in (np.zeros(2), [True, False]):
        with pytest.raises(jaxtyping.TypeCheckError):
            flipped(wrong)  # type: ignore[arg-type]


def test_what_names_an_array_is_checked() -> None:
    """By an alias of its type too; what names none is as it was written."""
    with pytest.raises(jaxtyping.TypeCheckError, match="columns"):
        acting_units([], {"a": [1]}, 1)  # type: ignore[dict-item]
    assert not hasattr(Reader.ended, "__wrapped__")


def test_only_named_modules_stay_unchecked() -> None:
    """Engine, first order and accounts are checked; what is named as an exception exists."""
    checked = set(modules_with_arrays())
    assert checked >= {
        f"mecharule_ops.{name}" for name in ("engine.ablation", "mechanism.first_order", "rules.unit_rules")
    }
    assert not checked & UNCHECKED
    assert all(find_spec(name) for name in UNCHECKED)


def test_another_machine_cannot_be_reached() -> None:
    """By its address or its name; a socket of this machine can."""
    with pytest.raises(NetworkBlockedError, match=r"loopback address, got '203\.0\.113\.1'"):
        socket.create_connection(("203.0.113.1", 80))
    with pytest.raises(NetworkBlockedError, match=r"example\.org"):
        socket.getaddrinfo("example.org", 80)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        socket.create_connection(listening.getsockname()).close()


def test_the_house_is_within_its_budget() -> None:
    """No room and no figure is above its limit in budget.toml."""
    assert house.over(tomllib.loads(house.LIMITS.read_text(encoding="utf-8")), house.measured()) == []


def test_a_room_that_grows_is_seen() -> None:
    """One line more, a second meaning of a name, a new room."""
    one = {Path("agent/llm/one.py"): '"""Doc."""\n\n\ndef told(a):\n    # Why.\n    return a\n'}
    grown = {Path("agent/llm/one.py"): one[Path("agent/llm/one.py")] + "b = 1\n"}
    two = {**one, Path("tools/two.py"): "def told(): return Rule.parse(a)\n"}
    assert house.rooms(one) == {"agent/llm": 2}
    limits = {"rooms": dict(house.rooms(one)), "figures": house.of_code(one)}
    assert house.over(limits, {"rooms": house.rooms(one), "figures": house.of_code(one)}) == []
    (line,) = house.over(limits, {"rooms": house.rooms(grown)})
    assert line.startswith(
        "rooms: agent/llm measures 3, at most 2: cut and run `make budget`, or raise agent/llm"
    )
    said = house.over(limits, {"rooms": house.rooms(two), "figures": house.of_code(two)})
    assert any(line.startswith("rooms: tools measures 1 and has no limit") for line in said)
    assert any(line.startswith("figures: names_twice measures 1, at most 0") for line in said)
    assert any(line.startswith("figures: rule_parses measures 1, at most 0") for line in said)


def test_the_budget_is_lowered_and_never_raised() -> None:
    """Comments stay; a room that is gone goes."""
    text = '[rooms]\n"tui" = 9  # Because.\n"tui/one" = 5\n"gone" = 4\n'
    now = {"rooms": {"tui": 7, "tui/one": 6}}
    assert house.lowered(text, now) == '[rooms]\n"tui" = 7  # Because.\n"tui/one" = 5\n'
