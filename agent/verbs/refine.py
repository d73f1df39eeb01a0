"""`mecharule refine RUN`: the refinement loop on a stored run, told as events, its report as a tool's result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.llm.asking import Asker
from agent.llm.choice import choose, make_model
from agent.refining.ledger import Hypothesis, Ledger
from agent.refining.loop import Refined, refine
from agent.refining.state import Suggester, UnitReport
from agent.refining.suggesting import LlmSuggester, OfflineSuggester
from mecharule_ops.errors import BudgetSpent, ModelUnavailable
from mecharule_ops.events import Event, Notice
from mecharule_ops.pipeline.run import Run
from mecharule_ops.report.document import Document, Section, Table
from mecharule_ops.report.text import text_of
from tools._opening import findings_of, opened
from tools.result import ToolResult

Show = Callable[[Event], None]
WIDTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a refinement may ask."""

    budget: int | None = None
    """Most suggestions asked for in all, retries included; None for the rounds alone."""
    rounds: int = 3
    """Most rounds a unit."""
    units: int = 12
    """Most units, strongest first."""
    again: bool = False
    """Ask anew although the same refinement was done before."""


def refine_run(name: str, show: Show, *, llm: str | None, limits: Limits) -> ToolResult:
    """The report: HQ-T before and after, each unit, each hypothesis with how it was decided.

    Exit code 5 when the budget ended it, 3 when the suggester could never be asked. Raises what opening the run and
    choosing a model raise.
    """
    choice = choose(llm)
    model = make_model(choice)
    show(Notice(text=str(choice)))
    with opened(name) as run:
        findings_of(run)
    with opened(name, write=True) as run:

        def emit(event: Event) -> None:
            run.store.append([event])
            show(event)

        suggester: Suggester
        if model is None:
            suggester = OfflineSuggester(most_suggestions=limits.budget)
        else:
            most = limits.budget or 3 * limits.rounds * limits.units
            asker = Asker(model=model, sleep=time.sleep, price=choice.price, most_requests=most, emit=emit)
            suggester = LlmSuggester(asker=asker, seed=run.config.seed)
        refined = refine(
            run,
            suggester,
            rounds=limits.rounds,
            most_units=limits.units,
            again=limits.again,
            emit=emit,
        )
        return _result(run, refined)


def _result(run: Run, refined: Refined) -> ToolResult:
    told = {report[key] for report in refined.reports for key in ("hypothesis", "prediction")}
    hypotheses = [entry for entry in Ledger(run.store).entries() if entry.id in told]
    lines = [refined.sentence()]
    if refined.reused:
        lines.append("this refinement was done before and is read back; --again asks anew")
    if not refined.reports:
        lines.append("every anchored unit has a rule that predicts unseen train flips: nothing to refine")
    else:
        lines += [_table(refined.reports), *map(_ended, refined.reports)]
    lines += [_decided(entry) for entry in hypotheses]
    lines += _looks(Ledger(run.store).entries(), refined.reports)
    data = {
        "run": run.id,
        "proposer": refined.proposer,
        "anchored": refined.anchored,
        "hq_t_before": refined.before,
        "hq_t_after": refined.after,
        "reused": refined.reused,
        "units": [dict(report) for report in refined.reports],
        "hypotheses": [_hypothesis_data(entry) for entry in hypotheses],
    }
    return ToolResult(data=data, text="\n".join(lines), exit_code=_exit_code(refined.reports))


def _exit_code(reports: Sequence[UnitReport]) -> int:
    failed = [report for report in reports if report["failed"]]
    if any("budget is spent" in report["ended"] for report in failed):
        return BudgetSpent.exit_code
    return ModelUnavailable.exit_code if failed and len(failed) == len(reports) else 0


def _table(reports: Sequence[UnitReport]) -> str:
    rows = tuple(
        (
            f"{report['unit']} {report['arrow']}",
            _score(report["before"], report["good_before"]),
            _score(report["after"], report["good_after"]),
            report["rule"] or "none",
        )
        for report in reports
    )
    table = Table(header=("unit", "held-out MCC", "refined", "rule"), rows=rows, align="lrrl")
    text = text_of(Document(title="", sections=(Section(title="", blocks=(table,)),)), WIDTH)
    return text.strip("\n=- ")


def _score(mcc: float | None, good: bool) -> str:
    return "–" if mcc is None else f"{mcc:.2f}{' HQ-T' if good else ''}"


def _ended(report: UnitReport) -> str:
    return f"{report['unit']} {report['arrow']}: {report['ended']}"


def _decided(entry: Hypothesis) -> str:
    outcome = entry.outcome
    measured = "" if outcome is None else f" ({outcome.value:.2f} on {outcome.n} held-out records)"
    needed = f"needed {entry.prediction.threshold:.2f}"
    return f"hypothesis {entry.id} {entry.state}{measured}, {needed}: {entry.prediction.statement}"


def _looks(entries: Sequence[Hypothesis], reports: Sequence[UnitReport]) -> list[str]:
    """What repeated refinements do to the held-out test: each further prediction has another chance."""
    tested = Counter(entry.prediction.subject for entry in entries if entry.outcome is not None)
    often = [f"{unit} {tested[unit]}" for unit in {report["unit"] for report in reports} if tested[unit] > 2]
    if not often:
        return []
    names = ", ".join(sorted(often))
    return [f"predictions put to the same held-out records so far: {names}; one of many may pass by chance"]


def _hypothesis_data(entry: Hypothesis) -> dict[str, object]:
    outcome = entry.outcome
    return {
        "id": entry.id,
        "unit": entry.prediction.subject,
        "statement": entry.prediction.statement,
        "condition": entry.prediction.condition,
        "test": entry.prediction.test,
        "threshold": entry.prediction.threshold,
        "state": entry.state,
        "value": None if outcome is None else outcome.value,
        "n": None if outcome is None else outcome.n,
        "positives": None if outcome is None else outcome.positives,
    }
