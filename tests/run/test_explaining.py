"""Rules and controls: what may be learned from which records, and what stands beside an agonist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened

from mecharule_ops.events import Event
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.run.controlling import (
    control_records,
    controls,
    held_out_flips,
    same_layers,
    second_baseline,
    units_beside,
)
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, localise, rank_candidates
from mecharule_ops.run.planning import SearchPlan
from mecharule_ops.run.unit_flips import UnitFlips, anchor_rules, coverage, share_of_union
from mecharule_ops.types import Baseline, Basis, FlipCount, FlipEstimate, Neuron, Regime, Share


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A finished run opened again, its search replayed from the file."""

    run: Run
    journal: Journal
    told: list[Event]
    found: Localised
    flips: UnitFlips
    """Of the three strongest units."""
    first: UnitFlips
    """Of the strongest one."""
    rules: tuple[UnitRule, ...]
    """Its rule."""


@pytest.fixture(scope="module")
def scene(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    copy = tmp_path_factory.mktemp("scene") / finished_run.name
    copy.write_bytes(finished_run.read_bytes())
    with opened(copy) as run:
        told: list[Event] = []
        journal = Journal(run.store, told.append, lambda: 0.0)
        slices = run.slices(Regime.BASELINE_POSITIVE)
        candidates = rank_candidates(run, journal, Basis.MLP_OUT, slices)
        plan = SearchPlan(settings=run.search_settings(slices.regime))
        found = localise(run, journal, candidates, slices, plan)
        neurons = [agonist.neuron for agonist in found.agonists[: run.config.anchor_for]]
        flips = coverage(run, found, neurons, journal.progress("rules"))
        first = replace(flips, neurons=flips.neurons[:1], flips=flips.flips[:1])
        rules = anchor_rules(run, journal, found, first)
        yield Scene(run=run, journal=journal, told=told, found=found, flips=flips, first=first, rules=rules)


def learned(rules: tuple[UnitRule, ...]) -> list[tuple]:
    """What train records decide."""
    return [(rule.neuron, rule.rule, rule.train, rule.prompt_only) for rule in rules]


def shuffled(scene: Scene, held_out: bool) -> UnitFlips:
    """The strongest unit with the flips of one part of D_b permuted."""
    part = scene.run.train[scene.first.eligible] != held_out
    flips = scene.first.flips.copy()
    flips[:, part] = np.random.default_rng(2).permutation(flips[:, part], axis=1)
    return replace(scene.first, flips=flips)


def test_held_out_flips_reach_scores_only(scene: Scene) -> None:
    """With held-out flips shuffled the HQ-T rules stay to the letter, and their held-out scores change."""
    after = anchor_rules(scene.run, scene.journal, scene.found, shuffled(scene, held_out=True))
    assert learned(after) == learned(scene.rules)
    assert scene.rules[0].rule is not None
    assert after[0].held_out != scene.rules[0].held_out


def test_train_flips_do_decide_rules(scene: Scene) -> None:
    """The check can fail: shuffling train flips changes what is learned."""
    after = anchor_rules(scene.run, scene.journal, scene.found, shuffled(scene, held_out=False))
    assert learned(after) != learned(scene.rules)


def test_a_rule_that_leaks_is_caught(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every record counted as train, shuffling the held-out flips changes rules."""
    leaking = shuffled(scene, held_out=True)
    monkeypatch.setitem(vars(scene.run), "train", np.ones(len(scene.run.records), bool))
    before = anchor_rules(scene.run, scene.journal, scene.found, scene.first)
    assert learned(anchor_rules(scene.run, scene.journal, scene.found, leaking)) != learned(before)


def test_coverage_is_what_each_unit_flips_alone(scene: Scene) -> None:
    """On the slices the flips of all of D_b agree with the search's own counts of the unit."""
    place = {int(record): column for column, record in enumerate(scene.flips.eligible)}
    assert scene.run.labels[scene.flips.eligible].all()
    for neuron, flips in zip(scene.flips.neurons, scene.flips.flips, strict=True):
        estimate = next(a.estimate for a in scene.found.agonists if a.neuron == neuron)
        for records, seen in (
            (scene.found.slices.associated, estimate.associated),
            (scene.found.slices.unrelated, estimate.unrelated),
        ):
            columns = [place[int(record)] for record in records]
            assert FlipCount(flips=int(flips[columns].sum()), n=len(columns)) == seen


def test_union_coverage_by_layer_and_in_all() -> None:
    """By hand: two units of layer 0 flip records {0} and {0, 1}, one of layer 2 flips {3}; of four records."""
    flips = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    names = tuple(Neuron.parse(name) for name in ("m0.1", "m0.2", "m2.1"))
    made = UnitFlips(neurons=names, eligible=np.arange(4), flips=flips)
    layers = {row.layer: (row.flipped.count, row.flipped.n) for row in made.by_layer()}
    assert layers == {0: (2, 4), 2: (1, 4)}
    union = share_of_union(made)
    assert union is not None
    assert (union.count, union.n) == (3, 4)
    assert share_of_union(made, [0, 2]) == Share(count=2, n=2)
    assert share_of_union(made, range(4)) == Share(count=0, n=0)
    none = UnitFlips(neurons=(), eligible=np.arange(4), flips=np.zeros((0, 4), bool))
    assert share_of_union(none) is None
    assert none.by_layer() == ()


def test_no_units_cost_nothing(scene: Scene) -> None:
    """A search without agonists needs no ablation for its coverage."""
    before = scene.run.cost.example_forwards
    empty = coverage(scene.run, scene.found, [], scene.journal.progress("rules"))
    assert empty.flips.shape == (0, len(scene.run.eligible(Regime.BASELINE_POSITIVE)))
    assert scene.run.cost.example_forwards == before


def test_controls_stand_beside_the_strongest(scene: Scene) -> None:
    """Ranked by hand from stored flips on held-out records, found units among the random ones; another baseline."""
    run, regime, progress = scene.run, scene.found.regime, scene.journal.progress("controls")
    drawn = held_out_flips(run, scene.found, progress)
    ran = controls(run, replace(scene.found, held_out=drawn), progress)
    assert [row.neuron for row in ran] == [a.neuron for a in scene.found.agonists if a.is_tau_agonist][:3]
    records, slices = control_records(run, regime), scene.found.slices
    assert not run.train[records].any()
    assert len(records) == min(64, int((~run.train[run.eligible(regime)]).sum()))
    for row in ran:
        every, layer = units_beside(run, row.neuron, len(drawn.random))
        itself = row.neuron in drawn.again
        as_strong = sum(flips >= row.flips.flips for flips in drawn.random) - itself
        assert row.basis == Share(count=as_strong, n=len(drawn.random) - itself), "of the draw that decides"
        assert row.neuron not in {*every, *layer}
        assert {unit.layer for unit in layer} == {row.neuron.layer}
        flips = run.flips([(unit,) for unit in (row.neuron, *every, *layer)], records, regime).sum(axis=1)
        assert row.flips == FlipCount(flips=int(flips[0]), n=len(records))
        as_many = flips[1:] >= flips[0]
        assert row.basis == Share(count=int(as_many[: len(every)].sum()), n=len(every))
        assert row.layer == Share(count=int(as_many[len(every) :].sum()), n=8)
        assert row.second_baseline is Baseline.MEAN
        assert row.second.associated.n == len(slices.associated)
        assert 0 <= row.out_of_range.count <= row.out_of_range.n


def test_the_split_divides_the_held_out_flips_of_the_unit(scene: Scene) -> None:
    """Counted again by hand from the splitter's fires; train records stay out."""
    run = scene.run
    fires = run.splitter.rule.fires(run.fires)
    for row in controls(run, scene.found, scene.journal.progress("controls")):
        flips = scene.flips.flips[scene.flips.neurons.index(row.neuron)]
        counts = {True: [0, 0], False: [0, 0]}
        for record, flipped in zip(scene.flips.eligible, flips, strict=True):
            if not run.train[record]:
                counts[bool(fires[record])][0] += int(flipped)
                counts[bool(fires[record])][1] += 1
        assert row.split == FlipEstimate(
            associated=FlipCount(flips=counts[True][0], n=counts[True][1]),
            unrelated=FlipCount(flips=counts[False][0], n=counts[False][1]),
        )


def test_the_union_drawn_beside_found_units_has_as_many_of_each_layer(scene: Scene) -> None:
    """Drawn from all of the layer: where the whole layer was found, it is drawn again."""
    found = [unit for unit in scene.flips.neurons if unit.layer == 1]
    drawn = same_layers(scene.run, scene.flips.neurons)
    assert sum(unit.layer == 1 for unit in drawn) == len(found)
    assert len(set(drawn)) == len(drawn) == len(scene.flips.neurons)
    every = [Neuron(Basis.MLP_OUT, 1, channel) for channel in range(scene.run.subject.width(Basis.MLP_OUT))]
    assert set(same_layers(scene.run, every)) == set(every)


def test_the_second_baseline_is_another_one() -> None:
    """Whatever the main one is."""
    for main in Baseline:
        assert second_baseline(main) is not main
