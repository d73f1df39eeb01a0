"""Kills, full disks, failing syncs and races: whatever strikes a command, it goes on to what one left alone finds."""

import json
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Self

from bundled_run import QUICK
from outcome_audit import cells

from mecharule_ops.errors import ClaimNotSupported, MechaRuleError
from mecharule_ops.findings.records import to_json
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.run_directory import SUFFIX
from mecharule_ops.store.run_file import is_held
from mecharule_ops.store.run_store import RunStore

from .struck import HUNG_AFTER, Attempt, Mecharule, Mode, Moment

NEVER = Moment()
Case = tuple[str, list[str]]
"""What was done, and what was wrong then, a line each."""
RUN, FROM, INVESTIGATE = "run", "from", "investigate"
QUIET = ("--display", "none")
READERS = 4
ENDED = (0, ClaimNotSupported.exit_code)
KILLS, FAILS = (Mode.KILL, Mode.TORN), (Mode.FULL, Mode.SYNC)
SAID = {Mode.FULL: "disk full from the n-th write on", Mode.SYNC: "syncs fail from the n-th on"}


class Bench:
    """Commands over a fresh folder of runs each, in which a finished run lies but for `run`; a context manager."""

    def __init__(self, folder: Path, finished: Path) -> None:
        self.folder, self.finished = folder, finished
        self.mecharule = Mecharule(folder)
        self._alone: dict[tuple[str, Mode], tuple[Attempt, object]] = {}
        given = [f"{name}={json.dumps(value)}" for name, value in QUICK.items() if name != "model"]
        chosen = [word for setting in given for word in ("--set", setting)]
        self._commands = {
            RUN: (RUN, "arithmetic", "-m", str(QUICK["model"]), *chosen, "--yes", *QUIET),
            FROM: (RUN, "--from", finished.stem, "--tau", "0.35", "--yes", *QUIET),
            INVESTIGATE: (INVESTIGATE, finished.stem, "does a1.h0 flip more where carry(a, b)?", *QUIET),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.mecharule.close()

    def fresh(self, verb: str) -> Path:
        """A folder of runs as it is before a command."""
        runs = self.folder / "runs"
        shutil.rmtree(runs, ignore_errors=True)
        runs.mkdir()
        if verb != RUN:
            shutil.copy(self.finished, runs)
        return runs

    def begin(self, verb: str, runs: Path, moment: Moment = NEVER) -> Attempt:
        """The command itself, not what goes on with it."""
        return self.mecharule.attempt(runs, self._commands[verb], moment)

    def alone(self, verb: str, mode: Mode = Mode.COUNT) -> tuple[Attempt, object]:
        """A command that nothing strikes, and what it comes to; the calls of a mode are counted."""
        if (verb, mode) not in self._alone:
            runs = self.fresh(verb)
            done = self.begin(verb, runs, Moment(mode=mode))
            assert done.code in ENDED, done.err
            self._alone[verb, mode] = done, outcome_of(runs)
        return self._alone[verb, mode]

    def kill(self, verb: str, chance: random.Random) -> Moment:
        """A random time of a command, or a random one of its writes."""
        alone, _ = self.alone(verb)
        if chance.random() < 0.5:
            return Moment(seconds=chance.uniform(0.01, alone.seconds))
        return Moment(mode=chance.choice(KILLS), at=chance.randint(1, alone.calls))

    def struck(self, verb: str, moments: Sequence[Moment]) -> list[str]:
        """What is wrong with a command struck at one moment after another and then left alone."""
        alone, expected = self.alone(verb)
        runs, problems = self.fresh(verb), list[str]()
        for moment in (*moments, NEVER):
            before = stored(runs)
            done = self.mecharule.attempt(runs, self._next(verb, runs), moment)
            problems += [f"{moment}: {problem}" for problem in _wrong(done, moment, runs)]
            added, whole = len(stored(runs)) - len(before), moment == NEVER
            if added not in {sum(done.paid), *([] if whole else [sum(done.paid[:-1])])}:
                problems.append(f"{moment}: {sum(done.paid)} ablations paid, {added} new ones stored")
        if done.code in ENDED and (done.code, outcome_of(runs)) != (alone.code, expected):
            problems.append(f"{verb} {list(moments)}: other findings than when left alone")
        return problems

    def _next(self, verb: str, runs: Path) -> tuple[str, ...]:
        """How a person begins, and goes on: nobody says `--yes` again."""
        new = [path for path in files(runs) if path.name != self.finished.name]
        return ("resume", new[0].stem, *QUIET) if new and verb != INVESTIGATE else self._commands[verb]


def kills(bench: Bench, chance: random.Random, count: int) -> Iterator[Case]:
    """kill −9 at random moments, half of them killed again while they go on."""
    for number in range(count):
        verb = (RUN, FROM, INVESTIGATE)[number % 3]
        moments = [bench.kill(verb, chance) for _ in range(1 + number // 3 % 2)]
        yield f"kill −9 of {verb}", bench.struck(verb, moments)


def disks(bench: Bench, chance: random.Random, count: int) -> Iterator[Case]:
    """From its n-th write, or sync, on every one fails, more often early; then there is room again."""
    for number in range(count):
        verb, mode = (RUN, FROM)[number // 2 % 2], FAILS[number % 2]
        calls = bench.alone(verb, mode)[0].calls
        at = 1 + int(calls * ((number + chance.random()) / count) ** 2)
        yield SAID[mode], bench.struck(verb, [Moment(mode=mode, at=at)])


def races(bench: Bench, chance: random.Random, count: int) -> Iterator[Case]:
    """Two processes resume one run at once, and readers beside a writer; half and half."""
    alone, expected = bench.alone(RUN)
    third = alone.calls // 3
    aside = bench.folder / "aside"
    aside.mkdir()
    with closing(Mecharule(aside)) as other, ThreadPoolExecutor(1 + READERS) as pool:
        for number in range(count):
            runs = bench.fresh(RUN)
            if number % 2:
                writer = pool.submit(bench.begin, RUN, runs)
                readers = [pool.submit(_read, runs, writer) for _ in range(READERS)]
                problems = [line for reader in readers for line in reader.result()]
                yield f"{READERS} readers beside a writer", problems + _wrong(writer.result(), NEVER, runs)
                continue
            bench.begin(RUN, runs, Moment(mode=Mode.KILL, at=chance.randint(third, 2 * third)))
            resumed = ("resume", files(runs)[0].stem, *QUIET)
            both = [pool.submit(one.attempt, runs, resumed, NEVER) for one in (bench.mecharule, other)]
            pair = [one.result() for one in both]
            problems = [
                one.said for one in pair if one.code and not (one.code == 1 and "holds it" in one.said)
            ]
            if all(one.code for one in pair) or outcome_of(runs) != expected:
                problems.append("neither went on, or to other findings than alone")
            yield "two processes resume one run", problems


def _read(runs: Path, writer: Future[Attempt]) -> list[str]:
    """Read whatever run there is, over and over; what was once there must stay as it was."""
    before, wrong = list[str](), list[str]()
    while not writer.done() and not wrong:
        for path in files(runs):
            try:
                with RunStore.open(path, read_only=True) as store:
                    events = [repr(event) for event in store.events()]
                    for name in store.names():
                        store.get(name)  # type: ignore[arg-type]
            except MechaRuleError as error:
                wrong.append(str(error))
            else:
                wrong += ["events that were read before have changed"] * (events[: len(before)] != before)
                before = events
    return wrong


def _wrong(done: Attempt, moment: Moment, runs: Path) -> list[str]:
    """What an attempt said or left that it must not."""
    problems = [f"{path.name} is still locked" for path in files(runs) if is_held(path)]
    killed = done.code == -signal.SIGKILL and (moment.mode in KILLS or moment.seconds < HUNG_AFTER)
    failed = done.code == 1 and moment.mode in FAILS and done.said.startswith("mecharule: expected")
    if "Traceback" in done.err or not (done.code in ENDED or killed or failed):
        problems.append(f"exit code {done.code} after {done.seconds:.0f} s: {done.said}")
    for path in files(runs):
        try:
            RunStore.open(path, read_only=True).close()
        except MechaRuleError as error:
            problems.append(str(error))
    return problems


def files(runs: Path) -> list[Path]:
    """The runs of a folder."""
    return sorted(runs.glob("*" + SUFFIX))


def stored(runs: Path) -> set[tuple[str, bytes, int]]:
    """Every (context, group, example) that any run of a folder holds."""
    return {cell for path in files(runs) for cell in cells(path)}


def outcome_of(runs: Path) -> object:
    """All that a folder's runs hold apart from names and times."""
    return sorted(map(_of_run, files(runs)))


def _of_run(path: Path) -> str:
    with RunStore.open(path, read_only=True) as store:
        findings = to_json(replace(Run(store).findings, run="", stages={}))
    artefacts = "SELECT name, sha256 FROM artefact WHERE name <> 'findings' AND name NOT LIKE 'pace-%'"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        kept = [sorted(connection.execute(query)) for query in (artefacts, "SELECT sha256 FROM certificate")]
    return repr((findings, kept, sorted(cells(path).items())))
