"""The page of searches: write norm stands beside guided at no higher cost, on a model whose norms are known."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from mecharule_ops.types import Basis, Neuron, Regime


@pytest.fixture
def recall(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("recall")


def test_write_norm_tests_the_largest_writes_that_guided_pays_for(recall: ModuleType, tmp_path: Path) -> None:
    """Heads of the bundled model; afterwards one head's block of W_O is made large, and stands first."""
    settings = {"model": "arith-tiny", "records": 160, "slice_size": 24, "proposals": 0}
    case = recall.Case(basis=Basis.ATTN_HEAD, regime=Regime.BASELINE_POSITIVE, settings=settings)
    bench = recall.made_ready("a case", case, tmp_path)
    guided, norm = recall.measured("a case", bench, only=(recall.WRITE_NORM,))
    assert (guided.search, norm.search) == (recall.GUIDED, recall.WRITE_NORM)
    assert norm.groups == int(guided.share * guided.units)
    assert norm.share <= guided.share
    assert (norm.units, norm.agonists) == (guided.units, guided.agonists)
    assert norm.found + len(norm.missed) == norm.agonists
    attention = bench.run.subject.hf.model.layers[1].self_attn
    with torch.no_grad():
        attention.o_proj.weight[:, 64:96] *= 100
    units = [Neuron(Basis.ATTN_HEAD, layer, head) for layer in range(2) for head in range(4)]
    assert [str(unit) for unit in recall.largest_writes(bench, units, 1)] == ["a1.h2"]
    assert len(recall.largest_writes(bench, units, 99)) == 8
    assert "as many units by write norm" in recall.page([guided, norm])
    assert guided.reached == sorted(guided.reached)
    assert len(guided.reached) == guided.agonists
