"""The whole product on every model whose circuit is known, held against numpy; makes docs/known_answers.md.

One line of docs/tables/known-answers.csv a run: every model, basis and direction that has an answer, by each search,
and by `guided` with each baseline and phase of the prompt. Then a search among 100,000 decoys, whose model is compiled
anew (tracr-pypi, a development dependency), a pair of which neither unit flips anything alone, and audits of planted
misses.

    python benchmarks/known_answers.py [--write] [--only MODEL …] [--decoys N]
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path

import numpy as np
from compile_known import make
from pages import ROOT, made_at, markdown, put_between, put_table
from safetensors.numpy import load_file

from mecharule_ops.cha.audit import Audit, AuditSettings
from mecharule_ops.known_answers.calibration import CASES, Calibration, Case, Exactly, finished, run_case
from mecharule_ops.known_answers.known_model import KnownModel
from mecharule_ops.tasks.programs import PROGRAMS
from mecharule_ops.types import (
    Baseline,
    Basis,
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    GroupQuery,
    Neuron,
    Phase,
    Regime,
)

PAGE = ROOT / "docs" / "known_answers.md"
SEARCHES: Mapping[str, Mapping[str, object]] = {
    "guided": {},
    "cha": {"search": "cha"},
    "Algorithm 1 (`--parity`)": {"parity": True},
    "exhaustive": {"search": "exhaustive"},
}
INTERVENTIONS: tuple[Mapping[str, object], ...] = tuple(
    {"baseline": baseline.value, "phase": phase.value}
    for baseline, phase in product(
        (Baseline.ZERO, Baseline.MEAN, Baseline.MEAN_POSITIONAL), (Phase.LAST_PROMPT, Phase.WHOLE)
    )
    if (baseline, phase) != (Baseline.MEAN_POSITIONAL, Phase.LAST_PROMPT)
)
"""Beside what a run does by default."""
SPREADS = ((7,), (2, 2, 2), (1, 1, 1, 1, 1), ())
SEEDS = 200


@dataclass(frozen=True)
class Row:
    """One run, by which search."""

    search: str
    result: Calibration

    @property
    def exact(self) -> bool:
        """Whether the τ-agonists found are those of the oracle, with its counts."""
        return not (self.result.missed or self.result.wrong) and self.result.counts.all


def jobs(models: Sequence[str]) -> list[tuple[str, Case]]:
    """Every run of the page with the search that it stands under."""
    made = []
    for name, basis in product(models, Basis):
        for regime in (Regime.BASELINE_POSITIVE, Regime.BASELINE_NEGATIVE):
            if regime is Regime.BASELINE_NEGATIVE and KnownModel(name).right.all():
                continue
            given = list(SEARCHES.items())
            given += [("guided", settings) for settings in INTERVENTIONS]
            made += [
                (search, Case(program=name, basis=basis, regime=regime, settings=settings))
                for search, settings in given
            ]
    return [*made, ("gates", CASES[-1])] if CASES[-1].program in models else made


def run(job: tuple[str, Case]) -> Row:
    """One of them, in a process of its own."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        return Row(job[0], run_case(job[1], Path(folder)))


def among_decoys(decoys: int) -> str:
    """A sentence: what the search finds among so many neurons that are read by nothing, and what it costs."""
    case = Case(
        program="hist", basis=Basis.MLP_HIDDEN, settings={"anchor_for": 0, "chains_for": 0, "controls": 1}
    )
    known = KnownModel(case.program)
    with tempfile.TemporaryDirectory() as folder:
        planted = {_written(known, unit) for unit in run_case(case, Path(folder), known).planted}
    with tempfile.TemporaryDirectory() as folder:
        make(case.program, Path(folder) / case.program, 2, decoys)
        large = KnownModel(case.program, Path(folder))
        with finished(case, Path(folder), large) as (_, findings):
            (search,) = findings.searches
        found = {_written(large, agonist.neuron) for agonist in search.tau_agonists}
    cost = search.cost
    return (
        f"Among {decoys:,} random hidden neurons that nothing reads, beside those of `hist`, the search finds "
        f"{len(found & planted)} of the {len(planted)} τ-agonists and {len(found - planted) or 'no'} other unit, with "
        f"{cost.queries:,} group ablations: {cost.queries / cost.candidates:.3%} of brute force."
    )


def _written(known: KnownModel, unit: Neuron) -> bytes:
    """What a hidden neuron writes; the compiler puts neurons of one circuit elsewhere among other decoys."""
    weights = load_file(known.folder / known.name / "model.safetensors")
    return bytes(weights[f"transformer.h.{unit.layer}.mlp.c_proj.weight"][unit.channel].tobytes())


def pair_of_backups() -> str:
    """A sentence: two heads of which either suffices."""
    known = KnownModel("backup")
    heads = [unit for unit in known.units(Basis.ATTN_HEAD) if unit.channel < 2]
    held = {(one.basis, one.layer, one.channel): np.zeros(()) for one in heads}
    alone = [int(known.flips({key: value}).flipped.sum()) for key, value in held.items()]
    together = int(known.flips(held).flipped.sum())
    case = Case(program="backup", basis=Basis.ATTN_HEAD, settings={"baseline": "zero"})
    with tempfile.TemporaryDirectory() as folder, finished(case, Path(folder), known) as (measured, findings):
        flips = measured.flips([tuple(heads)], np.arange(len(known.ids)), case.regime)[0]
        claimed = len(findings.searches[0].tau_agonists)
    return (
        f"Two heads of which either suffices flip {alone[0]} and {alone[1]} of {len(known.ids)} inputs alone and "
        f"{together} together; the search claims {claimed or 'none'} of them. `mecharule ablate` measures the pair "
        f"({int(flips.sum())}); `run --given` one finds the other."
    )


