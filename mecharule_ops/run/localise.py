"""Stage 3 of a run: attribution, CHA, exhaustive ground truth for one basis and regime (paper, §4.3–§4.4), audit.

The audit bounds what a search missed, beyond the paper, which reports recall only where brute force was run: pruned
units are drawn at random and tested alone on the run's own slices (`cha.audit`), in a small basis all of them. After a
guided search the strata are those of the predicted rate, and drawn units are ruled out by a part of the examples, in an
order of the audit's own; so the same money draws more of them.

What first order predicts of every unit on the compact slices, before any is ablated, orders a guided search:

    predicted rate of j on a slice = share of its examples on which first order says that do(j) flips the outcome

In 1→0 a changed answer counts as a flip. In 0→1 most changed answers stay wrong: there the competitor that wins is
put in the place of the first changed token and the task is asked (see `mechanism.first_order`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache

import numpy as np
from jaxtyping import Bool, Float32

from mecharule_ops import events, nodes, numbers, plain_text, types
from mecharule_ops.cha.audit import Audit, pruned_together
from mecharule_ops.cha.search import singleton_estimates
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.engine.outcomes import Group
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.findings import counts
from mecharule_ops.findings.records import SearchOutcome, from_json
from mecharule_ops.mechanism.attribution import AttributionPair, eap_ig
from mecharule_ops.mechanism.first_order import predicted_labels, prediction
from mecharule_ops.run import planning
from mecharule_ops.run.driver import SearchDriver, estimate_of, found_event
from mecharule_ops.run.journal import Journal, Stage
from mecharule_ops.run.live_run import Run
from mecharule_ops.slices import CompactSlices
from mecharule_ops.state.search_view import SearchId
from mecharule_ops.store import keys

BATCH = 32
"""Groups a call outside a search, between two signs of progress: with fewer, products of short chunks are slow."""


@dataclass(slots=True, kw_only=True, eq=False)
class Localised:
    """The search of one basis and regime under way: what was searched, how, and what was found so far."""

    slices: CompactSlices
    candidates: types.Candidates
    plan: planning.SearchPlan
    trees: tuple[ChaTree, ...]
    outcome: SearchOutcome
    audited: dict[types.Neuron, types.FlipEstimate] = field(default_factory=dict)
    """What the audit counted of each unit that it asked alone."""

    @property
    def where(self) -> str:
        """`attn_head 1→0`."""
        return f"{self.candidates.basis.value} {self.slices.regime.arrow}"


def rank_candidates(
    run: Run, journal: Journal, basis: types.Basis, slices: CompactSlices
) -> types.Candidates:
    """EAP-IG candidates of one basis on the slices' pairs.

    Every unit without a score, in the order of channels, where there is no pair or nothing reads the scores.
    """
    subject, name = run.subject, keys.attribution(basis, slices.regime)
    none = np.full((subject.n_layers, subject.width(basis)), np.nan)
    # Attribution leaves units out or forms groups; where first order orders all units, it does neither.
    leaves_out = run.config.attribution == "always" or none.size > run.config.cap
    if not leaves_out and first_order_price(run, slices, none.size).competitors:
        run.store.kept(name, lambda: none)
        return run.candidates(basis, slices.regime)

    def scores() -> np.ndarray:
        places = slices.pairs.reshape(-1).tolist()
        prompts = subject.encode([run.records[place].example.prompt for place in places])
        traced = [run.records[place] for place in places[::2]]
        offers = subject.offers(record.example for record in traced)
        pairs = [
            AttributionPair(
                clean=clean, corrupt=corrupt, completion=one.tokens, choices=offer.choices(one.tokens)
            )
            for clean, corrupt, one, offer in zip(prompts[::2], prompts[1::2], traced, offers, strict=True)
        ]
        phase = run.intervention(basis).phase
        return eap_ig(subject, pairs, basis, phase, on_progress=stage.progress) if pairs else none

    with journal.stage(f"EAP-IG {basis.value} {slices.regime.arrow}", len(slices.pairs), "pairs") as stage:
        stage.reused = run.store.has(name) and run.attribution(basis, slices.regime) is not None
        if not stage.reused:
            run.store.put(name, scores())
        candidates = run.candidates(basis, slices.regime)
        stage.summary = f"{candidates.total:,} units ranked on {len(slices.pairs)} pairs"
    return candidates


def whole_layers(
    run: Run, journal: Journal, candidates: types.Candidates, slices: CompactSlices
) -> tuple[counts.WholeLayer, ...]:
    """Each layer of some candidates with all of them ablated together. Cost: one group ablation a layer.

    It is what a report can say when no unit alone reaches τ, and its pace prices the search. Raises `AblationStopped`.
    """
    basis, regime = candidates.basis, slices.regime
    groups = [
        tuple(types.Neuron(basis, layer.layer, channel) for channel in layer.channels.tolist())
        for layer in candidates.layers
    ]
    with journal.stage(f"whole layers {basis.value} {regime.arrow}", len(groups), "ablations") as stage:
        parts, intervention = slices.named.values(), run.intervention(basis)
        estimates = flips_on(run, regime, intervention, groups, parts, stage.progress)
        layers = zip(candidates.layers, estimates, strict=True)
        whole = tuple(counts.WholeLayer(layer=one.layer, estimate=estimate) for one, estimate in layers)
        for each in whole:
            layer, strength = f"{basis.letter}{each.layer}", each.estimate.strength
            journal.emit(events.LayerAblated(regime=regime.value, layer=layer, strength=strength))
        strongest = max(whole, key=lambda layer: layer.least)
        stage.summary = f"layer {strongest.layer} as a whole flips {strongest.estimate.strength:.0%}"
    return whole


def flips_on(
    run: Run,
    regime: types.Regime,
    intervention: types.Intervention,
    groups: Sequence[Group],
    examples: Iterable[Sequence[int]],
    progress: Callable[..., None] = lambda *told: None,
) -> list[types.FlipEstimate]:
    """Flip counts of each group on examples of D̃⁺ and of D̃⁻, given by their positions among the records."""
    associated, unrelated = examples
    estimates: list[types.FlipEstimate] = []
    for begin in range(0, len(groups), BATCH):
        batch = groups[begin : begin + BATCH]
        progress(begin, len(groups), *(batch[0] if len(batch[0]) == 1 else ()))
        flips = run.flips(batch, [*associated, *unrelated], regime, intervention)
        estimates += (estimate_of(row, len(associated)) for row in flips)
    progress(len(estimates), len(groups))
    return estimates


def localise(
    run: Run, journal: Journal, candidates: types.Candidates, slices: CompactSlices, plan: planning.SearchPlan
) -> Localised:
    """Search every layer, then every unit singly where the basis is small enough; both reuse stored outcomes."""
    basis, regime = candidates.basis, slices.regime
    engine = cache(lambda: run.completer(run.intervention(basis)))

    def became(unit: types.Neuron, positions: Sequence[int]) -> events.FlipsSeen:
        """What some answers became without a unit. Cost: a completion each."""
        after, records = engine().completions([(unit,)], positions), [run.records[at] for at in positions]
        told = tuple(
            events.SeenAnswer(
                prompt=plain_text.last_line(record.example.prompt),
                before=record.completion,
                after=run.subject.decode(tokens),
                flipped=label != record.label,
            )
            for record, tokens, label in zip(records, after.tokens[0], after.labels[0].tolist(), strict=True)
        )
        return events.FlipsSeen(regime=regime.value, neuron=str(unit), answers=told)

    driver = SearchDriver(
        engine=run.engine(run.intervention(basis)),
        basis=basis,
        regime=regime,
        associated=slices.associated.tolist(),
        unrelated=slices.unrelated.tolist(),
        budget=run.config.budget,
        should_stop=run.should_stop,
        example=None if run.task.concealed else became,
    )

    def driven(name: str, plan: planning.SearchPlan, total: int | None = None) -> tuple[ChaTree, ...]:
        with journal.stage(f"{name} {basis.value} {regime.arrow}", total, "ablations") as stage:
            searches = plan.searches(candidates, regime)
            for event in driver.run(searches):
                journal.emit(event)
            trees = tuple(search.tree for search in searches.values())
            localized = [agonist for tree in trees for agonist in tree.agonists(basis)]
            strong = numbers.plural(sum(agonist.is_tau_agonist for agonist in localized), "τ-agonist")
            ended = sorted(
                {tree.status.value for tree in trees if tree.status} - {types.SearchStatus.COMPLETE.value}
            )
            said = f"{sum(tree.queries for tree in trees):,} group ablations, {len(localized)} localized, {strong}"
            stage.summary = "; ".join([said, *ended])
        return trees

    trees = driven("CHA" if plan.kind is planning.SearchKind.CHA else f"{plan.kind.value} search", plan)
    singly: tuple[ChaTree, ...] = ()
    if candidates.total <= run.config.exhaustive_up_to and not run.should_stop():
        brute = planning.SearchPlan(kind=planning.SearchKind.EXHAUSTIVE, settings=plan.settings)
        singly = driven("exhaustive", brute, candidates.total)
    return localised(run, slices, candidates, plan, trees, singly)


def localised(
    run: Run,
    slices: CompactSlices,
    candidates: types.Candidates,
    plan: planning.SearchPlan,
    trees: tuple[ChaTree, ...] = (),
    singly: tuple[ChaTree, ...] = (),
) -> Localised:
    """What a search of these trees found, and `singly` brute force after it; without trees nothing was searched."""
    basis, config = candidates.basis, run.config
    ended = {tree.status for tree in trees}
    tested, truth = _alone(trees, basis), _alone(singly, basis)
    found = _in_order(agonist for tree in trees for agonist in tree.agonists(basis))
    units = [agonist.neuron for agonist in found]
    outcome = SearchOutcome(
        intervention=run.intervention(basis),
        regime=slices.regime,
        condition=slices.condition.value,
        splitter=slices.rule,
        splitter_train_mcc=run.splitter.train_mcc,
        associated_n=len(slices.associated),
        unrelated_n=len(slices.unrelated),
        basis_units=run.subject.n_layers * run.subject.width(basis),
        slice_status=slices.sentence,
        status=tuple(status.value for status in types.SearchStatus if status in ended),
        agonists=found,
        cost=counts.SearchCost(
            queries=sum(tree.queries for tree in trees),
            example_forwards=sum(tree.example_forwards for tree in trees),
            prediction_forwards=plan.prediction_forwards,
            candidates=candidates.total,
            slice_examples=len(slices.positions),
        ),
        singletons_tested=len(tested),
        strongest=max(truth or tested, key=lambda unit: (unit.estimate.strength, unit.neuron), default=None),
        tree=tuple(node for tree in trees for node in tree.nodes),
        exhaustive=truth,
        recall=counts.recall_by_bound(truth, units, config.tau, config.slice_alpha) if truth else None,
        associated_of=slices.associated_size,
        unrelated_of=slices.unrelated_size,
        at_random=slices.at_random,
        split_note=run.splitter.note,
    )
    return Localised(slices=slices, candidates=candidates, plan=plan, trees=trees, outcome=outcome)


def _in_order(agonists: Iterable[types.Agonist]) -> tuple[types.Agonist, ...]:
    """The τ-agonists, then the others, by name."""
    return tuple(sorted(agonists, key=lambda agonist: (not agonist.is_tau_agonist, agonist.neuron)))


def _alone(trees: Sequence[ChaTree], basis: types.Basis) -> tuple[counts.UnitStrength, ...]:
    """Every unit that was tested alone."""
    return tuple(
        counts.UnitStrength(neuron=neuron, estimate=estimate)
        for tree in trees
        for neuron, estimate in singleton_estimates(tree, basis).items()
    )


def audit_search(run: Run, journal: Journal, found: Localised) -> None:
    """Add what an audit says of the search; nothing when brute force ran, it was cut short, or nothing was pruned.

    Cost: at most one singleton test for each unit that is drawn or was pruned with a τ-agonist that is met, less what
    is stored. Raises `AblationStopped`.
    """
    outcome, config, basis, regime = found.outcome, run.config, found.candidates.basis, found.slices.regime
    complete = {tree.status for tree in found.trees} <= {types.SearchStatus.COMPLETE, types.SearchStatus.LEFT}
    strata = planning.audit_strata(found.plan, found.trees, found.candidates)
    total, left = found.candidates.total, sum(map(len, strata.values()))
    if total <= config.exhaustive_up_to or not complete:
        return
    before = from_json(run.store.get(keys.FINDINGS)).searches if run.finished else ()
    alike = [
        each.audit for each in before if (each.intervention, each.regime) == (outcome.intervention, regime)
    ]
    # What an earlier process of the run drew is stored, and drawn first again: it costs nothing.
    asked = found.plan, total, left, run.cost.group_evaluations - sum(each.tested for each in alike if each)
    settings = planning.audit_settings(config, *asked)
    if settings.budget < planning.audit_settings(config.model_copy(update={"budget": None}), *asked).budget:
        found.outcome = outcome = replace(
            outcome, status=(*outcome.status, types.SearchStatus.AUDIT_CUT.value)
        )
    if not settings.budget:
        return
    seed = [config.seed, regime.value, len(found.trees)]
    together = pruned_together(found.trees, basis)
    audit = Audit(strata, settings=settings, rng=np.random.default_rng(seed), together=together)
    associated, unrelated = found.slices.associated, found.slices.unrelated
    if settings.slip:
        order = np.random.default_rng([*seed, 1])
        associated, unrelated = order.permutation(associated), order.permutation(unrelated)
    with journal.stage(f"audit {found.where}", settings.budget, "ablations") as stage:
        while questions := audit.ask():
            some, others = questions[0].associated, questions[0].unrelated
            same = [each for each in questions if (each.associated, each.unrelated) == (some, others)]
            # Neighbours share a forward from their layer up.
            same.sort(key=lambda question: question.layer)
            groups = [(types.Neuron(basis, question.layer, question.channels[0]),) for question in same]
            parts = associated[some].tolist(), unrelated[others].tolist()
            estimates = flips_on(run, regime, run.intervention(basis), groups, parts, stage.progress)
            for question, (unit,), estimate in zip(same, groups, estimates, strict=True):
                found.audited[unit] = found.audited.get(unit, nodes.NOTHING) + estimate
                audit.tell(types.GroupAnswer(node=question.node, estimate=estimate))
            journal.emit(events.CostChanged(**asdict(run.cost)))
        trees = {tree.layer: tree for tree in found.trees}
        agonists = tuple(
            trees[unit.layer].agonist(unit, estimate, estimate.ucb(config.slice_alpha))
            for unit, estimate in audit.result.found.items()
        )
        for agonist in agonists:
            name = str(SearchId(found.plan.kind, regime.value, basis, agonist.neuron.layer))
            journal.emit(found_event(name, agonist))
        told = counts.SearchAudit.of(audit.result, agonists, exact=not settings.slip)
        stage.summary = told.summary
    found.outcome = replace(outcome, audit=told, agonists=_in_order((*outcome.agonists, *agonists)))


def drawn_anew(run: Run, found: Localised) -> tuple[counts.Resampled, ...]:
    """How each τ-agonist fares when the slices' records are drawn anew; outcomes are stored, so nothing is ablated."""
    outcome, parts = found.outcome, (found.slices.associated, found.slices.unrelated)
    tested = (*_alone(found.trees, found.candidates.basis), *outcome.exhaustive)
    alone = {one.neuron: one.estimate for one in tested} | found.audited
    whole = [
        unit for unit, each in alone.items() if [each.associated.n, each.unrelated.n] == [*map(len, parts)]
    ]
    rows = {unit: row for row, unit in enumerate(whole)}
    flips = run.flips([(unit,) for unit in whole], np.concatenate(parts), outcome.regime)
    strong = [(one.neuron, rows[one.neuron]) for one in outcome.tau_agonists if one.neuron in rows]
    told = counts.resampled(flips, len(parts[0]), strong, run.config.tau, run.config.seed)
    return tuple(told) if strong else ()


