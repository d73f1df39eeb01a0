"""`mecharule refine RUN`: the refinement loop on a stored run, told as events, its report as a tool's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.llm.choice import choose, make_model
from agent.llm.retrying import Asker
from agent.refining import screening
from agent.refining.loop import Refined, played_again, refine
from agent.refining.refinement_state import Refinement, Suggester, UnitReport
from agent.refining.suggesting import LlmSuggester, OfflineSuggester
from agent.verbs.options import RefineOptions
from mecharule_ops.codec import encode
from mecharule_ops.errors import BudgetSpent, ModelUnavailable
from mecharule_ops.events import Event, Notice
from mecharule_ops.report.as_text import block_lines
from mecharule_ops.report.document import Table
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.store.keys import REFINEMENTS
from mecharule_ops.store.ledger import Hypothesis, Ledger
from tools.registry import ToolResult

Show = Callable[[Event], None]
WIDTH = 120
_RISE = 0.005
"""Least rise of a held-out MCC that counts."""


def refine_run(asked: RefineOptions, show: Show) -> ToolResult:
    """The report: HQ-T before and after, each unit, each hypothesis with how it was decided.

    Exit code 5 when the budget ended it, 3 when the suggester could never be asked. Raises what opening the run and
    choosing a model raise.
    """
    choice = choose(asked.llm, budget=asked.llm_budget)
    model = make_model(choice)
    show(Notice(text=str(choice)))
    with opened(asked.run) as run:
        findings_of(run)
    with opened(asked.run, write=True) as run:

        def emit(event: Event) -> None:
            run.store.append([event])
            show(event)

        suggester: Suggester
        if model is None:
            suggester = OfflineSuggester(most_suggestions=asked.budget)
        else:
            most = asked.budget or 3 * asked.rounds * asked.units
            asker = Asker(
                model=model,
                price=choice.price,
                most_requests=most,
                most_tokens=choice.most_tokens,
                emit=emit,
            )
            suggester = LlmSuggester(asker=asker, seed=run.config.seed)
        refined = refine(
            run,
            suggester,
            rounds=asked.rounds,
            most_units=asked.units,
            again=asked.again,
            emit=emit,
        )
        beside = []
        if model is not None and not all(report["failed"] for report in refined.reports):
            offline = refine(run, OfflineSuggester(), rounds=asked.rounds, most_units=asked.units)
            beside = compared(refined, offline)
        if model is not None and not refined.reused:
            beside.append(f"{choice.short}: {asker.bill}")
        return _result(run, refined, beside)


def replay_refinement(name: str) -> ToolResult:
    """The latest refinement played again from the words in the store, and whether it came to the same.

    Raises `UsageError` when there is none.
    """
    with opened(name) as run:
        refined = played_again(run)
        stored = run.store.get(REFINEMENTS)[-1]["reports"]
        same = [report for report in refined.reports if report in stored]
        line = (
            f"played again from the words in the store: {len(same)} of {len(stored)} units came to the same"
        )
        return _result(run, refined, [line])


def _result(run: Run, refined: Refined, beside: Sequence[str] = ()) -> ToolResult:
    told = {report[key] for report in refined.reports for key in ("hypothesis", "prediction")}
    hypotheses = [entry for entry in Ledger(run.store).entries() if entry.id in told]
    lines = [refined.sentence()]
    if refined.reused:
        lines.append("this refinement was done before and is read back; --again asks anew")
    if not refined.reports:
        lines.append("every anchored unit has a rule that predicts unseen train flips: nothing to refine")
    else:
        lines.append(_table(refined.reports))
        for report in refined.reports:
            lines += ["", *_story(report)]
        lines.append("")
    lines += beside
    lines += _looks(Ledger(run.store).entries(), refined.reports)
    data = {
        "run": run.id,
        "proposer": refined.proposer,
        "anchored": refined.anchored,
        "hq_t_before": refined.before,
        "hq_t_after": refined.after,
        "reused": refined.reused,
        "added": list(beside),
        "units": [dict(report) for report in refined.reports],
        "hypotheses": [_hypothesis_data(entry) for entry in hypotheses],
    }
    return ToolResult(data=data, text="\n".join(lines), exit_code=_exit_code(refined))


def _exit_code(refined: Refined) -> int:
    if refined.spent:
        return BudgetSpent.exit_code
    failed = [report["failed"] for report in refined.reports]
    return ModelUnavailable.exit_code if failed and all(failed) else 0


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
    return "\n".join(line.rstrip() for line in block_lines(table, WIDTH))


def _score(mcc: float | None, good: bool) -> str:
    return "–" if mcc is None else f"{mcc:.2f}{' HQ-T' if good else ''}"


def _story(report: UnitReport) -> list[str]:
    """One unit's transcript under its name, and how it ended."""
    lines = [f"  {line}" for line in report["transcript"]]
    return [f"{report['unit']} {report['arrow']}", *lines, f"  ended: {report['ended']}"]


