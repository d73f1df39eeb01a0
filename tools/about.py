"""What a run is and rests on, topic by topic, and what the program's words mean: stored data in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import percent
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.saying import run_behaviour, run_evidence, run_setting
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.glossary import SPELLINGS, TERMS, written
from tools.arguments import NARROWED, AboutArguments, AboutTopic, DefineArguments
from tools.registry import Tell, ToolResult, stated

Sentences = Callable[[Run, Findings], Iterator[str]]
TOPICS: Mapping[AboutTopic, Sentences] = {
    "accuracy": run_behaviour.accuracy,
    "attribution": run_evidence.order,
    "baseline": run_setting.baseline,
    "basis": run_setting.basis,
    "cause": run_evidence.cause,
    "chance": run_evidence.chance,
    "check": run_evidence.check,
    "choices": run_evidence.choices,
    "corrected": run_evidence.corrected,
    "cost": run_evidence.cost,
    "directions": run_setting.directions,
    "failures": run_behaviour.failures,
    "generation": run_setting.generation,
    "groups": run_evidence.groups,
    "in-range": run_evidence.in_range,
    "layers": run_evidence.layers,
    "limits": run_evidence.limits,
    "model": run_setting.model,
    "next-steps": run_evidence.next_steps,
    "not-ruled-out": run_evidence.open_units,
    "number-of-units": run_evidence.count,
    "operators": run_setting.operators,
    "origin": run_setting.origin,
    "other-baseline": run_evidence.other_baseline,
    "overlap": run_evidence.overlap,
    "phase": run_setting.phase,
    "prompt": run_setting.prompt,
    "proposer": run_setting.proposer,
    "range": run_setting.numbers,
    "recall": run_evidence.recall,
    "records": run_setting.records,
    "rounding": run_evidence.rounding,
    "rules-shown": run_evidence.rules_shown,
    "search-kind": run_evidence.order,
    "seed": run_setting.seed,
    "selective": run_evidence.selective,
    "splitter": run_setting.splitter,
    "successes": run_behaviour.successes,
    "task": run_setting.task,
    "tests": run_evidence.tests,
    "thresholds": run_setting.thresholds,
    "time": run_evidence.time,
    "versions": run_setting.versions,
}
"""Who answers each topic."""
_NARROWED: Mapping[AboutTopic, Callable[[Run, Findings, str], Iterator[str]]] = {
    "accuracy": run_behaviour.accuracy_where,
    "failures": run_behaviour.failures,
    "successes": run_behaviour.successes,
}
"""Who answers those that may be asked of the records where a predicate holds."""


def about(given: AboutArguments, tell: Tell) -> ToolResult:
    """Sentences on the topic from the run file, with the counts that they state; no model is loaded.

    Raises `UsageError` for a condition that does not parse, or where the topic has none.
    """
    with opened(given.run) as run:
        findings = findings_of(run)
        said = _said(given, run, findings) or ["This run holds nothing about that"]
        data = {
            "run": findings.run,
            "topic": given.topic,
            "records": {
                "all": len(run.records),
                "train": int(run.train.sum()),
                "held_out": int((~run.train).sum()),
            },
            "sentences": said,
        }
        if given.topic == "accuracy":
            held_out = run.labels[~run.train]
            data["succeeds"] = {
                "all": encode(findings.task_score),
                "held_out": {"count": int(held_out.sum()), "n": len(held_out)},
                **{name: encode(share) for name, share in run_behaviour.shares(run)},
            }
            data["by"] = {
                name: {value: encode(share) for value, share in each.items()}
                for name, each in run_behaviour.by_value(run).items()
            }
    return stated(data, [fact(sentence, f"run:{findings.run}") for sentence in said])


def _said(given: AboutArguments, run: Run, findings: Findings) -> list[str]:
    """Raises `UsageError` for a predicate that does not parse, and for a topic that none narrows."""
    if given.where is None:
        return list(TOPICS[given.topic](run, findings))
    if given.topic not in NARROWED:
        raise UsageError(
            f"expected {', '.join(NARROWED)} for a topic with a condition, got {given.topic}; leave the condition out"
        )
    return list(_NARROWED[given.topic](run, findings, given.where))


def define(given: DefineArguments, tell: Tell) -> ToolResult:
    """What a word means, with the run's own settings in it; all words without one. Raises `UsageError`."""
    if given.term is None and written(given.run) in SPELLINGS:
        raise UsageError(
            f"expected a run before the word {given.run!r}, got none; `mecharule define last {given.run}`"
        )
    with opened(given.run) as run:
        findings = findings_of(run)
        filled = {
            "tau": f"{findings.tau:g} ({percent(findings.tau)})",
            "epsilon": f"{findings.epsilon:g}",
            "alpha": f"{findings.alpha:g}",
            "mcc_floor": f"{findings.mcc_floor:g}",
            "baseline": f"{run.config.baseline.value}: {run_setting.BASELINES[run.config.baseline]}",
            "basis": " and ".join(run_setting.BASES[basis] for basis in run.config.bases),
            "splitter": next((one.splitter for one in findings.searches if one.splitter), "none in this run"),
        }
    if given.term is None:
        return ToolResult(data={"run": findings.run, "terms": list(TERMS)}, text="\n".join(TERMS))
    name = SPELLINGS.get(written(given.term))
    if name is None:
        near = get_close_matches(written(given.term), SPELLINGS, 3)
        known = (
            f" (near: {', '.join(SPELLINGS[one] for one in near)})"
            if near
            else "; `mecharule define` lists them"
        )
        raise UsageError(f"expected a word of this program, got {given.term!r}{known}")
    said = TERMS[name].means.format(**filled)
    data = {"run": findings.run, "term": name, "means": said, **filled}
    return stated(data, [fact(said, f"run:{findings.run}")])
