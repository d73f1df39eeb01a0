"""Investigations with known verdicts: the offline policy against a random one at equal budgets; in docs/agent.md.

On models whose circuit is known, numpy says which inputs each unit flips. From that come questions of three kinds: a
predicate that truly goes with a unit's flips, one that does not, and ones that these records cannot answer (a unit that
flips almost nothing). Each is asked on a fresh copy of a run that holds none of the flips, with the same purse for both
policies. A verdict is right, wrong (the contrary of what is so, or any verdict where there is none), or left open.

With `--units 4` a question is about four units at once and the purse has to be shared among them; each unit's verdict
counts.

`--llm local/FILE.gguf` adds that model as the one who picks, and the same model with what it is shown shuffled:
verdicts, facts and figures are dealt anew among rivals, board and tests, whose order stays.

    python benchmarks/investigations.py [--write] [--seeds N] [--forwards N] [--units N] [--llm SPEC]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
from pages import ROOT, made_at, put_between

from agent.investigating.investigation import BoardFact, ChoosingPolicy, Purse, Rival, Step
from agent.investigating.investigation_loop import investigate
from agent.investigating.policies import AtRandom, GreedyPolicy
from agent.investigating.with_model import ModelPolicy
from agent.llm.choice import choose, make_model
from agent.llm.retrying import Asker
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


OFFLINE, RANDOM, SHOWN, SHUFFLED = "offline policy", "random policy", "model", "model, results shuffled"


@dataclass(slots=True)
class Shuffled:
    """The same policy, to which verdicts, facts and figures are shown as if they were others'.

    Names, conditions, prices and the order of the tests stay; states of rivals, sentences of the board, and what tests
    tell are each dealt anew. It picks a place, and the test of that place is made.
    """

    policy: ChoosingPolicy
    generator: np.random.Generator

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        """The test at the place that was picked among the shuffled."""
        states = self.generator.permutation([rival["state"] for rival in rivals]).tolist()
        sentences = self.generator.permutation([fact["sentence"] for fact in board]).tolist()
        told = self.generator.permutation([step["bits"] for step in offered]).tolist()
        shown = [Step(**{**step, "bits": bits}) for step, bits in zip(offered, told, strict=True)]
        picked = self.policy.pick(
            shown,
            [Rival(**{**one, "state": state}) for one, state in zip(rivals, states, strict=True)],
            [BoardFact(**{**one, "sentence": said}) for one, said in zip(board, sentences, strict=True)],
        )
        return next((step for step, one in zip(offered, shown, strict=True) if one is picked), None)


@dataclass(slots=True)
class Counted:
    """A policy, with how often there was a choice that costs something, and how often it took the first offered."""

    policy: ChoosingPolicy
    choices: list[bool] = field(default_factory=list)

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        """As the policy picks."""
        picked = self.policy.pick(offered, rivals, board)
        if len(offered) > 1 and all(step["forwards"] for step in offered):
            self.choices.append(picked is offered[0])
        return picked


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One investigation by one policy."""

    question: str
    points: Sequence[int]
    """Of each unit."""
    forwards: int
    first: Sequence[bool]
    """For each choice that cost something, whether it was the first offered."""


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


def policies_of(seed: int, question: str, asker: Asker | None) -> dict[str, Counted]:
    """Who is compared, each new for a question; without a model the first two."""
    made: dict[str, ChoosingPolicy] = {
        OFFLINE: GreedyPolicy(),
        RANDOM: AtRandom(np.random.default_rng(seed)),
    }
    if asker is not None:
        by_model = ModelPolicy(asker=asker, question=question, fallback=GreedyPolicy())
        made |= {SHOWN: by_model, SHUFFLED: Shuffled(by_model, np.random.default_rng(seed))}
    return {name: Counted(policy) for name, policy in made.items()}


def main() -> None:
    """Ask everything and print the table."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--write", action="store_true")
    told.add_argument("--seeds", type=int, default=5)
    told.add_argument("--forwards", type=int, default=256)
    told.add_argument("--units", type=int, default=1)
    told.add_argument("--llm")
    options = told.parse_args()
    model = make_model(choose(options.llm)) if options.llm else None
    asker = None if model is None else Asker(model=model, most_requests=10_000)
    results: dict[str, list[Result]] = {}
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
                    for name, policy in policies_of(seed, one.question, asker).items():
                        points, forwards = asked(path, one, policy, options.forwards)
                        results.setdefault(name, []).append(
                            Result(
                                question=f"{one.program} {one.question}",
                                points=points,
                                forwards=forwards,
                                first=policy.choices,
                            )
                        )
            print(
                seed,
                {name: sum(sum(one.points) for one in each) for name, each in results.items()},
                flush=True,
            )
    text = page(results, options.seeds, options.forwards)
    if asker is not None:
        text += f"\n\nThe model was {Path(options.llm).name}; {asker.bill} in all."
    print(text)
    if options.write:
        mark = f"investigations of {options.units}" + (" with a model" if options.llm else "")
        put_between(PAGE, text, f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->")


def page(results: Mapping[str, Sequence[Result]], seeds: int, forwards: int) -> str:
    """The table in Markdown, and what it shows."""
    asked_of = results[OFFLINE]
    lines = [
        f"{len(asked_of)} investigations a policy: {len({one.question for one in asked_of})} questions on "
        f"{len(PROGRAMS)} programs over {seeds} seed{'s' * (seeds > 1)} of the split, each with a purse of {forwards} "
        f"example-forwards. {made_at()}",
        "",
        "| policy | right verdicts | wrong | left open | right − wrong | median forwards | choices | the first one |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, each in results.items():
        counts = Counter(chain.from_iterable(one.points for one in each))
        first = list(chain.from_iterable(one.first for one in each))
        cells = (
            counts[1],
            counts[-1],
            counts[0],
            counts[1] - counts[-1],
            int(np.median([one.forwards for one in each])),
            len(first),
            sum(first),
        )
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    lines.append("")
    for one, other in ((OFFLINE, RANDOM), (SHOWN, OFFLINE), (SHOWN, SHUFFLED)):
        if one in results and other in results:
            pairs = [
                (mine.question, sum(mine.points) - sum(theirs.points))
                for mine, theirs in zip(results[one], results[other], strict=True)
            ]
            mean, low, high = interval(pairs)
            lines.append(
                f"{one.capitalize()} less {other}, right minus wrong a question: {mean:+.2f} (95 % interval {low:+.2f} "
                f"to {high:+.2f}, bootstrap over questions)."
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
