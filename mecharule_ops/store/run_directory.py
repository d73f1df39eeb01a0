"""Where runs lie and how one is named: a folder of files `ID.mecharule`, ids of four or more hex digits."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from platformdirs import user_data_dir

from mecharule_ops import errors, events, plain_text
from mecharule_ops.store.run_file import is_held
from mecharule_ops.store.run_log import RunLog

SUFFIX = ".mecharule"
_TRIES_A_LENGTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One line of the list of runs."""

    id: str
    path: Path
    when: float | None
    """Unix time at which it ended, of an unfinished one that of its last event; None when the file cannot be read."""
    task: str
    model: str
    status: str
    """How the run ended, or `running`, `interrupted`, or `unreadable: ` and why."""
    shown: int = 0
    """Units that are shown so far."""
    broken: float = 0.0
    """Share of answers kept aside that change without the strongest of them."""
    left: events.TimeLeft | None = None
    """What one that is running still takes, as told last."""


def runs_directory() -> Path:
    """The folder of runs: `MECHARULE_RUNS`, else one in the user's data folder. Raises as `user_folder`."""
    folder = plain_text.user_folder("MECHARULE_RUNS", lambda name: f"{user_data_dir(name)}/runs")
    if folder.is_file():
        raise errors.UsageError(
            f"expected a folder as MECHARULE_RUNS, got the file {folder}; name its folder"
        )
    return folder


def run_path(run: str, folder: Path) -> Path:
    """The file of a run id."""
    return folder / f"{run}{SUFFIX}"


def checkpoints_of(run_file: Path) -> Path:
    """The file beside a run in which a graph of the agent keeps its steps."""
    return run_file.with_suffix(".agent.sqlite")


def new_run_id(folder: Path, token_source: Callable[[int], str]) -> str:
    """An id that no run of the folder has; `token_source(n)` gives n random bytes as hex digits."""
    tokens = (token_source(size) for size in count(2) for _ in range(_TRIES_A_LENGTH))
    return next(token for token in tokens if not run_path(token, folder).exists())


def find_run(wanted: str, folder: Path, *, to_resume: bool = False) -> Path:
    """The file of a run given as a path, an id, a unique prefix of one, or `last`.

    `last` is the run that finished last, or, `to_resume`, the one written to last that is unfinished and at rest; else
    the newest there is.
    Raises `UsageError` when there is none or more than one.
    """
    paths = written_last_first(folder)
    if wanted == "last" and paths:
        ended = {path: _finished_at(path) for path in paths}
        if to_resume:
            paths.sort(key=lambda path: ended[path] is not None or is_held(path))
            return paths[0]
        return max(paths, key=lambda path: ended[path] or 0.0)
    if run_path(wanted, folder) in paths:
        return run_path(wanted, folder)
    if Path(wanted).is_file():
        return Path(wanted)
    found = [path for path in paths if wanted and path.stem.startswith(wanted)]
    if len(found) != 1:
        raise errors.UsageError(
            f"expected a run id, prefix, path or 'last', got {wanted!r}; {_way_out(found, paths, folder)}"
        )
    return found[0]


def _way_out(found: Sequence[Path], paths: Sequence[Path], folder: Path) -> str:
    names = ", ".join(path.stem for path in found or paths[:5])
    if found:
        return f"several runs begin so: {names}; write more of one"
    if not paths:
        return f"no run lies in {folder} yet; `mecharule demo` makes one in a minute"
    return f"in {folder}: {names}{', …' if len(paths) > 5 else ''}; `mecharule runs` lists them"


def _finished_at(path: Path) -> float | None:
    """Unix time at which a run finished; None for one that did not, or cannot be read."""
    try:
        with RunLog.read(path) as log:
            finished = log.latest_with_time(events.RunFinished)
    except errors.StoreError:
        return None
    return None if finished is None else finished[0]


def list_runs(folder: Path) -> tuple[RunSummary, ...]:
    """Every run, by `when`, newest first, whatever reads or writes it since; one that cannot be read is last."""
    found = map(_summary, written_last_first(folder))
    return tuple(sorted(found, key=lambda run: run.when or 0.0, reverse=True))


def written_last_first(folder: Path) -> list[Path]:
    """By the time of the last write, the write-ahead log included; less what is gone by then."""
    written = dict[Path, float]()
    for path in filter(Path.is_file, folder.glob(f"*{SUFFIX}")):
        with suppress(FileNotFoundError):  # Whoever refuses a run takes it away.
            written[path] = _last_write(path)
    return sorted(written, key=lambda path: (written[path], path.name), reverse=True)


def _last_write(path: Path) -> float:
    with suppress(FileNotFoundError):  # Whoever closes a run takes its log away.
        log = path.with_name(f"{path.name}-wal").stat()
        if log.st_size:  # One that holds nothing is what reading leaves behind.
            return max(path.stat().st_mtime, log.st_mtime)
    return path.stat().st_mtime


def _summary(path: Path) -> RunSummary:
    try:
        with RunLog.read(path) as log:
            begun = log.latest_with_time(events.RunStarted)
            finished = log.latest_with_time(events.RunFinished)
            judged = {(one.regime, one.neuron): one for _, one in log.every(events.UnitJudged)}
            when, left = finished[0] if finished else log.written, log.latest(events.TimeLeft)
            asked: Any = log.config.get("settings", {})
    except errors.StoreError as error:
        why = f"unreadable: {error}"
        return RunSummary(id=path.stem, path=path, when=None, task="", model="", status=why)
    shown = [one.flips / one.n for one in judged.values() if one.rank is not None]
    # What holds one that is finished, and has not begun anew since, adds to it alone.
    anew = finished and begun and begun[0] > finished[0]
    adds = finished and not anew and not finished[1].status.startswith("partial")
    held = is_held(path)
    status = finished[1].status if finished and (adds or not held) else "running" if held else "interrupted"
    about = {name: getattr(begun[1], name) if begun else asked.get(name, "") for name in ("task", "model")}
    about |= {"status": status, "shown": len(shown), "broken": max(shown, default=0.0)}
    return RunSummary(id=path.stem, path=path, when=when, left=left, **about)
