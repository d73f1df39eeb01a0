"""Rules and controls: what may be learned from which records, and what stands beside an agonist."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from bundled_run import finished, opened

from mecharule_ops import config, events
from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.known_answers.known_model import KnownModel
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules import families, ruleshap
from mecharule_ops.run import controlling, live_run, planning
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.localise import Localised, localise, rank_candidates
from mecharule_ops.run.second_run import bench_of_run, rerun
from mecharule_ops.types import Baseline, Basis, FlipCount, FlipEstimate, Neuron, Regime, Share
from tools.registry import call

REGIME = Regime.BASELINE_POSITIVE


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A finished run opened again, its search replayed from the file."""

    run: live_run.Run
    journal: Journal
    told: list[events.Event]
    found: Localised
    units: list[Neuron]
    """The three strongest."""
    eligible: np.ndarray
    """D_b."""
    flips: np.ndarray
    """Of these units there."""
    rules: tuple[families.UnitRule, ...]
    """Its rule."""


@pytest.fixture(scope="module")
def scene(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    copy = tmp_path_factory.mktemp("scene") / finished_run.name
    copy.write_bytes(finished_run.read_bytes())
    with opened(copy) as run:
        told: list[events.Event] = []
        journal = Journal(run.store, told.append, lambda: 0.0)
        slices = run.slices(REGIME)
        candidates = rank_candidates(run, journal, Basis.MLP_OUT, slices)
        plan = planning.SearchPlan(settings=run.search_settings(slices.regime))
        found = localise(run, journal, candidates, slices, plan)
        units = [agonist.neuron for agonist in found.outcome.agonists[: run.config.anchor_for]]
        flips = controlling.coverage(run, REGIME, units, slices.positions, journal.progress("rules"))
        yield Scene(
            run=run,
            journal=journal,
            told=told,
            found=found,
            units=units,
            eligible=run.eligible(REGIME),
            flips=flips,
            rules=controlling.anchor_rules(run, journal, REGIME, units[:1], flips[:1]),
        )


def learned(rules: tuple[families.UnitRule, ...]) -> list[tuple]:
    """What train records decide."""
    return [(rule.neuron, rule.rule, rule.train, rule.prompt_only) for rule in rules]


def anchored(scene: Scene, held_out: bool | None = None) -> tuple[families.UnitRule, ...]:
    """The rule of the strongest unit, with the flips of one part of D_b permuted."""
    part = scene.run.train[scene.eligible] != held_out
    flips = scene.flips[:1].copy()
    if held_out is not None:
        flips[:, part] = np.random.default_rng(2).permutation(flips[:, part], axis=1)
    return controlling.anchor_rules(scene.run, scene.journal, REGIME, scene.units[:1], flips)


def test_held_out_flips_reach_scores_only(scene: Scene) -> None:
    """With held-out flips shuffled the HQ-T rules stay to the letter, and their held-out scores change."""
    after = anchored(scene, held_out=True)
    assert learned(after) == learned(scene.rules)
    assert scene.rules[0].rule is not None
    assert after[0].held_out != scene.rules[0].held_out


def test_train_flips_do_decide_rules(scene: Scene) -> None:
    """The check can fail: shuffling train flips changes what is learned."""
    assert learned(anchored(scene, held_out=False)) != learned(scene.rules)


def test_coverage_is_what_each_unit_flips_alone(scene: Scene) -> None:
    """On the slices the flips of all of D_b agree with the search's own counts of the unit."""
    place = {int(record): column for column, record in enumerate(scene.eligible)}
    assert scene.run.labels[scene.eligible].all()
    for neuron, flips in zip(scene.units, scene.flips, strict=True):
        estimate = next(a.estimate for a in scene.found.outcome.agonists if a.neuron == neuron)
        for records, seen in (
            (scene.found.slices.associated, estimate.associated),
            (scene.found.slices.unrelated, estimate.unrelated),
        ):
            columns = [place[int(record)] for record in records]
            assert FlipCount(flips=int(flips[columns].sum()), n=len(columns)) == seen


def test_the_findings_count_the_union_of_these_flips(scene: Scene) -> None:
    """Over records outside the slices, and by layer over all of D_b."""
    (search,) = scene.run.findings.searches
    outside = ~np.isin(scene.eligible, scene.found.slices.positions)
    flips = scene.run.flips([(rule.neuron,) for rule in search.anchored], scene.eligible, REGIME)
    assert search.union == Share(count=int(flips[:, outside].any(axis=0).sum()), n=int(outside.sum()))
    assert search.drawn_union is not None
    assert (
        search.drawn_union.n
        == search.union.n
        == len(scene.eligible) - search.associated_n - search.unrelated_n
    )
    for row in search.layer_union:
        own = [
            flip for one, flip in zip(search.anchored, flips, strict=True) if one.neuron.layer == row.layer
        ]
        assert row.flipped == Share(count=int(np.any(own, axis=0).sum()), n=len(scene.eligible))


def test_controls_stand_beside_the_strongest(scene: Scene) -> None:
    """Ranked by hand from stored flips on held-out records, found units among the random ones; another baseline."""
    run, found, regime, progress = scene.run, scene.found, REGIME, scene.journal.progress("controls")
    drawn = controlling.held_out_flips(run, found, progress)
    units = [agonist.neuron for agonist in found.outcome.tau_agonists][:3]
    ran = controlling.beside(run, units, regime, len(drawn.random), progress)
    assert [row.neuron for row in ran] == units
    records, slices = controlling.control_records(run, regime), found.slices
    assert not run.train[records].any()
    assert len(records) == min(64, int((~run.train[run.eligible(regime)]).sum()))
    for row in ran:
        every, layer = controlling.units_beside(run, row.neuron, len(drawn.random))
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
    units = [agonist.neuron for agonist in scene.found.outcome.tau_agonists]
    for row in controlling.beside(run, units[:3], REGIME, 9):
        flips = scene.flips[scene.units.index(row.neuron)]
        counts = {True: [0, 0], False: [0, 0]}
        for record, flipped in zip(scene.eligible, flips, strict=True):
            if not run.train[record]:
                counts[bool(fires[record])][0] += int(flipped)
                counts[bool(fires[record])][1] += 1
        assert row.split == FlipEstimate(
            associated=FlipCount(flips=counts[True][0], n=counts[True][1]),
            unrelated=FlipCount(flips=counts[False][0], n=counts[False][1]),
        )


def test_the_union_drawn_beside_found_units_has_as_many_of_each_layer(scene: Scene) -> None:
    """Drawn from all of the layer: where the whole layer was found, it is drawn again."""
    found = [unit for unit in scene.units if unit.layer == 1]
    drawn = controlling.same_layers(scene.run, scene.units)
    assert sum(unit.layer == 1 for unit in drawn) == len(found)
    assert len(set(drawn)) == len(drawn) == len(scene.units)
    every = [Neuron(Basis.MLP_OUT, 1, channel) for channel in range(scene.run.subject.width(Basis.MLP_OUT))]
    assert set(controlling.same_layers(scene.run, every)) == set(every)


def test_published_runs_score_units_over_both_regimes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its flips of wrong answers too, over the run's own vocabulary; an ordinary run has no such scores."""
    run = scene.run
    monkeypatch.setattr(run, "config", run.config.model_copy(update={"published": True}))
    (made,) = controlling.anchor_rules(scene.run, scene.journal, REGIME, scene.units[:1], scene.flips[:1])
    both, other = np.zeros(len(run.records), bool), Regime.BASELINE_NEGATIVE
    both[scene.eligible] = scene.flips[0]
    both[~run.labels] = run.flips([(scene.units[0],)], run.eligible(other), other)[0]
    table = evaluated(run.vocabulary["kept"], run.columns)
    assert made.published == ruleshap.chosen_scores(table, both, run.labels, run.train, run.config.seed)
    assert not scene.rules[0].published
    preset = config.make_config(model="arith-tiny", published=True)
    assert (preset.parity, preset.baseline, preset.condition) == (True, Baseline.SLOT0, "rule-spectral")


def test_what_is_kept_suffices_as_numpy_alone_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every set kept on a compiled model the answers that stay are those of the oracle with all others at zero; the
    units that are ever anything but zero keep all of them, and a second run of the certificate by its complement
    agrees."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    known, basis = KnownModel("majority"), Basis.MLP_HIDDEN
    finished(
        tmp_path / "a5d0.mecharule",
        {
            **{"model": "known/majority", "task": "program", "bases": (basis.value,), "regimes": (1,)},
            **{"baseline": "zero", "controls": 0, "chains_for": 0, "accounts_for": 0, "anchor_for": 0},
        },
    )
    units = known.units(basis)
    true = [unit for unit in units if known.values[basis, unit.layer][:, -1, unit.channel].any()]
    result = call("explain", {"run": "a5d0", "neuron": ",".join(map(str, true)), "suffices": True})
    told = result.as_json["suffices.mlp_hidden.1.all"]
    assert told["survive"] == told["n"] > told["none"]
    with opened(tmp_path / "a5d0.mecharule", read_only=True) as run:
        (made,) = (one for one in run.store.certificates() if one.kind == "suffices")
        assert verify(made, partial(rerun, bench_of_run(run))).status is VerificationStatus.MATCH
    for name, kept in {(row.slice, row.unit) for row in made.rows}:
        others = [unit for unit in units if str(unit) not in str(kept).split("+")]
        flips = known.flips({(one.basis, one.layer, one.channel): np.zeros(()) for one in others})
        rows = [row for row in made.rows if (row.slice, row.unit) == (name, kept)]
        assert flips.allow(sum(row.flipped for row in rows), [row.example for row in rows])
