"""`mecharule experiment NAME`: plans the runs, asks for their price, finishes them, and writes the page."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.verbs.options import ExperimentOptions
from agent.verbs.runner import Approve, Show, config_from
from mecharule_ops.codec import canonical_json
from mecharule_ops.config import RunConfig
from mecharule_ops.errors import UsageError
from mecharule_ops.events import Notice
from mecharule_ops.loading.model_names import resolve
from mecharule_ops.plain_text import write_file
from mecharule_ops.store.run_directory import runs_directory
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Basis, Neuron
from tools.registry import ToolResult

if TYPE_CHECKING:
    from mecharule_ops.experiments.page import Chapter
    from mecharule_ops.experiments.requested_runs import ExperimentRequest, PlannedRun
    from mecharule_ops.experiments.run_folder import Host
    from mecharule_ops.report.document import Document

FOLDER = "experiments"
"""Below the folder of runs; also the name of a page of several experiments."""
SETTINGS: tuple[tuple[str, object], ...] = (
    ("records", 1000),
    ("refinements", 0),
    ("controls", 0),
    ("controls_for", 8),
    ("accounts_for", 0),
    ("chains_for", 0),
    ("exhaustive_up_to", 300),
)
"""What every experiment changes of the defaults: the paper's one Φ for all units, no random controls beside single
units, brute force where it is cheap."""
WIDTH = 120


def _config(asked: ExperimentOptions) -> RunConfig:
    """The main condition of the experiments: their settings, then the user's. Raises `UsageError`."""
    return config_from(**{**asked.chosen, "settings": (*SETTINGS, *asked.settings)})


def dry_run(asked: ExperimentOptions) -> ToolResult:
    """Which runs there would be and which of them are finished; reads the model, asks it nothing."""
    from mecharule_ops.experiments.requested_runs import distinct
    from mecharule_ops.experiments.run_folder import price_of, unfinished

    request = _request(asked, _config(asked))
    runs = distinct([run for planned in _plans(asked, request).values() for run in planned])
    left = unfinished(runs, runs_directory() / FOLDER)
    price = price_of(left, request.units)
    rows = [{"run": run.id, "name": run.name, "finished": run not in left} for run in runs]
    lines = [f"{run.id}  {'finished' if run not in left else 'to do   '}  {run.name}" for run in runs]
    lines.append(
        f"{len(runs)} runs, {len(left)} to do: at most {price.evaluations:,} group ablations; nothing was run"
    )
    data = {"dry_run": True, "runs": rows, "evaluations": price.evaluations}
    return ToolResult(data=data, text="\n".join(lines))


def experiment(asked: ExperimentOptions, show: Show, approve: Approve) -> ToolResult:
    """The page of one experiment or of all; finished runs are reused. Raises what planning and the runs raise."""
    from mecharule_ops.experiments.catalogue import EXPERIMENTS
    from mecharule_ops.experiments.page import Chapter, document
    from mecharule_ops.experiments.run_folder import Host, finish, load

    config, folder = _config(asked), runs_directory() / FOLDER
    host = Host(folder=folder, show=show, clock=time.monotonic, approve=approve, again=asked.again)
    request = _request(asked, config)
    if asked.units is not None:
        return _probe(asked, request, host)
    plans = _plans(asked, request)
    finish(request, [run for runs in plans.values() for run in runs], host)
    chapters = []
    for name, runs in plans.items():
        known, finished = EXPERIMENTS[name], load(runs, folder)
        made = Chapter(
            name=name,
            title=known.title,
            question=known.question,
            command=_command(name, asked, config),
            part=known.part(finished),
            runs=finished,
        )
        chapters.append(made)
    page = document(chapters, machine())
    if asked.out is not None:
        show(Notice(text=f"written: {', '.join(_write(Path(asked.out), asked.name, page, chapters))}"))
    return _result(asked, page, chapters)


def machine() -> str:
    """The class of the machine, without its name."""
    return f"{platform.system()} on {platform.machine()}, {os.cpu_count()} CPU cores, no GPU used"