def audits() -> list[tuple[str, Exactly, Exactly]]:
    """(how misses are planted, audits whose bound holds, misses found), over `SEEDS` seeds each.

    299 units were pruned in groups of 23; 38 are drawn, and a group of which one is met is reopened.
    """
    everyone = [Neuron(Basis.MLP_OUT, 0, channel) for channel in range(299)]
    groups = [everyone[begin : begin + 23] for begin in range(0, 299, 23)]
    together = {unit: group for group in groups for unit in group}
    settings = AuditSettings(n_associated=40, n_unrelated=40, tau=0.2, budget=38)
    rows = []
    for spread in SPREADS:
        missed = {unit for group, many in zip(groups, spread, strict=False) for unit in group[:many]}
        holds, met = 0, 0
        for seed in range(SEEDS):
            audit = Audit(
                {"all": everyone}, settings=settings, rng=np.random.default_rng(seed), together=together
            )
            while questions := audit.ask():
                for question in questions:
                    audit.tell(_answer(question, everyone[question.channels[0]] in missed))
            met += len(audit.result.found)
            holds += len(missed) - len(audit.result.found) <= audit.result.missed_at_most
        named = " + ".join(map(str, spread)) or "none"
        rows.append((named, Exactly(holds, SEEDS), Exactly(met, SEEDS * len(missed))))
    return rows


def _answer(question: GroupQuery, flips: bool) -> GroupAnswer:
    associated, unrelated = len(question.associated), len(question.unrelated)
    estimate = FlipEstimate(
        associated=FlipCount(flips=associated * flips, n=associated),
        unrelated=FlipCount(flips=0, n=unrelated),
    )
    return GroupAnswer(node=question.node, estimate=estimate)


def total(rows: Iterable[Row], part: Callable[[Calibration], Exactly]) -> Exactly:
    """Summed over runs."""
    tallies = [part(row.result) for row in rows]
    return Exactly(sum(one.k for one in tallies), sum(one.n for one in tallies))


HEADER = (
    *("search", "model", "basis", "direction", "settings", "units", "planted", "found", "missed", "wrong"),
    *("counts", "near ties", "rules", "sayable", "hq_t", "chains", "certificates", "group ablations"),
)


def cells(row: Row) -> tuple[str, ...]:
    """Of the table."""
    one = row.result
    settings = " ".join(str(value) for value in one.case.settings.values())
    case = one.case
    return (
        *(row.search, case.program, case.basis.value, case.regime.arrow, settings, str(one.units)),
        *(str(len(part)) for part in (one.planted, one.found)),
        *(" ".join(map(str, part)) for part in (one.missed, one.wrong)),
        *(str(one.counts), str(one.ties), str(one.rules), str(one.sayable), str(one.good), str(one.chain)),
        *(str(one.certificates), str(one.queries)),
    )


def figures(
    rows: Sequence[Row], besides: Sequence[str], simulated: Sequence[tuple[str, Exactly, Exactly]]
) -> str:
    """What stands between the page's marks."""
    named = {search: [row for row in rows if row.search == search] for search in SEARCHES}
    default = [row for row in named["guided"] if not row.result.case.settings]
    guided = named["guided"]
    gates = [(row.result.mended, row.result.broken) for row in rows if row.search == "gates"]
    lines = []
    for search, some in [*named.items(), ("guided, other baselines and phases", guided)]:
        of = [row for row in some if row in default or search != "guided"]
        of = [row for row in of if row not in default] if "other" in search else of
        planted = sum(len(row.result.planted) for row in of)
        missed = sum(len(row.result.missed) for row in of)
        exact = f"{sum(row.exact for row in of)}/{len(of)}"
        wrong, queries = (sum(len(row.result.wrong) for row in of), sum(row.result.queries for row in of))
        units = sum(row.result.units for row in of)
        lines.append((search, exact, f"{planted - missed}/{planted}", wrong, f"{queries:,}", f"{units:,}"))
    sayable, rules = (total(default, attrgetter(part)) for part in ("sayable", "rules"))
    chains, certificates, counts = (
        total(rows, attrgetter(part)) for part in ("chain", "certificates", "counts")
    )
    exactly = "rules that hold on exactly the inputs that their unit flips, of units that"
    bounds = "; ".join(f"{name}: {holds}, finds {met}" for name, holds, met in simulated)
    measured = [
        ("counts of flips equal the oracle's", counts),
        (f"{exactly} flip some inputs and not others", rules),
        (f"{exactly} a short rule over the run's predicates can describe", sayable),
        ("counts of chains and pairs equal the oracle's", chains),
        ("certificates that match", certificates),
        *(
            ("wrong answers that a gate mends · right ones broken", f"{mended} · {broken}")
            for mended, broken in gates
        ),
        ("audits whose bound holds, by the misses planted in groups of 23", bounds),
    ]
    return "\n".join(
        [
            *markdown(("search", "runs exact", "planted found", "wrong", "group ablations", "units"), lines),
            *("", *markdown(("figure", "measured"), measured), "", *besides, ""),
            f"Every run: {put_table('known-answers', HEADER, [cells(row) for row in rows])}. {made_at()}",
        ]
    )


def main() -> None:
    """Runs all and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make the page")
    parser.add_argument("--only", nargs="+", choices=tuple(PROGRAMS), default=tuple(PROGRAMS))
    parser.add_argument("--decoys", type=int, default=100_000)
    given = parser.parse_args()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        rows = []
        for row in pool.map(run, jobs(given.only)):
            rows.append(row)
            print(*cells(row), sep="\t", flush=True)
    text = figures(rows, [among_decoys(given.decoys), pair_of_backups()], audits())
    print(text)
    if given.write:
        put_between(PAGE, text)


if __name__ == "__main__":
    main()
