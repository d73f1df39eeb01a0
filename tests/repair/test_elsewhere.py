"""Other text under replaced units: KL and perplexity against text by text, without padding or batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import exp

import numpy as np
import pytest
import torch
from torch import Tensor

from mecharule_ops.engine.behaviour import observe
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.repair.elsewhere import Parts, text_effects
from mecharule_ops.repair.gates import Acts
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.tasks.task_names import preset
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

TEXTS = ("7 - 12 = -5\n", "101 + 5 = 106\n", "3 + 3 = 6\n", "250 - 249 = 1\n", "18 + 81 = 99\n")


@pytest.fixture(scope="module")
def subject() -> Subject:
    return load("arith-tiny")


def table_of(subject: Subject, basis: Basis, phase: Phase) -> ReplacementTable:
    task = preset("arithmetic", "arith-tiny")
    records = observe(task, subject, task.examples(64, np.random.default_rng(0))).records
    how = Intervention(basis=basis, phase=phase, baseline=Baseline.MEAN_POSITIONAL)
    return replacement_table(subject, records, how)


def parts_of(subject: Subject) -> list[Parts]:
    """Each text in two parts, of unlike lengths."""
    tokens = subject.encode(TEXTS)
    return [(one[: 3 + place], one[3 + place :]) for place, one in enumerate(tokens)]


@contextmanager
def replaced(subject: Subject, table: ReplacementTable, unit: Neuron, before: int) -> Iterator[None]:
    """The unit set position by position in the only row of the next forward."""
    block = subject.wiring.blocks(subject.hf)[unit.layer]
    module, in_input = subject.wiring.site(block, unit.basis)
    lowest = {Phase.DECODE: before, Phase.LAST_PROMPT: before - 1, Phase.WHOLE: 0}[table.intervention.phase]

    def see(site: Tensor) -> None:
        width = subject.unit_size(unit.basis)
        for position in range(lowest, site.shape[1]):
            offset = torch.tensor([position - (before - 1)])
            value = table.value(unit.layer, offset)[0, unit.channel]
            site[0, position, unit.channel * width : (unit.channel + 1) * width] = value

    handle = (
        module.register_forward_pre_hook(lambda module, inputs: see(inputs[0]))
        if in_input
        else module.register_forward_hook(lambda module, inputs, output: see(output))
    )
    try:
        yield
    finally:
        handle.remove()


def slow_effect(
    subject: Subject, table: ReplacementTable, texts: list[Parts], acts: Acts
) -> tuple[float, float, float]:
    """(KL, perplexity before, after), token by token."""
    kl, losses = [], ([], [])  # type: ignore[var-annotated]
    for (before, continuation), units in zip(texts, acts, strict=True):
        ids = torch.tensor([[*before, *continuation]])
        with torch.no_grad():
            clean = subject.hf(ids).logits[0].double().softmax(-1)
            with ExitStack() as stack:
                for unit in units:
                    stack.enter_context(replaced(subject, table, unit, len(before)))
                acted = subject.hf(ids).logits[0].double().softmax(-1)
        for place, token in enumerate(continuation, len(before)):
            p, q = clean[place - 1], acted[place - 1]
            kl.append(float((p * (p / q).log()).sum()))
            losses[0].append(-float(p[token].log()))
            losses[1].append(-float(q[token].log()))
    means = [exp(sum(one) / len(one)) for one in losses]
    return sum(kl) / len(kl), means[0], means[1]


OTHERS = ((1, 0), (0, 3))
"""Two more units, one in the last layer and one below."""


@pytest.mark.parametrize("phase", list(Phase), ids=str)
@pytest.mark.parametrize(("basis", "unit"), [(Basis.MLP_OUT, (1, 37)), (Basis.ATTN_HEAD, (0, 1))], ids=str)
def test_effects_are_those_of_one_text_at_a_time(
    subject: Subject, basis: Basis, unit: tuple[int, int], phase: Phase
) -> None:
    """Rows of a batch, their padding and rows that are left alone do not touch one another."""
    table, texts = table_of(subject, basis, phase), parts_of(subject)
    one, beside, above = (Neuron(basis, layer, channel) for layer, channel in (unit, *OTHERS))
    plans: list[Acts] = [[(one,)] * 5, [(one,), (), (beside, one), (), (above, one, beside)]]
    for acts, found in zip(plans, text_effects(subject, table, texts, plans), strict=True):
        kl, before, after = slow_effect(subject, table, texts, acts)
        assert found.kl == pytest.approx(kl, rel=1e-3, abs=1e-7)
        assert (found.before, found.after) == pytest.approx((before, after), rel=1e-4)
        assert found.kl > 0
        assert found.tokens == sum(len(continuation) for _, continuation in texts)


def test_text_that_nothing_acts_on_is_as_it_was(subject: Subject) -> None:
    """Exactly: the clean model is compared with itself."""
    table = table_of(subject, Basis.MLP_OUT, Phase.DECODE)
    (found,) = text_effects(subject, table, parts_of(subject), [[()] * 5])
    assert found.kl == 0
    assert found.before == found.after
