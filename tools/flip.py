"""Would it flip if …? One unit ablated on a typed prompt, beside what its rule and similar records say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow
from mecharule_ops.certificates.concealment import shown_rows
from mecharule_ops.pipeline.certify import certified
from mecharule_ops.pipeline.run import Run
from mecharule_ops.questions.neighbours import NeighbourFlips, flips_with_interval, nearest
from mecharule_ops.questions.typed_prompt import ablated_rows, observed, rule_fires, unobserved
from mecharule_ops.questions.unit_account import account
from mecharule_ops.report.phrases.rules import predicts
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.types import AnchoredRule, BehaviourRecord, Example, Neuron, Regime
from tools._accounts import example_data, last_line
from tools._opening import check_unit, findings_of, keep, opened, outcome_for
from tools.arguments import Flip
from tools.registry import Tell
from tools.result import ToolResult

TYPED, EDITED = "typed", "edited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a unit's rule says of the prompt before anything is ablated."""

    rule: AnchoredRule
    fires: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What may be shown of a certificate."""

    certificate: str
    rows: tuple[ExampleRow, ...]


def flip(given: Flip, tell: Tell) -> ToolResult:
    """Completions before and after, the rule's prediction, edits that switch it, and similar records' flips.

    Cost: two completions a prompt, and one ablated completion a neighbour that the run has not stored.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run, write=True) as run:
        findings = findings_of(run)
        check_unit(run, neuron)
        example = run.task.read(given.prompt)
        tell(f"loading {run.config.model}")
        (record,) = observed(run, [example])
        regime = Regime(int(record.label))
        outcome = outcome_for(findings, neuron, regime if regime.value in run.config.regimes else None)
        known = account(findings, outcome, neuron)
        prediction = _prediction(run, known.rule if known else None, record)
        switching = _edits(run, prediction, example, given.edits)
        certificate = _certified(run, neuron, record, observed(run, switching))
        similar = _similar(run, neuron, example, regime, given.neighbours)
        shown = Shown(certificate=certificate.id, rows=shown_rows(certificate, given.show_text))
        return ToolResult(
            data=_data(run, neuron, regime, shown, prediction, similar),
            text="\n".join(_lines(run, neuron, regime, shown, prediction, similar)),
        )


def _prediction(run: Run, rule: AnchoredRule | None, record: BehaviourRecord) -> Prediction | None:
    if rule is None or predicts(rule) is None:
        return None
    fires = bool(rule_fires(Rule.parse(str(rule.rule)), run.task, [record])[0])
    return Prediction(rule=rule, fires=fires)


def _edits(run: Run, prediction: Prediction | None, example: Example, count: int) -> list[Example]:
    """The smallest edits that switch a prompt-only rule and are still questions of the task."""
    if prediction is None or not prediction.rule.prompt_only or not count:
        return []
    candidates = run.task.edits(example)
    if not candidates:
        return []
    fires = rule_fires(
        Rule.parse(str(prediction.rule.rule)),
        run.task,
        [unobserved(candidate, run.task) for candidate in candidates],
    )
    switched = np.flatnonzero(fires != prediction.fires)[:count]
    return [candidates[int(place)] for place in switched]


def _certified(
    run: Run, neuron: Neuron, record: BehaviourRecord, others: Sequence[BehaviourRecord]
) -> Certificate:
    """A certificate of the typed prompt and of the edits that start from the same outcome."""
    same = [other for other in others if other.label == record.label]
    records = [record, *same]
    intervention = run.intervention(neuron.basis)
    rows = ablated_rows(run, intervention, (neuron,), records, [TYPED, *[EDITED] * len(same)])
    verb = "flips" if rows[0].flipped else "does not flip"
    regime = Regime(int(record.label))
    asked = "a typed prompt" if run.task.concealed else repr(last_line(record.example.prompt))
    made = certified(
        run,
        intervention,
        (neuron,),
        rows,
        regime=regime,
        kind="flip",
        claim=f"ablating {neuron} {verb} {asked} ({regime.arrow})",
    )
    return keep(run, made)


def _similar(
    run: Run, neuron: Neuron, example: Example, regime: Regime, count: int
) -> tuple[NeighbourFlips, list[int]]:
    """Flips of the records most like the prompt that start from the same outcome."""
    eligible = [
        int(place) for place in run.eligible(regime) if run.records[int(place)].example.id != example.id
    ]
    near = nearest(example.fields, [run.records[place].example.fields for place in eligible], count)
    positions = [eligible[int(place)] for place in near]
    if not positions:
        return flips_with_interval(0, 0, run.config.alpha), []
    flips = int(run.flips([(neuron,)], positions, regime).sum())
    ids = [run.records[place].example.id for place in positions]
    return flips_with_interval(flips, len(positions), run.config.alpha), ids


def _data(
    run: Run,
    neuron: Neuron,
    regime: Regime,
    shown: Shown,
    prediction: Prediction | None,
    similar: tuple[NeighbourFlips, list[int]],
) -> dict[str, object]:
    typed, *others = shown.rows
    flips, ids = similar
    return {
        "run": run.id,
        "neuron": str(neuron),
        "regime": regime.value,
        **example_data(typed),
        "rule": None
        if prediction is None
        else {
            "text": prediction.rule.rule,
            "fires": prediction.fires,
            "agrees": prediction.fires == typed.flipped,
            "held_out_mcc": prediction.rule.held_out.mcc if prediction.rule.held_out else None,
        },
        "edits": [example_data(row) for row in others],
        "neighbours": {
            "flips": flips.count.flips,
            "n": flips.count.n,
            "lower": flips.lower,
            "upper": flips.upper,
            "examples": ids[:5],
        },
        "certificate": shown.certificate,
    }


def _lines(
    run: Run,
    neuron: Neuron,
    regime: Regime,
    shown: Shown,
    prediction: Prediction | None,
    similar: tuple[NeighbourFlips, list[int]],
) -> list[str]:
    typed, *others = shown.rows
    flips, _ = similar
    lines = [
        f"{neuron} on {last_line(typed.prompt)!r} ({regime.arrow}) in run {run.id}",
        f"  before    {_side(run, typed.before)} [c:{shown.certificate}]",
        f"  ablated   {_side(run, typed.after)} → {'flips' if typed.flipped else 'does not flip'}",
    ]
    if prediction is None:
        lines.append("  rule      this run has none for the unit in this regime")
    else:
        word = "agrees" if prediction.fires == typed.flipped else "is wrong here"
        lines.append(
            f"  rule      {prediction.rule.rule} · {'fires' if prediction.fires else 'does not fire'}: it {word}"
        )
    lines += [f"  edit      {_edit_words(row)}" for row in others]
    count = flips.count
    lines.append(
        f"  similar   {count.flips}/{count.n} of the most similar records flip [{flips.lower:.2f}, {flips.upper:.2f}]"
        if count.n
        else "  similar   no record of this run starts from the same outcome with the same categories"
    )
    return lines


def _side(run: Run, completion: Completion) -> str:
    return f"{last_line(completion.text)!r} ({run.task.words.of(completion.label)})"


def _edit_words(row: ExampleRow) -> str:
    verb = "flips" if row.flipped else "does not flip"
    change = f"{last_line(row.before.text)} → {last_line(row.after.text)}"
    return f"{last_line(row.prompt)!r} switches the rule: {verb} ({change})"
