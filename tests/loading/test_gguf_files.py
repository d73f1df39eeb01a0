"""GGUF files become the model that they hold, or are refused by name; nothing else is kept."""

import io
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_gguf import laid_out, write_gguf, write_parts
from tiny_models import tiny_model
from transformers import AutoModelForCausalLM, PreTrainedModel

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load

pytestmark = pytest.mark.usefixtures("cache")


def same_weights(subject: Subject, model: PreTrainedModel | None = None) -> bool:
    theirs, ours = (model or tiny_model("llama")[0]).state_dict(), subject.hf.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_whole_file_is_the_model_that_it_was_made_of(tmp_path: Path) -> None:
    assert same_weights(load(str(write_gguf(tmp_path / "tiny.gguf", laid_out()))))


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2", "gemma2", "gemma3_text"])
def test_weights_are_those_that_transformers_makes_of_the_file(family: str, tmp_path: Path) -> None:
    """Bit for bit, of quantised matrices and plain vectors, tied or not, though each weight is made by itself."""
    weights = laid_out(family=family)
    if family == "gpt2":
        weights["position_embd.weight"] = np.resize(weights["position_embd.weight"], (1024, 32))
    kind = family.removesuffix("_text")
    file = write_gguf(tmp_path / "tiny.gguf", weights, quantised=True, architecture=kind)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=file.name, dtype=torch.float32)
    assert same_weights(load(str(file)), theirs)


@pytest.mark.parametrize("lost", [("blk.1.",), ("blk.2.ffn_down",), ("token_embd",), ("output_norm",)])
def test_a_file_without_some_weights_is_refused_and_not_kept(
    lost: tuple[str, ...], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transformers fills them with random numbers, other ones each time, and prints a report of them."""
    printed = io.StringIO()
    monkeypatch.setattr(logging.getLogger("transformers"), "handlers", [logging.StreamHandler(printed)])
    held = {name: tensor for name, tensor in laid_out().items() if not name.startswith(lost)}
    with pytest.raises(ModelUnavailable, match=r"every weight of the model in .*tiny\.gguf, \d+ are missing"):
        load(str(write_gguf(tmp_path / "tiny.gguf", held)))
    assert (list((cache / "models").iterdir()), printed.getvalue()) == ([], "")


@pytest.mark.parametrize(
    ("name", "size"), [("blk.0.attn_q.bias", 32), ("output_norm.bias", 32), ("blk.3.attn_norm.weight", 32)]
)
def test_a_file_with_weights_that_the_architecture_does_not_take_is_refused(
    name: str, size: int, tmp_path: Path
) -> None:
    """Transformers leaves them out."""
    weights = laid_out() | {name: np.ones(size, np.float32)}
    with pytest.raises(ModelUnavailable, match=f"1 have no place in it, such as {name}"):
        load(str(write_gguf(tmp_path / "tiny.gguf", weights)))


@pytest.mark.parametrize("count", [2, 3])
def test_parts_beside_each_other_are_one_model(count: int, tmp_path: Path, cache: Path) -> None:
    """Whichever is named, or their folder; one conversion."""
    for name in (*write_parts(tmp_path, count), tmp_path):
        assert same_weights(load(str(name)))
    assert len(list((cache / "models").iterdir())) == 1


def test_a_folder_of_two_models_is_refused_and_a_name_in_capitals_read(tmp_path: Path) -> None:
    one = write_gguf(tmp_path / "a.GGUF", laid_out())
    assert same_weights(load(str(tmp_path)))
    shutil.copy(one, tmp_path / "b.gguf")
    with pytest.raises(ModelUnavailable, match="GGUF files of 2: a, b; name one file"):
        load(str(tmp_path))
    assert same_weights(load(str(one)))


@pytest.mark.parametrize("kept", [0, 1])
def test_a_part_without_the_others_is_refused_by_their_name(kept: int, tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    parts[1 - kept].unlink()
    for name in (parts[kept], tmp_path):
        with pytest.raises(ModelUnavailable, match=f"got all but {parts[1 - kept].name}"):
            load(str(name))


def test_a_part_under_another_name_is_refused(tmp_path: Path) -> None:
    """The second was read as a model of seven billion, a first that lacks the unembedding alone as one that ties it."""
    first, second = write_parts(tmp_path)
    tied = {name: tensor for name, tensor in laid_out().items() if name != "output.weight"}
    for part in (first, second, write_gguf(tmp_path / "tied.gguf", tied, part=(0, 2))):
        with pytest.raises(ModelUnavailable, match=r"a whole model .*one\.gguf"):
            load(str(shutil.copy(part, tmp_path / "one.gguf")))
    (tmp_path / "one.gguf").unlink()
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)
    with pytest.raises(ModelUnavailable, match="a whole model"):
        load(str(first))


def test_divisors_of_rotary_frequencies_are_taken_over(tmp_path: Path) -> None:
    """As Llama 3.1 and later need them; transformers leaves them out. Frequencies are divided one by one."""
    divisors = np.array([1.0, 1.5, 4.0, 8.0], np.float32)
    scaled = load(str(write_gguf(tmp_path / "a.gguf", laid_out() | {"rope_freqs.weight": divisors})))
    plain = load(str(write_gguf(tmp_path / "b.gguf", laid_out())))
    ours, theirs = (subject.hf.model.rotary_emb.inv_freq for subject in (scaled, plain))
    assert torch.allclose(ours, theirs / torch.from_numpy(divisors), rtol=1e-6)
    ids = torch.arange(3, 30)[None]
    with torch.no_grad():
        plain.hf.model.rotary_emb.inv_freq = ours
        assert torch.equal(scaled.hf(ids).logits, plain.hf(ids).logits)


def test_positions_scaled_otherwise_are_refused(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf", laid_out(), scaling="yarn")
    with pytest.raises(ModelUnavailable, match="got yarn scaling"):
        load(str(file))


@pytest.mark.parametrize(
    ("pre", "tokens"),
    [("gpt-2", ["12", "12"]), ("smollm", ["1", "2", "1", "2"]), ("starcoder", ["1", "2", "1", "2"])],
)
def test_text_is_split_as_the_file_says(pre: str, tokens: list[str], tmp_path: Path) -> None:
    """Of every splitter that it does not know transformers makes GPT-2's, which joins digits."""
    subject = load(str(write_gguf(tmp_path / "tiny.gguf", laid_out(), pre=pre)))
    assert subject.tokenizer.convert_ids_to_tokens(subject.encode(["1212"])[0]) == tokens


def test_an_unknown_splitter_is_said_at_every_load(tmp_path: Path) -> None:
    told: list[str] = []
    file = write_gguf(tmp_path / "tiny.gguf", laid_out(), pre="of-tomorrow")
    for _ in range(2):
        load(str(file), told=told.append)
    assert sum("'of-tomorrow'" in line for line in told) == 2


@pytest.mark.parametrize(("pre", "begins"), [("llama-bpe", True), ("qwen2", False)])
def test_a_prompt_begins_as_the_family_has_it(pre: str, begins: bool, tmp_path: Path) -> None:
    """Llama 3 puts its beginning token in front whether the file says so or not."""
    subject = load(str(write_gguf(tmp_path / "tiny.gguf", laid_out(), pre=pre)))
    assert (subject.encode(["1"])[0][0] == 1) == begins
