"""`repair export`: the last repair of a run as a folder that a plain model can be given."""

from __future__ import annotations

from pathlib import Path

from mecharule_ops.errors import UsageError
from mecharule_ops.pipeline.opening import opened
from tools.arguments import Repair
from tools.result import ToolResult


def exported(given: Repair) -> ToolResult:
    """The folder's two files. Raises `UsageError` where the run holds no gates, `StoreError` on a folder in use."""
    from mecharule_ops.pipeline.summing_up import versions
    from mecharule_ops.repair.folder import FORMAT, GATE, VALUES, GateFile, described, write_folder

    if given.run is None:
        raise UsageError("expected `export RUN DIR`, got no run")
    with opened(given.run) as run:
        made = [one for one in run.repairs if one.gates]
        if not made:
            raise UsageError(
                f"expected gates in run {run.id}, it holds none; `mecharule repair {run.id}` makes some"
            )
        last = made[-1]
        folder = Path(given.folder or f"{run.id}-gates")
        intervention = run.intervention(last.basis)
        table = run.replacement(intervention)
        stated = GateFile(
            format=FORMAT,
            run=run.id,
            model=run.config.model,
            model_hash=run.subject.model_hash,
            tokenizer_hash=run.subject.tokenizer_hash,
            task=described(run.task.describe()),
            basis=intervention.basis,
            baseline=intervention.baseline,
            phase=intervention.phase,
            values_hash=table.hash,
            gates=last.gates,
            policy=last.policy,
            versions=versions(),
        )
        write_folder(folder, stated, table)
        identifier = run.id
    return ToolResult(
        data={"run": identifier, "folder": str(folder), "gates": len(stated.gates), "files": [GATE, VALUES]},
        text=f"{folder}: {len(stated.gates)} gates of {last.family.value} family, "
        f"{GATE} and {VALUES}; mecharule_ops.repair.load_gate reads them",
    )
