"""Certificates of a run hold its own counts, survive a re-run on the reference path, and expose tampering."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from bundled_run import opened

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import VerificationStatus, inconsistencies, verify
from mecharule_ops.engine import ablation, chunks, reference
from mecharule_ops.run.certify import certify
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.second_run import Bench, bench_of_run, rerun
from mecharule_ops.store import keys
from mecharule_ops.types import Agonist, Baseline, Basis, Neuron, Regime


@pytest.fixture(scope="module")
def bench(run: Run) -> Bench:
    """What `verify` runs a run's certificates on."""
    return bench_of_run(run)


def agonist_of(run: Run, certificate: Certificate) -> Agonist:
    found = {str(agonist.neuron): agonist for agonist in run.findings.searches[0].agonists}
    return found[certificate.units[0]]


def _alone(run: Run) -> list[Certificate]:
    """The certificates of units ablated alone; a run's chain has its own."""
    return [certificate for certificate in run.store.certificates() if certificate.kind == "ablate"]


def test_each_strong_agonist_has_a_certificate_of_its_counts(run: Run) -> None:
    """Totals are the search's own flips and n, slice by slice, and follow from the rows."""
    certificates = _alone(run)
    strong = [a for a in run.findings.searches[0].agonists[:3] if a.is_tau_agonist]
    assert [certificate.units for certificate in certificates] == [(str(a.neuron),) for a in strong]
    assert certificates
    for certificate in certificates:
        estimate = agonist_of(run, certificate).estimate
        assert {total.slice: (total.flips, total.n) for total in certificate.totals} == {
            "associated": (estimate.associated.flips, estimate.associated.n),
            "unrelated": (estimate.unrelated.flips, estimate.unrelated.n),
        }
        assert inconsistencies(certificate) == ()
        assert f"{estimate.associated.flips}/{estimate.associated.n} associated" in certificate.claim


def test_a_certificate_names_what_it_needs_to_be_repeated(run: Run) -> None:
    """Model, tokenizer and replacement hashes, hook, phase, task and versions."""
    certificate = _alone(run)[0]
    assert certificate.model.model_hash == run.subject.model_hash
    assert certificate.model.tokenizer_hash == run.subject.tokenizer_hash
    assert certificate.intervention.baseline_hash == run.replacement(run.intervention(Basis.MLP_OUT)).hash
    assert certificate.intervention.hook == f"blocks.{Neuron.parse(certificate.units[0]).layer}.hook_mlp_out"
    assert certificate.task == run.task.describe()
    assert "torch" in certificate.versions


def test_running_again_on_the_reference_path_matches(run: Run, bench: Bench) -> None:
    """Fresh completions, with and without the ablation, token by token and never speculated, agree row by row."""
    for certificate in run.store.certificates():
        verification = verify(certificate, lambda c: rerun(bench, c))
        assert verification.status is VerificationStatus.MATCH
        assert str(len(certificate.example_ids)) in verification.sentence


def test_units_can_be_certified_together(run: Run, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group on both slices: one row an example, flips of do(A), both hooks named."""
    units = (Neuron.parse("m0.1"), Neuron.parse("m1.2"))
    positions = run.slices(Regime.BASELINE_POSITIVE).positions
    made = next(certify(run, [units], Regime.BASELINE_POSITIVE))
    monkeypatch.setattr(run, "config", run.config.model_copy(update={"engine": "plain"}))
    labels = run.completer(run.intervention(Basis.MLP_OUT)).evaluate([units], positions).labels
    assert [row.after.label for row in made.rows] == labels[0].tolist()
    assert sum(total.n for total in made.totals) == len(positions)
    assert sum(total.flips for total in made.totals) == int((~labels[0]).sum())
    assert made.intervention.hook == "blocks.0.hook_mlp_out+blocks.1.hook_mlp_out"
    assert verify(made, lambda c: rerun(bench, c)).status is VerificationStatus.MATCH


@pytest.mark.parametrize(("moved", "confirmed"), [(1e-6, True), (0.1, False)])
def test_values_of_another_processor_are_confirmed_to_a_rounding(
    run: Run, copied_run: Path, moved: float, confirmed: bool
) -> None:
    """Its sums differ in the last digits, and its certificates carry the hash of them; a forged value is not taken."""
    how = run.intervention(Basis.MLP_OUT)
    with opened(copied_run) as other:
        arrays = dict(other.store.get(keys.replacement(how)))
        values = arrays["value1"].copy()
        values[:, 7] += moved * (arrays["high1"] - arrays["low1"])[:, 7].max()
        other.store.put(keys.replacement(how), {**arrays, "value1": values})
        held = other.replacement(how)
        assert held.hash != run.replacement(how).hash
        assert (bench_of_run(other, run.subject).table(how, held.hash).hash == held.hash) is confirmed


def test_a_second_run_reads_every_prompt_once(run: Run, bench: Bench) -> None:
    """More than are decoded together too: without and with the ablation, above the same prefill."""
    slices = {"associated": run.eligible(Regime.BASELINE_POSITIVE)[:80].tolist()}
    made = next(certify(run, [(Neuron.parse("m0.1"),)], Regime.BASELINE_POSITIVE, slices=slices))
    step = reference.ReferenceEngine._step
    with patch.object(reference.ReferenceEngine, "_step", autospec=True, side_effect=step) as fed:
        assert verify(made, lambda c: rerun(bench, c)).status is VerificationStatus.MATCH
    read = [len(call.args[2]) for call in fed.call_args_list if call.args[2].shape[1] > 1]
    assert sum(read) == len({row.prompt for row in made.rows}) > 64


def test_engines_of_a_run_share_their_clean_passes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the baseline, with the completions of an engine of its own."""
    how, positions = run.intervention(Basis.MLP_OUT), run.slices(Regime.BASELINE_POSITIVE).positions[:8]
    groups = [(Neuron.parse("m0.1"),), (Neuron.parse("m1.2"),)]
    run.completer(how).completions(groups, positions)
    other = replace(how, baseline=Baseline.ZERO)
    alone = ablation.AblationEngine(run.subject, run.task, run.records, other, run.replacement(other))
    expected = alone.completions(groups, positions).tokens
    monkeypatch.setattr(chunks, "clean_spans", None)
    assert run.completer(other).completions(groups, positions).tokens == expected
