"""Exported gates on a plain model: the reference engine's completions token for token; refused by name otherwise."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mecharule_ops import codec, errors
from mecharule_ops.engine import behaviour, reference
from mecharule_ops.gates.exported import GATE, VALUES, GateFile, gated_answers
from mecharule_ops.gates.outcome import Gate
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.replacement import baselines, table_files
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.certify import identity
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.task_names import make_task, settings_for
from mecharule_ops.types import Basis, BehaviourRecord, Intervention, Neuron, Phase

RULES = ("digit(a, 0) >= 5", "op == '-'")
UNITS = {Basis.MLP_OUT: ((1, 37), (1, 118)), Basis.ATTN_HEAD: ((0, 1), (1, 2))}


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    subject: Subject
    task: Task
    records: tuple[BehaviourRecord, ...]
    table: baselines.ReplacementTable

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Two gates of strong units, the second with the larger gain."""
        basis = self.table.intervention.basis
        return tuple(
            Gate(unit=Neuron(basis, *place), rule=Rule.parse(rule), gain=gain, fixed=1, broken=0, fired=2)
            for place, rule, gain in zip(UNITS[basis], RULES, (0.1, 0.2), strict=True)
        )

    def answers(self, folder: Path, prompts: list[str] | None = None) -> list[str]:
        prompts = prompts or [record.example.prompt for record in self.records]
        return gated_answers(folder, self.subject.hf, self.subject.tokenizer, prompts)

    def written(self, folder: Path, **changed: object) -> Path:
        stated = GateFile(
            run="test",
            model=identity("arith-tiny", self.subject),
            task=self.task.describe(),
            intervention=self.table.intervention,
            gates=self.gates,
        )
        folder.mkdir()
        (folder / GATE).write_text(json.dumps({**codec.encode(stated), **changed}), encoding="utf-8")
        table_files.write_table(folder / VALUES, self.table)
        return folder


@pytest.fixture(
    scope="module",
    params=[
        (Basis.MLP_OUT, Phase.DECODE),
        pytest.param((Basis.ATTN_HEAD, Phase.WHOLE), marks=pytest.mark.slow),
    ],
    ids=str,
)
def setting(request: pytest.FixtureRequest) -> Setting:
    """The bundled model with 48 answers, on channels and on heads."""
    basis, phase = request.param
    subject, task = load("arith-tiny"), make_task("arithmetic", **settings_for("arithmetic", "arith-tiny"))
    records = behaviour.observe(task, subject, task.examples(48, np.random.default_rng(5))).records
    table = baselines.replacement_table(subject, records, Intervention(basis=basis, phase=phase))
    return Setting(subject=subject, task=task, records=records, table=table)


def test_answers_are_those_of_the_reference_engine(setting: Setting, tmp_path: Path) -> None:
    """Record by record: the second gate's unit where both fire, the first's, and none."""
    engine = reference.ReferenceEngine(
        setting.subject, setting.task, setting.records, setting.table.intervention, setting.table
    )
    first, second = setting.gates
    wanted, acted = [], set()
    for place, record in enumerate(setting.records):
        fields = setting.task.columns([record])
        gate = second if fields["op"][0] == "-" else first if fields["a"][0] % 10 >= 5 else None
        acted.add(gate)
        tokens = engine.completions([(gate.unit,)], [place]).tokens[0][0] if gate else record.tokens
        wanted.append(setting.subject.decode(tokens))
    assert acted == {first, second, None}
    assert setting.answers(setting.written(tmp_path / "gates")) == wanted
    assert wanted != [record.completion for record in setting.records]


def test_what_does_not_fit_is_refused_by_name(setting: Setting, tmp_path: Path) -> None:
    """Another model, another prompt, a folder without gates or values."""
    other = {**codec.encode(identity("arith-tiny", setting.subject)), "model_hash": "0" * 16}
    with pytest.raises(errors.ModelUnavailable, match="model_hash='0000"):
        setting.answers(setting.written(tmp_path / "model", model=other))
    with pytest.raises(errors.StoreError, match=GATE):
        setting.answers(tmp_path / "nowhere")
    bare = setting.written(tmp_path / "bare")
    with pytest.raises(errors.UsageError, match="expected a question"):
        setting.answers(bare, ["55 - 55 - 5"])
    (bare / VALUES).unlink()
    with pytest.raises(errors.StoreError, match="values"):
        setting.answers(bare)
