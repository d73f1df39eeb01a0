"""One page over one or several experiments: how each was run, what it gave, and what fixes the numbers.

The same document becomes terminal text, Markdown with pictures beside it, one HTML page, or JSON (`report`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mecharule_ops.config import make_config
from mecharule_ops.experiments.requested_runs import PlannedRunDone
from mecharule_ops.experiments.seed_intervals import CONFIDENCE
from mecharule_ops.loading.model_names import BUNDLED
from mecharule_ops.numbers import plural
from mecharule_ops.report.document import Block, Bullets, Document, Section, Table
from mecharule_ops.report.run_blocks import listing

TRAINED = (
    "arith-tiny was trained with a penalty that makes its MLP writes sparse, and 80 % of the problems that it is "
    "tested on were in its training set: its counts and costs say what the program does, not what models are like. "
    "docs/penalty.md sets it beside models trained alike without the penalty."
)
"""Stands on every page of figures of the bundled model."""

Figures = Mapping[str, tuple[str, str]]
"""Name → (SVG, caption)."""

INTERVALS = (
    f"A number with brackets is a mean over seeds with its {CONFIDENCE:.0%} t-interval, cut at 0 where nothing can be "
    "less and shares at 100 %; one without is the same in every seed or known for one alone. A seed draws other "
    "records, another held-out split and other slices of the same task for the same model: the intervals speak of this "
    "model, not of models in general. Localized: the upper bound of the strength reaches τ (the paper's count). "
    "τ-agonist: the point estimate does."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPart:
    """What one experiment shows."""

    blocks: tuple[Block, ...]
    figures: Figures
    says: str = ""
    """What it shows, in a sentence."""
    rows: tuple[tuple[str, str], ...] = ()
    """The figures behind the sentence: (what was counted, what was found)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One experiment on the page."""

    name: str
    title: str
    question: str
    """What it asks, in a sentence, after the paper."""
    command: str
    """The command line that repeats it."""
    part: ExperimentPart
    runs: tuple[PlannedRunDone, ...]


def document(chapters: Sequence[Chapter], machine: str) -> Document:
    """All chapters between what holds for all of them and what fixes their numbers."""
    models = sorted({f"{run.findings.model} at {run.findings.task}" for one in chapters for run in one.runs})
    intro = (
        f"Made by the commands named below, on {', '.join(models)}; nothing here was written by hand.",
        *_trained(chapters),
        INTERVALS,
        "The paper's own figures, beside which these were made, stand in docs/paper_figures.md.",
    )
    middle = [_section(chapter) for chapter in chapters]
    every = _distinct_runs(chapters)
    return Document(
        title="MechaRule experiments",
        sections=(
            Section(title="How to read this", blocks=intro),
            *middle,
            Section(title="What fixes these numbers", blocks=_provenance(every, machine)),
        ),
    )


def brief(chapters: Sequence[Chapter], machine: str) -> Document:
    """The page that is kept: what was shown, one table, how it was made; all else lies beside it as CSV."""
    rows = tuple((chapter.title, *row) for chapter in chapters for row in chapter.part.rows)
    every = _distinct_runs(chapters)
    models = sorted({f"{run.findings.model} at {run.findings.task}" for run in every})
    shown = " ".join(chapter.part.says for chapter in chapters if chapter.part.says)
    return Document(
        title="MechaRule experiments",
        sections=(
            Section(
                title="What they show",
                blocks=(
                    f"On {', '.join(models)}. {shown}",
                    *_trained(chapters),
                    Table(header=("experiment", "what", "found"), rows=rows, align="lll"),
                    INTERVALS,
                ),
            ),
            Section(
                title="How this was made",
                blocks=(
                    Bullets(tuple(_how(chapter) for chapter in chapters)),
                    *_provenance(every, machine)[:-1],
                ),
            ),
            *(
                Section(
                    title=chapter.title,
                    blocks=(chapter.question, f"Tables: {', '.join(_tables(chapter))}."),
                    figures=tuple(chapter.part.figures),
                )
                for chapter in chapters
            ),
        ),
    )


def _trained(chapters: Sequence[Chapter]) -> tuple[str, ...]:
    bundled = any(run.findings.model == BUNDLED for run in _distinct_runs(chapters))
    return (TRAINED,) if bundled else ()


def tables(chapters: Sequence[Chapter]) -> dict[str, Table]:
    """The tables of all chapters by the name of their file, and which runs stand behind them."""
    found = {name: table for chapter in chapters for name, table in _tables(chapter).items()}
    runs = tuple((run.planned.label, str(run.seed), run.planned.id) for run in _distinct_runs(chapters))
    return found | {"experiments-runs.csv": Table(header=("runs", "seed", "id"), rows=runs, align="lll")}


def _tables(chapter: Chapter) -> dict[str, Table]:
    shown = [block for block in chapter.part.blocks if isinstance(block, Table)]
    return {f"experiments-{chapter.name}-{place}.csv": table for place, table in enumerate(shown, 1)}


def _distinct_runs(chapters: Sequence[Chapter]) -> tuple[PlannedRunDone, ...]:
    return tuple({run.planned.id: run for chapter in chapters for run in chapter.runs}.values())


def _how(chapter: Chapter) -> str:
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in chapter.runs}))
    return f"Command: {chapter.command} ({plural(len(chapter.runs), 'run')}, seeds {seeds})."


def figures(chapters: Sequence[Chapter]) -> Figures:
    """The figures of all chapters."""
    return {name: drawn for chapter in chapters for name, drawn in chapter.part.figures.items()}


def as_data(page: Document) -> dict[str, object]:
    """The document as JSON values, tables as header and rows."""
    sections = [
        {"title": section.title, "blocks": [_block_data(block) for block in section.blocks]}
        for section in page.sections
    ]
    return {"title": page.title, "sections": sections}


def _block_data(block: Block) -> object:
    if isinstance(block, Bullets):
        return list(block.items)
    if isinstance(block, Table):
        return {"header": list(block.header), "rows": [list(row) for row in block.rows]}
    return block


def _section(chapter: Chapter) -> Section:
    return Section(
        title=chapter.title,
        blocks=(chapter.question, _how(chapter), *chapter.part.blocks),
        figures=tuple(chapter.part.figures),
    )


def _provenance(runs: Sequence[PlannedRunDone], machine: str) -> tuple[Block, ...]:
    """Hashes, versions, machine, settings that differ from the defaults, and the runs by id."""
    found = [run.findings for run in runs]
    seconds = sum(stage.seconds for findings in found for stage in findings.stages)
    rows = (
        ("machine", machine),
        ("model hash", _each(findings.model_hash for findings in found)),
        ("tokenizer hash", _each(findings.tokenizer_hash for findings in found)),
        ("versions", _each(listing(findings.versions) for findings in found)),
        (
            "wall clock",
            f"{seconds / 60:.0f} min in the stages of {plural(len(runs), 'run')}, last pass of each",
        ),
        ("settings other than the defaults, all runs", _common(runs)),
    )
    ids = ((run.planned.label, str(run.seed), run.planned.id) for run in runs)
    return (
        Table(header=("what", "value"), rows=rows, align="ll"),
        "Every run can be opened by its file, ID.mecharule in the folder experiments beside the other runs: "
        "`mecharule show FILE`, `mecharule why FILE UNIT`, `mecharule neurons FILE`.",
        *_unanchored(runs),
        Table(header=("runs", "seed: id"), rows=_by_label(tuple(ids)), align="ll"),
    )


def _unanchored(runs: Sequence[PlannedRunDone]) -> tuple[str, ...]:
    """What to know of the HQ counts where more units were localized than were anchored."""
    searches = [search for run in runs for search in run.findings.searches]
    short = sum(len(search.anchored) < len(search.agonists) for search in searches)
    if not short:
        return ()
    return (
        f"In {short} of {len(searches)} searches more units were localized than `anchor_for` lets be anchored; their "
        "HQ counts and unions are of the strongest only.",
    )


def _by_label(ids: Sequence[tuple[str, str, str]]) -> tuple[tuple[str, str], ...]:
    rows: dict[str, list[str]] = {}
    for label, seed, name in ids:
        rows.setdefault(label, []).append(f"{seed}: {name}")
    return tuple((label, ", ".join(names)) for label, names in rows.items())


def _each(values: Iterable[str]) -> str:
    """The distinct values, in order."""
    return "; ".join(dict.fromkeys(values))


def _common(runs: Sequence[PlannedRunDone]) -> str:
    """Settings that every run has and that are not the default."""
    dumps = [run.planned.config.model_dump(mode="json") for run in runs]
    default = make_config(model="any").model_dump(mode="json")
    shared = {
        name: str(value)
        for name, value in dumps[0].items()
        if name not in ("model", "task", "seed")
        and value != default[name]
        and all(dump[name] == value for dump in dumps)
    }
    return listing(shared)
