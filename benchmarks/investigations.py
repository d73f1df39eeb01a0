"""Investigations with known verdicts: the offline policy against a random one at equal budgets; in docs/agent.md.

On models whose circuit is known, numpy says which inputs each unit flips. From that come questions of three kinds: a
predicate that truly goes with a unit's flips, one that does not, and ones that these records cannot answer (a unit that
flips almost nothing). Each is asked on a fresh copy of a run that holds none of the flips, with the same purse for both
policies. A verdict is right, wrong (the contrary of what is so, or any verdict where there is none), or left open.

With `--units 4` a question is about four units at once and the purse has to be shared among them; each unit's verdict
counts.

    python benchmarks/investigations.py [--write] [--seeds N] [--forwards N] [--units N]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pages import ROOT, made_at, put_between

from agent.investigating.investigation import ChoosingPolicy, Purse
from agent.investigating.investigation_loop import investigate
from agent.investigating.policies import AtRandom, GreedyPolicy
from mecharule_ops.known_answers.calibration import Case, finished
from mecharule_ops.known_answers.known_model import KnownModel
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.subsets import some_of
from mecharule_ops.tasks.rival_families import families_of
from mecharule_ops.types import Basis, Neuron, Phase, Regime

PAGE = ROOT / "docs" / "agent.md"
PROGRAMS = ("hist", "parity", "majority", "repeats", "either", "pattern", "same_ends")
QUIET: Mapping[str, object] = {
    "tau": 0.05,
    "proposals": 0,
    "controls": 0,
    "anchor_for": 0,
    "accounts_for": 0,
    "chains_for": 0,
}
WANTED: Mapping[str, int] = {"supported": 5, "refuted": 5, "open": 2}
"""Questions a program, by the verdict that is right."""
CLEAR, NOTHING, RARE = 0.4, 0.02, 0.005
"""Differences of rates that count as so and as not so; the share of flips below which no one can say when."""
GROUPS = 4
RESAMPLES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A question with the verdicts that are right."""

    program: str
    predicate: str
    right: Mapping[str, str]
    """By unit."""

    @property
    def question(self) -> str:
        """As it is asked."""
        return f"does {' and '.join(self.right)} flip where {self.predicate}?"


def planted(run: Run, known: KnownModel, units: int) -> list[Planted]:
    """The questions of one program, drawn by hash among all that qualify."""
    found: dict[str, list[Planted]] = {right: [] for right in WANTED}
    of_predicate: dict[str, dict[str, str]] = {}
    eligible = run.eligible(Regime.BASELINE_POSITIVE)
    inputs = np.array([record.example.id for record in run.records])[eligible]
    columns = {
        text: fires(run, text)[eligible]
        for family in families_of(run.task, run.columns)
        for text in family.predicates
    }
    for unit in known.units(Basis.MLP_HIDDEN):
        flips = _truth(run, known, unit)[inputs]
        for place, (text, right) in enumerate(_verdicts(flips, columns)):
            if right != "open" or place == 0:
                found[right].append(Planted(program=known.name, predicate=text, right={str(unit): right}))
            of_predicate.setdefault(text, {})[str(unit)] = right
    if units > 1:
        return list(_together(known.name, of_predicate, units))
    return [
        every[place]
        for right, every in found.items()
        for place in some_of(range(len(every)), WANTED[right], of=f"planted {right}")
    ]


def _together(program: str, of_predicate: Mapping[str, Mapping[str, str]], units: int) -> Iterator[Planted]:
    """`GROUPS` questions at most, each of one predicate about units of which one at least has a verdict to be found."""
    fitting = [
        text
        for text, rights in of_predicate.items()
        if len(rights) >= units and "supported" in rights.values()
    ]
    for place in some_of(range(len(fitting)), GROUPS, of="planted together"):
        rights = of_predicate[fitting[place]]
        names = list(rights)
        so = next(name for name in names if rights[name] == "supported")
        others = [name for name in names if name != so]
        drawn = [so, *(others[at] for at in some_of(range(len(others)), units - 1, of=fitting[place]))]
        yield Planted(
            program=program, predicate=fitting[place], right={name: rights[name] for name in sorted(drawn)}
        )


def _truth(run: Run, known: KnownModel, unit: Neuron) -> np.ndarray:
    how = run.intervention(unit.basis)
    value = known.replacement(unit, how.baseline, how.phase, list(run.replacement(how).records))
    held = {(unit.basis, unit.layer, unit.channel): value}
    return known.flips(held, whole=how.phase is Phase.WHOLE).flipped


