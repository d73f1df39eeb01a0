"""The first-order prediction of a unit beside what is simpler, where it can be relied on, and where it is blind."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lead_oracles import effects
from torch import nn
from toy_behaviour import Toy, ToyTask, toy

from mecharule_ops.config import make_config
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.facts.unit_facts import prediction_words
from mecharule_ops.findings.accounts import Account, PredictionKind, PredictionScore
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.first_order import Effects
from mecharule_ops.mechanism.leads import Leads
from mecharule_ops.mechanism.measured import Measured
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.rules.families import Family, RuleStatus, UnitRule
from mecharule_ops.rules.interval import MccInterval, mcc_interval
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.run import accounting, live_run, planning
from mecharule_ops.thresholds import COMPETITORS
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron, Regime

UNIT = Neuron(Basis.MLP_OUT, 0, 7)
SPLIT = np.arange(300), np.arange(300, 600)
"""Train and held-out records."""


@given(st.integers(0, 10_000))
def test_held_out_outcomes_choose_no_threshold(seed: int) -> None:
    """Whatever happens on held-out records, lead and drop are cut in the same places; what train says moves them."""
    rng = np.random.default_rng(seed)
    lead, drop = rng.gamma(2, 2, 600), rng.gamma(2, 2, 600)
    train, test = SPLIT
    happened = drop > lead
    other = happened.copy()
    other[test] = rng.random(len(test)) < rng.random()
    scores = (accounting.cut_scores(lead, drop, what, train, test) for what in (happened, other))
    cuts, same = ([score.threshold for score in some] for some in scores)
    assert cuts == same
    other[train] = ~other[train]
    assert cuts != [score.threshold for score in accounting.cut_scores(lead, drop, other, train, test)]


def test_a_baseline_is_the_slow_obvious_one() -> None:
    """Every threshold tried on train, the best scored on the held-out records with the same interval."""
    rng = np.random.default_rng(2)
    lead, drop = rng.gamma(2, 2, 600), rng.gamma(2, 2, 600)
    lead[::50] = drop[::50] = np.nan
    happened = (drop > lead) | (rng.random(600) < 0.1)
    train, test = SPLIT
    with np.errstate(invalid="ignore"):
        says = {
            PredictionKind.LEAD_ONLY: lambda cut: lead < cut,
            PredictionKind.DROP_ONLY: lambda cut: drop > cut,
        }
        for score in accounting.cut_scores(lead, drop, happened, train, test):
            tried = max(mcc(says[score.kind](cut)[train], happened[train]) for cut in [*lead, *drop])
            assert score.threshold is not None
            said = says[score.kind](score.threshold)
            assert mcc(said[train], happened[train]) >= tried - 1e-9
            assert (score.predicted, score.happened) == (said[test].sum(), happened[test].sum())
            assert score.held_out == mcc_interval(said[test], happened[test])


def test_the_closest_token_is_where_most_is_left_of_effect_less_lead() -> None:
    lead = np.array([[[3.0, 5.0], [1.0, 9.0]], [[np.nan] * 2] * 2], np.float32)
    effect = np.array([[[2.0, 4.5], [0.0, 0.0]], [[np.nan] * 2] * 2], np.float32)[..., None]
    leads = Leads(lead=lead, token=np.zeros(lead.shape, int), generated=np.zeros(lead.shape[:2], int))
    found = Effects(units=(UNIT,), leads=leads, effect=effect)
    assert found.closest(UNIT)[0].tolist()[0] == 5.0
    assert found.closest(UNIT)[1].tolist()[0] == 4.5
    assert np.isnan(found.closest(UNIT)[0][1])


class _Gain(nn.Module):
    """A normalisation that only multiplies, so that nothing acts through its scale."""

    eps = 1.0

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * self.weight


def saturated(bias: float) -> Toy:
    """A model that answers by its last token, and whose channel 7 of the first MLP only holds a relu of the next at 0.

    That relu's input is `bias` · 1 − 3: below 0 it is saturated and its slope is 0. Ablating the channel lifts it to
    `bias`, and what it then writes changes answers.
    """
    bench = toy("llama", 60)
    hf: Any = deepcopy(bench.subject.hf)
    body = hf.model
    with torch.no_grad():
        for layer in body.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
            layer.input_layernorm = layer.post_attention_layernorm = _Gain(torch.ones(32))
            layer.mlp.act_fn = nn.ReLU()
            layer.mlp.gate_proj.weight.zero_()
            layer.mlp.up_proj.weight.zero_()
        body.norm = _Gain(torch.ones(32))
        body.embed_tokens.weight[:, 7] = 0
        body.embed_tokens.weight[:, 8] = 1
        hf.lm_head.weight[:, 7:9] = 0
        first, second = body.layers[0].mlp, body.layers[1].mlp
        first.gate_proj.weight[0, 8] = first.up_proj.weight[0, 8] = second.up_proj.weight[0, 8] = 1
        first.down_proj.weight[7, 0] = 3
        second.gate_proj.weight[0, 8], second.gate_proj.weight[0, 7] = bias, -1
        second.down_proj.weight[9:, 0] = torch.linspace(-2, 2, 23)
    subject = Subject(name="saturated", directory=Path(), hf=hf, tokenizer=bench.subject.tokenizer)
    task, prompts = ToyTask(), subject.encode([record.example.prompt for record in bench.records])
    written = subject.generate(prompts, task.max_new_tokens, subject.stop_ids(task.stop)).tokens
    records = [
        BehaviourRecord(
            example=record.example, tokens=tokens, completion=subject.decode(tokens), parsed={}, label=True
        )
        for record, tokens in zip(bench.records, written, strict=True)
    ]
    return Toy(subject=subject, task=task, records=tuple(records))


class _ToyRun(live_run.Run):
    """A run of a toy that has no file."""

    def __init__(self, bench: Toy, table: ReplacementTable) -> None:
        self.task, self.subject, self.config = bench.task, bench.subject, make_config(model="toy")
        self.should_stop, self._table = (lambda: False), table

    def intervention(self, basis: Basis) -> Intervention:
        return self._table.intervention

    def replacement(self, intervention: Intervention) -> ReplacementTable:
        return self._table

    clean_kept = lambda self, how: nullcontext()  # noqa: E731


def account_of(bench: Toy) -> Account:
    """The account of channel 7, its first half of the records in train."""
    table = bench.table(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO))
    run = _ToyRun(bench, table)
    drops = effects(bench.subject, until_settled(bench.subject, bench.task, bench.records), table, [UNIT])
    train, test, regime = np.arange(30), np.arange(30, 60), Regime.BASELINE_POSITIVE
    first = accounting.FirstOrder(run, drops, Regime.BASELINE_NEGATIVE, list(bench.records), train, test)
    changed, first.regime = first.happened(UNIT, np.zeros(60, bool)), regime
    families = (UnitRule(neuron=UNIT, family=Family.INPUT, absent=RuleStatus.NO_PREDICATES),)
    account = Account(
        neuron=UNIT, regime=regime, flips=int(changed.sum()), records=60, held_out=30, families=families
    )
    return first.scored(account, changed)


def test_first_order_is_blind_to_a_saturated_unit_and_the_account_says_so() -> None:
    """Its drop is 0 everywhere, its ablation changes answers, and the sentence has both numbers; unsaturated, none."""
    blind = account_of(saturated(bias=2.0))
    assert blind.drop_error is not None
    assert blind.drop_error.first_order == 0.0
    assert blind.drop_error.measured > 0.5
    assert blind.flips > 10
    assert (
        f"its first-order drop is 0.00 where the ablation moves the lead by {blind.drop_error.measured:.2f}: "
        "the gradient does not see this unit"
    ) in prediction_words(blind)
    seen = account_of(saturated(bias=5.0))
    assert seen.drop_error is not None
    assert seen.drop_error.spearman == pytest.approx(1)
    assert not seen.drop_error.blind
    assert "the gradient does not see" not in prediction_words(seen)


@pytest.mark.parametrize(
    ("mcc", "low", "high", "verdict"),
    [
        (0.48, 0.2, 0.72, "undecided"),
        (0.9, 0.69, 0.99, "undecided"),
        (0.5, 0.3, 0.69, "refuted"),
        (0.9, 0.7, 1.0, "supported"),
    ],
)
def test_what_was_registered_of_first_order_and_what_came_out_is_said(
    mcc: float, low: float, high: float, verdict: str
) -> None:
    """As the ledger says it; of a unit with nothing above it, where first order is arithmetic, it is not."""
    seen = account_of(saturated(bias=5.0))
    interval = MccInterval(mcc=mcc, low=low, high=high, n=90, positives=30)
    score = PredictionScore(
        kind=PredictionKind.STEADY, predicted=30, held_out=interval, records=90, happened=30, right=70
    )
    for above, said in ((False, f"; registered beforehand to reach 0.70, that is {verdict}"), (True, "")):
        sentence = prediction_words(replace(seen, predictions=(score,), nothing_above=above))
        assert said in sentence
        assert ("registered" in sentence) is not above


def test_an_outcome_without_an_interval_keeps_its_true_counts() -> None:
    """336 of 336 flip: there is no interval, so no value; "0 of them flips" is false."""
    score = PredictionScore(
        kind=PredictionKind.STEADY, predicted=336, held_out=None, records=336, happened=336, right=336
    )
    outcome = accounting._prediction_outcome(
        score, accounting.prediction_hypothesis(UNIT, Regime.BASELINE_POSITIVE)
    )
    assert (outcome.value, outcome.n, outcome.positives) == (None, 336, 336)


def test_the_drop_is_taken_over_the_token_that_wins() -> None:
    """The runner-up (5) stays where it is; token 6, 2 behind in the clean run, is 1 ahead under the ablation."""
    leads = Leads(
        lead=np.array([[[1.0, 2.0]]], np.float32), token=np.array([[[5, 6]]]), generated=np.array([[4]])
    )
    effect = np.array([[[[0.0], [2.5]]]], np.float32)
    measured = Measured(
        left=np.array([[[-1.0]]], np.float32), best=np.array([[[6]]]), fall=np.array([[[3.0]]], np.float32)
    )
    found = accounting._drop_error(
        Effects(units=(UNIT,), leads=leads, effect=effect), np.array([0]), measured, 0
    )
    assert found is not None
    assert (found.measured, found.first_order, found.error) == pytest.approx((3.0, 2.5, 0.5))


@pytest.mark.parametrize(
    ("units", "competitors"),
    [(0, 0), (8, 0), (139, 0), (140, 1), (900, 1), (950, COMPETITORS), (17_280, COMPETITORS)],
)
def test_the_prediction_is_asked_as_far_as_it_pays(units: int, competitors: int) -> None:
    """128 examples with 3 tokens in reach each: three competitors cost 19 forwards an example, 2 % of 950 units."""
    price = planning.PredictionPrice.of(128, 3 * 128, units)
    assert price.competitors == competitors
    assert price.example_forwards == (128 * (1 + 2 * competitors * 3) if competitors else 0)