def search_plan(
    run: Run, journal: Journal, candidates: types.Candidates, slices: CompactSlices
) -> planning.SearchPlan:
    """How the run's config searches these candidates; a guided search asks first order first, where it pays.

    What it says of every unit is put into the run. Cost: that of `PredictionPrice`, told before it is spent.
    """
    config, basis, regime = run.config, candidates.basis, slices.regime
    price, name = first_order_price(run, slices, candidates.total), keys.predicted_rates(basis, regime)
    if price.competitors:
        where = f"first order {basis.value} {regime.arrow}"
        with journal.stage(where, len(slices.positions), "examples") as stage:
            stage.reused = run.store.has(name)
            if not stage.reused:
                journal.notice(
                    f"first order is asked first: {price.example_forwards:,} example-forwards, {price.share:.1%} of "
                    "testing every unit alone"
                )
                flips, rates = _first_order(run, candidates, slices, price.competitors, stage)
                run.store.put(keys.predicted_flips(basis, regime), np.packbits(flips, axis=1))
                run.store.put(name, rates)
            promising = sum(map(config.reaches, run.store.get(name)[:2].max(0).flat))
            stage.summary = f"{promising:,} of {candidates.total:,} units are predicted to reach τ"
    elif planning.asks_first_order(config):
        alone = f"testing every one of {candidates.total:,} units alone"
        journal.notice(f"first order is not asked: it would cost {price.share:.0%} of {alone}")
    plan = planning.plan_of(config, run.search_settings(regime), run.predictions(basis, regime))
    return replace(plan, prediction_forwards=price.example_forwards)


