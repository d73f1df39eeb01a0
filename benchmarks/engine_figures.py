"""Figures of the ablation engine against a hooked decoding loop over a cached prompt, on SmolLM2 arithmetic.

The loop is TransformerBridge, all 128 examples in one batch, the clean prompt cached and copied a group, one hooked
forward a token, six tokens. Both answer the same groups on the same examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import torch
from setting import SLICE, SMOLLM2, Figure, Setting, seconds, setting

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import Testing
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.asking import InTurn
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.passes.greedy import NearClean
from mecharule_ops.pipeline.driver import Drive, NamedSearch
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.store.stored_engine import Cost, StoredEngine
from mecharule_ops.types import (
    Baseline,
    Basis,
    Intervention,
    LayerCandidates,
    Neuron,
    Regime,
)

Group = tuple[Neuron, ...]
ZERO = Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO)
SIZES = (1, 1, 2, 4, 8, 16, 32, 64)
MIDDLE, LATE = 14, 28


def groups_of(layer: int, width: int = 576) -> list[Group]:
    """Eight groups of random channels of one layer."""
    generator = np.random.default_rng(0)
    drawn = [generator.choice(width, size, replace=False).tolist() for size in SIZES]
    return [tuple(Neuron(Basis.MLP_OUT, layer, channel) for channel in channels) for channels in drawn]


def singly(engine: AblationEngine, groups: Sequence[Group], examples: Sequence[int]) -> None:
    """Every group in a call of its own."""
    for group in groups:
        engine.evaluate([group], examples)


def evaluation() -> Iterator[Figure]:
    """One exact group evaluation, alone and in a batch of eight, against the loop; 64 + 64 correct answers."""
    given = setting(SMOLLM2, True)
    fast, loop = given.engines(ZERO)
    for layer, goal in ((2, "≥ 2.5×"), (MIDDLE, "≥ 4.5×"), (LATE, "≥ 12×")):
        groups = groups_of(layer)
        slow = seconds(partial(loop.evaluate, groups[:2], given.examples)) / 2
        alone = seconds(partial(singly, fast, groups, given.examples)) / len(SIZES)
        batch = seconds(partial(fast.evaluate, groups, given.examples)) / len(SIZES)
        ours, theirs = (engine.completions(groups[:2], given.examples).tokens for engine in (fast, loop))
        same = f"completions {'equal' if ours == theirs else 'DIFFER'}"
        yield Figure(
            f"one group alone, layer {layer}",
            slow / alone,
            "×",
            goal,
            f"{alone:.3f} s against {slow:.2f} s; {same}",
        )
        yield Figure(f"one group in a batch of 8, layer {layer}", slow / batch, "×", goal, f"{batch:.3f} s")


def decided() -> Iterator[Figure]:
    """A group decided by sequential looks against the loop's full evaluation, layer 14."""
    given = setting(SMOLLM2, True)
    fast, loop = given.engines(ZERO)
    slow = seconds(lambda: loop.evaluate(groups_of(MIDDLE)[:2], given.examples)) / 2
    taken = seconds(lambda: searched(fast, given, [MIDDLE], ChaSettings()))
    (tree,) = searched(fast, given, [MIDDLE], ChaSettings())
    yield Figure(
        "one decided group, layer 14",
        slow / (taken / tree.queries),
        "×",
        "≥ 14×",
        f"{tree.queries} groups of one search, {tree.example_forwards / tree.queries:.0f} of {2 * SLICE} examples each",
    )


def searched(
    fast: AblationEngine, given: Setting, layers: Sequence[int], settings: ChaSettings
) -> list[ChaTree]:
    """The trees of a search of some layers, driven as a run drives them, outcomes stored in a run file."""
    width = given.subject.width(Basis.MLP_OUT)
    named = []
    for layer in layers:
        candidates = LayerCandidates(layer=layer, channels=np.arange(width), scores=np.zeros(width))
        search = ChaSearch(candidates, settings=settings, regime=Regime.BASELINE_POSITIVE)
        named.append(NamedSearch(id=str(layer), search=search, layer=layer))
    with TemporaryDirectory() as folder, RunStore.create(Path(folder) / "bench.mecharule", {}) as store:
        drive = Drive(
            engine=StoredEngine(lambda: InTurn(fast), store, "bench", given.behaviour.records, Cost()),
            basis=Basis.MLP_OUT,
            regime=Regime.BASELINE_POSITIVE,
            associated=given.examples[:SLICE],
            unrelated=given.examples[SLICE:],
            tau=settings.tau,
        )
        for _ in drive.run(named):
            pass
    return [each.search.tree for each in named]


