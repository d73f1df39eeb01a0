"""A disk that fills up, or that fails to sync, at one write after another of a run."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from mecharule_ops.store.run_file import is_held

from .forge import Attempt, Forge, Moment, forge
from .kills import files, outcome_of, verbs
from .result import Figure, Result, Setting
from .shim import Mode, compiled

FULL = 60


def disk(setting: Setting) -> Result:
    """From its n-th write on every write of a run fails; then there is room again and the run is resumed."""
    library = compiled(setting.folder)
    if library is None:
        return Result(
            tried="nothing", cases=0, not_run=("no C compiler here, so no shim for failing writes",)
        )
    run = verbs(setting.folder)[0].command
    problems: list[str] = []
    with forge(library) as made:
        runs = setting.folder / "runs"
        counts, expected = _counts(made, runs, run)
        struck = {mode: _spread(counts[mode], setting) for mode in counts}
        unharmed = 0
        for mode, numbers in struck.items():
            for number in numbers:
                done = _struck(made, runs, run, Moment(mode=mode, at=number))
                problems += [f"{mode.name.lower()} at {number}: {said}" for said in _wrong(done, runs)]
                unharmed += done.code == 0
                problems += _resumed(made, runs, run, expected, f"{mode.name.lower()} at {number}")
            setting.tell(f"disk: {mode.name.lower()} {len(numbers)} done, {len(problems)} wrong")
    full, sync = len(struck[Mode.FULL]), len(struck[Mode.SYNC])
    return Result(
        tried=f"a run whose writes fail as on a full disk from the n-th on, for {full} n of {counts[Mode.FULL]:,}, and "
        f"whose syncs fail from the n-th on, for {sync} n of {counts[Mode.SYNC]:,}; resumed with room, "
        "and compared with a run left alone",
        cases=full + sync,
        figures=(
            Figure(what="ended by one line", value=str(full + sync - unharmed)),
            Figure(what="not stopped by it, since only the last syncs failed", value=str(unharmed)),
        ),
        problems=tuple(problems),
        not_run=tuple([f"the other {counts[Mode.FULL] - full:,} writes"] * (full < counts[Mode.FULL])),
    )


def _counts(made: Forge, runs: Path, run: tuple[str, ...]) -> tuple[dict[Mode, int], object]:
    """Writes and syncs of a run left alone, and what it found."""
    counts = {}
    for mode in (Mode.FULL, Mode.SYNC):
        whole = _struck(made, runs, run, Moment(mode=mode, at=1 << 40))
        assert whole.code == 0, whole.err
        counts[mode] = whole.calls
    return counts, outcome_of(runs)


def _spread(count: int, setting: Setting) -> list[int]:
    """Numbers over the whole length, the first ones among them."""
    most = min(count, setting.count(FULL, least=3))
    chance = random.Random(setting.seed)
    first = list(range(1, 1 + most // 4))
    rest = [number for number in range(1, count + 1) if number not in first]
    return first + sorted(chance.sample(rest, min(len(rest), most - len(first))))


def _struck(made: Forge, runs: Path, run: tuple[str, ...], moment: Moment) -> Attempt:
    shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir()
    return made.attempt(runs, run, moment)


def _wrong(done: Attempt, runs: Path) -> list[str]:
    problems = [f"{path.name} is still locked" for path in files(runs) if is_held(path)]
    if done.hung:
        problems.append("it hung")
    if done.code not in (0, 1) or "Traceback" in done.err:
        problems.append(f"exit code {done.code}: {done.said}")
    if done.code == 1 and not done.said.startswith("mecharule: expected"):
        problems.append(f"another last line: {done.said}")
    return problems


def _resumed(made: Forge, runs: Path, run: tuple[str, ...], expected: object, name: str) -> list[str]:
    found = files(runs)
    again = made.attempt(runs, ("resume", found[0].stem, "--display", "none") if found else run)
    if again.code != 0:
        return [f"{name}, then resumed: exit code {again.code}: {again.said}"]
    return [] if outcome_of(runs) == expected else [f"{name}, then resumed: other findings"]
