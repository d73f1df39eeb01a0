"""The parts of a lead sum to the lead, in every family; left out parts show."""

from __future__ import annotations

import numpy as np
import pytest
from contributions import contributions
from tiny_models import FAMILIES
from toy_behaviour import toy

from mecharule_ops.types import Phase


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("family", FAMILIES)
def test_contributions_sum_to_the_lead(family: str, phase: Phase) -> None:
    """Gains, biases, centring, tied heads, parallel blocks, norms behind a write, soft caps."""
    bench = toy(family)
    parts = contributions(bench.subject, bench.records, phase, competitors=3)
    assert parts.value.sum(-1) == pytest.approx(parts.leads.lead, abs=1e-4, nan_ok=True)
    assert parts.names == ("embedding", "a0", "m0", "a1", "m1", "a2", "m2", "bias")
    held = parts.value[parts.leads.in_reach]
    biased = family in ("gpt2", "gptj", "gpt_neox")
    for index, name in enumerate(parts.names):
        assert (np.abs(held[..., index]).max() > 1e-2) == (name != "bias" or biased), name


def test_the_capped_family_caps() -> None:
    """Without the share that the soft cap leaves, the parts of Gemma 2 would not sum to its lead."""
    bench = toy("gemma2")
    cap = bench.subject.hf.config.final_logit_softcapping
    parts = contributions(bench.subject, bench.records, Phase.DECODE)
    bench.subject.hf.config.final_logit_softcapping = None
    try:
        raw = contributions(bench.subject, bench.records, Phase.DECODE)
    finally:
        bench.subject.hf.config.final_logit_softcapping = cap
    reach = parts.leads.in_reach
    assert (np.abs(raw.leads.lead[reach] - parts.leads.lead[reach]) > 1e-3).any()
