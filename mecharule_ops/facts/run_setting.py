"""How a run was set up and what its unablated model does, a section a function."""

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.config import given_text
from mecharule_ops.facts.fact import SENTENCES, Stated, stated
from mecharule_ops.facts.run_evidence import each_search, rounding
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import k_of_n, plural
from mecharule_ops.plain_text import beginning, last_line, what_differs
from mecharule_ops.rules import algebra, in_words
from mecharule_ops.run import live_run, tabulating
from mecharule_ops.types import Baseline, Regime, Share

SHOWN = 5
"""Records that are told of each kind."""


def setting(findings: Findings) -> Iterator[Stated]:
    """What findings alone say of it: model, versions, task, thresholds, seed, proposer, predicates."""
    yield stated("model", findings.model, f=findings)
    made = ", ".join(f"{name} {number}" for name, number in sorted(findings.versions.items()))
    yield stated("model.versions", dict(findings.versions), made=made)
    settings = findings.task_settings.items()
    asked = ", ".join(f"{name} {value!r}" for name, value in settings if value not in ("", None))
    yield stated("task", findings.task, f=findings, asked=asked)
    limits = {name: getattr(findings, name) for name in ("tau", "epsilon", "alpha", "mcc_floor")}
    yield stated("settings.thresholds", limits, f=findings)
    yield stated("settings.seed", findings.seed, f=findings)
    offline = "settings.proposer.offline" if findings.proposer == "offline" else ""
    yield stated("settings.proposer", findings.proposer, offline, f=findings)
    yield stated("settings.predicates", dict(findings.predicates), **findings.predicates)


def _part(findings: Findings, section: str) -> Iterator[Stated]:
    return (one for one in setting(findings) if one[0].partition(".")[0] == section)


def choices(findings: Findings) -> Iterator[Stated]:
    """Where the paper's text leaves a choice, or its published code differs: what a run of this task does.

    The first ones weigh most on the numbers.
    """
    text = files("mecharule_ops.findings").joinpath("choices.toml").read_text(encoding="utf-8")
    for choice in tomllib.loads(text)["choices"]:
        if choice.get("task", findings.task) == findings.task:
            setting, said = choice["setting"], choice["sentence"].removesuffix(".")
            yield stated(f"settings.choice.{setting}", said, "settings.choice", setting=setting, said=said)


def model(run: live_run.Run, findings: Findings) -> Iterator[Stated]:
    """Its name and hash, what it was run with, its size in units, how many completions rounding may decide."""
    yield from _part(findings, "model")
    for basis in run.config.bases:
        layers, width = run.sizes(basis, run.regimes[0])
        size = {"layers": plural(layers, "layer"), "each": plural(width, f"{basis.value} unit")}
        yield stated(f"model.{basis.value}", [layers, width], "model.basis", **size, all=layers * width)
    how = "float32 on the processor (CPU), no GPU"
    if findings.numbers is not None:
        how = "{dtype} on {device}".format(**findings.numbers)
    yield stated("model.computed_in", how, how=how)
    yield rounding(findings)


def task(run: live_run.Run, findings: Findings) -> Iterator[Stated]:
    """What the model was asked to do, on what; how it answers; how many records there are and how they were parted."""
    yield from _part(findings, "task")
    settings = findings.task_settings
    chat = [str(settings.get(part, "")) for part in ("chat_before", "chat_behind")]
    if template := str(settings.get("template") or "{prompt}" * any(chat)).join(chat):
        yield stated("task.template", template, template=template)
    if not run.task.concealed:
        example, answered = last_line(run.records[0].example.prompt), beginning(run.records[0].completion)
        yield stated("task.example", example, asked=example, answered=answered)
    yield stated("task.success", findings.words.success, f=findings)
    stop = ", ".join(map(repr, run.task.stop)) or "nothing"
    of = "task.generation" + ".offered" * bool(run.records[0].example.offered)
    yield stated("task.generation", run.task.max_new_tokens, of, r=run, stop=stop)
    prefix = settings.get("prefix", "")
    yield stated("task.prefix", prefix, "" if prefix else "task.prefix.none", prefix=prefix)
    total, train = len(run.records), int(run.train.sum())
    records = {"all": total, "train": train, "held_out": total - train}
    yield stated("task.records", records, **records)
    if further := len(run.observed.records) - total:
        also = int((~run.observed.train[total:]).sum())
        records = {"all": further, "held_out": also, "held_out_with_the_others": total - train + also}
        yield stated("task.further_records", records, **records)


