"""Contrastive hierarchical ablation agrees with plain Hugging Face on every architecture and basis.

Behaviour, attribution and exact ablation are held to Hugging Face, family by family, in `test_subject`,
`test_attribution` and `test_ablation`; here a whole search is.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import crossed
from toy_behaviour import Toy, naive_completion, toy

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ALGORITHM_1
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import AlphaPolicy
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.model_names import load
from mecharule_ops.types import (
    Baseline,
    Basis,
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    GroupQuery,
    Intervention,
    LayerCandidates,
    Neuron,
    Phase,
    Regime,
)

ASSOCIATED, UNRELATED = (0, 1), (2, 3)
SETTINGS = replace(
    ALGORITHM_1, n_associated=2, n_unrelated=2, tau=0.7, alpha=AlphaPolicy(alpha=0.4, halved=True)
)
LAYER, UNITS = 1, 3


def searched(flipped: Any, basis: Basis) -> ChaTree:
    """The tree of a search over three units of layer 1, with answers from `flipped(group, positions)`."""
    candidates = LayerCandidates(layer=LAYER, channels=np.arange(UNITS), scores=np.array([1.0, -2.0, 0.5]))
    search = ChaSearch(candidates, settings=SETTINGS, regime=Regime.BASELINE_POSITIVE)
    while not search.done:
        for query in search.ask():
            search.tell(GroupAnswer(node=query.node, estimate=_estimate(flipped, query, basis)))
    return search.tree


def _estimate(flipped: Any, query: GroupQuery, basis: Basis) -> FlipEstimate:
    group = tuple(Neuron(basis, LAYER, channel) for channel in query.channels)
    asked = (ASSOCIATED, query.associated), (UNRELATED, query.unrelated)
    parts = [tuple(part[place] for place in places) for part, places in asked]
    counts = [FlipCount(flips=int(np.sum(flipped(group, part))), n=len(part)) for part in parts]
    return FlipEstimate(associated=counts[0], unrelated=counts[1])


def both_trees(bench: Toy, basis: Basis) -> tuple[ChaTree, ChaTree]:
    """By the engine, and by decoding every completion with a whole forward a token."""
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=Phase.WHOLE))
    engine, before = bench.engine(table), np.array([record.label for record in bench.records])

    def fast(group: tuple[Neuron, ...], positions: tuple[int, ...]) -> np.ndarray:
        return engine.evaluate([group], positions).labels[0] != before[list(positions)]

    def plain(group: tuple[Neuron, ...], positions: tuple[int, ...]) -> list[bool]:
        flips = []
        for position in positions:
            record = bench.records[position]
            text = bench.subject.decode(naive_completion(bench, table, group, record))
            flips.append(bench.task.label(record.example, text) != record.label)
        return flips

    return searched(fast, basis), searched(plain, basis)


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_a_search_equals_one_on_plain_hugging_face(family: str, basis: Basis) -> None:
    """Same groups, counts, bounds and verdicts: parallel blocks, grouped queries, tied heads, sliding windows."""
    fast, plain = both_trees(toy(family), basis)
    assert fast == plain
    assert fast.nodes


def test_the_searches_are_not_all_alike() -> None:
    """Some units are kept and some groups pruned, so that the equality above can fail."""
    verdicts = {
        node.verdict.value
        for family in ("llama", "gptj")
        for basis in (Basis.ATTN_HEAD, Basis.MLP_OUT)
        for node in both_trees(toy(family), basis)[0].nodes
    }
    assert {"kept", "split"} <= verdicts
    assert verdicts & {"pruned", "dropped"}


@pytest.mark.parametrize("kind", ["mamba", "opt", "mixtral"])
def test_an_architecture_without_wiring_is_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    """Every basis of a listed family has its place in the model; a family that is not listed has none."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(
        ModelUnavailable, match=rf"an architecture of: .*got '{kind}'; choose another"
    ) as caught:
        load(str(tmp_path))
    assert "\n" not in str(caught.value)
