"""Stage 3 of a run: attribution, CHA, exhaustive ground truth for one basis and regime (paper, §4.3–§4.4), audit.

The audit bounds what a search missed, beyond the paper, which reports recall only where brute force was run: pruned
units are drawn at random and tested alone on the run's own slices (`cha.audit`). After a guided search the strata are
those of the predicted rate, and drawn units are ruled out by a part of the examples, in an order of the audit's own; so
the same money draws more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.audit import Audit, AuditResult, AuditSettings, pruned_together
from mecharule_ops.cha.exhaustive import singleton_estimates
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.engine.outcomes import Group
from mecharule_ops.events import FlipsSeen, LayerAblated, SearchStarted, SeenAnswer
from mecharule_ops.findings.counts import SearchAudit, WholeLayer
from mecharule_ops.findings.evidence import Evidence, HeldOut, evidence_of
from mecharule_ops.mechanism.attribution import AttributionPair, eap_ig
from mecharule_ops.numbers import plural
from mecharule_ops.plain_text import last_line
from mecharule_ops.run.driver import NamedSearch, SearchDriver, count, found_event
from mecharule_ops.run.journal import Journal, Stage
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.planning import SearchKind, SearchPlan, audit_settings, audit_strata, audit_tests
from mecharule_ops.run.predicting import first_order_price
from mecharule_ops.slices import CompactSlices
from mecharule_ops.state.search_id import search_id
from mecharule_ops.store import keys
from mecharule_ops.types import (
    Agonist,
    Basis,
    Candidates,
    FlipEstimate,
    GroupAnswer,
    Intervention,
    LayerCandidates,
    Neuron,
    Regime,
    SearchStatus,
)

BATCH = 8
"""Groups a call outside a search, between two signs of progress."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Localised:
    """What the searches of one basis and regime gave, before controls and rules."""

    basis: Basis
    regime: Regime
    slices: CompactSlices
    candidates: Candidates
    plan: SearchPlan
    """How it was searched."""
    trees: tuple[ChaTree, ...] = ()
    exhaustive: tuple[ChaTree, ...] = ()
    """Singletons of every unit; empty when they were not asked for."""
    whole_layers: tuple[WholeLayer, ...] = ()
    """Empty where a stop came before they were ablated."""
    audit: SearchAudit | None = None
    """What the search missed at most; None when it was not audited."""
    held_out: HeldOut | None = None
    """Flips of its τ-agonists on records that chose none; None before they were asked."""

    @property
    def agonists(self) -> tuple[Agonist, ...]:
        """Localized units, the audit's among them: the shown by rank, then the τ-agonists, then the rest, by name."""
        found = [agonist for tree in self.trees for agonist in tree.agonists(self.basis)]
        found += self.audit.found if self.audit else ()
        place = {unit: each for each, unit in enumerate(self.evidence)}

        def order(agonist: Agonist) -> tuple[int, bool, Neuron]:
            return place.get(agonist.neuron, len(place)), not agonist.is_tau_agonist, agonist.neuron

        return tuple(sorted(found, key=order))

    @property
    def evidence(self) -> Mapping[Neuron, Evidence]:
        """What held-out records say of each τ-agonist; nothing before they were asked."""
        return {} if self.held_out is None else evidence_of(self.held_out, self.plan.settings.alpha.alpha)

    @property
    def shown(self) -> list[Neuron]:
        """The shown units, by rank."""
        return [unit for unit, each in self.evidence.items() if each.rank]

    @property
    def explained(self) -> list[Neuron]:
        """The shown units; where nothing could be shown, the τ-agonists."""
        if self.held_out is None or self.held_out.tells(self.plan.settings.alpha.alpha):
            return self.shown
        return [agonist.neuron for agonist in self.agonists if agonist.is_tau_agonist]

    @property
    def measured(self) -> dict[Neuron, FlipEstimate]:
        """The units that were tested alone on all examples of both slices."""
        exact = {
            neuron: estimate
            for tree in (*self.trees, *self.exhaustive)
            for neuron, estimate in singleton_estimates(tree, self.basis).items()
            if estimate.associated.n + estimate.unrelated.n == len(self.examples)
        }
        return exact | {agonist.neuron: agonist.estimate for agonist in self.agonists}

    @property
    def complete(self) -> bool:
        """Whether every layer's search came to its own end."""
        return {tree.status for tree in self.trees} <= {SearchStatus.COMPLETE, SearchStatus.LEFT}

    @property
    def examples(self) -> list[int]:
        """Positions of both slices, associated first."""
        return self.slices.positions