def _looks(entries: Sequence[Hypothesis], reports: Sequence[UnitReport]) -> list[str]:
    """What repeated refinements do to the held-out test: each further prediction has another chance."""
    tested = Counter(
        entry.prediction.subject
        for entry in entries
        if entry.outcome is not None and entry.prediction.test != screening.TEST
    )
    often = [f"{unit} {tested[unit]}" for unit in {report["unit"] for report in reports} if tested[unit] > 2]
    if not often:
        return []
    names = ", ".join(sorted(often))
    return [f"predictions put to the same held-out records so far: {names}; one of many may pass by chance"]


def _hypothesis_data(entry: Hypothesis) -> dict[str, object]:
    told = encode(entry.prediction)
    told.pop("subject", None)
    outcome = dict.fromkeys(("value", "n", "positives")) if entry.outcome is None else encode(entry.outcome)
    return {"id": entry.id, "unit": entry.prediction.subject, **told, "state": entry.state, **outcome}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of everything that one proposer suggested."""

    proposer: str
    predicates: int
    accepted: int
    in_rules: int
    hypotheses: int
    """Stated with a condition that was not tested before."""
    stand: int
    """Kept on train records and supported on the held-out ones."""
    raised: int
    """Units whose rule predicts the held-out flips better than before."""

    def __str__(self) -> str:
        return (
            f"{self.proposer}: {self.predicates} predicates, {self.accepted} pass the filters, {self.in_rules} are in "
            f"a rule; {self.hypotheses} hypotheses, {self.stand} stand held out; {self.raised} units predicted better"
        )


def tally(refined: Refined) -> Tally:
    """The sums over a refinement's units."""
    reports = refined.reports
    return Tally(
        proposer=refined.proposer,
        predicates=sum(report["proposed"] for report in reports),
        accepted=sum(report["accepted"] for report in reports),
        in_rules=sum(report["in_rule"] for report in reports),
        hypotheses=sum(len(_conditions(report)) for report in reports),
        stand=sum(report["stands"] for report in reports),
        raised=sum((report["after"] or 0.0) > (report["before"] or 0.0) + _RISE for report in reports),
    )


def _conditions(report: UnitReport) -> set[str]:
    """The conditions of all hypotheses that were stated about a unit."""
    ideas = (Refinement.model_validate(said).hypothesis for said in report["said"])
    return {idea.condition.strip() for idea in ideas if idea is not None}


def compared(model: Refined, offline: Refined) -> list[str]:
    """Both tallies, and in words what the model added."""
    told, other = tally(model), tally(offline)
    return [f"on the same {len(model.reports)} units:", f"  {told}", f"  {other}", _added(told, other)]


def _added(model: Tally, offline: Tally) -> str:
    if not model.in_rules and not model.stand:
        return f"{model.proposer} added nothing: none of its predicates is in a rule and none of its hypotheses stands"
    if model.raised > offline.raised or model.stand > offline.stand:
        return f"{model.proposer} found what the offline grammar did not"
    return f"{model.proposer} found no more than the offline grammar finds without a model"
