"""The whole suite runs offline and on one thread.

Any attempt to reach another machine fails at once with the address, so that a test can never pass or hang
because of the network; loopback and Unix sockets stay open.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jaxtyping
import pytest

pytest_plugins = ("bundled_run", "commanded")

# Read by torch, XGBoost and tokenizers when they are first imported, which is after this file.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"


_RULES = ("algebra", "clause_pool", "literals", "matthews", "ripper")
UNCHECKED = {"mecharule_ops.predicates.language", *(f"mecharule_ops.rules.{name}" for name in _RULES)}
"""Rules are learned in a million small calls of these; a run takes twice as long where each is checked."""


def modules_with_arrays() -> Iterator[str]:
    """Names of the library's modules that annotate an array, with its shape or without."""
    root = Path(__file__).parents[1]
    for file in sorted((root / "mecharule_ops").rglob("*.py")):
        if re.search(r"\bfrom jaxtyping import|\bnp\.ndarray\b|\bTensor\b", file.read_text(encoding="utf-8")):
            name = ".".join(file.relative_to(root).with_suffix("").parts)
            if name not in UNCHECKED:
                yield name


def _load_checked(loader: jaxtyping._import_hook._JaxtypingLoader, module: ModuleType) -> None:
    """Loads a checked module from its source.

    jaxtyping's own way looks for the compiled form of whatever the module imports under a name of its own, and so
    compiles torch and transformers anew in every process: half a minute of two workers.
    """
    exec(loader.source_to_code(loader.get_data(loader.path), loader.path), module.__dict__)


jaxtyping._import_hook._JaxtypingLoader.exec_module = _load_checked  # type: ignore[method-assign]
jaxtyping.install_import_hook(list(modules_with_arrays()), "beartype.beartype")
"""Shapes and types of arrays are checked in every call under pytest. The other modules stay unchecked: folding
ten thousand events through checked values takes ten times as long and tests nothing about arrays."""


class NetworkBlockedError(AssertionError):
    """Not an `OSError`: code under test that handles an unreachable host must not swallow it."""


def _is_loopback(host: object) -> bool:
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text.split("%")[0]).is_loopback
    except ValueError:
        return False


def _guarded(original: Callable[..., Any], host_of: Callable[..., object]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        host = host_of(*arguments)
        if not _is_loopback(host):
            raise NetworkBlockedError(f"tests run offline: expected a loopback address, got {host!r}")
        return original(*arguments, **keywords)

    return call


def _peer(connection: socket.socket, address: Any) -> object:
    return None if connection.family == socket.AF_UNIX else address[0]


def _looked_up(host: object, *rest: Any) -> object:
    return host


@pytest.fixture(autouse=True, scope="session")
def _offline() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for method in ("connect", "connect_ex"):
            patch.setattr(socket.socket, method, _guarded(getattr(socket.socket, method), _peer))
        patch.setattr(socket, "getaddrinfo", _guarded(socket.getaddrinfo, _looked_up))
        yield
