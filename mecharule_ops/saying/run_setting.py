"""How a run was set up, a question a function: its model, task, records, units, replacement, thresholds, splitter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n, plural
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


def model(run: Run, findings: Findings) -> Iterator[str]:
    """Its name, its size in units, its hash."""
    yield f"The model is {findings.model} (hash {findings.model_hash})"
    yield from sizes(run, findings)


def sizes(run: Run, findings: Findings) -> Iterator[str]:
    """Layers and units a layer, basis by basis."""
    for basis in run.config.bases:
        name = keys.attribution(basis, run.regimes[0])
        if run.store.has(name):
            layers, width = run.store.get(name).shape
            of_them = f"{plural(width, f'{basis.value} unit')} each, {layers * width:,} units in all"
            yield f"It has {plural(layers, 'layer')} of {of_them}"


def task(run: Run, findings: Findings) -> Iterator[str]:
    """What the model was asked to do, on what."""
    yield f"The task is {findings.task}: {_asked(findings)}"
    yield from prompt(run, findings)
    yield f"An answer counts as 1 where it is {findings.words.success}, as 0 where it is {findings.words.failure}"


def numbers(run: Run, findings: Findings) -> Iterator[str]:
    """The range of operands and the operators; what was not asked."""
    settings = findings.task_settings
    if "low" in settings and "high" in settings:
        yield f"Operands go from {settings['low']} to {settings['high']}"
    yield from operators(run, findings)


def operators(run: Run, findings: Findings) -> Iterator[str]:
    """Which operations were asked, and that no others were."""
    asked = _operators(findings)
    if asked is None:
        yield f"The run asked {findings.task} alone, with {_asked(findings)}"
        return
    without = [name for sign, name in OPERATIONS.items() if sign not in asked]
    said = " and ".join(OPERATIONS[sign] for sign in asked)
    yield f"Only {said} were asked in this run (operators {' '.join(asked)})" + (
        f"; no {_either(without)}, so the run does not say how the model does on them" if without else ""
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


def prompt(run: Run, findings: Findings) -> Iterator[str]:
    """The template and one prompt; none of a task that conceals them."""
    if template := findings.task_settings.get("template"):
        yield f"Prompts have the form {template!r}"
    if not run.task.concealed:
        first = run.records[0]
        asked = last_line(first.example.prompt)
        yield f"One of them is '{asked}', which the model completes with {beginning(first.completion)!r}"


def records(run: Run, findings: Findings) -> Iterator[str]:
    """How many there are, how they were parted, what of them was searched on."""
    total, train = len(run.records), int(run.train.sum())
    yield f"The model was tested on {total:,} records: {train:,} train and {total - train:,} held out"
    yield f"Unablated it succeeds on {k_of_n(findings.task_score)} of them"
    if further := len(run.observed.records) - total:
        also = int((~run.observed.train[total:]).sum())
        yield (
            f"For the accounts of units {further:,} further records were observed, {also:,} of them held out, which "
            f"makes {total - train + also:,} held out in all"
        )
    for search in findings.searches:
        yield (
            f"Ablations ({search.regime.arrow}) were counted on {plural(search.associated_n, 'record')} of D+ and "
            f"{search.unrelated_n:,} of D-"
        )


def basis(run: Run, findings: Findings) -> Iterator[str]:
    """What one unit is."""
    for each in run.config.bases:
        yield f"The units tested are {BASES[each]} (basis {each.value})"
    missing = [each for each in Basis if each not in run.config.bases]
    if missing:
        yield f"Not tested in this run: {'; '.join(BASES[each] for each in missing)}"
    yield from sizes(run, findings)


def seed(run: Run, findings: Findings) -> Iterator[str]:
    """Of every random choice."""
    yield f"The seed is {findings.seed}; every random choice of the run follows from it, and no other was tried"


def baseline(run: Run, findings: Findings) -> Iterator[str]:
    """What an ablated unit is set to, and why that is not zero."""
    chosen = run.config.baseline
    yield f"An ablated unit is set to {BASELINES[chosen]} (baseline {chosen.value})"
    if chosen is not Baseline.ZERO:
        yield (
            "Zero was not used: 0 may lie outside what a unit ever does in the data, so its flips would say more about "
            "the replacement than about the unit"
        )


def phase(run: Run, findings: Findings) -> Iterator[str]:
    """Where in the text units are ablated."""
    yield f"Units are replaced {PHASES[run.task.phase]} (phase {run.task.phase.value})"


def thresholds(run: Run, findings: Findings) -> Iterator[str]:
    """τ, ε, α and the floor of a good rule."""
    yield (
        f"τ is {findings.tau:g}, ε is {findings.epsilon:g} and α is {findings.alpha:g} ({findings.alpha_policy}); "
        f"a rule is of high quality from a held-out MCC of {findings.mcc_floor:g} on"
    )


def directions(run: Run, findings: Findings) -> Iterator[str]:
    """Which flips were searched for, and which were not."""
    words = findings.words
    for regime in run.regimes:
        before, after = (words.success, words.failure) if regime.value else (words.failure, words.success)
        yield f"Searched: {regime.arrow}, units whose ablation turns {before} answers {after}"
    for regime in Regime:
        if regime not in run.regimes:
            yield (
                f"Not searched in this run: {regime.arrow}, so it says nothing about units whose ablation does that; "
                f"`mecharule fork {findings.run} --set regimes={regime.value}` asks"
            )


def generation(run: Run, findings: Findings) -> Iterator[str]:
    """How the model writes its answers, and which count as right."""
    stop = ", ".join(map(repr, run.task.stop)) or "nothing"
    yield (
        f"The model writes greedily, the likeliest token each time, {run.task.max_new_tokens} tokens at "
        "most, and stops "
        f"at {stop}"
    )
    prefix = findings.task_settings.get("prefix", "")
    yield (
        "There are no few-shot examples before the prompt"
        if not prefix
        else f"Before each prompt stands {prefix!r}"
    )
    yield from prompt(run, findings)


def origin(run: Run, findings: Findings) -> Iterator[str]:
    """The name of the run, and when it began."""
    began = next((moment for _, moment, _ in run.store.events()), None)
    when = "" if not began else f", begun {datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC"
    yield f"This is run {findings.run}{when}: {findings.task} with {findings.model}, seed {findings.seed}"


def versions(run: Run, findings: Findings) -> Iterator[str]:
    """What it was made with."""
    made = ", ".join(f"{name} {number}" for name, number in sorted(findings.versions.items()))
    yield f"The run was made with {made}"
    device = findings.numbers
    how = "float32 on the processor (CPU), no GPU" if device is None else f"{device.dtype} on {device.device}"
    yield f"The model computed in {how}"


def proposer(run: Run, findings: Findings) -> Iterator[str]:
    """Whether a language model had a part in it, and what became of the predicates."""
    counts = findings.predicates
    if findings.proposer == "offline":
        yield (
            "No language model was involved in this run: its predicates come from the offline grammar "
            "(proposer offline)"
        )
    else:
        yield f"Predicates were proposed by {findings.proposer} beside the offline grammar"
    yield f"Predicates: {counts.proposed:,} proposed, {counts.refused:,} refused, {counts.kept:,} kept"


def splitter(run: Run, findings: Findings) -> Iterator[str]:
    """The rule that parts D+ from D-, how well it does, and the sizes of both."""
    for search in findings.searches:
        if search.splitter is None:
            yield f"No rule separates D+ from D- ({search.regime.arrow}): the slices were split without one"
            continue
        score = (
            ""
            if search.splitter_train_mcc is None
            else f" (train MCC {search.splitter_train_mcc:.2f}, not held out)"
        )
        yield f"The splitter rule is {search.splitter}{score}: D+ is where it fires, D- where it does not"
        if search.associated_of:
            yield (
                f"D+ holds {search.associated_of:,} train records that the model gets "
                f"{'right' if search.regime.value else 'wrong'} and D- {search.unrelated_of:,}; "
                f"{search.associated_n} and {search.unrelated_n} of them are the compact slices"
            )
        if search.split_note:
            yield f"Why this one: {search.split_note}"
