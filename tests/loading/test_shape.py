"""A model's sizes without a weight are those that a forward meets, and what cannot be used is refused in a line."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny_models import FAMILIES, save_tiny, tiny_model
from toy_behaviour import toy

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model_names import load
from mecharule_ops.loading.shape import read_shape
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_are_those_of_the_tensors_in_a_forward(family: str, tmp_path: Path) -> None:
    """Units of every basis, layers, heads and parameters (a tied matrix once), for every architecture; tokens are those
    that were saved, also where `AutoTokenizer` would drop the spaces."""
    path = save_tiny(tmp_path / family, family)
    shape, subject = read_shape(path), load(str(path))
    assert (shape.n_layers, shape.d_model, shape.n_heads, shape.positions) == (3, 32, 4, 64)
    assert shape.parameters == sum(parameter.numel() for parameter in subject.hf.parameters())
    assert subject.encode(["1 + 2 = a\n"])[0] == tuple(tiny_model(family)[1]("1 + 2 = a\n")["input_ids"])
    block, seen = subject.wiring.blocks(subject.hf)[1], list[int]()
    for basis in Basis:
        hooked(*subject.wiring.site(block, basis), lambda site: seen.append(site.shape[-1]))
    with torch.no_grad():
        subject.hf(torch.tensor(subject.encode(["1 + 2 ="])))
    assert sorted(seen) == sorted(shape.width(basis) * shape.unit_size(basis) for basis in Basis)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
@pytest.mark.parametrize("basis", Basis)
def test_both_codes_of_a_recipe_ablate_the_same_unit(family: str, basis: Basis) -> None:
    """The module and slice named for nnsight in a plain forward, and TransformerLens' code as it stands."""
    bench = toy(family)
    subject, ids = bench.subject, torch.tensor(bench.subject.encode(["1 + 2 ="]))
    nnsight, lens = subject.recipe(Neuron(basis, 1, 2)).split("\n\n")
    named = re.search(r"    (model.*)\.(input|output)\[(.*)\] = 0", nnsight)
    write = partial(exec, f"site[{named[3]}] = 0")
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=Phase.WHOLE))
    code = "\n".join(line for line in lens.splitlines() if not line.startswith(("from", "model =")))
    with torch.no_grad():
        clean = subject.hf(ids).logits
        handle = hooked(
            eval(named[1], {"model": subject.hf}), named[2] == "input", lambda site: write({"site": site})
        )
        wanted = subject.hf(ids).logits
        handle.remove()
        exec(code, scope := {"model": bench.reference(table).bridge, "prompt": ids})
    torch.testing.assert_close(scope["logits"], wanted, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(clean, wanted, atol=1e-3)


def _cut(path: Path) -> None:
    whole = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def _without(*names: str) -> Callable[[Path], None]:
    return lambda path: [(path / name).unlink() for name in names]


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


TOKENIZER = r"a tokenizer \(tokenizer.json\) that can be read"


def _slow(path: Path) -> None:
    """A tokenizer that only its own code reads."""
    (path / "tokenizer.json").unlink()
    for name, text in (
        ("vocab.json", '{"<unk>": 0}'),
        ("merges.txt", "#version\n"),
        ("tokenizer_config.json", '{"tokenizer_class": "CTRLTokenizer"}'),
    ):
        (path / name).write_text(text)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_without("config.json"), r"expected a model \(config.json\) that can be read"),
        (_setting(model_type="bert"), "expected an architecture of: .*got 'bert'"),
        (_setting(quantization_config={"quant_method": "fp8"}), r"got quantised ones \(fp8\)"),
        (_setting(quantization={"bits": 4}), r"got quantised ones .*name the model that they were made from"),
        (
            lambda path: (path / "adapter_config.json").write_text("{}"),
            r"got an adapter of .* merge it first",
        ),
        (_setting(hidden_size=None), "expected weights that can be read"),
        (_setting(num_hidden_layers=5), "are missing, such as model.layers.3"),
        (_without("model.safetensors"), "expected weights that can be read.*model.safetensors"),
        (_cut, "expected weights that can be read"),
        (_lost_shard, "model-00002"),
        (_without("tokenizer.json", "tokenizer_config.json"), TOKENIZER),
        (_slow, TOKENIZER),
        (lambda path: (path / "tokenizer.json").write_text("{}"), TOKENIZER),
    ],
)
def test_no_model_is_refused_in_a_line(broken: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    """The untouched directory loads."""
    path = save_tiny(tmp_path / "model", "llama")
    load(str(path))
    broken(path)
    with pytest.raises(ModelUnavailable, match=said) as caught:
        load(str(path))
    assert "\n" not in str(caught.value)