def rank_candidates(run: Run, journal: Journal, basis: Basis, slices: CompactSlices) -> Candidates:
    """EAP-IG candidates of one basis on the slices' pairs.

    Every unit without a score, in the order of channels, where there is no pair or nothing reads the scores.
    """
    name = keys.attribution(basis, slices.regime)
    none = np.full((run.subject.n_layers, run.subject.width(basis)), np.nan)
    # Attribution leaves units out or forms groups; where first order orders all units, it does neither.
    leaves_out = run.config.attribution == "always" or none.size > run.config.cap
    if not leaves_out and first_order_price(run, slices, none.size).competitors:
        if not run.store.has(name):
            run.store.put(name, none)
        return run.candidates(basis, slices.regime)
    with journal.stage(f"EAP-IG {basis.value} {slices.regime.arrow}", len(slices.pairs), "pairs") as stage:
        stage.reused = run.store.has(name) and run.attribution(basis, slices.regime) is not None
        if not stage.reused:
            run.store.put(name, _scores(run, basis, slices, stage) if len(slices.pairs) else none)
        candidates = run.candidates(basis, slices.regime)
        stage.summary = f"{candidates.total:,} units ranked on {len(slices.pairs)} pairs"
    return candidates


def _scores(
    run: Run, basis: Basis, slices: CompactSlices, stage: Stage
) -> Float[np.ndarray, "layer channel"]:
    subject, records = run.subject, run.records
    prompts = subject.encode([records[int(position)].example.prompt for position in slices.pairs.reshape(-1)])
    pairs = [
        AttributionPair(clean=clean, corrupt=corrupt, completion=records[int(associated)].tokens)
        for clean, corrupt, (associated, _) in zip(prompts[::2], prompts[1::2], slices.pairs, strict=True)
    ]
    return eap_ig(
        subject,
        pairs,
        basis,
        run.intervention(basis).phase,
        steps=run.config.ig_steps,
        on_progress=stage.progress,
    )


def whole_layers(
    run: Run,
    journal: Journal,
    candidates: Candidates,
    slices: CompactSlices,
    some: Sequence[LayerCandidates],
) -> tuple[WholeLayer, ...]:
    """Each of some layers with all its candidates ablated together. Cost: one group ablation a layer.

    It is what a report can say when no unit alone reaches τ, and its pace prices the search. Raises `AblationStopped`.
    """
    groups = [
        tuple(Neuron(candidates.basis, layer.layer, channel) for channel in layer.channels.tolist())
        for layer in some
    ]
    where = f"{candidates.basis.value} {slices.regime.arrow}"
    with journal.stage(f"whole layers {where}", len(groups), "ablations") as stage:
        intervention = run.intervention(candidates.basis)
        estimates = slice_estimates(run, slices, intervention, groups, stage.progress)
        layers = zip(some, estimates, strict=True)
        whole = tuple(WholeLayer(layer=layer.layer, estimate=estimate) for layer, estimate in layers)
        for each in whole:
            layer, strength = f"{candidates.basis.letter}{each.layer}", each.estimate.strength
            journal.emit(LayerAblated(regime=slices.regime.value, layer=layer, strength=strength))
        strongest = max(whole, key=lambda layer: layer.least)
        stage.summary = f"layer {strongest.layer} as a whole flips {strongest.estimate.strength:.0%}"
    return whole


