"""The whole product on models whose circuit is known, held against what numpy alone says of them.

A case is one run as a person would start it: search, audit, rules, chain, certificates and, where a fault was planted,
gates. Whatever it claims is then counted by the oracle on the same inputs: which units flip, how often, when and
through which others. Near ties, where float64 and float32 may say different tokens, agree with either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.config import make_config
from mecharule_ops.facts.fact import said
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.records import Findings
from mecharule_ops.gates.outcome import LearnedGates
from mecharule_ops.known_answers.known_model import Flips, KnownModel
from mecharule_ops.mechanism.holds import Hold, LayerSizes, held_by
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Basis, FlipEstimate, Neuron, Phase, Regime

if TYPE_CHECKING:
    from mecharule_ops.run.live_run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run on a known model."""

    program: str
    basis: Basis
    regime: Regime = Regime.BASELINE_POSITIVE
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of the run that differ from `SETTINGS`."""
    gated: bool = False
    """Whether gates are learned for what is wrong."""

    def __str__(self) -> str:
        return f"{self.program} {self.basis.value} {self.regime.arrow}"


RARE = 0.01
"""Share of the inputs below which a unit's rule has too few of one kind to be learned from."""
CLAUSES = 8
"""Of a rule that can still be called short, as many as RuleSHAP combines."""
SETTINGS: Mapping[str, object] = {"records": 2000, "chains_for": 2, "accounts_for": 0}
"""All inputs; accounts and controls say nothing that the oracle could be asked."""
CASES = (
    Case(program="hist", basis=Basis.MLP_HIDDEN),
    Case(program="mod4", basis=Basis.MLP_HIDDEN, settings={"tau": 0.05}),
    Case(program="saturated", basis=Basis.ATTN_HEAD),
    Case(program="cancelling", basis=Basis.MLP_HIDDEN),
    Case(program="either", basis=Basis.MLP_HIDDEN, settings={"tau": 0.05}),
    Case(
        program="fault",
        basis=Basis.MLP_HIDDEN,
        regime=Regime.BASELINE_NEGATIVE,
        settings={"baseline": "zero"},
        gated=True,
    ),
)
"""Those of the self-test: one layer and two, units that cancel, a head to which first order is blind, an OR of two
ANDs, units that act through exactly one other, a fault to be mended."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """k of n."""

    k: int = 0
    n: int = 0

    def __str__(self) -> str:
        return f"{self.k}/{self.n}"

    @property
    def all(self) -> bool:
        """Whether k is n."""
        return self.k == self.n

    @classmethod
    def of(cls, outcomes: Sequence[bool]) -> Exactly:
        """How many are true."""
        return cls(sum(outcomes), len(outcomes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a run claimed, beside what is so."""

    case: Case
    units: int
    """Of the basis."""
    planted: tuple[Neuron, ...]
    """τ-agonists of the run's slices by the oracle."""
    tied: tuple[Neuron, ...]
    """Units that are τ-agonists or not by the way near ties go; either claim about them is right."""
    found: tuple[Neuron, ...]
    counts: Exactly
    """Found units whose flips on both slices are the oracle's."""
    ties: int
    """Inputs of the slices that are near ties under some found unit."""
    rules: Exactly
    """Found units with a rule that holds on exactly the inputs they flip, of those with both kinds of inputs."""
    sayable: Exactly
    """The same, of those of them for which some short rule over the run's predicates does."""
    good: int
    """HQ-T: found units whose anchored rule reaches the floors of MCC and coverage held out."""
    chain: Exactly
    """Counts of chains, of a unit with others held and of pairs, that are the oracle's."""
    certificates: Exactly
    """That match when run again on the reference path."""
    queries: int
    """Group ablations."""
    mended: Exactly
    """Test records that were wrong and are right under the gates; 0 of 0 where no gates were learned."""
    broken: int

    @property
    def missed(self) -> tuple[Neuron, ...]:
        """Planted and not found."""
        return tuple(sorted(set(self.planted) - set(self.found)))

    @property
    def wrong(self) -> tuple[Neuron, ...]:
        """Found and not planted."""
        return tuple(sorted(set(self.found) - set(self.planted) - set(self.tied)))

    @property
    def faults(self) -> tuple[str, ...]:
        """What of it is not so, in words; nothing where all is."""
        names = ("counts", "rules", "chain", "mended", "certificates")
        tallies = [(getattr(self, name), said(f"calibration.{name}")) for name in names]
        units = (self.missed, "missed"), (self.wrong, "found though it flips less than τ")
        return (
            *(f"{what}: {', '.join(map(str, some))}" for some, what in units if some),
            *(f"only {tally.k} of {tally.n} {what}" for tally, what in tallies if not tally.all),
            *([f"a gate breaks {self.broken} right answers"] if self.broken else []),
        )