def _request(asked: ExperimentOptions, config: RunConfig) -> ExperimentRequest:
    """Raises `UsageError` or `ModelUnavailable` before any run is made."""
    from mecharule_ops.experiments.catalogue import chosen
    from mecharule_ops.experiments.requested_runs import ExperimentRequest
    from mecharule_ops.loading.model_names import load

    chosen(asked.name)
    if asked.units is not None and asked.name != "baselines":
        raise UsageError(f"expected --units with the experiment baselines only, got {asked.name}")
    task_of(config)
    resolve(config.model)
    subject = load(config.model, config.device, config.dtype)
    units = {}
    for basis in Basis:
        try:
            units[basis] = subject.n_layers * subject.width(basis)
        except UsageError:
            continue  # An architecture without this basis is searched in the others.
    return ExperimentRequest(base=config, seeds=tuple(range(asked.seeds)), units=units)


def _plans(asked: ExperimentOptions, request: ExperimentRequest) -> dict[str, tuple[PlannedRun, ...]]:
    from mecharule_ops.experiments.catalogue import EXPERIMENTS, chosen

    return {name: EXPERIMENTS[name].plan(request) for name in chosen(asked.name)}


def _probe(asked: ExperimentOptions, request: ExperimentRequest, host: Host) -> ToolResult:
    from mecharule_ops.experiments.page import as_data
    from mecharule_ops.experiments.requested_runs import planned
    from mecharule_ops.experiments.run_folder import probe

    units = [Neuron.parse(text) for text in str(asked.units).split(",")]
    page = probe(planned(request.base, request.base.seed, "probe"), units, host)
    return ToolResult(data=as_data(page), text=_text(asked, page))


def _command(name: str, asked: ExperimentOptions, config: RunConfig) -> str:
    """The command line that repeats one experiment on these settings."""
    usual = config_from(settings=SETTINGS, task=config.task, model=config.model).model_dump(mode="json")
    given = config.model_dump(mode="json")
    changed = "".join(
        f" --set {key}={canonical_json(given[key])}" for key in given if given[key] != usual[key]
    )
    return f"mecharule experiment {name} --task {config.task} -m {config.model} --seeds {asked.seeds}{changed} --yes"


def _result(asked: ExperimentOptions, page: Document, chapters: Sequence[Chapter]) -> ToolResult:
    from mecharule_ops.experiments.page import as_data

    runs = [
        {"experiment": chapter.title, "run": run.planned.id, "label": run.label, "seed": run.seed}
        for chapter in chapters
        for run in chapter.runs
    ]
    return ToolResult(data={**as_data(page), "runs": runs}, text=_text(asked, page))


def _text(asked: ExperimentOptions, page: Document) -> str:
    from mecharule_ops.report.as_text import markdown_of, text_of

    return markdown_of(page).rstrip() if asked.md else text_of(page, WIDTH).rstrip()


def _write(folder: Path, name: str, page: Document, chapters: Sequence[Chapter]) -> tuple[str, ...]:
    """The files written: the brief page, the whole one as HTML, its tables and figures. Raises `StoreError`."""
    from mecharule_ops.experiments.page import brief, figures, tables
    from mecharule_ops.report.as_text import csv_of, markdown_of
    from mecharule_ops.report.drawing import standalone
    from mecharule_ops.report.html import html_of

    stem, drawn = FOLDER if name == "all" or "," in name else f"experiment-{name}", figures(chapters)
    pictures = {figure: (f"figures/{figure}.svg", caption) for figure, (_, caption) in drawn.items()}
    texts = {
        f"{stem}.md": markdown_of(brief(chapters, machine()), pictures),
        f"{stem}.html": html_of(page, drawn),
        **{f"tables/{file}": csv_of(table.header, table.rows) for file, table in tables(chapters).items()},
        **{pictures[figure][0]: standalone(svg) for figure, (svg, _) in drawn.items()},
    }
    return tuple(str(write_file(folder / path, text)) for path, text in texts.items())
