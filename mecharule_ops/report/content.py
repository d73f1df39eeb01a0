"""The report of one run as a document: which sections, in which order, with which blocks."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.findings import Findings, SearchOutcome
from mecharule_ops.report import tables
from mecharule_ops.report.advice import suggestions
from mecharule_ops.report.document import Block, Bullets, Document, Section, Table, k_of_n, two_decimals
from mecharule_ops.report.prose import limits, negative, search_name, summary
from mecharule_ops.types import Value

CONTROL_KEY = (
    "Verdicts: supported – strength ≥ τ by its lower bound, told apart from random units of the layer, and "
    "flips that follow the split; not selective – strong, but the two slices differ by less than ε or a "
    "fake rule's split differs as much; control also flips – random units of the layer reach τ themselves; "
    "underpowered – these examples cannot decide. The fake-rule Δ is δ₊ − δ₋ on the slices of a rule "
    "learned from permuted targets."
)
AGONIST_KEY = (
    "D+ is the slice where the splitter rule fires, D- where it does not. Strength is the larger of the "
    "two flip rates, with its lower and upper bound."
)


def document(findings: Findings) -> Document:
    """The whole report: summary first, then evidence, then cost, limits and named choices."""
    sections = [
        Section(title="Summary", blocks=(summary(findings),)),
        Section(title="Task and run", blocks=_run_blocks(findings)),
        Section(title="Overview", blocks=(tables.overview(findings),)),
    ]
    for index, outcome in enumerate(findings.searches):
        sections.append(_search_section(findings, outcome, index))
    sections += [
        Section(title="Cost", blocks=_cost_blocks(findings)),
        *_question_sections(findings),
        Section(title="Limits", blocks=(Bullets(limits(findings)),)),
    ]
    if findings.choices:
        chosen = tuple(f"{choice.setting}: {choice.sentence}" for choice in findings.choices)
        sections.append(Section(title="Named choices", blocks=(Bullets(chosen),)))
    return Document(title=f"MechaRule report: run {findings.run}", sections=tuple(sections))


def _run_blocks(findings: Findings) -> tuple[Block, ...]:
    counts = findings.predicates
    rows = (
        ("model", f"{findings.model} (hash {findings.model_hash})"),
        ("tokenizer hash", findings.tokenizer_hash),
        ("task", f"{findings.task} ({_listing(findings.task_settings)})"),
        ("task score", f"{k_of_n(findings.task_score)} of the records, unablated"),
        (
            "thresholds",
            f"τ {findings.tau:g}, ε {findings.epsilon:g}, α {findings.alpha:g} {findings.alpha_policy}",
        ),
        ("predicates", f"{counts.proposed} proposed, {counts.refused} refused, {counts.kept} kept"),
        ("proposer", findings.proposer),
        ("seed", str(findings.seed)),
        ("versions", _listing(findings.versions)),
    )
    return (Table(header=("setting", "value"), rows=rows, align="ll"),)


def _listing(entries: Mapping[str, Value]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(entries.items())) or "none recorded"


def _search_section(findings: Findings, outcome: SearchOutcome, index: int) -> Section:
    blocks: list[Block] = [_split_sentence(outcome), " ".join(map(_sentence, outcome.status))]
    if not outcome.tau_agonists:
        blocks.append("Negative result: " + negative(findings, outcome))
    if outcome.whole_layers or outcome.agonists:
        blocks.append(tables.layers(outcome))
    if outcome.agonists:
        blocks += [AGONIST_KEY, tables.agonists(findings, outcome), tables.rules(findings, outcome)]
        controls = tables.controls(findings, outcome)
        blocks += [controls, CONTROL_KEY] if controls.rows else ["No control was run for these units."]
    blocks += _recall_blocks(outcome)
    if advice := suggestions(outcome, findings.tau, findings.alpha):
        blocks += ["What to try next:", Bullets(advice)]
    figures = tuple(f"{kind}-{index}" for kind in ("layers", "recall", "tree"))
    title = f"Search {index + 1}: {search_name(outcome)}"
    return Section(title=title, blocks=tuple(block for block in blocks if block), figures=figures)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _split_sentence(outcome: SearchOutcome) -> str:
    rule = "no rule" if outcome.splitter is None else f"the rule {outcome.splitter}"
    score = two_decimals(outcome.splitter_train_mcc)
    scored = "" if outcome.splitter_train_mcc is None else f" (train MCC {score}, not held out)"
    sizes = f"D+ has {outcome.associated_n} and D- {outcome.unrelated_n} examples."
    return f"Condition {outcome.condition}; split by {rule}{scored}. {sizes} {outcome.slice_status}"


def _recall_blocks(outcome: SearchOutcome) -> list[Block]:
    dominance = tables.dominance_sentence(outcome)
    if outcome.exhaustive is None:
        return [
            dominance,
            "Exhaustive ablation was not run here: recall is unknown, not assumed.",
        ]
    return [dominance, "Recall of the search against testing every unit alone:", tables.recall(outcome)]


def _cost_blocks(findings: Findings) -> tuple[Block, ...]:
    blocks: list[Block] = [tables.cost(findings)]
    if findings.stages:
        rows = tuple(
            (stage.stage, f"{stage.seconds:,.1f} s", f"{stage.example_forwards:,}")
            for stage in findings.stages
        )
        header = ("stage", "wall clock", "example-forwards")
        blocks.append(Table(header=header, rows=rows, align="lrr"))
    return tuple(blocks)


def _question_sections(findings: Findings) -> tuple[Section, ...]:
    if not findings.answers:
        return ()
    items = tuple(
        f"{answer.question} {answer.answer} [{', '.join(answer.certificates) or 'unverified'}] "
        f"{answer.verification}"
        for answer in findings.answers
    )
    return (Section(title="Questions answered", blocks=(Bullets(items),)),)
