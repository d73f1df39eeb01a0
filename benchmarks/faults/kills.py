"""kill −9 at random moments of every verb that works for a while, half of them killed again while they go on.

A moment is a random time of the verb's own length, or a random one of its writes, cut before it or in its middle.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from outcome_audit import cells

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.events import HypothesisDecided, HypothesisRegistered
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.gates import testing
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.run_directory import SUFFIX
from mecharule_ops.store.run_file import is_held
from mecharule_ops.store.run_store import RunStore

from .forge import Attempt, Forge, Moment, forge
from .result import Figure, Result, Setting
from .shim import Mode, compiled

FULL = 50
SMALL: dict[str, object] = {
    "task": "arithmetic",
    "model": "arith-tiny",
    "bases": ["attn_head"],
    "records": 160,
    "regimes": [1],
    "exhaustive_up_to": 300,
    "slice_size": 24,
    "proposals": 0,
    "controls": 1,
    "controls_for": 1,
    "anchor_for": 1,
    "accounts_for": 0,
    "chains_for": 0,
    "further": 300,
}
"""A run of a few heads, a second or two."""
QUIET = ("--display", "none")
SCRIPT = {
    "json": {
        "predicates": ["carry_at(a, b, 0)"],
        "hypothesis": {
            "statement": "It flips where a carry leaves the units.",
            "condition": "carry_at(a, b, 0)",
            "refuted_by": "Flips without a carry.",
        },
    }
}
Cells = frozenset[tuple[str, bytes, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A command under test."""

    name: str
    before: str
    """The prepared folder it starts from: `nothing`, `halfway` or `finished`."""
    command: tuple[str, ...]
    again: bool
    """Whether a second try is the same command; else it is `resume`."""
    share: int
    """Parts of the kills that it gets."""


def verbs(folder: Path) -> tuple[Verb, ...]:
    """All five, with the files that they read."""
    settings, script = folder / "settings.json", folder / "script.json"
    settings.write_text(json.dumps(SMALL))
    script.write_text(json.dumps({"replies": [SCRIPT]}))
    run = ("run", "arithmetic", "-m", "arith-tiny", "--config", str(settings), "--yes", *QUIET)
    gates = ("gates", "b00d", "--records", "450", "--yes")
    return (
        Verb(name="run", before="nothing", command=run, again=False, share=13),
        Verb(name="resume", before="halfway", command=("resume", "b00d", *QUIET), again=False, share=8),
        Verb(
            name="fork",
            before="finished",
            command=("fork", "b00d", "--tau", "0.3", "--yes", *QUIET),
            again=False,
            share=9,
        ),
        Verb(name="gates", before="finished", command=gates, again=True, share=7),
    )


