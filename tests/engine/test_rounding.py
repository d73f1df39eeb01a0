"""Leads are those of a whole forward, and what batches of several sizes make of them is measured."""

import numpy as np
import pytest
import torch
from toy_behaviour import told, toy

from mecharule_ops.engine import rounding
from mecharule_ops.engine.rounding import FACTOR, Rounding, leads, measure_rounding
from mecharule_ops.loading.generation import SharedPrefix
from mecharule_ops.passes.spans import span_of
from mecharule_ops.types import Phase


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2", "gemma2"])
@pytest.mark.parametrize("size", [1, 3])
def test_leads_are_those_of_a_whole_forward_a_prompt(family: str, size: int) -> None:
    """The logit of each completion token less the best other one's, after a soft cap."""
    bench = toy(family)
    prompts, completions = told(bench)
    spans = [span_of(*pair, Phase.LAST_PROMPT) for pair in zip(prompts, completions, strict=True)]
    expected = []
    with torch.inference_mode():
        for prompt, completion in zip(prompts, completions, strict=True):
            logits = bench.subject.hf(torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
            for row, token in zip(logits, completion, strict=True):
                expected.append(float(row[token] - torch.cat([row[:token], row[token + 1 :]]).max()))
        shared = SharedPrefix.of(bench.subject.hf, [span.prefix for span in spans])
        found = leads(bench.subject, spans, completions, shared, size)
    assert np.allclose(found, expected, atol=1e-4)
    assert (found >= -1e-4).all()


def test_the_largest_difference_between_sizes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: sizes 1 and 4 differ by 0.25 in one token, 16 agrees with 4; the lead is a multiple of it."""
    made = {1: [1.0, 2.0], 4: [1.25, 2.0], 16: [1.25, 2.0]}
    monkeypatch.setattr(rounding, "leads", lambda *told: torch.tensor(made[told[-1]]))
    bench = toy("llama")
    assert measure_rounding(bench.subject, *told(bench)) == Rounding(disagreement=0.25, compared=10)
    assert Rounding(disagreement=0.25, compared=10).lead == 0.25 * FACTOR


def test_float32_disagrees_by_little() -> None:
    """Batches move leads, by less than a thousandth."""
    bench = toy("llama")
    assert 0 < measure_rounding(bench.subject, *told(bench)).disagreement < 1e-3
