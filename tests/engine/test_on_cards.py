"""Everything that asks a model gives, over two simulated cards, what it gives on the processor, and mixes no cards."""

from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rounded import allowed, same
from simulated_cards import on_cards, simulated_cards
from tiny_models import save_tiny
from toy_behaviour import Toy, told, toy

from mecharule_ops.engine import guard, precision
from mecharule_ops.engine.rounding import measure_rounding
from mecharule_ops.engine.soundness import check_soundness
from mecharule_ops.loading import model_names, products
from mecharule_ops.mechanism.attribution import AttributionPair, eap_ig
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.first_order import effects_of_kinds, prediction
from mecharule_ops.mechanism.measured import measured_drop
from mecharule_ops.mechanism.reads import reads
from mecharule_ops.mechanism.writes import writes
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

CASES = [
    ("llama", Basis.MLP_OUT, Phase.DECODE),
    pytest.param("llama", Basis.ATTN_HEAD, Phase.LAST_PROMPT, marks=pytest.mark.slow),
    pytest.param("gpt2", Basis.MLP_HIDDEN, Phase.WHOLE, marks=pytest.mark.slow),
    pytest.param("gemma3_text", Basis.ATTN_HEAD, Phase.DECODE, marks=pytest.mark.slow),
]


@pytest.fixture
def _products_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor computes as it does for a card: without oneDNN."""
    monkeypatch.setattr(products, "_ONEDNN", False)


@pytest.mark.usefixtures("_products_alike")
@pytest.mark.parametrize(("family", "basis", "phase"), CASES)
def test_what_is_found_over_cards_is_what_is_found_on_the_processor(
    family: str, basis: Basis, phase: Phase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every outcome is, and every number to a rounding, forward and backward."""
    whole, directory = toy(family), str(save_tiny(tmp_path, family))
    plain = replace(whole, subject=model_names.load(directory))
    plain.subject.hf.set_attn_implementation("eager")
    expected = [ask(plain, basis, phase) for ask in ASKED]
    with simulated_cards(monkeypatch, 2):
        cards = replace(whole, subject=on_cards(monkeypatch, directory, (0.75, 0.8)))
        assert len(cards.subject.devices) == 2
        for ask, wanted in zip(ASKED, expected, strict=True):
            assert same(ask(cards, basis, phase), wanted, rounding(plain)), ask.__name__


@pytest.mark.usefixtures("_products_alike")
def test_weights_in_bfloat16_over_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of the change, their calibration, and what is decided again."""
    whole, directory = toy("llama"), str(save_tiny(tmp_path, "llama"))
    plain = replace(whole, subject=model_names.load(directory, dtype="bfloat16"))
    plain.subject.hf.set_attn_implementation("eager")

    def decided(bench: Toy) -> Any:
        table = bench.table(intervention(Basis.MLP_HIDDEN, Phase.DECODE))
        error = precision.calibrate(bench.subject, bench.task, bench.records, table)
        found = bench.engine(table, slope=10.0).evaluate(bench.groups(Basis.MLP_HIDDEN, 3, 1), range(10))
        return error, found.labels, found.margins, found.decided_again

    expected = decided(plain)
    assert expected[3] > 0
    with simulated_cards(monkeypatch, 2):
        cards = replace(whole, subject=on_cards(monkeypatch, directory, (0.75, 0.8), "bfloat16"))
        assert same(decided(cards), expected, rounding(plain))


def rounding(bench: Toy) -> float:
    """How far one of its leads may move."""
    return allowed(bench.subject, *told(bench))


def intervention(basis: Basis, phase: Phase) -> Intervention:
    return Intervention(basis=basis, baseline=Baseline.MEAN_POSITIONAL, phase=phase)


def outcomes(bench: Toy, basis: Basis, phase: Phase) -> Any:
    table = bench.table(intervention(basis, phase))
    groups, engine = bench.groups(basis, 3, 5), bench.engine(table)
    found = engine.evaluate(groups, range(len(bench.records)))
    last = Neuron(Basis.MLP_OUT, bench.subject.n_layers - 1, 0)
    whole = engine.completions(groups, [7, 0, 4], [[] if basis is Basis.MLP_OUT else [last]] * len(groups))
    values = [each.cpu().numpy() for each in table.values]
    return values, found.labels, found.margins, whole.tokens, whole.margins


def shown(bench: Toy, basis: Basis, phase: Phase) -> Any:
    asked = intervention(basis, phase)
    given, table = (bench.subject, bench.task, bench.records), bench.table(asked)
    sound, moved = check_soundness(bench.subject, *told(bench)), measure_rounding(bench.subject, *told(bench))
    return guard.check_intervention(*given, asked, table).sentence, *astuple(sound), moved.disagreement


def first_order(bench: Toy, basis: Basis, phase: Phase) -> Any:
    table = bench.table(intervention(basis, phase))
    found = prediction(bench.subject, bench.records, table)
    kinds = effects_of_kinds(bench.subject, bench.records, table, found.units, tuple(Effect))
    measured = measured_drop(bench.subject, bench.records, table, bench.groups(basis, 3, 5))
    return found.excess, found.change, [kinds[kind].effect for kind in Effect], measured.fall, measured.left


def attribution(bench: Toy, basis: Basis, phase: Phase) -> Any:
    pairs = [
        AttributionPair(clean=prompt, corrupt=(prompt[0], *reversed(prompt[1:])), completion=tokens)
        for prompt, tokens in zip(*told(bench), strict=True)
    ]
    return eap_ig(bench.subject, pairs, basis, phase, steps=2)


def links(bench: Toy, basis: Basis, phase: Phase) -> Any:
    table, unit = bench.table(intervention(basis, phase)), Neuron(basis, bench.subject.n_layers - 1, 1)
    pairs = zip(*told(bench), strict=True)
    sources = [["prompt"] * len(prompt) + ["answer"] * len(tokens) for prompt, tokens in pairs]
    given = bench.subject, bench.records, table, unit, np.arange(len(bench.records)) % 2 == 0
    return writes(*given), reads(*given, sources)


def reference(bench: Toy, basis: Basis, phase: Phase) -> Any:
    """The plain path brings the weights to the processor; it knows no Gemma 3 of text alone."""
    if bench.subject.hf.config.model_type == "gemma3_text":
        return None
    engine = bench.reference(bench.table(intervention(basis, phase)))
    with torch.no_grad():
        return engine.completions(bench.groups(basis, 1, 2), [2, 5]).tokens


ASKED = (outcomes, shown, first_order, attribution, links, reference)
