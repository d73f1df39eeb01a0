"""Held-out records select nothing: vocabulary, splitter, slices and units are those of the train records alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import QUICK, new_run, opened

from mecharule_ops import codec, events, types
from mecharule_ops.engine.guard import GuardFailed
from mecharule_ops.run import live_run, preparation
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.localise import localise, rank_candidates, search_plan
from mecharule_ops.run.preparation import prepare
from mecharule_ops.store import keys
from mecharule_ops.store.keys import Artefact

REDONE = ("vocabulary", "splitter")


def journal_of(run: live_run.Run) -> Journal:
    return Journal(run.store, lambda event: None, lambda: 0.0)


def selected(run: live_run.Run) -> dict[str, object]:
    """Everything that the run file says was chosen before rules are scored."""
    slices = run.slices(types.Regime.BASELINE_POSITIVE)
    named = {name: getattr(slices, name).tolist() for name in ("associated", "unrelated", "pairs")}
    return {**{name: run.store.get(Artefact(name)) for name in REDONE}, **named}


def select(run: live_run.Run, *, search: bool) -> dict[str, object]:
    """Do the stages after the behaviour again; with `search` up to the agonists."""
    journal = journal_of(run)
    for name in (*REDONE, "attribution-mlp_out-1", "prediction-mlp_out-1"):
        run.store._connection.execute("DELETE FROM artefact WHERE name = ?", (name,))
    prepare(run, journal)
    made, slices = selected(run), run.slices(types.Regime.BASELINE_POSITIVE)
    if not search:
        return made
    candidates = rank_candidates(run, journal, types.Basis.MLP_OUT, slices)
    plan = search_plan(run, journal, candidates, slices)
    return {**made, "agonists": localise(run, journal, candidates, slices, plan).outcome.agonists}


def permute_labels(run: live_run.Run, where: np.ndarray) -> int:
    """Shuffle the labels of some records in the run file; returns how many changed."""
    labels = run.labels.copy()
    labels[where] = np.random.default_rng(1).permutation(labels[where])
    changed = int((labels != run.labels).sum())
    rows = [
        codec.encode(replace(record, label=bool(label)))
        for record, label in zip(run.records, labels, strict=True)
    ]
    run.store.put(Artefact("records"), rows)
    return changed


@pytest.fixture
def same_split(monkeypatch: pytest.MonkeyPatch) -> Callable[[np.ndarray], None]:
    """Keep the split of the run: it is stratified by outcome, so other labels would draw another one."""

    def keep(train: np.ndarray) -> None:
        monkeypatch.setattr(preparation, "chosen_for_train", lambda *_: train)

    return keep


def test_held_out_labels_select_nothing(copied_run: Path, same_split: Callable[[np.ndarray], None]) -> None:
    """With the held-out labels shuffled, every predicate, the splitter, slices and agonists stay."""
    with opened(copied_run) as run:
        same_split(run.train)
        before = {**selected(run), "agonists": run.findings.searches[0].agonists}
        assert permute_labels(run, ~run.train) > 5
    with opened(copied_run) as run:
        assert select(run, search=True) == before
    assert before["agonists"]


def test_a_leak_is_caught(copied_run: Path, same_split: Callable[[np.ndarray], None]) -> None:
    """A variant that scores on all records is exposed by shuffling what should have been held out."""
    with opened(copied_run) as run:
        held_out = ~run.train
        same_split(np.ones(len(run.records), bool))
        before = select(run, search=False)
        permute_labels(run, held_out)
    with opened(copied_run) as run:
        assert select(run, search=False) != before


def test_held_out_completions_set_no_replacement(finished_run: Path) -> None:
    """The values that ablated units are set to come from train records: other held-out answers, same table."""
    with opened(finished_run, read_only=True) as run:
        intervention = run.intervention(types.Basis.MLP_OUT)
        before = run.measured_replacement(intervention).hash
    for held_out, same in ((True, True), (False, False)):
        with opened(finished_run, read_only=True) as run:
            run.records = tuple(
                replace(record, tokens=record.tokens[:1] * 3) if other else record
                for record, other in zip(run.records, run.train != held_out, strict=True)
            )
            assert (run.measured_replacement(intervention).hash == before) is same


def test_everything_selected_lies_in_train(run: live_run.Run) -> None:
    """Slices and pairs hold train records of the regime only, and the rule fires on D+ and not on D-."""
    slices = run.slices(types.Regime.BASELINE_POSITIVE)
    rule = run.splitter.rule
    chosen = np.concatenate([slices.associated, slices.unrelated, slices.pairs.reshape(-1)])
    assert run.train[chosen].all()
    assert run.labels[chosen].all()
    assert rule is not None
    fires = rule.fires(run.fires)
    assert fires[slices.associated].all()
    assert not fires[slices.unrelated].any()


def test_more_records_are_observed_where_an_outcome_is_rare(tmp_path: Path) -> None:
    """160 sums leave some thirty wrong ones, too few for slices of 24: up to four times as many are observed."""
    with new_run(tmp_path / "rare.mecharule", {**QUICK, "regimes": (0,)}) as run:
        prepare(run, journal_of(run))
        identifiers = [record.example.id for record in run.records]
        assert 160 < len(identifiers) <= 4 * 160
        assert len(set(identifiers)) == len(identifiers) == len(run.store.get(Artefact("token-lengths")))
        assert "beyond the 160 asked for" in str(run.store.get(Artefact("records-summary")))
        slices = run.slices(types.Regime.BASELINE_NEGATIVE)
        assert min(len(slices.associated), len(slices.unrelated)) >= 20
    with new_run(tmp_path / "common.mecharule", {**QUICK, "regimes": (1,)}) as run:
        prepare(run, journal_of(run))
        assert len(run.records) == 160


def test_a_prepared_run_prepares_nothing_again(copied_run: Path) -> None:
    """All three stages come from the file, with the line that they had, and nothing is loaded."""
    with opened(copied_run) as run:
        before = {name: run.store.get(Artefact(f"{name}-summary")) for name in ("records", *REDONE)}
        told: list[events.Event] = []
        journal = Journal(run.store, told.append, lambda: 0.0)
        prepare(run, journal)
        assert [stage.summary for stage in journal.stages] == list(before.values())
        assert all(stage.reused for stage in journal.stages)
        assert "subject" not in vars(run)


def test_a_run_of_a_model_that_is_not_sound_keeps_no_answer(tmp_path: Path) -> None:
    """Its layers scale what is written to the residual stream, as families with a multiplier do."""
    with new_run(tmp_path / "a.mecharule", QUICK) as run:
        block = run.subject.wiring.blocks(run.subject.hf)[1]
        block.register_forward_hook(lambda module, inputs, output: output * 0.9)
        with pytest.raises(GuardFailed, match="attention and MLP of layer 1 write to sum"):
            prepare(run, journal_of(run))
        assert not run.store.has(keys.RECORDS)
