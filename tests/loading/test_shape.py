"""A model's sizes from its files alone are those of the loaded model, and what cannot be used is refused before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_models import FAMILIES, save_tiny, tiny_model

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model_names import load, on_this_machine
from mecharule_ops.loading.shape import read_shape, read_tokenizer
from mecharule_ops.types import Basis


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_are_those_of_the_loaded_model(family: str, tmp_path: Path) -> None:
    """Units of every basis, layers, heads and parameters (a tied matrix once), for every architecture."""
    path = save_tiny(tmp_path / family, family)
    shape, subject = read_shape(path), load(str(path))
    assert [shape.width(basis) for basis in Basis] == [subject.width(basis) for basis in Basis]
    sizes = (shape.n_layers, shape.d_model, shape.n_heads)
    assert sizes == (subject.n_layers, subject.d_model, subject.n_heads)
    assert shape.parameters == sum(parameter.numel() for parameter in subject.hf.parameters())
    assert shape.positions == 64
    tokenizer = read_tokenizer(path)
    assert tokenizer is not None
    assert tokenizer.encode("1 + 2 =").ids == list(subject.encode(["1 + 2 ="])[0])


def test_shards_are_one_model(tmp_path: Path) -> None:
    """Split over several files, the sizes are the same."""
    model, tokenizer = tiny_model("llama")
    model.half().save_pretrained(tmp_path, max_shard_size="20KB")
    tokenizer.save_pretrained(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert read_shape(tmp_path).parameters == sum(parameter.numel() for parameter in model.parameters())


def _cut(path: Path) -> None:
    whole = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def _no_header(path: Path) -> None:
    (path / "model.safetensors").write_bytes(b"no")


def _without(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


def _setting(**changes: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        settings = json.loads((path / "config.json").read_text())
        kept = {name: value for name, value in (settings | changes).items() if value is not None}
        (path / "config.json").write_text(json.dumps(kept))

    return change


def _lost_shard(path: Path) -> None:
    (path / "model.safetensors").unlink()
    model, _ = tiny_model("llama")
    model.save_pretrained(path, max_shard_size="20KB")
    sorted(path.glob("model-*.safetensors"))[1].unlink()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_without("config.json"), "config.json that names its model_type"),
        (_setting(model_type="bert"), "expected an architecture of: .*got 'bert'"),
        (_setting(hidden_size=None), "give hidden_size or n_embd"),
        (_setting(num_hidden_layers=5), "expected 5 layers of a llama model.*2 missing"),
        (_without("model.safetensors"), "expected weights in .*found none"),
        (_cut, "file not fully covered"),
        (_no_header, "expected weights .*model.safetensors"),
        (_lost_shard, "model-00002"),
    ],
)
def test_what_is_no_model_is_refused_in_a_line(
    broken: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    """Before any weight is loaded; the untouched directory passes."""
    path = save_tiny(tmp_path / "model", "llama")
    read_shape(path).width(Basis.MLP_OUT)
    broken(path)
    with pytest.raises(ModelUnavailable, match=said) as caught:
        read_shape(path).width(Basis.MLP_OUT)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_that_is_none_is_refused(tmp_path: Path) -> None:
    """Unreadable, and missing; one that only its own code reads is left to that code."""
    path = save_tiny(tmp_path / "model", "llama")
    (path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="expected a tokenizer "):
        read_tokenizer(path)
    (path / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match="expected a tokenizer "):
        read_tokenizer(path)
    (path / "vocab.json").write_text("{}")
    assert read_tokenizer(path) is None


def test_pickled_weights_are_counted_from_their_size(tmp_path: Path) -> None:
    """Nothing is unpickled to learn a size."""
    path = save_tiny(tmp_path / "model", "llama")
    (path / "model.safetensors").unlink()
    (path / "pytorch_model.bin").write_bytes(bytes(4000))
    assert read_shape(path).parameters == 1000


def test_a_hub_model_that_was_never_downloaded_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network is asked."""
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="a run downloads it"):
        on_this_machine("nobody/nothing")
