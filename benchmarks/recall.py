"""What each option of the search finds and costs, against testing every unit alone; on real models.

One line a search setting: τ-agonists found of those that brute force finds on the same slices (by point estimate; by
upper bound), groups asked, and example-forwards as a share of brute force's. The last lines search nothing: in order
of the norm of what they write, as many units alone as `guided`'s forwards pay for; and what a cap M on the units that
attribution ranks would keep. Every outcome is kept in a run file a case, so that a second start asks nothing twice.
`--write` keeps the lines of the cases and searches that were run beside those of earlier starts, and makes page and
table anew from all of them.

    python benchmarks/recall.py [CASE …] [--only SEARCH …] [--runs FOLDER] [--write]
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pages import TRAINED, keep_rows, kept_rows, made_at, markdown, put_between, put_rows
from paper.intervals import summed_recall_words
from write_norm import write_norms

from mecharule_ops.cha.group_search import GroupSearch
from mecharule_ops.cha.partition import Order
from mecharule_ops.cha.search import ChaSearch, exhaustive_search, singleton_estimates
from mecharule_ops.cha.settings import ALGORITHM_1, ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.config import make_config
from mecharule_ops.facts.searches import recall_words
from mecharule_ops.loading.model_names import BUNDLED
from mecharule_ops.run.driver import SearchDriver
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import rank_candidates, search_plan
from mecharule_ops.run.preparation import prepare
from mecharule_ops.slices import CompactSlices
from mecharule_ops.store.run_directory import runs_directory
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.thresholds import reaches
from mecharule_ops.types import Basis, Candidates, FlipEstimate, Neuron, Regime, Share

KEPT = Path(__file__).with_suffix(".json")
"""Every line that was measured; a run of some cases or searches replaces those alone."""
PAGE = Path(__file__).parents[1] / "docs" / "search.md"
GUIDED = "guided"
"""What `mecharule run` does; the prediction's cost is in it, a backward as two forwards."""
WRITE_NORM = "write norm"
"""Units tested alone in order of the norm of what they write to the residual stream, at no higher cost than guided."""
CAPS = {"first half by attribution": 2, "first quarter by attribution": 4}
"""What Stage 3 keeps under a cap M of that part of the units, tested alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model, basis and regime."""

    basis: Basis
    regime: Regime
    settings: Mapping[str, object]
    searches: tuple[str, ...] = ()
    """Searches compared; none for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the table."""

    case: str
    search: str
    units: int
    agonists: int
    found: int
    localized: int
    localized_found: int
    groups: int
    share: float
    parted: float
    """The part of `share` that `guided` spends on groups which part units that may cancel."""
    alone: int
    """Units that it tested alone."""
    missed: list[str] = field(default_factory=list)
    made: str = ""
    """Commit and class of machine."""
    reached: list[str] = field(default_factory=list)
    """Names of the τ-agonists."""
    seeds: int = 1
    """Summed over."""


def cases() -> dict[str, Case]:
    """By name; `tiny` ones take seconds, the others minutes."""
    found = {}
    tiny = {"model": "arith-tiny", "records": 3000}
    for seed in range(5):
        for regime in (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE):
            for basis in Basis if seed == 0 else (Basis.MLP_OUT,):
                name = f"arith-tiny {basis.value} {regime.arrow} seed {seed}"
                found[name] = Case(basis=basis, regime=regime, settings={**tiny, "seed": seed})
            name = f"arith-tiny mlp_out k-center {regime.arrow} seed {seed}"
            found[name] = Case(
                basis=Basis.MLP_OUT,
                regime=regime,
                settings={**tiny, "seed": seed, "condition": "rule-spectral"},
                searches=("algorithm 1", "cha", GUIDED, WRITE_NORM),
            )
    for regime in (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE):
        found[f"smollm2-135m attn_head {regime.arrow}"] = Case(
            basis=Basis.ATTN_HEAD, regime=regime, settings={"model": "smollm2-135m"}
        )
    return found