def run_case(case: Case, folder: Path, model: KnownModel | None = None) -> Calibration:
    """Run a case in a file of this folder and hold it against the oracle, on another `model` where one is given.

    Cost: the run, its certificates again on the reference path, and a numpy forward of all inputs a unit.
    """
    known = model or KnownModel(case.program)
    with finished(case, folder, known) as (run, findings):
        return held_against(case, run, findings, known, (_gated(run, case) if case.gated else None))


@contextmanager
def finished(case: Case, folder: Path, known: KnownModel) -> Iterator[tuple[Run, Findings]]:
    """The run of a case in a file of this folder, and what it found."""
    from mecharule_ops.run.analyse import analyse_run
    from mecharule_ops.run.live_run import Run

    config = make_config(
        model=str(known.folder / known.name),
        task="program",
        task_settings={"program": case.program},
        bases=(case.basis,),
        regimes=(int(case.regime.value),),
        **{**SETTINGS, **case.settings},
    )
    name = "-".join((case.program, case.basis.value, str(case.regime.value)))
    path = folder / f"{name}.mecharule"
    with RunStore.create(path, {"run": name, "settings": config.model_dump(mode="json")}) as store:
        run = Run(store)
        yield run, analyse_run(run, lambda event: None, clock=lambda: 0.0)


def held_against(
    case: Case, run: Run, findings: Findings, known: KnownModel, gates: LearnedGates | None = None
) -> Calibration:
    """A finished run beside the oracle."""
    (search,) = findings.searches
    truth = _Truth(run, known, case)
    planted, tied = truth.agonists()
    found = tuple(sorted(agonist.neuron for agonist in search.tau_agonists))
    rules = {rule.neuron: rule for rule in search.anchored}
    exact = {unit: unit in rules and truth.holds_exactly(rules[unit]) for unit in found if truth.varies(unit)}
    test = None if gates is None else gates.test
    return Calibration(
        case=case,
        units=len(known.units(case.basis)),
        planted=planted,
        tied=tied,
        found=found,
        counts=Exactly.of([truth.counted(unit.neuron, unit.estimate) for unit in search.tau_agonists]),
        ties=truth.ties(found),
        rules=Exactly.of(list(exact.values())),
        sayable=Exactly.of([so for unit, so in exact.items() if so or truth.is_sayable(unit)]),
        good=sum(map(findings.is_hq_t, rules.values())),
        chain=Exactly.of([one for chain in findings.chains for one in truth.of_chain(chain)]),
        certificates=_verified(run),
        queries=search.cost.queries,
        mended=Exactly() if test is None else Exactly(test.fixed, test.n - test.before),
        broken=0 if test is None else test.broken,
    )


