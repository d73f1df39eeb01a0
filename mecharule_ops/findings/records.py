"""What a finished run found: the data that a report, a certificate and an answer read (paper, §5).

The pipeline fills these; nothing here computes with a model. Counts are kept as counts, so that every percentage a
person reads can be printed with its k/n. `counts` and `controls` hold the pieces.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mecharule_ops import codec, confidence, nodes, thresholds, types
from mecharule_ops.errors import UsageError
from mecharule_ops.findings import counts
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.findings.evidence import Certainty, Evidence, HeldOut, evidence_of
from mecharule_ops.rules.families import COVERAGE_FLOOR, THRESHOLD, UnitRule, is_hq_test

FORMAT = "mecharule-findings/4"
"""Named in the text, so that an older reader refuses a newer shape in one line."""
_Part = TypeVar("_Part", AgonistControls, Account, UnitRule, counts.Resampled)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """One search: one intervention, one regime, one split condition."""

    intervention: types.Intervention
    regime: types.Regime
    condition: str
    """The E1 condition, for example `rule-spectral`."""
    splitter: str | None
    """The splitter rule r₀ as printed; None for a split without a rule."""
    splitter_train_mcc: float | None
    associated_n: int
    """Examples of the compact slice D⁺."""
    unrelated_n: int
    """Examples of the compact slice D⁻."""
    slice_status: str
    """One sentence on the slices' size and power."""
    status: tuple[str, ...]
    """How the search ended, in sentences."""
    agonists: tuple[types.Agonist, ...]
    """Every localized unit."""
    cost: counts.SearchCost
    singletons_tested: int
    """Units that the search tested alone."""
    strongest: counts.UnitStrength | None
    """The strongest unit that the search or the exhaustive run tested alone, localized or not."""
    basis_units: int | None = None
    """Units of the whole basis, of which `cost.candidates` were searched; None when not counted."""
    whole_layers: tuple[counts.WholeLayer, ...] = ()
    anchored: tuple[UnitRule, ...] = ()
    accounts: tuple[Account, ...] = ()
    """When and why the strongest τ-agonists flip."""
    controls: tuple[AgonistControls, ...] = ()
    union: types.Share | None = None
    """D_b records outside the slices flipped by at least one anchored unit; None when not run."""
    drawn_union: types.Share | None = None
    """The same for as many units drawn from all of the same layers, found ones too."""
    layer_union: tuple[counts.LayerCoverage, ...] = ()
    """Of each layer, on all of D_b."""
    tree: tuple[nodes.Node, ...] = ()
    exhaustive: tuple[counts.UnitStrength, ...] = ()
    """Every candidate tested alone on the same slices: the ground truth of experiment E2; empty where it did not run.
    """
    recall: types.Share | None = None
    """Localized units of those whose upper bound reaches τ when tested alone; None where these were not."""
    audit: counts.SearchAudit | None = None
    """What the search missed at most; None when brute force ran or nothing was pruned."""
    associated_of: int = 0
    """Train records of D⁺ from which the slice was taken."""
    unrelated_of: int = 0
    at_random: bool = False
    """Whether both slices were drawn uniformly, so that their bounds hold for D⁺ and D⁻ of the train split."""
    split_note: str = ""
    """Why the splitter is not the rule of highest MCC; empty where it is."""
    held_out: HeldOut | None = None
    """Flips of its τ-agonists and of random units on records that chose none; None where that was not measured."""
    resampled: tuple[counts.Resampled, ...] = ()
    """Of its τ-agonists, from stored outcomes."""

    @property
    def rules(self) -> list[UnitRule]:
        """Every rule that was learned for one of its units, shown or not."""
        families = (rule for account in self.accounts for rule in account.families)
        return [rule for rule in (*self.anchored, *families) if rule.rule is not None]

    @property
    def untested(self) -> int:
        """Units searched that were not tested alone."""
        return max(0, self.cost.candidates - self.singletons_tested)

    @property
    def nothing_searched(self) -> bool:
        """Whether no group was ever asked, for want of records; then it says nothing about any unit."""
        return set(self.status) <= {types.SearchStatus.UNDERPOWERED.value, types.SearchStatus.EMPTY.value}

    @property
    def tau_agonists(self) -> tuple[types.Agonist, ...]:
        """Localized units whose point estimate reaches τ."""
        return tuple(agonist for agonist in self.agonists if agonist.is_tau_agonist)

    def explained(self, alpha: float) -> list[types.Neuron]:
        """Whose flips are explained: the shown units by rank; where nothing could be shown, the τ-agonists."""
        if self.held_out is None or not self.held_out.tells(alpha):
            return [agonist.neuron for agonist in self.tau_agonists]
        return [unit for unit, each in evidence_of(self.held_out, alpha).items() if each.rank]

    @property
    def bounded(self) -> int:
        """Units over which a bound on D⁺ or D⁻ has to hold at once; 0 where slices that are covers allow none."""
        return self.cost.candidates if self.at_random else 0

    def missed(self, tau: float) -> tuple[counts.UnitStrength, ...]:
        """Units with Ê ≥ τ when every unit is tested alone that the search did not localize."""
        found = {agonist.neuron for agonist in self.agonists}
        return tuple(one for one in self.exhaustive if one.estimate.reaches(tau) and one.neuron not in found)

    @property
    def strongest_layer(self) -> counts.WholeLayer | None:
        """The layer whose joint ablation flips most for sure; the earliest on a tie."""
        return max(self.whole_layers, key=lambda whole: (whole.least, -whole.layer), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What another run of the same settings shows with other draws of records, held-out part and slices."""

    run: str
    seed: int
    differs: tuple[str, ...]
    """Settings of the task that differ too, such as `prefix`."""
    shown: Mapping[str, tuple[types.Neuron, ...]]
    """By the direction of their flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One localized unit in one regime, with all that was found about it; what was not made is None."""

    search: SearchOutcome
    """The search that localized it."""
    agonist: types.Agonist
    """Its flips on the compact slices."""
    evidence: Evidence | None
    """Its flips on held-out records, and what they show; None where it was not ablated on them."""
    lower: float
    """Lower bound of its strength over both slices of all units searched, in [0, 1]."""
    rule: UnitRule | None
    controls: AgonistControls | None
    account: Account | None
    chain: Chain | None
    resampled: counts.Resampled | None = None
    again: types.Share | None = None
    """Of more runs with other draws those that show it; None without any."""

    @property
    def rules(self) -> list[UnitRule]:
        """The families of its account, then the anchored rule where one was sought."""
        return [*(self.account.families if self.account else ()), *([self.rule] if self.rule else [])]

    @property
    def neuron(self) -> types.Neuron:
        """Its name."""
        return self.agonist.neuron

    @property
    def estimate(self) -> types.FlipEstimate:
        """Its flips on the compact slices."""
        return self.agonist.estimate

    @property
    def is_tau_agonist(self) -> bool:
        """Whether the point estimate reaches τ."""
        return self.agonist.is_tau_agonist

    @property
    def is_shown(self) -> bool:
        """Whether it is told apart from random units: only then it is named, ranked and counted as found."""
        return self.evidence is not None and self.evidence.certainty is Certainty.SHOWN

    @property
    def counts_show_it(self) -> bool:
        """Whether its lower bound reaches τ too."""
        return thresholds.reaches(self.lower, self.agonist.tau)

    @property
    def depends_on_baseline(self) -> bool:
        """Whether another baseline puts it clearly below τ; False where none was tried."""
        controls = self.controls
        return controls is not None and controls.depends_on_baseline(self.estimate, self.agonist.tau)

    @property
    def weak_points(self) -> tuple[str, ...]:
        """What speaks against the claim that it alone reaches τ: phrases without numbers; none where nothing does."""
        points = {
            "its lower bound does not reach τ": not self.counts_show_it,
            "no random unit was ablated beside it": self.evidence is None,
            "on answers kept aside it is not shown to flip more than nearly all units do": self.evidence
            and not self.is_shown,
            "under another baseline it stays below τ": self.depends_on_baseline,
        }
        return tuple(point for point, holds in points.items() if holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything one run found."""

    run: str
    model: str
    model_hash: str
    tokenizer_hash: str
    task: str
    task_settings: Mapping[str, types.Value]
    task_score: types.Share
    """Records on which the unablated model succeeds, of all records."""
    tau: float
    epsilon: float
    alpha: float
    slice_alpha: float
    """The level of one slice's upper bound: α, or half of it as Algorithm 1 has it."""
    seed: int
    versions: Mapping[str, str]
    proposer: str
    predicates: Mapping[str, int]
    """How many were `proposed`; `refused`, as they did not parse, were constant or came twice; `kept` after scoring."""
    stages: Mapping[str, float]
    """The seconds that each took."""
    searches: tuple[SearchOutcome, ...]
    chains: tuple[Chain, ...] = ()
    """How the flips of the strongest units come about."""
    words: types.OutcomeWords = types.RIGHT_OR_WRONG
    """What the task calls its two outcomes."""
    notes: tuple[str, ...] = ()
    """What the task must say in every report: where its items and labels come from."""
    close_completions: counts.CloseCompletions | None = None
    """None where rounding was not measured, as without records."""
    numbers: Mapping[str, str] | None = None
    """`dtype` and `device` of the model; None for float32 on the processor."""
    clusters: str = ""
    """The column whose values name items that are alike, such as a construction; empty for none."""
    mcc_floor: float = THRESHOLD
    """HQ-T and HQ-F need at least this MCC."""
    coverage_floor: float = COVERAGE_FLOOR
    """… and fire on at least this share of the eligible records."""
    skipped: str = ""
    """Searches that were asked for and not begun, and why."""
    again: tuple[Again, ...] = ()
    """More runs with other draws, each with another seed."""

    def units(self) -> tuple[Unit, ...]:
        """Every localized unit, search by search, in the order of `units_of`."""
        return tuple(unit for search in self.searches for unit in self.units_of(search))

    @property
    def cut_short(self) -> str:
        """Why a search ended before its time or was not begun; empty where all ended."""
        early = types.SearchStatus.BUDGET_SPENT, types.SearchStatus.AUDIT_CUT, types.SearchStatus.STOPPED
        ended = [why.value for why in early if any(why in one.status for one in self.searches)]
        return "; ".join(filter(None, [*ended, self.skipped]))

    def units_of(self, search: SearchOutcome) -> tuple[Unit, ...]:
        """The localized units of one search: in the order of `evidence_of`, then the others by name."""
        ranked = {unit: place for place, unit in enumerate(self.evidence(search))}
        order = sorted(search.agonists, key=lambda agonist: agonist.neuron)
        order.sort(key=lambda agonist: ranked.get(agonist.neuron, len(ranked)))
        return tuple(self._unit(search, agonist) for agonist in order)

    def evidence(self, search: SearchOutcome) -> Mapping[types.Neuron, Evidence]:
        """What held-out records say of each τ-agonist of a search; nothing where they were not asked."""
        return {} if search.held_out is None else evidence_of(search.held_out, self.alpha)

    def shown_of(self, search: SearchOutcome) -> tuple[Unit, ...]:
        """The shown units of one search, by rank."""
        return tuple(unit for unit in self.units_of(search) if unit.is_shown)

    def shown(self) -> tuple[Unit, ...]:
        """The shown units of all searches, by the lower bound of what they flip."""
        found = [unit for search in self.searches for unit in self.shown_of(search)]
        return tuple(sorted(found, key=_by_bound))

    def explained(self, regime: types.Regime) -> list[Unit]:
        """Whose flips are explained, of all searches of a regime: the shown by their bound, then others by name."""
        return [unit for unit in self.by_evidence(regime) if unit.neuron in unit.search.explained(self.alpha)]

    def by_evidence(self, regime: types.Regime | None = None) -> list[Unit]:
        """Every localized unit, once: the shown by their bound, then suggestive ones, then the others by name."""
        told = [unit for unit in self.units() if regime in (None, unit.search.regime)]
        first: dict[types.Neuron, Unit] = {}
        for unit in sorted(told, key=_by_bound):
            first.setdefault(unit.neuron, unit)
        return list(first.values())

    def strongest(self, regime: types.Regime | None = None) -> Unit | None:
        """The first of the shown units by their bound."""
        return next((unit for unit in self.by_evidence(regime) if unit.is_shown), None)

    def by_support(self) -> list[Unit]:
        """Every τ-agonist: most weak points first, then the one that lies lowest against τ."""
        told = [unit for unit in self.units() if unit.is_tau_agonist]
        return sorted(told, key=lambda unit: (-len(unit.weak_points), unit.lower, unit.neuron))

    def unit(self, neuron: types.Neuron, regime: types.Regime) -> Unit | None:
        """One unit by its name and the direction of its flips, or None when no search localized it."""
        found = (
            (search, agonist)
            for search in self.searches
            for agonist in search.agonists
            if (agonist.neuron, search.regime) == (neuron, regime)
        )
        return next((self._unit(search, agonist) for search, agonist in found), None)

    def _unit(self, search: SearchOutcome, agonist: types.Agonist) -> Unit:
        neuron = agonist.neuron
        traced = (chain for chain in self.chains if (chain.unit, chain.regime) == (neuron, search.regime))
        again = [neuron in one.shown.get(search.regime.arrow, ()) for one in self.again]
        return Unit(
            search=search,
            agonist=agonist,
            evidence=self.evidence(search).get(neuron),
            lower=agonist.estimate.lcb(confidence.searched_alpha(self.alpha, search.cost.candidates)),
            rule=_of(neuron, search.anchored),
            controls=_of(neuron, search.controls),
            account=_of(neuron, search.accounts),
            chain=next(traced, None),
            resampled=_of(neuron, search.resampled),
            again=types.Share(count=sum(again), n=len(again)) if again else None,
        )

    def is_hq_t(self, rule: UnitRule) -> bool:
        """The train rule, scored once on the test split, reaches both floors."""
        return is_hq_test(rule, self.mcc_floor, self.coverage_floor)


def _by_bound(unit: Unit) -> tuple[float, bool, types.Neuron]:
    above = unit.evidence is not None and unit.evidence.certainty is not Certainty.OPEN
    return -unit.evidence.lower if unit.is_shown and unit.evidence else 0.0, not above, unit.neuron


def _of(neuron: types.Neuron, parts: Iterable[_Part]) -> _Part | None:
    """What is said of one unit."""
    return next((part for part in parts if part.neuron == neuron), None)


def to_json(findings: Findings) -> str:
    """JSON text, keys sorted, two-space indent: equal findings give equal text.

    Raises `UsageError` naming a field whose value is not of its type.
    """
    document = {"format": FORMAT, "findings": codec.encode(findings)}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Findings:
    """The findings that `to_json` wrote. Raises `UsageError` naming the field that does not fit."""
    try:
        document = codec.parse_json(text)
    except ValueError as error:
        raise UsageError(f"expected findings as JSON, got text that does not parse: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"expected findings in the format {FORMAT}, got others; export the run again")
    return codec.decode(Findings, document.get("findings"))
