"""Turn a name into a loaded model: bundled, fetched, a local directory or a hub id.

Listing models reads directories only; torch is imported by `load`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import ModelUnavailable, UsageError, did_you_mean
from mecharule_ops.loading.fetch import (
    GGUF,
    HUB_IDS,
    download_snapshot,
    from_gguf,
    gguf_file,
    model_directory,
)
from mecharule_ops.loading.gguf_files import stem_of
from mecharule_ops.loading.placement import place, this_machine
from mecharule_ops.loading.shape import read_shape, unreadable
from mecharule_ops.plain_text import typed_path

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from mecharule_ops.loading.model import Subject

BUNDLED = "arith-tiny"
BUNDLED_DIRECTORY = Path(__file__).parent / "arith_tiny"
KNOWN = "known/"
"""Begins the names of the models whose circuit is known; the name of the program that they compute follows."""
KNOWN_DIRECTORY = Path(__file__).parents[1] / "known_answers" / "models"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+\Z")
_PRESETS = {
    BUNDLED: ("4 MB", "small Llama on characters, adds and subtracts; comes with the package"),
    "smollm2-135m": ("540 MB", "SmolLM2-135M-Instruct, the default real model"),
    "qwen2-1.5b": ("3 GB", "Qwen2-1.5B-Instruct, a model of the paper"),
    "qwen2-7b": ("15 GB", "Qwen2-7B-Instruct, a model of the paper"),
    "gpt-j-6b": ("24 GB", "GPT-J-6B, a model of the paper"),
}


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
            for name, said in _PRESETS.items()
        ),
        row(GGUF, gguf_file(), gguf_file(), "93 MB", asked),
    ]


def directory_of(name: str) -> Path:
    """Where a named model lives, present or not."""
    return BUNDLED_DIRECTORY if name == BUNDLED else model_directory(name)


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
    directory = resolve(name_or_path)
    where = place(read_shape(directory), this_machine(), device, dtype)
    told(where.reason)

    from mecharule_ops.loading.model import Subject
    from mecharule_ops.loading.weights import load_weights

    tokenizer = _load_tokenizer(directory)
    hf = load_weights(directory, where)
    subject = Subject(name=name_or_path, directory=directory, hf=hf, tokenizer=tokenizer)
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
        f"{HUB_IDS['smollm2-135m']}; got {name!r}{did_you_mean(name, _PRESETS)}; see `mecharule models list`"
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


def _load_tokenizer(directory: Path) -> PreTrainedTokenizerBase:
    """The directory's tokenizer.

    One saved as a plain `tokenizer.json` is loaded as exactly that: for some architectures `AutoTokenizer`
    puts the family's own pre-tokeniser in its place, which drops characters.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    plain = ("PreTrainedTokenizerFast", "TokenizersBackend")
    try:
        config: dict[str, Any] = parse_json((directory / "tokenizer_config.json").read_text("utf-8"))
        loader = PreTrainedTokenizerFast if config.get("tokenizer_class") in plain else AutoTokenizer
        return loader.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, TypeError, AttributeError, ImportError) as error:
        raise ModelUnavailable(unreadable("a tokenizer", directory, error)) from error
