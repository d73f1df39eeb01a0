"""How a run was set up, a section a function: its model, task, settings, splitter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from mecharule_ops.facts.fact import SENTENCES, Stated, stated
from mecharule_ops.facts.run_evidence import each_search, rounding
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural
from mecharule_ops.plain_text import beginning, last_line
from mecharule_ops.run.live_run import Run
from mecharule_ops.store import keys
from mecharule_ops.types import Baseline, Basis, Regime

_OPERATIONS: Mapping[str, str] = {
    "+": "additions",
    "-": "subtractions",
    "*": "multiplications",
    "/": "divisions",
}


def model(run: Run, findings: Findings) -> Iterator[Stated]:
    """Its name and hash, its size in units, what it was run with, how many completions rounding may decide."""
    yield stated("model", findings.model, f=findings)
    for basis in run.config.bases:
        name = keys.attribution(basis, run.regimes[0])
        if run.store.has(name):
            layers, width = run.store.get(name).shape
            size = {"layers": plural(layers, "layer"), "each": plural(width, f"{basis.value} unit")}
            yield stated(f"model.{basis.value}", [layers, width], "model.basis", **size, all=layers * width)
    made = ", ".join(f"{name} {number}" for name, number in sorted(findings.versions.items()))
    yield stated("model.versions", dict(findings.versions), made=made)
    device = findings.numbers
    how = "float32 on the processor (CPU), no GPU" if device is None else f"{device.dtype} on {device.device}"
    yield stated("model.computed_in", how, how=how)
    yield rounding(findings)


def task(run: Run, findings: Findings) -> Iterator[Stated]:
    """What the model was asked to do, on what; how it answers; how many records there are and how they were parted."""
    settings, signs = findings.task_settings, _operators(findings)
    names = " and ".join(_OPERATIONS[sign] for sign in signs)
    asked = ", ".join(f"{name} {value!r}" for name, value in settings.items() if value not in ("", None))
    if signs and "low" in settings:
        asked = f"{names} of whole numbers from {settings['low']} to {settings['high']}"
    yield stated("task", findings.task, f=findings, asked=asked)
    if template := settings.get("template"):
        yield stated("task.template", template, template=template)
    if not run.task.concealed:
        example, answered = run.records[0].example, beginning(run.records[0].completion)
        yield stated(
            "task.example", last_line(example.prompt), asked=last_line(example.prompt), answered=answered
        )
    yield stated("task.success", findings.words.success, f=findings)
    if signs:
        without = [name for sign, name in _OPERATIONS.items() if sign not in signs]
        either = " or ".join(filter(None, (", ".join(without[:-1]), *without[-1:])))
        others = f"; no {either}, so the run does not say how the model does on them" if without else ""
        yield stated("task.operators", list(signs), names=names, signs=" ".join(signs), others=others)
    stop = ", ".join(map(repr, run.task.stop)) or "nothing"
    yield stated("task.generation", run.task.max_new_tokens, r=run, stop=stop)
    prefix = settings.get("prefix", "")
    yield stated("task.prefix", prefix, "" if prefix else "task.prefix.none", prefix=prefix)
    total, train = len(run.records), int(run.train.sum())
    records = {"all": total, "train": train, "held_out": total - train}
    yield stated("task.records", records, **records)
    if further := len(run.observed.records) - total:
        also = int((~run.observed.train[total:]).sum())
        records = {"all": further, "held_out": also, "held_out_with_the_others": total - train + also}
        yield stated("task.further_records", records, **records)


def _operators(findings: Findings) -> tuple[str, ...]:
    found = tuple(str(findings.task_settings.get("operators", "")).split())
    return found if set(found) <= _OPERATIONS.keys() else ()


def settings(run: Run, findings: Findings) -> Iterator[Stated]:
    """When the run began; units, replacement, thresholds, directions, seed, proposer; where it leaves the paper."""
    began = next((moment for _, moment, _ in run.store.events()), None)
    when = "" if not began else f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC"
    yield stated("settings.begun", when, f=findings, when=f", begun {when}" if when else "")
    for basis in run.config.bases:
        key = f"settings.{basis.value}"
        yield stated(key, True, "settings.basis", units=SENTENCES[f"basis.{basis}"], basis=basis.value)
    if missing := [each for each in Basis if each not in run.config.bases]:
        units = "; ".join(SENTENCES[f"basis.{each}"] for each in missing)
        yield stated("settings.not_tested", [each.value for each in missing], units=units)
    chosen, phase = run.config.baseline, run.config.phase or run.task.phase
    why = "" if chosen is Baseline.ZERO else SENTENCES["settings.baseline.why"]
    words = SENTENCES[f"baseline.{chosen}"]
    yield stated("settings.baseline", chosen.value, words=words, baseline=chosen.value, why=why)
    yield stated("settings.phase", phase.value, words=SENTENCES[f"phase.{phase}"], phase=phase.value)
    limits = {name: getattr(findings, name) for name in ("tau", "epsilon", "alpha", "mcc_floor")}
    yield stated("settings.thresholds", limits, f=findings)
    for regime in Regime:
        searched = regime in run.regimes
        of = "settings.searched" if searched else "settings.searched.not"
        turns = {
            "before": findings.words.of(bool(regime.value)),
            "after": findings.words.of(not regime.value),
        }
        asks = {"arrow": regime.arrow, "f": findings, "regime": regime.value}
        yield stated(f"settings.searched.{regime.value}", searched, of, **turns, **asks)
    yield stated("settings.seed", findings.seed, f=findings)
    offline = "settings.proposer.offline" if findings.proposer == "offline" else ""
    yield stated("settings.proposer", findings.proposer, offline, f=findings)
    counts = findings.predicates
    kept = {name: getattr(counts, name) for name in ("proposed", "refused", "kept")}
    yield stated("settings.predicates", kept, p=counts)
    for choice in findings.choices:
        said = choice.sentence.removesuffix(".")
        yield stated(f"settings.choice.{choice.setting}", said, "settings.choice", choice=choice, said=said)


def splitter_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """The rule that parts D+ from D-, how well it does, and the sizes of both."""
    key = f"splitter.{search.intervention.basis.value}.{search.regime.value}"
    if search.splitter is None:
        yield stated(key, None, "splitter.none", s=search)
    else:
        mcc = search.splitter_train_mcc
        score = "" if mcc is None else f" (train MCC {mcc:.2f}, not held out)"
        yield stated(key, {"rule": search.splitter, "train_mcc": mcc}, "splitter", s=search, score=score)
    if search.associated_of:
        sizes: dict[str, dict[str, int]] = {
            "associated": {"n": search.associated_n, "of": search.associated_of},
            "unrelated": {"n": search.unrelated_n, "of": search.unrelated_of},
        }
        got = "right" if search.regime.value else "wrong"
        yield stated(f"{key}.sizes", sizes, "splitter.sizes", s=search, got=got)
    if search.split_note:
        yield stated(f"{key}.note", search.split_note, "splitter.note", s=search)


splitter = each_search(splitter_of)
