"""The sections of a run: what it is and rests on, each whole, in keyed facts from what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from mecharule_ops.errors import UsageError
from mecharule_ops.facts import run_behaviour, run_evidence, run_setting
from mecharule_ops.facts.fact import Stated, fact
from mecharule_ops.facts.glossary import SPELLINGS, TERMS, written
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import percent
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of
from tools._conditions import condition_of
from tools.arguments import RunSection, ShowArguments
from tools.registry import ToolResult, of_facts

SECTIONS: Mapping[RunSection, Callable[[Run, Findings], Iterator[Stated]]] = {
    "accuracy": run_behaviour.accuracy,
    "task": run_setting.task,
    "model": run_setting.model,
    "settings": run_setting.settings,
    "splitter": run_setting.splitter,
    "search": run_evidence.search,
    "cost": run_evidence.cost,
    "missed": run_evidence.missed,
    "layers": run_evidence.layers,
    "controls": run_evidence.controls,
    "rules": run_evidence.rules,
    "limits": run_evidence.limits_of_run,
    "next": run_evidence.next_steps,
}
"""Who tells each section but that of words."""


def section(run: Run, given: ShowArguments) -> ToolResult:
    """The facts of a section. Raises `UsageError` for a condition that does not read or that narrows nothing."""
    findings = findings_of(run)
    if given.section == "words" or given.section is None:
        told = _words(run, findings, given.term)
    elif given.where is not None:
        if given.section != "accuracy":
            raise UsageError(
                f"expected --where of --section accuracy alone, got it of {given.section}; leave it out"
            )
        told = run_behaviour.accuracy(run, findings, condition_of(run, given.where))
    else:
        told = SECTIONS[given.section](run, findings)
    facts = [fact(said, f"run:{run.id}", key=key, value=value) for key, value, said in told]
    return of_facts(facts or [fact("This run holds nothing about that", f"run:{run.id}")])


def _words(run: Run, findings: Findings, term: str | None) -> Iterator[Stated]:
    """What a word means, with the run's own settings in it; all words without one. Raises `UsageError`."""
    filled = {
        "tau": f"{findings.tau:g} ({percent(findings.tau)})",
        "epsilon": f"{findings.epsilon:g}",
        "alpha": f"{findings.alpha:g}",
        "mcc_floor": f"{findings.mcc_floor:g}",
        "baseline": f"{run.config.baseline.value}: {run_setting.BASELINES[run.config.baseline]}",
        "basis": " and ".join(run_setting.BASES[basis] for basis in run.config.bases),
        "splitter": next((one.splitter for one in findings.searches if one.splitter), "none in this run"),
    }
    names = list(TERMS)
    if term is not None:
        name = SPELLINGS.get(written(term))
        if name is None:
            near = get_close_matches(written(term), SPELLINGS, 3)
            known = (
                f" (near: {', '.join(SPELLINGS[one] for one in near)})"
                if near
                else f"; `mecharule show {run.id} --section words` lists them"
            )
            raise UsageError(f"expected a word of this program, got {term!r}{known}")
        names = [name]
    for name in names:
        means = TERMS[name].means.format(**filled)
        yield f"word.{name}", means, means if term else f"{name}: {means}"