def settings(run: live_run.Run, findings: Findings) -> Iterator[Stated]:
    """When the run began; units, replacement, thresholds, directions, seed, proposer; where it leaves the paper."""
    began = next((moment for _, moment, _ in run.store.events()), 0.0)
    when = f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC"
    yield stated("settings.begun", when, f=findings, when=when)
    for basis in run.config.bases:
        parts = {"units": SENTENCES[f"basis.{basis}"], "basis": basis.value}
        yield stated(f"settings.{basis.value}", True, "settings.basis", **parts)
    chosen, phase = run.config.baseline, run.config.phase or run.task.phase
    why = "" if chosen is Baseline.ZERO else SENTENCES["settings.baseline.why"]
    words = SENTENCES[f"baseline.{chosen}"]
    yield stated("settings.baseline", chosen.value, words=words, baseline=chosen.value, why=why)
    yield stated("settings.phase", phase.value, words=SENTENCES[f"phase.{phase}"], phase=phase.value)
    for regime in Regime:
        searched, key = regime in run.regimes, f"settings.searched.{regime.value}"
        before, after = (findings.words.of(bool(label)) for label in (regime.value, not regime.value))
        parts = {"before": before, "after": after, "arrow": regime.arrow, "regime": str(regime.value)}
        of = "settings.searched" if searched else "settings.searched.not"
        yield stated(key, searched, of, f=findings, **parts)
    yield from _part(findings, "settings")
    yield from choices(findings)


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


def accuracy(run: live_run.Run, findings: Findings, where: algebra.Rule | None = None) -> Iterator[Stated]:
    """Its successes in all and by what is asked, on held-out records; records where it succeeds and where it fails.

    `where`: a predicate that narrows them all; raises `UsageError` for one that does not parse.
    """
    here = tabulating.fires(run, where)[: len(run.records)] if where else np.ones(len(run.records), bool)
    words = in_words.rule_in_words(where, run.task) if where else ""
    inside, outside = _share(run.labels[here]), _share(run.labels[~here])
    held_out, key = _share(run.labels[here & ~run.train]), "run.accuracy.where" if where else "run.accuracy"
    how = given_text("", run.config.given).strip() or "unablated"
    parts = {"f": findings, "how": how, "where": words, "share": k_of_n(inside), "outside": k_of_n(outside)}
    value = {"where": encode(inside), "elsewhere": encode(outside)} if where else encode(inside)
    yield stated(key, value, **parts)
    for name, values in {} if where else tabulating.few_valued(run).items():
        column = run.observed.columns[name][: len(run.records)]
        each = {str(value): _share(run.labels[column == value]) for value in values}
        shares = ", ".join(f"{value}: {k_of_n(share)}" for value, share in each.items())
        coded = {value: encode(share) for value, share in each.items()}
        yield stated(f"run.accuracy.by.{name}", coded, "run.accuracy.by", name=name, shares=shares)
    yield stated(f"{key}.held_out", encode(held_out), share=k_of_n(held_out))
    prompts = what_differs([record.example.prompt for record in run.records])
    for label, does in ((False, "fails"), (True, "succeeds")):
        such = [
            f"{prompt} {beginning(record.completion)}"
            for prompt, record, is_here in zip(prompts, run.records, here, strict=True)
            if is_here and record.label == label
        ]
        told = () if run.task.concealed else tuple(such[:SHOWN])
        if where or told:
            key = f"run.{'successes' if label else 'failures'}"
            share = Share(count=len(such), n=int(here.sum()))
            such_as = f", such as: {' · '.join(told)}" if told else ""
            parts = {"how": how, "does": does, "where": f" where {words}" if where else "", "such": such_as}
            yield stated(key, {**encode(share), "such_as": told}, "run.records", share=k_of_n(share), **parts)


def _share(labels: np.ndarray) -> Share:
    return Share(count=int(labels.sum()), n=len(labels))
