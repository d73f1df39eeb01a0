"""Which families of models are ablated right, on tiny random ones: docs/tables/families.csv and docs/library.md.

python benchmarks/families.py
"""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from pages import ROOT, put_between, put_rows
from transformers import AutoModelForCausalLM

sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from tiny_models import EVERY, save_tiny  # noqa: E402
from toy_behaviour import Toy, ToyTask, naive_completion  # noqa: E402

from mecharule_ops.engine.behaviour import behaviour_on  # noqa: E402
from mecharule_ops.engine.guard import GuardFailed  # noqa: E402
from mecharule_ops.engine.soundness import check_soundness  # noqa: E402
from mecharule_ops.loading.model_names import load  # noqa: E402
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase  # noqa: E402

RIGHT, WRONG, NONE = "right", "wrong", "has none"
MARKS = "<!-- families: begin -->", "<!-- families: end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What each comparison of one family gave."""

    family: str
    logits: str
    attn_head: str
    mlp_out: str
    mlp_hidden: str
    lens: str
    sums: str
    padding: str


def verdict(family: str, folder: Path) -> Verdict:
    """Of a model saved and loaded in the folder."""
    path, task = save_tiny(folder / family, family), ToyTask()
    subject, plain = load(str(path)), AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    examples = task.examples(4, np.random.default_rng(3))
    bench = Toy(subject=subject, task=task, records=behaviour_on(task, subject, examples).records)
    prompts = subject.encode([record.example.prompt for record in bench.records])
    with torch.no_grad():
        own, theirs = (hf(torch.tensor(prompts[:1])).logits for hf in (subject.hf, plain))
    try:
        check_soundness(subject, prompts, [record.tokens for record in bench.records])
        sound = RIGHT
    except GuardFailed:
        sound = WRONG
    phases = (tuple(Phase)[(EVERY.index(family) + turn) % len(Phase)] for turn in range(3))
    ablated = {basis: _ablated(bench, basis, phase) for basis, phase in zip(Basis, phases, strict=True)}
    assert any(changed for _, _, changed in ablated.values()), "no ablation changes an answer"
    return Verdict(
        family=family,
        logits=sound if torch.allclose(own, theirs, rtol=1e-4, atol=1e-4) else WRONG,
        **{basis.value: by_hooks for basis, (by_hooks, _, _) in ablated.items()},
        lens=max((by_lens for _, by_lens, _ in ablated.values()), key=(RIGHT, NONE, WRONG).index),
        sums=sound,
        padding=sound,
    )


def _ablated(bench: Toy, basis: Basis, phase: Phase) -> tuple[str, str, bool]:
    """Half of all units set to their means, by hooks on Transformers and by TransformerLens; whether answers change."""
    table = bench.table(Intervention(basis=basis, baseline=Baseline.MEAN, phase=phase))
    layers, units = range(bench.subject.n_layers), range(0, bench.subject.width(basis), 2)
    group, places = (
        tuple(Neuron(basis, layer, unit) for layer in layers for unit in units),
        range(len(bench.records)),
    )
    found = bench.engine(table).completions([group], places)
    wanted = tuple(naive_completion(bench, table, group, record) for record in bench.records)
    changed = wanted != tuple(record.tokens for record in bench.records)
    hooks = RIGHT if found.tokens == (wanted,) else WRONG
    try:
        lens = bench.reference(table).completions([group], places)
    except ValueError as error:
        return hooks, NONE if "supported architecture" in str(error) else WRONG, changed
    same = lens.tokens == (wanted,) and np.allclose(lens.margins, found.margins, atol=1e-4)
    return hooks, RIGHT if same else WRONG, changed


def main() -> None:
    """Every family, into the table and the page."""
    with TemporaryDirectory() as folder:
        found = [verdict(family, Path(folder)) for family in EVERY]
    right = sum(WRONG not in asdict(one).values() for one in found)
    said = f"No cell is wrong for {right} of {len(found)} families by `model_type`: {put_rows('families', found)}."
    put_between(ROOT / "docs" / "library.md", said, *MARKS)


if __name__ == "__main__":
    main()
