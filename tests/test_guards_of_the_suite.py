"""What `conftest` watches over in every test fails where it should."""

from __future__ import annotations

import socket
from importlib.util import find_spec

import jaxtyping
import numpy as np
import pytest
from array_checks import UNCHECKED, modules_with_arrays
from conftest import NetworkBlockedError

from mecharule_ops.engine.settling import Reader
from mecharule_ops.repair.readings import vocabulary
from mecharule_ops.tasks.arithmetic import Arithmetic
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
        vocabulary([], Arithmetic(), {"a": [1]}, {})  # type: ignore[dict-item]
    assert not hasattr(Reader.ended, "__wrapped__")


def test_only_named_modules_stay_unchecked() -> None:
    """Engine, first order and accounts are checked; what is named as an exception exists."""
    checked = set(modules_with_arrays())
    assert checked >= {
        f"mecharule_ops.{name}" for name in ("engine.ablation", "mechanism.first_order", "rules.family_rules")
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