def slice_estimates(
    run: Run,
    slices: CompactSlices,
    intervention: Intervention,
    groups: Sequence[Group],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[FlipEstimate]:
    """Flip counts of each group on the compact slices."""
    parts = slices.associated.tolist(), slices.unrelated.tolist()
    return flips_on(run, slices.regime, intervention, groups, parts, progress)


def flips_on(
    run: Run,
    regime: Regime,
    intervention: Intervention,
    groups: Sequence[Group],
    examples: tuple[Sequence[int], Sequence[int]],
    progress: Callable[[int, int], None],
) -> list[FlipEstimate]:
    """Flip counts of each group on examples of D̃⁺ and of D̃⁻, given by their positions among the records."""
    split, positions, estimates = len(examples[0]), [*examples[0], *examples[1]], []
    for begin in range(0, len(groups), BATCH):
        for flips in run.flips(groups[begin : begin + BATCH], positions, regime, intervention):
            estimates.append(FlipEstimate(associated=count(flips[:split]), unrelated=count(flips[split:])))
        progress(len(estimates), len(groups))
    return estimates


def localise(
    run: Run,
    journal: Journal,
    candidates: Candidates,
    slices: CompactSlices,
    plan: SearchPlan,
) -> Localised:
    """Search every layer, then every unit singly where the basis is small enough; both reuse stored outcomes."""
    driver = driver_of(run, candidates.basis, slices)
    searches = plan.searches(candidates, slices.regime)
    where = f"{candidates.basis.value} {slices.regime.arrow}"
    name = "CHA" if plan.kind is SearchKind.CHA else f"{plan.kind.value} search"
    with journal.stage(f"{name} {where}", unit="ablations") as stage:
        stage.summary = _search(journal, driver, searches, candidates)
    singly: list[NamedSearch] = []
    if candidates.total <= run.config.exhaustive_up_to and not run.should_stop():
        brute = SearchPlan(kind=SearchKind.EXHAUSTIVE, settings=plan.settings)
        singly = brute.searches(candidates, slices.regime)
        with journal.stage(f"exhaustive {where}", candidates.total, "ablations") as stage:
            stage.summary = _search(journal, driver, singly, candidates)
    return Localised(
        basis=candidates.basis,
        regime=slices.regime,
        slices=slices,
        candidates=candidates,
        plan=plan,
        trees=tuple(named.search.tree for named in searches),
        exhaustive=tuple(named.search.tree for named in singly),
    )


def not_searched(run: Run, basis: Basis, slices: CompactSlices) -> Localised:
    """What there is where no record has the outcome that the regime starts from."""
    return Localised(
        basis=basis,
        regime=slices.regime,
        slices=slices,
        candidates=Candidates(basis=basis, layers=()),
        plan=SearchPlan(settings=run.search_settings(slices.regime)),
    )


def driver_of(run: Run, basis: Basis, slices: CompactSlices) -> SearchDriver:
    """What asks the run's engine, behind its stored outcomes, on behalf of searches."""
    return SearchDriver(
        engine=run.engine(run.intervention(basis)),
        basis=basis,
        regime=slices.regime,
        associated=slices.associated.tolist(),
        unrelated=slices.unrelated.tolist(),
        budget=run.config.budget,
        should_stop=run.should_stop,
        example=None if run.task.concealed else partial(_became, run, slices.regime),
    )


def _became(run: Run, regime: Regime, unit: Neuron, positions: Sequence[int]) -> FlipsSeen:
    """What some answers became without a unit. Cost: a completion each."""
    after = run.completer(run.intervention(unit.basis)).completions([(unit,)], positions)
    records = [run.records[position] for position in positions]
    answers = zip(records, after.tokens[0], after.labels[0].tolist(), strict=True)
    told = tuple(
        SeenAnswer(
            prompt=last_line(record.example.prompt),
            before=record.completion,
            after=run.subject.decode(tokens),
            flipped=label != record.label,
        )
        for record, tokens, label in answers
    )
    return FlipsSeen(regime=regime.value, neuron=str(unit), answers=told)


def _search(
    journal: Journal, driver: SearchDriver, searches: Sequence[NamedSearch], candidates: Candidates
) -> str:
    """Drive the searches, tell what happens, and sum up in a line."""
    sizes = {layer.layer: len(layer.channels) for layer in candidates.layers}
    for named in searches:
        journal.emit(
            SearchStarted(
                search=named.id, regime=driver.regime.value, layer=named.layer, units=sizes[named.layer]
            )
        )
    for event in driver.run(searches):
        journal.emit(event)
    trees = [named.search.tree for named in searches]
    queries = sum(tree.queries for tree in trees)
    localized = [agonist for tree in trees for agonist in tree.agonists(driver.basis)]
    strong = sum(agonist.is_tau_agonist for agonist in localized)
    statuses = {tree.status for tree in trees} - {SearchStatus.COMPLETE}
    tail = "".join(f"; {status.value}" for status in sorted(statuses, key=str) if status is not None)
    return f"{queries:,} group ablations, {len(localized)} localized, {plural(strong, 'τ-agonist')}{tail}"


def audited(run: Run, journal: Journal, found: Localised) -> Localised:
    """The search with what its audit says; as it was when brute force ran, it was cut short, or nothing was pruned.

    Cost: at most one singleton test for each unit that is drawn or was pruned with a τ-agonist that is met, less what
    is stored. Raises `AblationStopped`.
    """
    strata = audit_strata(found.plan, found.trees, found.candidates)
    population = sum(map(len, strata.values()))
    tests = audit_tests(run.config, population)
    if found.exhaustive or not found.complete or not tests:
        return found
    where = f"{found.basis.value} {found.regime.arrow}"
    settings = audit_settings(run.config, found.plan, tests, population)
    with journal.stage(f"audit {where}", settings.budget, "ablations") as stage:
        result = _drawn(run, found, strata, settings, stage)
        trees = {tree.layer: tree for tree in found.trees}
        agonists = tuple(
            trees[neuron.layer].agonist(neuron, estimate, estimate.ucb(run.config.slice_alpha))
            for neuron, estimate in result.found.items()
        )
        for agonist in agonists:
            search = search_id(found.plan.kind, found.regime, found.basis, agonist.neuron.layer)
            journal.emit(found_event(search, agonist))
        known = sum(agonist.is_tau_agonist for agonist in found.agonists)
        audit = SearchAudit.of(result, agonists, known=known, exact=not settings.slip)
        stage.summary = audit.summary
    return replace(found, audit=audit)


def _drawn(
    run: Run, found: Localised, strata: dict[str, list[Neuron]], settings: AuditSettings, stage: Stage
) -> AuditResult:
    """Ask the audit's questions until it has none left, those about the same examples together."""
    seed = [run.config.seed, found.regime.value, len(found.trees)]
    together = pruned_together(found.trees, found.basis)
    audit = Audit(strata, settings=settings, rng=np.random.default_rng(seed), together=together)
    associated, unrelated = found.slices.associated, found.slices.unrelated
    if settings.slip:
        order = np.random.default_rng([*seed, 1])
        associated, unrelated = order.permutation(associated), order.permutation(unrelated)
    while questions := audit.ask():
        some, others = questions[0].associated, questions[0].unrelated
        same = [each for each in questions if (each.associated, each.unrelated) == (some, others)]
        estimates = flips_on(
            run,
            found.regime,
            run.intervention(found.basis),
            [(Neuron(found.basis, question.layer, question.channels[0]),) for question in same],
            (associated[some].tolist(), unrelated[others].tolist()),
            stage.progress,
        )
        for question, estimate in zip(same, estimates, strict=True):
            audit.tell(GroupAnswer(node=question.node, estimate=estimate))
    return audit.result
