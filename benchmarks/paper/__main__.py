"""The paper's experiments, made and written down: a page of a table and three sentences, every other table as CSV.

    python -m benchmarks.paper [NAME …] [--seeds N] [--model M] [--set KEY=VALUE …] [--only EXPRESSION] [--runs FOLDER]
                               [--into FOLDER]

Runs lie in the folder `experiments` beside the other runs, or in FOLDER; finished ones are reused.
"""

import argparse
import csv
import hashlib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from pages import TRAINED, made_at, markdown, printed  # noqa: E402

from agent.verbs.options import key_value  # noqa: E402
from mecharule_ops.config import make_config  # noqa: E402
from mecharule_ops.errors import MechaRuleError  # noqa: E402
from mecharule_ops.findings.records import Findings  # noqa: E402
from mecharule_ops.loading.model_names import BUNDLED  # noqa: E402
from mecharule_ops.numbers import plural  # noqa: E402
from mecharule_ops.pages.as_text import csv_of  # noqa: E402
from mecharule_ops.store.run_directory import runs_directory  # noqa: E402

from .finishing import PaperRun, Runs, finished  # noqa: E402
from .plans import plan  # noqa: E402
from .tables import EXPERIMENTS, SCALE_COLUMNS, Rows, Shown  # noqa: E402

SETTINGS = {
    "records": 1000,
    "refinements": 0,
    "controls": 0,
    "controls_for": 8,
    "accounts_for": 0,
    "chains_for": 0,
    "exhaustive_up_to": 300,
}
"""What every experiment changes of the defaults: the paper's one Φ for all units, no random controls beside single
units, brute force where it is cheap."""

TOGETHER = (
    "The paper's experiments",
    ("experiment", "what", "found"),
    "Brackets: a mean over seeds, other draws from one model, with its 95 % t-interval; of differences all six hold "
    "together. Train-chosen is HQ-T as the paper's text has it, test-chosen as its published code has it, all-fit "
    "HQ-F: [paper.md](paper.md). E2 is [search.md](search.md), of 3,000 records.\n\n"
    "The paper (arXiv 2605.03058v2) asks other models. E0, arithmetic on Qwen2-7B, Qwen2-1.5B, GPT-J: localized 135, "
    "40, 310; HQ-T 114, 12, 115; HQ-F 41, 10, 224; all together flip 100 % in 1→0 and 72.8, 48.6, 11.7 % in 0→1. E1, "
    "HQ-T: rule and spectral 399, spectral split 342, random coverage 258, fake rule 124.",
)
"""Title, header and note of a page."""
APART = (
    "The paper's counts, and with flips permuted",
    ("what", "here: MCC ≥ .70", "with flips permuted", "the paper, other models"),
    "*Permuted*: each unit's flips dealt anew, once, over the records of each regime, so that no rule holds; of counts "
    "this small no difference is shown. The paper's text scores HQ-T on labels that choose nothing and calls HQ-F "
    "descriptive; its published code chooses the combination on the held-out labels. In its E1 27 % of rule-bearing "
    "units reach HQ-T under the rule split, 28 % spectral, 22 % random, 51 % under the fake rule.\n\n"
    "Of layer 11 the 16 channels of largest attribution were searched and six of the localized scored; of arith-tiny "
    "every channel was tested alone.\n\n"
    "That the paper's own counts have these causes is an inference: they come from other models, tasks and predicates. "
    "`mecharule run arithmetic -m qwen2-1.5b --published` would print every count beside the permuted one.",
)
AT_SCALE = (
    "The paper's task on 0.5 and 1.5 B",
    SCALE_COLUMNS,
    "Unless said: 0.5 B, `+ − × ÷` of 0–299, four-shot, ablated at generated tokens; the first stays; CHA 0→1: other "
    "slices. Localized (not ruled out): one flip of 16 suffices. Recall: 95 % sure by units drawn, or counted; cost: "
    "forwards but the draw's, of every unit's. Any anchored: flips outside the slices. Rules: anchored, of MCC ≥ .70, "
    "flips permuted. The paper, jailbreaking Qwen2, localized 120 and 199.\n\n[Words](method.md); [the paper's "
    "own](experiments.md).",
)
PAGES = {"experiments": TOGETHER, "paper": APART, "paper_scale": AT_SCALE}
OWN = {"published": "paper", "scale": "paper_scale"}
"""Which page an experiment has to itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Finish the runs of the experiments asked for, write the page and its tables; an error is one line."""
    given = _arguments(arguments)
    folder = Path(given.runs or runs_directory() / "experiments")
    os.environ["MECHARULE_RUNS"] = str(folder)
    try:
        base = make_config(model=given.model, **SETTINGS | dict(given.settings))
        names = given.names or [name for name in EXPERIMENTS if name not in OWN]
        plans = {
            name: {label: same for label, same in planned.items() if re.search(given.only, label)}
            for name in names
            for planned in [plan(name, base, given.seeds, dict(given.settings))]
        }
        runs = finished(plans, folder, _tell)
    except MechaRuleError as error:
        _tell(f"experiments: {error}")
        return error.exit_code
    told = re.sub(r" --(runs|into) ('[^']*'|\S+)", "", shlex.join(["", *(arguments or sys.argv[1:])]))
    for stem in PAGES:
        if some := {name: each for name, each in runs.items() if OWN.get(name, "experiments") == stem}:
            write(Path(given.into), some, f"python -m benchmarks.paper {told[3:]}", stem)
    return 0


