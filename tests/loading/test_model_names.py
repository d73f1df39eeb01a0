"""Names to models: what loads, what is refused and how it says so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_models import FAMILIES, save_tiny, tiny_model

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading import model_names
from mecharule_ops.loading.model_names import load


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
