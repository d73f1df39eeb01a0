"""How a run was set up, a section a function: its model, task, settings, splitter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from mecharule_ops.facts.fact import Stated
from mecharule_ops.facts.run_evidence import each_search, rounding
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural
from mecharule_ops.plain_text import beginning, last_line
from mecharule_ops.run.live_run import Run
from mecharule_ops.store import keys
from mecharule_ops.types import Baseline, Basis, Phase, Regime

OPERATIONS: Mapping[str, str] = {
    "+": "additions",
    "-": "subtractions",
    "*": "multiplications",
    "/": "divisions",
}
BASES: Mapping[Basis, str] = {
    Basis.MLP_OUT: "channels of the MLP output, what an MLP writes into the residual stream",
    Basis.MLP_HIDDEN: "hidden neurons of the MLPs, what their down projection reads",
    Basis.ATTN_HEAD: "attention heads, each one's output vector",
}
BASELINES: Mapping[Baseline, str] = {
    Baseline.ZERO: "0, which may lie outside what a unit does",
    Baseline.MEAN: "its mean over train records",
    Baseline.MEAN_POSITIONAL: "its mean at that position over train records",
    Baseline.MEAN_DONOR: "its mean over train records of the other outcome",
    Baseline.MEAN_DONOR_POSITIONAL: "its mean at that position over train records of the other outcome",
    Baseline.SLOT0: "its mean at the first position",
}
PHASES: Mapping[Phase, str] = {
    Phase.DECODE: "while the model writes its answer; the prompt is read untouched",
    Phase.LAST_PROMPT: "at the last position of the prompt and while the model writes",
    Phase.WHOLE: "at every position",
}


def model(run: Run, findings: Findings) -> Iterator[Stated]:
    """Its name and hash, its size in units, what it was run with, how many completions rounding may decide."""
    yield "model", findings.model, f"The model is {findings.model} (hash {findings.model_hash})"
    for basis in run.config.bases:
        name = keys.attribution(basis, run.regimes[0])
        if run.store.has(name):
            layers, width = run.store.get(name).shape
            of_them = f"{plural(width, f'{basis.value} unit')} each, {layers * width:,} units in all"
            yield f"model.{basis.value}", [layers, width], f"It has {plural(layers, 'layer')} of {of_them}"
    made = ", ".join(f"{name} {number}" for name, number in sorted(findings.versions.items()))
    yield "model.versions", dict(findings.versions), f"The run was made with {made}"
    device = findings.numbers
    how = "float32 on the processor (CPU), no GPU" if device is None else f"{device.dtype} on {device.device}"
    yield "model.computed_in", how, f"The model computed in {how}"
    yield rounding(findings)


def task(run: Run, findings: Findings) -> Iterator[Stated]:
    """What the model was asked to do, on what; how it answers; how many records there are and how they were parted."""
    settings, words = findings.task_settings, findings.words
    yield "task", findings.task, f"The task is {findings.task}: {_asked(findings)}"
    if template := settings.get("template"):
        yield "task.template", template, f"Prompts have the form {template!r}"
    if not run.task.concealed:
        first = run.records[0]
        asked, answered = last_line(first.example.prompt), beginning(first.completion)
        yield "task.example", asked, f"One of them is '{asked}', which the model completes with {answered!r}"
    yield (
        "task.success",
        words.success,
        f"An answer counts as 1 where it is {words.success}, as 0 where it is {words.failure}",
    )
    if asked_for := _operators(findings):
        without = [name for sign, name in OPERATIONS.items() if sign not in asked_for]
        said = " and ".join(OPERATIONS[sign] for sign in asked_for)
        yield (
            "task.operators",
            list(asked_for),
            f"Only {said} were asked in this run (operators {' '.join(asked_for)})"
            + (
                f"; no {_either(without)}, so the run does not say how the model does on them"
                if without
                else ""
            ),
        )
    stop = ", ".join(map(repr, run.task.stop)) or "nothing"
    yield (
        "task.generation",
        run.task.max_new_tokens,
        f"The model writes greedily, the likeliest token each time, {run.task.max_new_tokens} tokens at most, and "
        f"stops at {stop}",
    )
    prefix = settings.get("prefix", "")
    before = (
        f"Before each prompt stands {prefix!r}"
        if prefix
        else "There are no few-shot examples before the prompt"
    )
    yield "task.prefix", prefix, before
    total, train = len(run.records), int(run.train.sum())
    yield (
        "task.records",
        {"all": total, "train": train, "held_out": total - train},
        f"The model was tested on {total:,} records: {train:,} train and {total - train:,} held out",
    )
    if further := len(run.observed.records) - total:
        also = int((~run.observed.train[total:]).sum())
        yield (
            "task.further_records",
            {"all": further, "held_out": also, "held_out_with_the_others": total - train + also},
            f"For the accounts of units {further:,} further records were observed, {also:,} of them held out, which "
            f"makes {total - train + also:,} held out in all",
        )


def _either(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _operators(findings: Findings) -> tuple[str, ...] | None:
    text = str(findings.task_settings.get("operators", ""))
    found = tuple(text.split())
    return found if found and set(found) <= OPERATIONS.keys() else None


def _asked(findings: Findings) -> str:
    settings, asked = findings.task_settings, _operators(findings)
    if asked and "low" in settings:
        said = " and ".join(OPERATIONS[sign] for sign in asked)
        return f"{said} of whole numbers from {settings['low']} to {settings['high']}"
    return ", ".join(f"{name} {value!r}" for name, value in settings.items() if value not in ("", None))


def settings(run: Run, findings: Findings) -> Iterator[Stated]:
    """When the run began; units, replacement, thresholds, directions, seed, proposer; where it leaves the paper."""
    began = next((moment for _, moment, _ in run.store.events()), None)
    when = "" if not began else f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC"
    begun = f", begun {when}" if when else ""
    yield "settings.begun", when, f"This is run {findings.run}{begun}: {findings.task} with {findings.model}"
    for basis in run.config.bases:
        yield f"settings.{basis.value}", True, f"The units tested are {BASES[basis]} (basis {basis.value})"
    missing = [each for each in Basis if each not in run.config.bases]
    if missing:
        said = f"Not tested in this run: {'; '.join(BASES[each] for each in missing)}"
        yield "settings.not_tested", [each.value for each in missing], said
    chosen = run.config.baseline
    why = (
        "; zero was not used, since 0 may lie outside what a unit ever does in the data, so its flips would say more "
        "about the replacement than about the unit"
    )
    yield (
        "settings.baseline",
        chosen.value,
        f"An ablated unit is set to {BASELINES[chosen]} (baseline {chosen.value})"
        f"{'' if chosen is Baseline.ZERO else why}",
    )
    phase = run.task.phase
    yield "settings.phase", phase.value, f"Units are replaced {PHASES[phase]} (phase {phase.value})"
    yield (
        "settings.thresholds",
        {
            "tau": findings.tau,
            "epsilon": findings.epsilon,
            "alpha": findings.alpha,
            "mcc_floor": findings.mcc_floor,
        },
        f"τ is {findings.tau:g}, ε is {findings.epsilon:g} and α is {findings.alpha:g} ({findings.alpha_policy}); "
        f"a rule is of high quality from a held-out MCC of {findings.mcc_floor:g} on",
    )
    words = findings.words
    for regime in Regime:
        before, after = (words.success, words.failure) if regime.value else (words.failure, words.success)
        searched = regime in run.regimes
        yield (
            f"settings.searched.{regime.value}",
            searched,
            f"Searched: {regime.arrow}, units whose ablation turns {before} answers {after}"
            if searched
            else f"Not searched in this run: {regime.arrow}, so it says nothing about units whose ablation does that; "
            f"`mecharule run --from {findings.run} --set regimes={regime.value}` asks",
        )
    yield (
        "settings.seed",
        findings.seed,
        f"The seed is {findings.seed}; every random choice of the run follows from it, and no other was tried",
    )
    counts = findings.predicates
    by = (
        "No language model was involved in this run: its predicates come from the offline grammar (proposer offline)"
        if findings.proposer == "offline"
        else f"Predicates were proposed by {findings.proposer} beside the offline grammar"
    )
    yield "settings.proposer", findings.proposer, by
    yield (
        "settings.predicates",
        {"proposed": counts.proposed, "refused": counts.refused, "kept": counts.kept},
        f"Predicates: {counts.proposed:,} proposed, {counts.refused:,} refused, {counts.kept:,} kept",
    )
    for choice in findings.choices:
        said = choice.sentence.removesuffix(".")
        yield f"settings.choice.{choice.setting}", said, f"{choice.setting}: {said}"


def splitter_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """The rule that parts D+ from D-, how well it does, and the sizes of both."""
    key = f"splitter.{search.intervention.basis.value}.{search.regime.value}"
    if search.splitter is None:
        said = f"No rule separates D+ from D- ({search.regime.arrow}): the slices were split without one"
        yield key, None, said
    else:
        mcc = search.splitter_train_mcc
        score = "" if mcc is None else f" (train MCC {mcc:.2f}, not held out)"
        yield (
            key,
            {"rule": search.splitter, "train_mcc": mcc},
            f"The splitter rule ({search.regime.arrow}) is {search.splitter}{score}: D+ is where it fires, D- "
            "where it does not",
        )
    if search.associated_of:
        yield (
            f"{key}.sizes",
            {
                "associated": {"n": search.associated_n, "of": search.associated_of},
                "unrelated": {"n": search.unrelated_n, "of": search.unrelated_of},
            },
            f"D+ holds {search.associated_of:,} train records that the model gets "
            f"{'right' if search.regime.value else 'wrong'} and D- {search.unrelated_of:,}; "
            f"{search.associated_n} and {search.unrelated_n} of them are the compact slices",
        )
    if search.split_note:
        yield f"{key}.note", search.split_note, f"Why this one: {search.split_note}"


splitter = each_search(splitter_of)
