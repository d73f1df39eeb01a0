"""Gates that mend a run's model: made and tested now, or read where the run holds them; `export` writes them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mecharule_ops.codec import encode
from mecharule_ops.errors import DegenerateBehaviour, UsageError
from mecharule_ops.events import Event
from mecharule_ops.findings.repair import Repair as Found
from mecharule_ops.findings.repair import RepairStatus
from mecharule_ops.pipeline.repair_material import RANKED_ON, RepairRequest
from mecharule_ops.pipeline.repairing import Chosen
from mecharule_ops.pipeline.run import Run
from mecharule_ops.repair.gates import units_of
from mecharule_ops.report.phrases.repair import mended_words
from mecharule_ops.report.repairs import repair_document
from mecharule_ops.report.text import text_of
from mecharule_ops.rules.families import Family
from mecharule_ops.store import keys
from mecharule_ops.store.ledger import Ledger, Prediction, TestOutcome
from mecharule_ops.types import Basis, Regime
from tools._ablations import Quoted, accepted, price_words
from tools._opening import check_direction, keep, opened
from tools._tables import WIDTH
from tools.arguments import Repair
from tools.registry import Tell
from tools.result import ToolResult

FAMILIES = {"input": Family.INPUT, "clean": Family.CLEAN_RUN, "mechanism": Family.MECHANISM}
"""By the word on the command line."""


def repair(given: Repair, tell: Tell) -> ToolResult:
    """The gates with their one test, which is kept in the run; a repair that the run holds is read.

    Cost: `records` completions and `tried` units ablated on two thirds of them, said before they are run. A repair
    that helps nothing is a result.
    """
    if given.what == "export":
        from tools._repair_export import exported

        return exported(given)
    if given.run is not None or given.folder is not None:
        raise UsageError("expected one run, or `export RUN DIR`, got more words")
    with opened(given.what) as run:
        request = request_of(run, given)
        check_direction(run.id, request.regime, hidden=run.config.suppress_only)
        known = None if given.again else stored(run, request)
        price = price_words(run, 0 if known else _forwards(request))
        identifier = run.id
    if given.estimate:
        return ToolResult(data={"run": identifier, "price": price.data}, text=f"price: {price.words}")
    if known is None:
        known = _made(given, request, price, tell)
    with opened(given.what) as run:
        concealed = run.task.concealed and not given.show_text
        document = repair_document(known, run.task.words, concealed=concealed)
    data = encode(known)
    if concealed:
        data.pop("examples")
    return ToolResult(data=data, text=text_of(document, WIDTH).rstrip())


def _made(given: Repair, request: RepairRequest, price: Quoted, tell: Tell) -> Found:
    """A new repair, kept in the run with its certificates."""
    from mecharule_ops.pipeline.certify_repair import certify_repair
    from mecharule_ops.pipeline.repair_material import material
    from mecharule_ops.pipeline.repairing import repair as repaired

    accepted(price, given.yes, tell)
    with opened(given.what, write=True, tell=tell) as run:
        try:
            found = material(run, request, tell)
        except DegenerateBehaviour:
            return _nothing(run, request)
        ledger = Ledger(run.store, partial(_told, run))
        made = repaired(
            found,
            request,
            register=partial(_registered, run, ledger, request),
            certify=lambda found, tested, gates: tuple(
                keep(run, one).id for one in certify_repair(found, tested, gates, request.regime)
            ),
            tell=tell,
        )
        _decided(ledger, made)
        return kept(run, made)


def _told(run: Run, event: Event) -> None:
    """Keeps an event of the ledger."""
    run.store.append([event])


def _registered(run: Run, ledger: Ledger, request: RepairRequest, chosen: Chosen) -> str:
    """The ledger's entry of the prediction that these gates help, made before the test records are opened."""
    wanted = mended_words(run.task.words, request.regime)
    turn = sum(one.test is not None for one in run.repairs) + 1
    prediction = Prediction(
        subject=",".join(map(str, units_of(chosen.gates))),
        statement=f"ablating these units where their gates fire makes more answers {wanted} than it unmakes",
        condition=" or ".join(f"({gate.rule})" for gate in chosen.gates),
        test=f"lower end of the 95 % interval of the change on the test records, in points (opening {turn})",
        threshold=0.0,
    )
    return ledger.register(prediction).id


def _decided(ledger: Ledger, made: Found) -> None:
    """Enters the test's outcome."""
    if made.test is None or not made.hypothesis:
        return
    result = made.test
    changed = result.fixed + result.broken
    ledger.decide(
        made.hypothesis, lambda _: TestOutcome(value=result.interval[0], n=result.n, positives=changed)
    )


def kept(run: Run, made: Found) -> Found:
    """The repair with how often the test records were opened, after storing it."""
    before = run.repairs
    opened_before = sum(one.test is not None and one.fresh == made.fresh for one in before)
    made = replace(made, opened=opened_before + (made.test is not None))
    run.store.put(keys.REPAIRS, [*map(encode, before), encode(made)])
    return made


def _nothing(run: Run, request: RepairRequest) -> Found:
    return Found(
        run=run.id,
        regime=request.regime,
        basis=request.basis,
        family=request.family,
        status=RepairStatus.NOTHING,
        seed=run.config.seed,
        solution=request.solution,
        tried=0,
        fresh=True,
        most=request.units,
        records=request.records,
    )


def stored(run: Run, request: RepairRequest) -> Found | None:
    """The last repair of exactly this request; None where the run holds none."""
    wanted = (request.regime, request.basis, request.family, request.solution, request.units, request.records)
    fitting = [
        one
        for one in run.repairs
        if (one.regime, one.basis, one.family, one.solution, one.most, one.records) == wanted
    ]
    return fitting[-1] if fitting else None


def request_of(run: Run, given: Repair) -> RepairRequest:
    """What the arguments ask of this run. Raises `UsageError` for a basis that it does not have."""
    bases = run.config.bases
    if given.basis is not None and given.basis not in list(Basis):
        raise UsageError(f"expected a basis of {', '.join(Basis)}, got {given.basis!r}")
    harm = run.task.words.success_is_harm
    regime = Regime(int(given.regime)) if given.regime else Regime(int(harm))
    return RepairRequest(
        regime=regime,
        basis=bases[0] if given.basis is None else Basis(given.basis),
        family=FAMILIES[given.family],
        units=given.units,
        tried=given.tried,
        records=given.records,
        budget=given.budget,
        model=given.gate == "model",
        solution=given.solution,
    )


def _forwards(request: RepairRequest) -> int:
    """Example-forwards that a repair costs, nearly all of them those of the tried units."""
    learn = 2 * request.records // 3
    units = request.tried if request.budget is None else min(request.tried, max(1, request.budget // learn))
    controls = (request.units + 2) * (request.records - learn)
    return units * learn + 2 * request.tried * RANKED_ON + controls
