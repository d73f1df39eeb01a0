"""Exported gates on a plain model: the engine's completions token for token, and what is refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from mecharule_ops.codec import encode
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.errors import ClaimNotSupported, ModelUnavailable, StoreError, UsageError
from mecharule_ops.gates.choosing import NOTHING, acting
from mecharule_ops.gates.exported import FORMAT, GATE, VALUES, GateFile, load_gates
from mecharule_ops.gates.material import firing, readable
from mecharule_ops.gates.outcome import Gate
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.replacement.table_files import arrays_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.task_names import make_task, settings_for
from mecharule_ops.types import Basis, BehaviourRecord, Intervention, Neuron, Phase

RULES = ("digit(a, 0) >= 5", "op == '-'")


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    subject: Subject
    task: Task
    records: tuple[BehaviourRecord, ...]
    table: ReplacementTable


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
    records = observe(task, subject, task.examples(48, np.random.default_rng(5))).records
    table = replacement_table(subject, records, Intervention(basis=basis, phase=phase))
    return Setting(subject=subject, task=task, records=records, table=table)


def gates_of(setting: Setting) -> tuple[Gate, ...]:
    """Two gates of strong units."""
    basis = setting.table.intervention.basis
    units = {Basis.MLP_OUT: ((1, 37), (1, 118)), Basis.ATTN_HEAD: ((0, 1), (1, 2))}[basis]
    return tuple(
        Gate(unit=Neuron(basis, *place), rule=Rule.parse(rule), gain=gain, fixed=1, broken=0, fired=2)
        for place, rule, gain in zip(units, RULES, (0.1, 0.2), strict=True)
    )


def folder_of(setting: Setting, folder: Path) -> Path:
    how = setting.table.intervention
    stated = GateFile(
        format=FORMAT,
        run="test",
        model="arith-tiny",
        model_hash=setting.subject.model_hash,
        tokenizer_hash=setting.subject.tokenizer_hash,
        task=dict(setting.task.describe()),  # type: ignore[arg-type]
        basis=how.basis,
        baseline=how.baseline,
        phase=how.phase,
        values_hash=setting.table.hash,
        gates=gates_of(setting),
    )
    folder.mkdir()
    (folder / GATE).write_text(json.dumps(encode(stated)), encoding="utf-8")
    save_file(arrays_of(setting.table), folder / VALUES)
    return folder


def expected(setting: Setting) -> list[tuple[int, ...]]:
    """The engine's completions, unit by unit."""
    gates, records = gates_of(setting), setting.records
    acts = acting([gate.gain for gate in gates], firing(gates, readable(setting.task, records), len(records)))
    assert set(acts.tolist()) == {NOTHING, 0, 1}, "every case of the gates occurs"
    engine = AblationEngine(setting.subject, setting.task, records, setting.table.intervention, setting.table)
    wanted = [record.tokens for record in records]
    for place, gate in enumerate(acts.tolist()):
        if gate != NOTHING:
            wanted[place] = engine.completions([(gates[gate].unit,)], [place]).tokens[0][0]
    return wanted


def generated(model: Any, setting: Setting, batch: int, **given: object) -> list[tuple[int, ...]]:
    """Completions by the model's own `generate`, prompts padded on the left."""
    task, stops = setting.task, sorted(setting.subject.stop_ids(setting.task.stop))
    prompts = setting.subject.encode([record.example.prompt for record in setting.records])
    found: list[tuple[int, ...]] = []
    for begin in range(0, len(prompts), batch):
        some = prompts[begin : begin + batch]
        width = max(map(len, some))
        ids = torch.tensor([[0] * (width - len(one)) + list(one) for one in some])
        mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in some])
        made = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=task.max_new_tokens,
            do_sample=False,
            eos_token_id=stops,
            pad_token_id=0,
            **given,
        )
        for row in made[:, width:].tolist():
            end = next((place + 1 for place, token in enumerate(row) if token in stops), len(row))
            found.append(tuple(row[:end]))
    return found


def test_completions_are_those_of_the_engine(setting: Setting, tmp_path: Path) -> None:
    """In batches, one by one, and without a cache; afterwards the model answers as before."""
    gate, model = load_gates(folder_of(setting, tmp_path / "gates")), setting.subject.hf
    wanted = expected(setting)
    assert wanted != [record.tokens for record in setting.records]
    with gate.attached(model, setting.subject.tokenizer):
        assert generated(model, setting, 16) == wanted
        assert generated(model, setting, 1) == wanted
        assert generated(model, setting, 48, use_cache=False) == wanted
    assert generated(model, setting, 48) == [record.tokens for record in setting.records]


def test_a_prompt_of_something_else_is_left_alone(setting: Setting, tmp_path: Path) -> None:
    """The same text with the question's sign left out."""
    gate = load_gates(folder_of(setting, tmp_path / "gates"))
    ids = torch.tensor(setting.subject.encode(["55 - 55 - 5"]))
    model: Any = setting.subject.hf
    plain = model.generate(ids, max_new_tokens=4, do_sample=False)
    with gate.attached(model, setting.subject.tokenizer):
        assert torch.equal(model.generate(ids, max_new_tokens=4, do_sample=False), plain)


def changed(folder: Path, **fields: object) -> Path:
    """The folder with another `gate.json`."""
    said = json.loads((folder / GATE).read_text())
    (folder / GATE).write_text(json.dumps({**said, **fields}))
    return folder


def test_what_does_not_fit_is_refused_by_name(setting: Setting, tmp_path: Path) -> None:
    """Another model, another tokenizer, an unknown version, changed values, a folder without gates."""
    model, tokenizer = setting.subject.hf, setting.subject.tokenizer
    for name, field in (("weights", "model_hash"), ("tokenizer", "tokenizer_hash")):
        folder = changed(folder_of(setting, tmp_path / field), **{field: "0" * 16})
        with pytest.raises(ModelUnavailable, match=name), load_gates(folder).attached(model, tokenizer):
            pass
    with pytest.raises(ClaimNotSupported, match="format"):
        load_gates(changed(folder_of(setting, tmp_path / "format"), format=FORMAT + 1))
    with pytest.raises(ClaimNotSupported, match="replacement values"):
        load_gates(changed(folder_of(setting, tmp_path / "values"), values_hash="0" * 16))
    with pytest.raises(StoreError, match=GATE):
        load_gates(tmp_path / "nowhere")
    (folder_of(setting, tmp_path / "bare") / VALUES).unlink()
    with pytest.raises(StoreError, match="values"):
        load_gates(tmp_path / "bare")


def test_right_padding_is_refused(setting: Setting, tmp_path: Path) -> None:
    """The last prompt token would not be the last one."""
    gate = load_gates(folder_of(setting, tmp_path / "gates"))
    model: Any = setting.subject.hf
    with (
        gate.attached(model, setting.subject.tokenizer),
        pytest.raises(UsageError, match="left"),
    ):
        model.generate(torch.tensor([[1, 2, 0]]), attention_mask=torch.tensor([[1, 1, 0]]), max_new_tokens=2)