def write(folder: Path, runs: Mapping[str, Runs], command: str, stem: str = "experiments") -> None:
    """The page of that name and its tables as CSV, and which runs stand behind them; at scale, with the rows that the
    tables hold of searches not run now."""
    kept = _kept(folder, stem, runs["scale"]) if "scale" in runs else {}
    shown = {name: EXPERIMENTS[name](some, **{"kept": kept} if kept else {}) for name, some in runs.items()}
    tables: dict[str, Rows] = {title: rows for one in shown.values() for title, rows in one.tables.items()}
    tables["runs"] = [*kept.get("runs", ())] + [
        {"experiment": name, "condition": of, "seed": run.config.seed, "run": run.findings.run}
        | {"model": _named(run.findings), "made": made_at(), "command": command.strip()}
        | dict(run.findings.versions)
        for name, some in runs.items()
        for label, same in some.items()
        for run in same
        for of in (_searches(label, run) if name == "scale" else [label])
    ]
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for title, rows in tables.items():
        header = [*dict.fromkeys(name for row in rows for name in row)]
        cells = [[printed(row.get(name)) for name in header] for row in rows]
        (folder / "tables" / f"{stem}-{title}.csv").write_text(csv_of(header, cells), encoding="utf-8")
    text = page(stem, shown, runs, [f"{stem}-{title}" for title in sorted(tables)], command)
    (folder / f"{stem}.md").write_text(text, encoding="utf-8")


def _kept(folder: Path, stem: str, now: Runs) -> dict[str, Rows]:
    """The tables of a page, by title, without the rows that tell of a search run now."""
    own = {search for label, (run,) in now.items() for search in _searches(label, run)}
    tables: dict[str, Rows] = {}
    for file in (folder / "tables").glob(f"{stem}-*.csv"):
        read = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
        tables[file.stem.removeprefix(f"{stem}-")] = [row for row in read if not {*row.values()} & own]
    return tables


def _searches(label: str, run: PaperRun) -> list[str]:
    return [f"{label}, {search.regime.arrow}" for search in run.findings.searches]


def page(
    stem: str, shown: Mapping[str, Shown], runs: Mapping[str, Runs], tables: Sequence[str], command: str
) -> str:
    """What was found in at most three sentences, one table, and how it was made."""
    distinct = {run.findings.run: run for some in runs.values() for same in some.values() for run in same}
    found = [run.findings for run in distinct.values()]
    minutes = sum(sum(one.stages.values()) for one in found) / 60
    records = " or ".join(f"{n:,}" for n in sorted({one.task_score.n for one in found}))
    title, header, note = PAGES[stem]
    lines = [line if name in OWN else (name, *line) for name, one in shown.items() for line in one.lines]
    parts = [
        f"# {title}",
        made_at(),
        " ".join(one.says for one in shown.values() if one.says),
        "\n".join(markdown(header, lines, right=False)),
        note,
        "## How it was made",
        f"`{command.strip()}`: {plural(len(distinct), 'run')} of {' and '.join({one.task: None for one in found})} on "
        f"{' and '.join(dict.fromkeys(map(_named, found)))}, {records} records each, {minutes:.0f} minutes.",
        *([TRAINED] * any(one.model == BUNDLED for one in found)),
        f"Tables: {', '.join(f'[{name}](tables/{name}.csv)' for name in tables)}.",
    ]
    return "\n\n".join(parts) + "\n"


def _named(found: Findings) -> str:
    """A run's model with its hash, and that of its file where it is one."""
    digest = ""
    if (file := Path(found.model)).is_file():
        with file.open("rb") as stream:
            digest = f"; sha256 {hashlib.file_digest(stream, 'sha256').hexdigest()}"
    return f"{found.model} ({found.model_hash}{digest})"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    command = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=__doc__.partition("\n")[0]
    )
    command.add_argument(
        "names", nargs="*", choices=[*EXPERIMENTS, []], metavar="NAME", help=", ".join(EXPERIMENTS)
    )
    command.add_argument("--model", default=BUNDLED)
    command.add_argument("--seeds", type=int, default=5, help="seeds 0 to N−1")
    command.add_argument(
        "--set", dest="settings", action="append", default=[], type=key_value, metavar="KEY=VALUE"
    )
    command.add_argument("--only", default="", help="of the conditions those whose name has this expression")
    command.add_argument("--runs", help="folder of the runs")
    command.add_argument("--into", default=str(ROOT / "docs"), help="folder of the page and its tables")
    return command.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
