"""Weights come from their files as transformers loads them, without a second copy on the way."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, character_tokenizer, save_tiny, tiny_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.loading.shape import wiring_for

MEASURED = Path(__file__).parents[2] / "benchmarks" / "loading_figures.py"
AROUND = 64 * 2**20
"""Bytes that a process takes beside a model's weights, whatever the model: buffers, arenas of threads."""


def saved(directory: Path, family: str, stored: str) -> Path:
    """A tiny model in three shards or more, in this type."""
    model, tokenizer = tiny_model(family)
    model.to(getattr(torch, stored)).save_pretrained(directory, max_shard_size="20KB")
    tokenizer.save_pretrained(directory)
    assert len(list(directory.glob("*.safetensors"))) >= 3
    return directory


def as_transformers_loads(directory: Path, dtype: str) -> Subject:
    """The slow way: the whole model in float32, then its blocks in the type asked for."""
    hf = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    wiring_for(hf.config.model_type).blocks(hf).to(getattr(torch, dtype))
    return Subject(name="theirs", directory=directory, hf=hf, tokenizer=character_tokenizer())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sharded_weights_are_those_that_transformers_loads(
    family: str, stored: str, dtype: str, tmp_path: Path
) -> None:
    """Every tensor, its type, what is tied, how generation ends, and where it came from; so the hash too."""
    directory = saved(tmp_path, family, stored)
    ours, theirs = load(str(directory), dtype=dtype), as_transformers_loads(directory, dtype)
    found, expected = ours.hf.state_dict(), theirs.hf.state_dict()
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype, name
        assert torch.equal(found[name], tensor), name
    assert ours.model_hash == theirs.model_hash
    assert len(list(ours.hf.parameters())) == len(list(theirs.hf.parameters()))
    assert ours.hf.generation_config.to_dict() == theirs.hf.generation_config.to_dict()
    assert ours.hf.config.name_or_path == theirs.hf.config.name_or_path
    assert type(ours.hf).__name__ == type(theirs.hf).__name__


def test_files_that_leave_out_the_base_of_a_name_load_too(tmp_path: Path) -> None:
    """As the published GPT-2 does: `h.0…` for `transformer.h.0…`."""
    model, tokenizer = tiny_model("gpt2")
    model.base_model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for dtype in ("float32", "bfloat16"):
        ours, theirs = load(str(tmp_path), dtype=dtype), as_transformers_loads(tmp_path, dtype)
        assert ours.model_hash == theirs.model_hash


def drop(directory: Path, name: str) -> None:
    """Take a weight out of whatever files hold it, and out of their list."""
    for file in directory.glob("*.safetensors"):
        save_file({key: held for key, held in load_file(file).items() if key != name}, file, {"format": "pt"})
    for file in directory.glob("*.bin"):
        torch.save({key: held for key, held in torch.load(file).items() if key != name}, file)
    for index in directory.glob("*.index.json"):
        listed = json.loads(index.read_text())
        del listed["weight_map"][name]
        index.write_text(json.dumps(listed))


@pytest.mark.parametrize("files", ["whole", "sharded", "pickled"])
@pytest.mark.parametrize(
    "lost", ["model.layers.1.self_attn.q_proj.weight", "lm_head.weight", "model.norm.weight"]
)
def test_a_weight_that_no_file_holds_is_named(files: str, lost: str, tmp_path: Path) -> None:
    """On every way of loading; transformers would fill it with random numbers."""
    model, tokenizer = tiny_model("llama")
    model.save_pretrained(tmp_path, max_shard_size="20KB" if files == "sharded" else "1GB")
    tokenizer.save_pretrained(tmp_path)
    if files == "pickled":
        (tmp_path / "model.safetensors").unlink()
        torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert load(str(tmp_path)).model_hash == as_transformers_loads(tmp_path, "float32").model_hash
    drop(tmp_path, lost)
    with pytest.raises(ModelUnavailable, match=rf"1 are missing, such as {lost}"):
        load(str(tmp_path))


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_that_the_configuration_leaves_out_are_named(family: str, tmp_path: Path) -> None:
    """A model of fewer layers is another model."""
    save_tiny(tmp_path, family)
    config = json.loads((tmp_path / "config.json").read_text())
    name = "n_layer" if "n_layer" in config else "num_hidden_layers"
    fewer = {name: 2} | ({"layer_types": config["layer_types"][:2]} if config.get("layer_types") else {})
    (tmp_path / "config.json").write_text(json.dumps(config | fewer))
    with pytest.raises(ModelUnavailable, match=r"have no place in it, such as .*\.2\."):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *[("gpt2", f"transformer.h.0.attn.{name}") for name in ("bias", "masked_bias")],
        *[("gptj", f"transformer.h.0.attn.{name}") for name in ("bias", "masked_bias")],
        *[("gpt_neox", f"gpt_neox.layers.0.attention.{name}") for name in ("bias", "rotary_emb.inv_freq")],
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq"),
    ],
)
def test_constants_in_older_files_are_no_weights(family: str, name: str, tmp_path: Path) -> None:
    save_tiny(tmp_path, family)
    file = tmp_path / "model.safetensors"
    save_file(load_file(file) | {name: torch.ones(4)}, file, {"format": "pt"})
    load(str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read as Linux tells it")
@pytest.mark.slow
@pytest.mark.parametrize(("stored", "dtype"), [("float32", "bfloat16"), ("bfloat16", "float32")])
def test_a_model_is_loaded_in_little_more_than_its_weights(stored: str, dtype: str, tmp_path: Path) -> None:
    """In a fresh process, in another type than the files have; pages of mapped files do not count."""
    shape = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 6, "vocab_size": 40}
    config = LlamaConfig(**shape, num_attention_heads=8, eos_token_id=2)
    model = LlamaForCausalLM(config).to(getattr(torch, stored))
    model.save_pretrained(tmp_path, max_shard_size="50MB")
    character_tokenizer().save_pretrained(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) >= 3
    done = subprocess.run(
        [sys.executable, str(MEASURED), str(tmp_path), "cpu", dtype],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["weights"] == pytest.approx(
        model.num_parameters() * (4 if dtype == "float32" else 2), rel=0.01
    )
    assert found["weights"] <= found["peak"] <= 1.2 * found["weights"] + AROUND