def searches(base: ChaSettings) -> dict[str, ChaSettings]:
    """Algorithm 1, `cha` as a regime has it, and each option of that changed alone."""
    printed = replace(ALGORITHM_1, n_associated=base.n_associated, n_unrelated=base.n_unrelated)
    return {
        "algorithm 1": printed,
        "cha": base,
        "fixed tests": replace(base, testing=printed.testing),
        "attribution order": replace(base, order=Order.ATTRIBUTION),
        "channel order": replace(base, order=Order.CHANNEL),
        "whole layers first": replace(base, largest=None),
        **{f"groups of at most {most}": replace(base, largest=most) for most in (16, 8, 4)},
        "every unit, sequentially": replace(base, largest=1),
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """A case made ready: slices, candidates, and an engine behind the run file."""

    run: Run
    journal: Journal
    case: Case
    slices: CompactSlices
    candidates: Candidates

    @property
    def guided(self) -> tuple[list[GroupSearch], int]:
        """A search by prediction of each layer, and what first order cost."""
        plan = search_plan(self.run, self.journal, self.candidates, self.slices)
        return [*plan.searches(self.candidates, self.case.regime).values()], plan.prediction_forwards

    def driven(self, searches: Sequence[GroupSearch]) -> list[ChaTree]:
        """The trees of the searches of all layers."""
        driver = SearchDriver(
            engine=self.run.engine(self.run.intervention(self.case.basis)),
            basis=self.case.basis,
            regime=self.case.regime,
            associated=self.slices.associated.tolist(),
            unrelated=self.slices.unrelated.tolist(),
        )
        for _ in driver.run(
            {str(layer.layer): one for layer, one in zip(self.candidates.layers, searches, strict=True)}
        ):
            pass
        return [search.tree for search in searches]


def made_ready(name: str, case: Case, folder: Path) -> Bench:
    """The case's run file, its behaviour, rule, slices and ranking; what is stored is not done again."""
    path = folder / f"{name.replace(' ', '-').replace(',', '').replace('→', '')}.mecharule"
    # `cha`, Algorithm 1 and the caps read attribution, whatever a run that is guided asks.
    own = {"bases": (case.basis,), "regimes": (case.regime.value,), "attribution": "always"}
    config = make_config(**case.settings, **own)
    if not path.exists():
        with RunStore.create(path, {"run": path.stem, "settings": config.model_dump(mode="json")}):
            pass
    run = Run(RunStore.open(path))
    journal = Journal(run.store, lambda event: None, time.monotonic)
    prepare(run, journal, None)
    slices = run.slices(case.regime)
    candidates = rank_candidates(run, journal, case.basis, slices)
    journal.flush()
    return Bench(run=run, journal=journal, case=case, slices=slices, candidates=candidates)


def brute_force(bench: Bench) -> dict[Neuron, FlipEstimate]:
    """Every unit tested alone."""
    settings, regime = bench.run.search_settings(bench.slices.regime), bench.case.regime
    trees = bench.driven(
        [exhaustive_search(layer, settings=settings, regime=regime) for layer in bench.candidates.layers]
    )
    return {
        unit: estimate
        for tree in trees
        for unit, estimate in singleton_estimates(tree, bench.case.basis).items()
    }


def measured(name: str, bench: Bench, only: Sequence[str] = ()) -> list[Line]:
    """A line a search setting, or for those named so."""
    settings = bench.run.search_settings(bench.slices.regime)
    regime, basis = bench.case.regime, bench.case.basis
    truth = brute_force(bench)
    reach = {unit for unit, estimate in truth.items() if estimate.reaches(settings.tau)}
    open_ = {
        unit
        for unit, estimate in truth.items()
        if reaches(estimate.ucb(bench.run.config.slice_alpha), settings.tau)
    }

    brute = len(truth) * settings.full_test

    def line(search: str, found: Set[Neuron], groups: int, forwards: int, alone: int, part: int = 0) -> Line:
        return Line(
            case=name,
            search=search,
            units=len(truth),
            agonists=len(reach),
            found=len(found & reach),
            localized=len(open_),
            localized_found=len(found & open_),
            groups=groups,
            share=forwards / brute,
            parted=part / brute,
            alone=alone,
            missed=sorted(map(str, reach - found)),
            made=made_at(),
            reached=sorted(map(str, reach)),
        )

    lines = []
    asked: dict[str, tuple[Sequence[GroupSearch], int]] = {
        label: ([ChaSearch(layer, settings=chosen, regime=regime) for layer in bench.candidates.layers], 0)
        for label, chosen in searches(settings).items()
    }
    asked[GUIDED] = bench.guided
    forwards = 0
    for label, (made, before) in asked.items():
        if only and label not in only and (label != GUIDED or WRITE_NORM not in only):
            continue
        trees = bench.driven(made)
        forwards = before + sum(tree.example_forwards for tree in trees)
        found = {agonist.neuron for tree in trees for agonist in tree.agonists(basis)}
        alone = sum(len(singleton_estimates(tree, basis)) for tree in trees)
        parting = [node.estimate for tree in trees for node in tree.nodes if node.step == "part"]
        part = sum(each.associated.n + each.unrelated.n for each in parting)
        lines.append(line(label, found, sum(tree.queries for tree in trees), forwards, alone, part))
    if not only or WRITE_NORM in only:
        tested = largest_writes(bench, list(truth), forwards // settings.full_test)
        lines.append(
            line(WRITE_NORM, set(tested), len(tested), len(tested) * settings.full_test, len(tested))
        )
    by_score = sorted(
        (-abs(score or 0.0), layer.layer, channel)
        for layer in bench.candidates.layers
        for channel, score in zip(layer.channels.tolist(), layer.scored, strict=True)
    )
    for label, part in CAPS.items():
        if not only or label in only:
            kept = {Neuron(basis, layer, channel) for _, layer, channel in by_score[: len(truth) // part]}
            lines.append(line(label, kept, len(kept), len(kept) * settings.full_test, len(kept)))
    return lines


def largest_writes(bench: Bench, units: Sequence[Neuron], count: int) -> list[Neuron]:
    """So many of the units, those of the largest write norm."""
    norms = write_norms(bench.run.subject, bench.case.basis)
    return sorted(units, key=lambda unit: (-norms[unit.layer, unit.channel], unit))[:count]


def over_seeds(lines: Sequence[Line]) -> list[Line]:
    """One line a case and search, summed over its seeds; the cost is the seeds' mean.

    Seeds share units: `reached` and `missed` name each once, as missed where any seed missed it.
    """
    same: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        same[line.case.split(" seed ")[0], line.search].append(line)
    counts = (*("units", "agonists", "found", "localized", "localized_found"), *("groups", "alone"))
    return [
        Line(
            case=f"{case}, {len(rows)} seeds" if len(rows) > 1 else case,
            search=search,
            share=sum(row.share for row in rows) / len(rows),
            parted=sum(row.parted for row in rows) / len(rows),
            made=" ".join(sorted({row.made for row in rows})),
            seeds=len(rows),
            reached=sorted({unit for row in rows for unit in row.reached}),
            missed=sorted({unit for row in rows for unit in row.missed}),
            **{name: sum(getattr(row, name) for row in rows) for name in counts},
        )
        for (case, search), rows in same.items()
    ]


def page(lines: Sequence[Line]) -> str:
    """A row a case: what each search found of what testing every unit alone finds; all lines lie beside it as CSV."""
    by_case: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in lines:
        if "k-center" not in line.case:
            by_case[line.case][line.search] = line
    shown = (GUIDED, "cha", "algorithm 1")
    heads = ("case", "units", *(head for name in shown for head in (name, "its cost")))
    parting = [found[GUIDED].parted for found in by_case.values() if GUIDED in found] or [0.0]
    rows = []
    for case, found in by_case.items():
        each = (found.get(name) for name in shown)
        cells = [cell for one in each for cell in ((_found(one), f"{one.share:.1%}") if one else "––")]
        by_norm, first = found.get(WRITE_NORM), next(iter(found.values()))
        units = f"{first.units // first.seeds:,}" + (f" × {first.seeds}" if first.seeds > 1 else "")
        rows.append((case, units, *cells, _found(by_norm) if by_norm else "–"))
    said = markdown((*heads, "as many units by write norm"), rows)
    link = put_rows("search", lines, "missed", "made", "alone", "reached", "seeds")
    made = " ".join(sorted({line.made for line in lines}))
    every = f"Every search and option, k-center slices too: {link}. {made}"
    key = (
        "Counts over seeds are sums; their lower bound is over distinct units, one found where no seed missed it. "
        f"To part cancelling units takes `guided` {min(parting):.0%} to {max(parting):.0%} of brute force. "
        "As many units by write norm: tested alone, the largest writes first, for `guided`'s example-forwards."
    )
    bundled = [TRAINED, ""] if any(line.case.startswith(BUNDLED) for line in lines) else []
    return "\n".join([*said, "", key, "", *bundled, every])


def units_found(line: Line) -> Share:
    """Distinct τ-agonists, of them those that no seed missed."""
    return Share(count=len(set(line.reached) - set(line.missed)), n=len(line.reached))


def _found(line: Line) -> str:
    if not line.agonists:
        return "none there"
    found, every = Share(count=line.found, n=line.agonists), line.alone >= line.units
    if every or line.seeds == 1:
        return recall_words(found, every=every)
    return summed_recall_words(found, units_found(line))


def main() -> None:
    known = cases()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", help=f"beginnings of: {'; '.join(known)}")
    parser.add_argument("--runs", type=Path, default=runs_directory() / "benchmark-recall")
    parser.add_argument("--only", nargs="*", default=(), metavar="SEARCH", help="the searches named so")
    parser.add_argument(
        "--write", action="store_true", help=f"put the lines into {KEPT.name} and the page of all in it"
    )
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    for name, case in known.items():
        if given.case and not name.startswith(tuple(given.case)):
            continue
        found = measured(name, made_ready(name, case, given.runs), given.only or case.searches)
        for line in found:
            print(*asdict(line).values(), sep="\t", flush=True)
        lines += found
        if given.write:
            lines = merged(lines)
            put_between(PAGE, page(over_seeds(lines)))


def merged(lines: Sequence[Line]) -> list[Line]:
    """The kept lines with the new ones in their places, written back."""
    kept = {(line.case, line.search): line for line in (*kept_rows(KEPT, Line), *lines)}
    order = list(cases())
    every = sorted(kept.values(), key=lambda line: order.index(line.case))
    keep_rows(KEPT, every)
    return every


if __name__ == "__main__":
    main()
