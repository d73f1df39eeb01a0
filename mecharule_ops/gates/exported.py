"""Gates as a folder, and on a plain transformers model: what it answers with units replaced where gates fire.

`gate.json` says which gates of which model, `values.npz` what units are set to. Gates decide from the prompts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mecharule_ops.certificates import bundles, certificate
from mecharule_ops.codec import decode, encode, parse_json
from mecharule_ops.engine import ablation, behaviour
from mecharule_ops.errors import ClaimNotSupported, ModelUnavailable, UsageError, system_errors
from mecharule_ops.gates.material import acting_units, readable
from mecharule_ops.gates.outcome import Gate
from mecharule_ops.loading.model import Subject
from mecharule_ops.replacement import baselines, table_files
from mecharule_ops.run import certify, live_run
from mecharule_ops.tasks.task_names import task_from
from mecharule_ops.types import Intervention

GATE, VALUES = "gate.json", "values.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFile:
    """What `gate.json` says."""

    run: str
    model: certificate.ModelIdentity
    task: Mapping[str, int | float | str | bool]
    """The task's own description."""
    intervention: Intervention
    gates: tuple[Gate, ...]
    """In the order in which they were chosen."""


def write_gates(run: live_run.Run, gates: tuple[Gate, ...], folder: Path) -> None:
    """Both files. Raises as `make_empty`."""
    how = run.intervention(gates[0].unit.basis)
    table = run.replacement(how)
    stated = GateFile(
        run=run.id,
        model=certify.identity(run.config.model, run.subject),
        task=run.task.describe(),
        intervention=how,
        gates=gates,
    )
    bundles.make_empty(folder)
    with system_errors(f"to write gates to {folder}"):
        (folder / GATE).write_text(json.dumps(encode(stated), indent=1, sort_keys=True), encoding="ascii")
    table_files.write_table(folder / VALUES, table)


def load_gates(folder: str | Path) -> tuple[GateFile, baselines.ReplacementTable]:
    """What the files say. Raises `StoreError` on files that do not read, `ClaimNotSupported` on what is not so."""
    path, values = Path(folder) / GATE, Path(folder) / VALUES
    with system_errors(f"gates at {path}"):
        text = path.read_bytes()
    try:
        stated = decode(GateFile, parse_json(text))
    except (ValueError, UsageError) as error:
        raise ClaimNotSupported(f"expected gates in {path}: {error}; export them again") from error
    return stated, table_files.read_table(values, stated.intervention)


def gated_answers(
    folder: str | Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[str]
) -> list[str]:
    """What the model that gates were made on writes after prompts of their task, a unit replaced where a gate fires.

    Cost: a completion, and another where a gate acts. Raises as `load_gates`; `ModelUnavailable` for weights or a
    tokenizer that they were not made on, or numbers other than float32, `UsageError` for a prompt of something else.
    """
    stated, table = load_gates(folder)
    task, name = task_from(stated.task), stated.model.name
    subject = Subject(name=name, directory=Path(), hf=model.eval(), tokenizer=tokenizer)
    here = certify.identity(name, subject)
    if (here, subject.dtype_name) != (stated.model, "float32"):
        raise ModelUnavailable(f"expected {stated.model} in float32, got {here} in {subject.dtype_name}")
    records = behaviour.behaviour_on(task, subject, list(map(task.read, prompts))).records
    engine = ablation.AblationEngine(subject, task, records, stated.intervention, table)
    written = [record.completion for record in records]
    for unit, rows in acting_units(stated.gates, readable(task, records), len(records)).items():
        for row, tokens in zip(rows, engine.completions([(unit,)], rows).tokens[0], strict=True):
            written[row] = subject.decode(tokens)
    return written