def ideas() -> Iterator[Figure]:
    """What each idea contributes: the time without it over the time with all of them, where it can matter most."""
    given = setting(SMOLLM2, True)
    fast, loop = given.engines(ZERO)
    middle, late, examples = groups_of(MIDDLE), groups_of(LATE), given.examples
    whole = seconds(lambda: fast.evaluate(middle, examples))

    def without(name: str, taken: float, over: float = whole, note: str = f"layer {MIDDLE}") -> Figure:
        return Figure(f"without {name}", taken / over, "× the time", note=note)

    slow = seconds(lambda: loop.evaluate(middle[:2], examples)) * len(SIZES) / 2
    yield without("any of them", slow, note=f"layer {MIDDLE}: the hooked loop")
    yield without("batches of groups", seconds(partial(singly, fast, middle, examples)))
    lowest = seconds(lambda: fast.evaluate(groups_of(0), examples))
    yield without("starting above the layer", lowest, note=f"layer 0 over layer {MIDDLE}")
    with patch("mecharule_ops.engine.ablation.through_onednn", lambda model: nullcontext()):
        yield without("oneDNN products", seconds(lambda: fast.evaluate(middle, examples)))
    for layer, groups in ((MIDDLE, middle), (LATE, late)):
        bounded = seconds(partial(fast.evaluate, groups, examples))
        with patch.object(NearClean, "greedy", lambda near, hidden, rows: near._whole.greedy(hidden)):
            full = seconds(partial(fast.evaluate, groups, examples))
        yield without("the bounded argmax", full, bounded, f"layer {layer}")
    wrong = setting(SMOLLM2, False)
    theirs, _ = wrong.engines(ZERO)
    early = seconds(lambda: theirs.evaluate(middle, wrong.examples))
    late_end = seconds(lambda: theirs.completions(middle, wrong.examples))
    yield without("the early end", late_end, early, f"layer {MIDDLE}, wrong answers: whole completions")
    fixed, looks = (
        searched(fast, given, [MIDDLE], ChaSettings(testing=testing))[0].example_forwards
        for testing in (Testing.FIXED, Testing.SEQUENTIAL)
    )
    yield Figure(
        "without sequential looks", fixed / looks, "× the forwards", note=f"one search of layer {MIDDLE}"
    )


def growth() -> Iterator[Figure]:
    """How the time of one batch grows with depth, examples, groups and tokens, each over its first value."""
    given = setting(SMOLLM2, True)
    fast, _ = given.engines(ZERO)
    groups, examples = groups_of(MIDDLE), given.examples
    first: dict[str, float] = {}

    def line(axis: str, value: int, taken: float) -> Figure:
        base = first.setdefault(axis, taken)
        return Figure(f"time at {value} {axis}", taken / base, f"× that of the first {axis}")

    for layer in (28, 21, 14, 7, 0):
        depth = given.subject.n_layers - layer
        yield line("layers above", depth - 1, seconds(partial(fast.evaluate, groups_of(layer), examples)))
    for count in (16, 32, 64, 128):
        yield line("examples", count, seconds(partial(fast.evaluate, groups, examples[:count])))
    for count in (1, 2, 4, 8):
        yield line("groups", count, seconds(partial(fast.evaluate, groups[:count], examples)))
    lengths = np.array([len(given.behaviour.records[example].tokens) for example in examples])
    for length in sorted(set(lengths.tolist())):
        same = [example for example, tokens in zip(examples, lengths, strict=True) if tokens == length][:16]
        if len(same) == 16:
            yield line("tokens", length, seconds(partial(fast.evaluate, groups, same)))


def matrix_peak() -> Iterator[Figure]:
    """Work of the blocks above layer 2, unembedding left out, as a share of a large product's best rate."""
    given = setting(SMOLLM2, True)
    fast, _ = given.engines(ZERO)
    groups = [(Neuron(Basis.MLP_OUT, 2, channel),) for channel in range(8)]
    taken = seconds(lambda: fast.evaluate(groups, given.examples)) / len(groups)
    records = [given.behaviour.records[example] for example in given.examples]
    positions = sum(max(0, len(record.tokens) - 1) for record in records)
    blocks = list(given.subject.wiring.blocks(given.subject.hf))[3:]
    weights = sum(p.numel() for block in blocks for p in block.parameters() if p.ndim == 2)
    a, b = torch.randn(4096, 2048), torch.nn.Linear(2048, 2048, bias=False)
    with torch.inference_mode():
        plain_product = seconds(lambda: b(a))
        with through_onednn(b):
            product = min(plain_product, seconds(lambda: b(a)))
    peak = 2 * 4096 * 2048 * 2048 / product
    share = 2 * positions * weights / taken / peak
    yield Figure(
        "share of the float32 matrix peak, layer 2", share, "", "≥ 0.60", f"{peak / 1e9:.0f} GFLOP/s peak"
    )
