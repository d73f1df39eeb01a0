"""Times the parts of a run and prints one table: what was measured, the goal, and the ratio it stands on.

Speeds are ratios of two things measured in this process, one after the other; a bare time is the median of three
and stands beside its ratio. Goals are those of the project's issues; a figure that misses its goal is printed too.

    python benchmarks/bench.py [--json benchmarks/results.json] [--only SECTION …] [--write]

`--write` puts the lines that have a goal, and when and on what they were measured, into docs/speed.md; where not all
sections are measured anew, those of that file stand beside them.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from engine_figures import decided, evaluation, matrix_peak
from loading_figures import loading
from pages import MADE, ROOT, made_at, markdown, processor, put_between
from run_figures import a_whole_run
from search_figures import exhaustive_tiny, rules, search
from setting import Figure

from mecharule_ops.run.certify import versions

Section = Callable[[], Iterator[Figure]]
SECTIONS: dict[str, Section] = {
    "rules": rules,
    "exhaustive-tiny": exhaustive_tiny,
    "evaluation": evaluation,
    "decided": decided,
    "matrix-peak": matrix_peak,
    "search-smollm2": search,
    "loading": loading,
    "whole-run": a_whole_run,
}


def machine() -> dict[str, object]:
    """The class of the machine, without its name."""
    return {"cpu": processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}


def told(
    sections: Mapping[str, Section], after: Callable[[Sequence[Figure]], None] = lambda figures: None
) -> list[Figure]:
    """Prints the table, and gives its lines; `after` hears what there is after every section."""
    figures, made = list[Figure](), made_at()
    print(f"{'figure':52} {'value':>10} {'goal':>9}  note", flush=True)
    for name, section in sections.items():
        for figure in section():
            figures.append(replace(figure, section=name, made=made))
            value = f"{figure.value:.2f} {figure.unit}"
            print(f"{figure.figure:52} {value:>10} {figure.goal:>9}  {figure.note}", flush=True)
        after(figures)
    return figures


def write(path: Path, figures: Sequence[Figure], about: Mapping[str, object]) -> None:
    """The table as JSON, with what it was measured on."""
    record = {**about, "versions": versions(), "figures": [asdict(figure) for figure in figures]}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def table(figures: Sequence[Figure]) -> str:
    """The lines that have a goal, as Markdown."""
    goals = [each for each in figures if each.goal]
    rows = [(each.figure, f"{each.value:.3g} {each.unit}", each.goal, each.note) for each in goals]
    by_made: dict[str, dict[str, None]] = {}
    for each in goals:
        by_made.setdefault(each.made, {})[each.section] = None
    first, *others = sorted(by_made, key=lambda made: -len(by_made[made]))
    where = first.removeprefix(first.partition(" on ")[0])
    told = (f" {', '.join(by_made[at])}: {at[len(MADE) :].removesuffix(where).rstrip('.')}." for at in others)
    return "\n".join([*markdown(("what", "measured", "goal", ""), rows), "", first + "".join(told)])


def beside(file: Path, figures: Sequence[Figure]) -> list[Figure]:
    """The figures, and those that the file holds of other sections, section by section."""
    anew = {each.section for each in figures}
    held = json.loads(file.read_text())["figures"] if file.exists() else []
    known = [Figure(**each) for each in held if each["section"] not in anew]
    return sorted([*known, *figures], key=lambda each: [*SECTIONS].index(each.section))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--write", action="store_true", help="into docs/speed.md")
    arguments = parser.parse_args()
    figures = told({name: SECTIONS[name] for name in arguments.only})
    figures = beside(arguments.json or ROOT / "benchmarks" / "results.json", figures)
    if arguments.json:
        write(arguments.json, figures, {"machine": machine()})
    if arguments.write:
        put_between(ROOT / "docs" / "speed.md", table(figures))


if __name__ == "__main__":
    main()
