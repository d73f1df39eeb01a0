"""The functions that give a run: a new analysis, one that goes on, or one that is stored.

A table in memory, what a call's `table=` is, is kept as a JSONL file that tasks read like any other.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mecharule_ops import errors, events, plain_text, types
from mecharule_ops.config import make_config
from mecharule_ops.facts.fact import said
from mecharule_ops.loading import model_names, shape
from mecharule_ops.notebook.finished_run import FinishedRun
from mecharule_ops.run import live_run, opening, outlook
from mecharule_ops.store.run_directory import find_run, runs_directory
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.tasks.from_file import check_once
from mecharule_ops.tasks.task_names import findable, task_of

if TYPE_CHECKING:
    from mecharule_ops.loading.model import Subject

Listener = Callable[[events.Event], None]
TABLES = "tables"
"""The folder inside that of the runs where tables given in a call are kept."""


def analyse(
    task: object = "arithmetic",
    *,
    model: Any,
    tokenizer: Any = None,
    bases: str | Sequence[str] = types.Basis.MLP_OUT,
    table: object = None,
    name: str = "",
    progress: bool | Listener = True,
    **settings: Any,
) -> FinishedRun:
    """Analyse a task on a model, to the end; every ablation is stored as it is made. The call is the yes to its price.

    `task` is a name, a file of prompts and answers, `FILE.py:CLASS`, or a table of prompts and answers itself: a pandas
    DataFrame, a split of a Hugging Face Dataset or a list of dicts; reports call it by `name`. `model` is a name, a
    directory, a hub id, or a transformers model that is loaded already, with its `tokenizer`. `table` is such a table
    for a class that reads one.
    `settings` are those of `RunConfig`, such as `regimes=(1,)`, `budget=500`, `task_settings={"high": 99}`.
    `progress` is False for silence, or told every event.
    Cost: that of `mecharule run`; `budget` caps its group ablations.
    Raises `UsageError` for a wrong setting and what a stage raises; what was stored stays, and `resume` goes on.
    """
    if not isinstance(task, str | Path):
        task = table_file(task, runs_directory() / TABLES, name)
    elif name:
        raise errors.UsageError(
            f"expected name= beside a table itself, got the task {task}, which has a name; leave it out"
        )
    if table is not None:
        file = str(table_file(table, runs_directory() / TABLES))
        settings["task_settings"] = {**(settings.get("task_settings") or {}), "file": file}
    named = model if isinstance(model, str | Path) else _name_of(model)
    of = (bases,) if isinstance(bases, str) else bases
    config = make_config(task=findable(str(task)), model=str(named), bases=of, **settings)
    task_of(config).describe()
    subject = _subject(None if isinstance(model, str | Path) else model, tokenizer)
    outlook.check_layer(config, subject or shape.read_shape(model_names.resolve(config.model)))
    return _finished(opening.begun(outlook.settled(config)), subject, progress)


def resume(
    run: str | Path = "last", *, model: Any = None, tokenizer: Any = None, progress: bool | Listener = True
) -> FinishedRun:
    """A run that was stopped or killed, from where it was; no stored ablation is repeated. Raises as `analyse`.

    `last` is the newest that is unfinished. A run of a `model` that was loaded already is given it again.
    """
    path, subject = find_run(str(run), runs_directory(), to_resume=True), _subject(model, tokenizer)
    return _finished(RunStore.open(path), subject, progress)


def open_run(run: str | Path = "last") -> FinishedRun:
    """A finished run by its id, a prefix of one, its path, or `last`. Reads the file alone, no model.

    Raises `UsageError` where there is none, `StoreError` where it cannot be read or has not finished.
    """
    return FinishedRun(find_run(str(run), runs_directory()))


def _finished(
    opened: AbstractContextManager[RunStore], subject: Subject | None, progress: bool | Listener
) -> FinishedRun:
    with opened as store:
        from mecharule_ops.run.analyse import analyse_run as stages

        run = live_run.Run(store)
        if run.config.proposer != "offline":
            raise errors.UsageError(said("door.proposer"))
        if subject is not None:
            run.loaded = run.begun_with(copy.deepcopy(subject) if run.config.given else subject)
        silent_or_live = live_progress() if progress else lambda event: None
        stages(run, progress if callable(progress) else silent_or_live, clock=time.monotonic)
    return FinishedRun(store.path, subject)


def _name_of(model: Any) -> str:
    """Where a loaded model came from. Raises `UsageError` for another object."""
    found = getattr(getattr(model, "config", None), "_name_or_path", "")
    if not hasattr(model, "state_dict") or not found:
        raise errors.UsageError(said("door.model", got=type(model).__name__))
    return str(found)


def _subject(model: Any, tokenizer: Any) -> Subject | None:
    """The loaded model as a subject, None without one. Raises `UsageError` for one without its tokenizer."""
    if model is None and tokenizer is None:
        return None
    if model is None or tokenizer is None:
        raise errors.UsageError("expected a model that is loaded already and its tokenizer=, got one of them")
    from mecharule_ops.loading.model import Subject

    name = _name_of(model)
    return Subject(name=name, directory=Path(name), hf=model.eval(), tokenizer=tokenizer)


def table_file(table: object, folder: Path, name: str = "") -> Path:
    """The JSONL file of the table in the folder, named by its content, so that a table is kept once.

    With a `name` that is its folder. It is a Hugging Face data set, or what pandas makes a data frame of; no index.
    Whole numbers that pandas keeps as floats, as it does beside a missing cell, are whole again.
    Raises `UsageError` for another object, a table without rows, two columns of one name, and cells that JSON cannot
    hold, `StoreError` where it cannot be written.
    """
    import pandas

    given: Any = table
    try:
        given = given.to_pandas() if hasattr(given, "to_pandas") else given
        frame = given if isinstance(given, pandas.DataFrame) else pandas.DataFrame(given, dtype=object)
    except (TypeError, ValueError) as error:
        raise errors.UsageError(said("door.table", got=type(table).__name__)) from error
    check_once(list(map(str, frame.columns)), "the table")
    if frame.empty:
        raise errors.UsageError("expected a table with rows, got none")
    flat = frame.set_axis([*map(str, frame.columns)], axis=1)
    for column in [name for name in flat if pandas.api.types.is_float_dtype(flat[name])]:
        cells = flat[column].astype("Float64")
        if all(each.is_integer() and abs(each) < 2**53 for each in cells.dropna().tolist()):
            flat[column] = cells.astype("Int64")
    flat = flat.astype(object)
    # An array or number of numpy stands as Python has it; anything else as text.
    write = partial(json.dumps, ensure_ascii=False, default=lambda one: getattr(one, "tolist", one.__str__)())
    try:
        text = "".join(f"{write(row)}\n" for row in flat.where(flat.notna(), None).to_dict("records"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    except (TypeError, ValueError) as error:
        raise errors.UsageError(f"expected cells that can be written, got others: {error}") from error
    file = folder / digest / Path(str(name)).name if name else folder / digest
    return plain_text.write_file(f"{file}.jsonl", text).resolve()


def tell_stages(write: Callable[[str], object], event: events.Event) -> None:
    """Write what a finished stage or run says of itself."""
    if isinstance(event, events.StageFinished):
        write(f"{event.stage}: {event.summary}")
    elif isinstance(event, events.RunFinished):
        write(f"run {event.run}: {event.status}")


def live_progress() -> Listener:
    """The listener that fits where the code runs: a notebook's kernel, or anything else; IPython is not imported."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return partial(tell_stages, partial(print, file=sys.stderr, flush=True))
    shown = ipython.display.display({"text/plain": ""}, raw=True, display_id=True)
    return partial(tell_stages, lambda line: shown.update({"text/plain": line}, raw=True))
