"""What a run hands out: engines that carry its rows and its stop, ablations paid once, names with their types."""

import re
from pathlib import Path

import pytest
from bundled_run import opened

from mecharule_ops.errors import AblationStopped
from mecharule_ops.run.certify import certify
from mecharule_ops.run.live_run import Run
from mecharule_ops.types import Basis, Neuron, Regime

ROOT = Path(__file__).parents[2]
HOME = ROOT / "mecharule_ops" / "store" / "keys.py"
UNIT = (Neuron(Basis.MLP_OUT, 1, 5),)


def test_artefacts_are_named_in_one_module() -> None:
    """Elsewhere a typed key is handed over, which the type checker asks for."""
    packages = ("mecharule_ops", "agent", "tools", "tui")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py") if file != HOME]
    named = re.compile(r"(?<!Packed)Artefact(\[.*\])?\(")
    assert [file for file in (*files, HOME) if named.search(file.read_text("utf-8"))] == [HOME]


@pytest.mark.parametrize("slow", ["fast", "plain"])
def test_every_engine_of_a_run_stops_when_the_run_does(copied_run: Path, slow: str) -> None:
    """The engine behind the store, and whole completions on either path."""
    with opened(copied_run) as run:
        run.config = run.config.model_copy(update={"engine": slow, "rows": 7})
        run.should_stop = lambda: True
        positions = run.eligible(Regime.BASELINE_POSITIVE)[:2].tolist()
        engine = run.completer(run.intervention(Basis.MLP_OUT))
        assert engine._rows == 7
        with pytest.raises(AblationStopped):
            engine.completions([UNIT], positions)
        with pytest.raises(AblationStopped):
            run.flips([(*UNIT, Neuron(Basis.MLP_OUT, 1, 6))], positions, Regime.BASELINE_POSITIVE)


def test_an_ablation_on_the_slices_is_run_once(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One completion an example, and its outcomes answer the next question: nothing is evaluated beside it."""
    units = (*UNIT, Neuron(Basis.MLP_OUT, 1, 9))
    with opened(copied_run) as run:
        made, paid = run.completer(run.intervention(Basis.MLP_OUT)), []

        class Counted:
            """The engine, with what was asked of it."""

            def completions(self, groups: list, examples: list, held: object) -> object:
                paid.append(len(groups) * len(examples))
                return made.completions(groups, examples)

        monkeypatch.setattr(Run, "completer", lambda *_, **__: Counted())
        certificate = next(certify(run, [units], Regime.BASELINE_POSITIVE))
        slices = run.slices(Regime.BASELINE_POSITIVE)
        flips = run.flips([units], slices.positions, Regime.BASELINE_POSITIVE)[0]
        assert paid == [len(slices.positions)]
        assert run.cost.example_forwards == 0
    assert [row.flipped for row in certificate.rows] == flips.tolist()
    counts = " and ".join(f"{total.flips}/{total.n} {total.slice}" for total in certificate.totals)
    assert certificate.claim == f"ablating m1.5+m1.9 flips {counts} examples (1→0)"