def kills(setting: Setting) -> Result:
    """Kills shared out among the verbs; each case ends with a second try that is left alone."""
    chance, problems = random.Random(setting.seed), list[str]()
    tally = {"again": 0, "by time": 0, "by write": 0, "had ended": 0, "attempts": 0}
    done: dict[str, int] = {}
    with forge(compiled(setting.folder)) as made:
        bench = _Bench(made, setting.folder)
        for verb in verbs(setting.folder):
            whole = bench.reference(verb)
            for case in range(setting.count(verb.share * FULL // 50)):
                setting.tell(f"kills: {verb.name} {case + 1}")
                struck = bench.case(verb, whole, chance, twice=case % 2 == 1, by_write=chance.random() < 0.5)
                problems += [f"{verb.name}, case {case + 1}: {problem}" for problem in struck.problems]
                done[verb.name] = done.get(verb.name, 0) + 1
                tally["attempts"] += struck.attempts
                tally["again"] += case % 2
                tally["had ended"] += not struck.killed
                tally["by write" if struck.by_write else "by time"] += 1
        shim = made.shim
    return Result(
        tried=f"{sum(done.values())} kills at random moments, {tally['again']} of them killed again while they went "
        "on: " + ", ".join(f"{name} {count}" for name, count in done.items()),
        cases=sum(done.values()),
        figures=(
            Figure(
                what="kills at a random time / at a random write",
                value=f"{tally['by time']} / {tally['by write']}",
            ),
            Figure(what="commands that had ended before the kill came", value=str(tally["had ended"])),
            Figure(what="commands run in all", value=str(tally["attempts"])),
        ),
        problems=tuple(problems),
        not_run=() if shim else ("kills at a write: no C compiler here",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """A verb left alone."""

    seconds: float
    calls: int
    outcome: object


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    problems: tuple[str, ...]
    attempts: int
    killed: bool
    by_write: bool


def prepared(made: Forge, folder: Path) -> None:
    """Folders to start from: `nothing`, a run killed `halfway`, and a `finished` one, each run named b00d."""
    run = next(verb for verb in verbs(folder) if verb.name == "run")
    for name in ("nothing", "halfway", "finished"):
        (folder / name).mkdir()
    made.attempt(folder / "finished", run.command)
    made.attempt(folder / "halfway", (*run.command, "--output", "jsonl"), Moment(event=("node_tested", 3)))
    for name in ("halfway", "finished"):
        for part in (folder / name).iterdir():
            part.rename(part.with_name("b00d" + part.name[4:]))


class _Bench:
    """Folders to start from, made once."""

    def __init__(self, made: Forge, folder: Path) -> None:
        self._forge, self._folder = made, folder
        prepared(made, folder)

    def _fresh(self, verb: Verb) -> Path:
        runs = self._folder / "runs"
        shutil.rmtree(runs, ignore_errors=True)
        return Path(shutil.copytree(self._folder / verb.before, runs))

    def reference(self, verb: Verb) -> _Whole:
        """What the verb comes to when nothing strikes it."""
        runs = self._fresh(verb)
        done = self._forge.attempt(runs, verb.command)
        assert done.code == 0, done.err
        return _Whole(seconds=done.seconds, calls=done.calls, outcome=outcome_of(runs))

    def case(self, verb: Verb, whole: _Whole, chance: random.Random, *, twice: bool, by_write: bool) -> _Case:
        """One kill, perhaps a second, and the second try."""
        runs, problems, killed = self._fresh(verb), list[str](), list[bool]()
        by_write &= whole.calls > 0
        moments: Sequence[Moment] = [_moment(whole, chance, by_write) for _ in range(1 + twice)]
        for number, moment in enumerate((*moments, Moment())):
            command = verb.command if number == 0 else _second(verb, runs)
            before = stored(runs)
            done = self._forge.attempt(runs, command, moment)
            problems += [f"{said} (attempt {number + 1}, {moment})" for said in _wrong(done, before, runs)]
            killed.append(done.killed)
        if done.code != 0:
            problems.append(f"the second try ends with {done.code}: {done.said}")
        elif outcome_of(runs) != whole.outcome:
            problems.append(f"other findings than a run left alone ({moments})")
        return _Case(problems=tuple(problems), attempts=len(killed), killed=killed[0], by_write=by_write)


def _moment(whole: _Whole, chance: random.Random, by_write: bool) -> Moment:
    if by_write:
        return Moment(mode=chance.choice((Mode.KILL, Mode.TORN)), at=chance.randint(1, whole.calls))
    return Moment(seconds=chance.uniform(0.01, whole.seconds))


def _second(verb: Verb, runs: Path) -> tuple[str, ...]:
    """How a person goes on after a kill."""
    new = [path for path in files(runs) if verb.name != "fork" or path.stem != "b00d"]
    if verb.again or not new:
        return verb.command
    return ("resume", new[0].stem, *QUIET)


def _wrong(done: Attempt, before: Cells, runs: Path) -> list[str]:
    """What an attempt left that it must not leave."""
    problems = []
    if done.hung:
        problems.append("it hung")
    if "Traceback" in done.err:
        problems.append(f"a traceback: {done.said}")
    problems += [f"{path.name} is still locked" for path in files(runs) if is_held(path)]
    for path in files(runs):
        try:
            with RunStore.open(path, read_only=True) as store:
                problems += store.check()
        except MechaRuleError as error:
            problems.append(str(error))
    added = len(stored(runs)) - len(before)
    if added != sum(done.paid) and not (done.killed and added == sum(done.paid[:-1])):
        problems.append(f"{sum(done.paid)} ablations paid, {added} new ones stored")
    return problems


def files(runs: Path) -> list[Path]:
    """The runs of a folder."""
    return sorted(runs.glob("*" + SUFFIX))


def stored(runs: Path) -> Cells:
    """Every (context, group, example) that any run of a folder holds."""
    held: set[tuple[str, bytes, int]] = set()
    for path in files(runs):
        with suppress(Exception):
            held |= cells(path).keys()
    return frozenset(held)


def outcome_of(runs: Path) -> object:
    """All that a folder's runs say apart from their names and times."""
    return sorted((_of_run(path) for path in files(runs)), key=repr)


def _of_run(path: Path) -> object:
    with RunStore.open(path, read_only=True) as store:
        run = Run(store)
        findings = to_json(replace(run.findings, run="", stages=()))
        told = [event for _, _, event in store.events()]
        return (
            findings,
            sorted({certificate.id for certificate in store.certificates()}),
            sorted(cells(path).items()),
            sorted({repr(one) for one in told if isinstance(one, HypothesisRegistered | HypothesisDecided)}),
            [],
            [repr(replace(one, run="", opened=0)) for one in testing.stored(run)],
        )