def first_order_price(run: Run, slices: CompactSlices, units: int) -> planning.PredictionPrice:
    """What asking first order about so many units takes; nothing where the run's search does not ask it.

    In reach of the decode phase are all but the first of each completion's tokens.
    """
    tokens = sum(max(0, len(run.records[position].tokens) - 1) for position in slices.positions)
    price = planning.PredictionPrice.of(len(slices.positions), tokens, units)
    asks = planning.asks_first_order(run.config)
    return price if asks else replace(price, competitors=0, example_forwards=0)


def _first_order(
    run: Run, candidates: types.Candidates, slices: CompactSlices, competitors: int, stage: Stage
) -> tuple[Bool[np.ndarray, "example unit"], Float32[np.ndarray, "three layer channel"]]:
    """Where each unit of the basis is predicted to flip; its rates on D⁺ and D⁻ and the mean excess of the drop."""
    records = until_settled(run.subject, run.task, [run.records[position] for position in slices.positions])
    how = run.intervention(candidates.basis)
    with run.clean_kept(how):
        found = prediction(
            run.subject,
            records,
            run.replacement(how),
            competitors=competitors,
            on_progress=stage.progress,
            should_stop=run.should_stop,
        )
    flips, changed = found.change >= 0, found.change
    if slices.regime is types.Regime.BASELINE_NEGATIVE:
        # A changed answer may be wrong again: each distinct change of a record is judged once.
        for row, record in enumerate(records):
            codes = np.unique(changed[row][flips[row]]).astype(int)
            positions, places = np.divmod(codes, competitors)
            tokens = found.leads.token[row, positions, places]
            labels = predicted_labels(run.subject, run.task, [record] * len(codes), positions, tokens)
            flips[row] = np.isin(changed[row], codes[slices.regime.flipped(labels)])
    excess = np.nan_to_num(found.excess.astype(np.float32), neginf=-1e4)
    parts = np.split(flips, [len(slices.associated)])
    rates = np.stack([*(part.sum(0) / max(1, len(part)) for part in parts), excess.mean(0)])
    return flips, rates.reshape(3, run.subject.n_layers, -1).astype(np.float32)