class _Truth:
    """What the oracle says of the records of one run, each an input of the program by its id."""

    def __init__(self, run: Run, known: KnownModel, case: Case) -> None:
        self._run, self._known, self._case = run, known, case
        self._how = run.intervention(case.basis)
        self._measured = list(run.replacement(self._how).records)
        slices = run.slices(case.regime)
        self._eligible = run.eligible(case.regime)
        self._slices = slices.associated.tolist(), slices.unrelated.tolist()
        self._flips: dict[tuple[tuple[Neuron, ...], str], Flips] = {}
        self._input = np.array([record.example.id for record in run.records])

    def agonists(self) -> tuple[tuple[Neuron, ...], tuple[Neuron, ...]]:
        """(τ-agonists of the slices, units that are some or none by the way near ties go)."""
        planted, open_ = [], []
        for unit in self._known.units(self._case.basis):
            flips = self.flips((unit,))
            least, most = (
                max((float(one[places].mean()) for places in self._slices if places), default=0.0)
                for one in (flips.flipped & flips.sure, flips.flipped | ~flips.sure)
            )
            if self._run.config.reaches(least):
                planted.append(unit)
            elif self._run.config.reaches(most):
                open_.append(unit)
        return tuple(planted), tuple(open_)

    def flips(self, units: tuple[Neuron, ...], hold: Hold | None = None) -> Flips:
        """Records that flip when units are replaced as in the run, while a hold keeps others as they were."""
        key = units, str(hold)
        if key not in self._flips:
            baseline, phase = self._how.baseline, self._how.phase
            values = (self._known.replacement(one, baseline, phase, self._measured) for one in units)
            of_inputs = self._known.flips(
                dict(zip(((one.basis, one.layer, one.channel) for one in units), values, strict=True)),
                () if hold is None else self._held(units, hold),
                whole=phase is Phase.WHOLE,
            )
            self._flips[key] = Flips(of_inputs.flipped[self._input], of_inputs.sure[self._input])
        return self._flips[key]

    def counted(self, unit: Neuron, estimate: FlipEstimate) -> bool:
        """Whether a unit's counts on both slices are so."""
        parts = zip((estimate.associated, estimate.unrelated), self._slices, strict=True)
        return all(
            part.n == len(places) and self.flips((unit,)).allow(part.flips, places) for part, places in parts
        )

    def ties(self, units: Sequence[Neuron]) -> int:
        """Near ties of the slices, over these units."""
        return sum(self.flips((unit,)).ties(places) for unit in units for places in self._slices)

    def varies(self, unit: Neuron) -> bool:
        """Whether it flips some and leaves some of the eligible inputs, `RARE` of them at least."""
        return RARE <= float(self.flips((unit,)).flipped[self._eligible].mean()) <= 1 - RARE

    def holds_exactly(self, rule: UnitRule) -> bool:
        """Whether the rule shown is true on exactly the inputs that the unit flips, of all eligible ones."""
        if rule.rule is None or (rule.chance is not None and rule.chance.failed):
            return False
        fires, flips = rule.rule.fires(self._run.fires), self.flips((rule.neuron,))
        among = self._eligible[flips.sure[self._eligible]]
        return bool((fires[among] == flips.flipped[among]).all())

    def is_sayable(self, unit: Neuron) -> bool:
        """Whether `CLAUSES` clauses of at most two of the run's predicates, negated or not, can say when it flips.

        Those that never fire elsewhere are taken greedily, so a rule that needs others may be overlooked.
        """
        flips = self.flips((unit,))
        among = self._eligible[flips.sure[self._eligible]]
        flipped, columns = flips.flipped[among], self._run.table.matrix[among]
        literals = np.unique(np.concatenate([columns, ~columns], axis=1), axis=1).astype(np.float32)
        first, second = np.nonzero(~(literals.T @ (literals * ~flipped[:, None]) > 0))
        left = flipped.copy()
        for _ in range(CLAUSES):
            covered = (literals.T @ (literals * left[:, None]))[first, second]
            if not left.any() or not len(covered) or not covered.max():
                break
            best = int(covered.argmax())
            left &= ~(literals[:, first[best]] * literals[:, second[best]]).astype(bool)
        return not left.any()

    def of_chain(self, chain: Chain) -> Iterator[bool]:
        """Of each count of a chain whether it is so: alone, with each hold, with each other unit."""
        places = [place for some in self._slices for place in some]
        alone = self.flips((chain.unit,))
        yield alone.allow(chain.mediation.flips.flips, places)
        for entry in chain.mediation.through:
            under = self.flips((chain.unit,), entry.hold)
            gone, new = alone.flipped & ~under.flipped, under.flipped & ~alone.flipped
            sure = alone.sure & under.sure
            yield Flips(gone, sure).allow(entry.gone.count, places)
            yield Flips(new, sure).allow(entry.new.flips, places)
        for pair in chain.pairs:
            other = Neuron.parse(pair.other)
            two, together = self.flips((other,)), self.flips(tuple(sorted((chain.unit, other))))
            either = Flips(alone.flipped | two.flipped, alone.sure & two.sure)
            yield two.allow(pair.other_alone, places)
            yield either.allow(pair.either, places)
            yield together.allow(pair.together, places)

    def _held(self, units: tuple[Neuron, ...], hold: Hold) -> Iterator[Neuron]:
        oracle = self._known.oracle
        channels = len(self._known.units(Basis.MLP_OUT)) // oracle.layers
        shape = LayerSizes(layers=oracle.layers, heads=oracle.heads, channels=channels)
        return held_by(hold, units[0], shape)


def _gated(run: Run, case: Case) -> LearnedGates:
    from mecharule_ops.gates.outcome import GatesAsked
    from mecharule_ops.gates.testing import learn_gates

    return learn_gates(run, GatesAsked(regime=case.regime, basis=case.basis, random=False))


def _verified(run: Run) -> Exactly:
    """How many of the run's certificates match on the reference path."""
    from mecharule_ops.certificates.verification import VerificationStatus, verify
    from mecharule_ops.run.second_run import bench_of_run, rerun

    bench = bench_of_run(run)
    made = [
        verify(one, lambda asked: rerun(bench, asked), numbers=bench.numbers)
        for one in run.store.certificates()
    ]
    return Exactly.of([one.status is VerificationStatus.MATCH for one in made])
