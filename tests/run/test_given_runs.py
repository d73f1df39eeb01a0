"""`run --given` and `--peel`: what takes over when units are gone, where one compiled head backs another up."""

from pathlib import Path

import numpy as np
import pytest

from agent.verbs import runner
from mecharule_ops import errors, types
from mecharule_ops.config import make_config
from mecharule_ops.known_answers.known_model import KnownModel
from mecharule_ops.run import opening
from tools import registry

HEADS = types.Neuron(types.Basis.ATTN_HEAD, 0, 0), types.Neuron(types.Basis.ATTN_HEAD, 0, 1)


def test_the_backup_is_found_when_the_first_head_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counts are what numpy says of both heads replaced; certificates match; a further round has a fourth left."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    known = KnownModel("backup")
    asked = {"task": "program", "task_settings": {"program": "backup"}, "model": str(known.folder / "backup")}
    asked |= {"bases": (types.Basis.ATTN_HEAD,), "regimes": (1,), "accounts_for": 0}
    runner.start(make_config(**asked), lambda event: None)
    with opening.opened("last") as run:
        whole = run.id
        assert not run.findings.units()
    config, how = make_config(**asked, given="a0.h0"), {"source": whole, "granted": True, "llm_budget": None}
    first, second = runner.run_peeled(1, config, lambda event: None, **how).data["rounds"]
    assert [first[name] for name in ("units gone", "right")] == ["a0.h0", "256/256 (100 %)"]
    assert first["units found"] == "a0.h1 (the strongest; none is shown)"
    assert second == {
        **{"run": f"{first['run']}1", "units gone": "a0.h0, a0.h1"},
        **{"right": "64/256 (25 %)", "units found": "none"},
    }
    with opening.opened(first["run"]) as run:
        assert run.findings.model.endswith("backup given a0.h0 ablated")
        table = run.given[HEADS[0]]
        values = {
            (one.basis, 0, one.channel): known.replacement(
                one, types.Baseline.MEAN_POSITIONAL, types.Phase.LAST_PROMPT, list(table.records)
            )
            for one in HEADS
        }
        flipped = known.flips(values).flipped
        for made in run.store.certificates():
            for row in made.rows:
                assert row.held or row.flipped == flipped[row.example]
        assert np.count_nonzero(flipped) == 192
    told = registry.call("verify", {"what": first["run"], "all": True})
    assert told.exit_code == 0, told.text
    asked = {"run": first["run"]}
    of_units = (
        registry.call("tabulate", {**asked, "units": "a0.h1"}),
        registry.call("records", {**asked, "unit": "a0.h1"}),
    )
    for one in (*of_units, registry.call("show", {**asked, "section": "accuracy"})):
        assert ("a0.h0 ablated" in one.text, "nablated" in one.text) == (True, False), one.text


def test_units_that_are_not_there_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    config = make_config(task="arithmetic", model="arith-tiny", given="m1.999, m0.3,m0.3")
    assert config.given == ("m0.3", "m1.999")
    with pytest.raises(errors.UsageError, match="expected given units of 2 layers of 128 mlp_out units"):
        runner.start(config, lambda event: None)
    assert not list(tmp_path.iterdir())
