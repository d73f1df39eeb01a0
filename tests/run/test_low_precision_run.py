"""A whole run on weights in bfloat16: what it remembers, counts, certifies, and how it is verified elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from bundled_run import QUICK, finish, new_run, opened

from agent.verbs.runner import resume
from mecharule_ops import errors, types
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.facts.run_evidence import limits
from mecharule_ops.loading.model_names import load
from mecharule_ops.run import live_run, second_run
from mecharule_ops.store import keys, stored_engine
from tools.arguments import VerifyArguments
from tools.verify import bench_as_asked

LOW = {**QUICK, "dtype": "bfloat16", "device": "cpu"}


@pytest.fixture(scope="module")
def low_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a finished run of the bundled model in bfloat16."""
    path = tmp_path_factory.mktemp("low") / "b16a.mecharule"
    with new_run(path, LOW) as run:
        _, told = finish(run)
    assert any("bfloat16 on cpu" in getattr(event, "text", "") for event in told)
    return path


@pytest.fixture
def run(low_run: Path) -> Iterator[live_run.Run]:
    with opened(low_run, read_only=True) as found:
        yield found


def test_every_stored_outcome_is_the_one_of_float32(run: live_run.Run) -> None:
    """All groups that the search asked, on the same weights, by an engine whose products are all in float32."""
    intervention = run.intervention(run.config.bases[0])
    assert run.subject.dtype_name == "bfloat16"
    assert [node for search in run.findings.searches for node in search.tree]
    units = {agonist.neuron for search in run.findings.searches for agonist in search.agonists}
    groups = [(unit,) for unit in sorted(units)]
    groups += [tuple(types.Neuron(run.config.bases[0], layer, head) for head in (0, 1)) for layer in (0, 1)]
    examples = range(len(run.records))
    true = run.completer(intervention).evaluate(groups, examples)
    assert (run._checked_engine(intervention).evaluate(groups, examples).labels == true.labels).all()
    ids = np.array([record.example.id for record in run.records], np.int64)
    context = run.store.get(keys.context(intervention))
    known = run.store.known_outcomes(context, stored_engine.group_key(groups[0]), ids)
    assert known.known.any()
    assert (known.labels[known.known] == true.labels[0][known.known]).all()


def test_a_run_remembers_its_type_and_kind_of_device_and_says_it(run: live_run.Run, quick_run: Path) -> None:
    """Also where its settings leave the choice open."""
    of = {"device": "cpu", "rows": None}
    assert run.placed == {**of, "dtype": "bfloat16", "model": run.findings.model_hash}
    assert run.dtype == "bfloat16"
    assert run.findings.numbers == {"dtype": "bfloat16", "device": "cpu"}
    assert "bfloat16 on cpu" in next(limits(run.findings))[2]
    with opened(quick_run, read_only=True) as other:
        assert other.config.dtype == "auto"
        assert other.placed == {**of, "dtype": "float32", "model": other.findings.model_hash}
        assert other.findings.numbers is None
        assert other.device_here() == "cpu"


def test_resume_refuses_a_device_that_is_not_here_before_anything_is_told(
    low_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(low_run.parent))
    told: list[object] = []
    with pytest.raises(errors.UsageError, match="expected the device cuda:77, this machine has cpu"):
        resume("b16a", told.append, device="cuda:77")
    assert told == []


def _certificate(run: live_run.Run) -> Certificate:
    certificate = run.store.certificates()[0]
    assert certificate.numbers == "bfloat16 on cpu"
    return certificate


def test_verify_compares_like_with_like(run: live_run.Run) -> None:
    """In the run's own type it matches and says nothing more; in float32 the weights are others, and it says so."""
    certificate, told = _certificate(run), list[str]()
    bench = bench_as_asked(run, VerifyArguments(), told.append)
    assert bench.numbers == certificate.numbers
    assert "bfloat16 on cpu" in told[1]
    found = verify(certificate, lambda one: second_run.rerun(bench, one), numbers=bench.numbers)
    assert (found.status, "made in" in found.sentence) == (VerificationStatus.MATCH, False)
    wide = bench_as_asked(run, VerifyArguments(dtype="float32"), told.append)
    refused = verify(certificate, lambda one: second_run.rerun(wide, one), numbers=wide.numbers)
    assert refused.status is VerificationStatus.CANNOT
    assert "made in bfloat16, this is float32: leave --dtype out" in refused.sentence


def test_weights_kept_in_bfloat16_are_the_same_model_in_float32(run: live_run.Run, tmp_path: Path) -> None:
    """Then another type changes no weight, the second run is compared, and the sentence names both."""
    run.subject.hf.save_pretrained(tmp_path)
    run.subject.tokenizer.save_pretrained(tmp_path)
    bench = bench_as_asked(run, VerifyArguments(model=str(tmp_path), dtype="float32"), lambda line: None)
    assert bench.subject.model_hash == run.subject.model_hash == load(str(tmp_path)).model_hash
    found = verify(_certificate(run), lambda one: second_run.rerun(bench, one), numbers=bench.numbers)
    assert found.status is VerificationStatus.MATCH
    assert "made in bfloat16 on cpu, run again in float32 on cpu" in found.sentence
