"""Gates that mend a run's model: made and tested now, or read where the run holds them; `export` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path
from mecharule_ops.repair.gate_folder import FORMAT, GATE, VALUES, GateFile, described, write_folder
from mecharule_ops.repair.keeping import mended_regime, new_repair, stored
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.material import GATES, RepairRequest, repair_forwards
from mecharule_ops.repair.proposing import GateProposer
from mecharule_ops.report.as_text import text_of
from mecharule_ops.report.repairs import repair_document
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_direction, opened
from mecharule_ops.run.summing_up import versions
from mecharule_ops.saying.repair_facts import mended_words
from mecharule_ops.tasks.jailbreak import read_requests
from mecharule_ops.types import Basis, Regime
from tools._ablations import accepted, price_words
from tools._tables import WIDTH
from tools.arguments import RepairArguments
from tools.registry import Tell, ToolResult


def repair(
    given: RepairArguments,
    tell: Tell,
    should_stop: Callable[[], bool] = lambda: False,
    propose: Callable[[Run, RepairRequest], GateProposer] | None = None,
) -> ToolResult:
    """The gates with their one test, which is kept in the run; a repair that the run holds is read.

    Cost: `records` completions and `tried` units ablated on two thirds of them, said before they are run. A repair
    that helps nothing is a result. Where `should_stop` says so between two batches, `AblationStopped` is raised and
    nothing of the repair is kept. `propose` makes who proposes gates, where `llm` names one; tools know no model.
    """
    if given.what == "export":
        return exported(given)
    if given.run is not None or given.folder is not None:
        raise UsageError("expected one run, or `export RUN DIR`, got more words")
    with opened(given.what) as run:
        request = request_of(run, given)
        check_direction(run.id, request.regime, hidden=run.config.suppress_only)
        known = None if given.again else stored(run, request)
        price = price_words(run, 0 if known else repair_forwards(run, request))
        words, concealed = run.task.words, run.task.concealed and not given.show_text
        identifier = run.id
    if given.estimate:
        return price.stated(identifier)
    if known is None:
        if given.llm and propose is None:
            raise UsageError(
                f"expected a repair without a model here, got {given.llm}; `mecharule repair` asks one"
            )
        accepted(price, given.yes, tell)
        with opened(given.what, write=True, tell=tell, should_stop=should_stop) as run:
            wanted = mended_words(words, request.regime)
            known = new_repair(run, request, wanted, tell, propose(run, request) if propose else None)
    document = repair_document(known, words, concealed=concealed)
    data = encode(known)
    if concealed:
        data.pop("examples")
    return ToolResult(data=data, text=text_of(document, WIDTH).rstrip())


def request_of(run: Run, given: RepairArguments) -> RepairRequest:
    """What the arguments ask of this run. Raises `UsageError` for a basis or requests that there are not."""
    bases = run.config.bases
    harmless = "" if given.harmless is None else str(typed_path(given.harmless))
    if harmless:
        if not run.task.words.success_is_harm:
            raise UsageError(
                f"expected --harmless with a task whose success is harm, got run {run.id} of {run.task.name}"
            )
        read_requests(Path(harmless))
    if given.basis is not None and given.basis not in list(Basis):
        raise UsageError(f"expected a basis of {', '.join(Basis)}, got {given.basis!r}")
    return RepairRequest(
        regime=Regime(int(given.regime)) if given.regime else mended_regime(run),
        basis=bases[0] if given.basis is None else Basis(given.basis),
        family=GATES[given.family],
        units=given.units,
        tried=given.tried,
        records=given.records,
        budget=given.budget,
        model=given.gate == "model",
        random=not given.no_random,
        solution=given.solution,
        harmless=harmless,
        proposer=given.llm or "",
        learning=GateSettings(harm=given.harm),
    )


def exported(given: RepairArguments) -> ToolResult:
    """The folder's two files. Raises `UsageError` where the run holds no gates, `StoreError` on a folder in use."""
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