def _verdicts(flips: np.ndarray, columns: Mapping[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    """(predicate, what is so of it): the predicate of largest difference is so, if that is clear."""
    usable = {text: held for text, held in columns.items() if 0.1 <= held.mean() <= 0.9}
    apart = {text: float(flips[held].mean() - flips[~held].mean()) for text, held in usable.items()}
    if not apart:
        return
    best = max(apart, key=lambda text: apart[text])
    if flips.mean() < RARE:
        yield from ((text, "open") for text in (best, *(text for text in apart if text != best)))
    elif apart[best] >= CLEAR:
        yield best, "supported"
        yield from ((text, "refuted") for text, value in apart.items() if value <= NOTHING)


def score(state: str, right: str) -> int:
    """1 for the right verdict, −1 for a wrong one, 0 where it is left open without need."""
    said = {"supported": "supported", "refuted": "refuted", "weaker": "open"}.get(state, "open")
    if said == right:
        return 1
    return 0 if said == "open" else -1


def asked(path: Path, one: Planted, policy: ChoosingPolicy, forwards: int) -> tuple[list[int], int]:
    """(score of each unit, forwards spent) of one investigation on a copy of the run."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, Path(folder) / path.name))
        with RunStore.open(copy) as store:
            found = investigate(
                Run(store), one.question, Purse(forwards=forwards, seconds=None), policy=policy
            )
    claims = {
        rival["unit"]: rival["state"]
        for rival in found.state.get("rivals", [])
        if rival["by"] == "the question"
    }
    points = [score(claims.get(unit, "open"), right) for unit, right in one.right.items()]
    return points, found.state.get("forwards", 0)


def interval(pairs: Sequence[tuple[str, float]]) -> tuple[float, float, float]:
    """Mean difference a question with its 95 % bootstrap interval over questions, seeds of one question together."""
    by_question: dict[str, list[float]] = {}
    for question, difference in pairs:
        by_question.setdefault(question, []).append(difference)
    means = np.array([np.mean(values) for values in by_question.values()])
    drawn = np.random.default_rng(0).choice(means, (RESAMPLES, len(means))).mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(means.mean()), float(low), float(high)


def main() -> None:
    """Ask everything and print the table."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--write", action="store_true")
    told.add_argument("--seeds", type=int, default=5)
    told.add_argument("--forwards", type=int, default=256)
    told.add_argument("--units", type=int, default=1)
    options = told.parse_args()
    totals: dict[str, Counter[int]] = {"offline policy": Counter(), "random policy": Counter()}
    spent: dict[str, list[int]] = {name: [] for name in totals}
    pairs: list[tuple[str, float]] = []
    questions: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for program in PROGRAMS:
                known = KnownModel(program)
                case = Case(program=program, basis=Basis.MLP_HIDDEN, settings={**QUIET, "seed": seed})
                place = Path(folder) / str(seed)
                place.mkdir(exist_ok=True)
                with finished(case, place, known) as (run, _):
                    every, path = planted(run, known, options.units), run.store.path
                for one in every:
                    policies: Mapping[str, ChoosingPolicy] = {
                        "offline policy": GreedyPolicy(),
                        "random policy": AtRandom(np.random.default_rng(seed)),
                    }
                    got = {
                        name: asked(path, one, policy, options.forwards) for name, policy in policies.items()
                    }
                    for name, (points, forwards) in got.items():
                        totals[name].update(points)
                        spent[name].append(forwards)
                    key = f"{one.program} {one.question}"
                    questions.add(key)
                    pairs.append((key, sum(got["offline policy"][0]) - sum(got["random policy"][0])))
            print(seed, totals, flush=True)
    text = page(totals, spent, pairs, len(questions), options.seeds, options.forwards)
    print(text)
    if options.write:
        mark = f"investigations of {options.units}"
        put_between(PAGE, text, f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->")


def page(
    totals: Mapping[str, Counter[int]],
    spent: Mapping[str, Sequence[int]],
    pairs: Sequence[tuple[str, float]],
    questions: int,
    seeds: int,
    forwards: int,
) -> str:
    """The table in Markdown, and what it shows."""
    mean, low, high = interval(pairs)
    lines = [
        f"{len(pairs)} investigations a policy: {questions} questions on {len(PROGRAMS)} programs over {seeds} "
        f"seeds of the split, each with a purse of {forwards} example-forwards. {made_at()}",
        "",
        "| policy | right verdicts | wrong | left open | right − wrong | median forwards |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, counts in totals.items():
        median = int(np.median(spent[name]))
        net = counts[1] - counts[-1]
        lines.append(f"| {name} | {counts[1]} | {counts[-1]} | {counts[0]} | {net} | {median} |")
    lines += [
        "",
        f"Offline less random, right minus wrong a question: {mean:+.2f} (95 % interval {low:+.2f} to {high:+.2f}, "
        "bootstrap over questions).",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
