"""Stage 3 of a run: attribution, guard, CHA, exhaustive ground truth for one basis and regime (paper, §4.3–§4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from mecharule_ops.attribution import eap_ig, top_candidates
from mecharule_ops.cha import ChaSearch
from mecharule_ops.cha_settings import ChaSettings
from mecharule_ops.cha_tree import ChaTree
from mecharule_ops.confidence import AlphaPolicy
from mecharule_ops.config import RunConfig
from mecharule_ops.driver import Drive, NamedSearch
from mecharule_ops.events import Price, SearchStarted
from mecharule_ops.exhaustive import exhaustive_search
from mecharule_ops.journal import Journal
from mecharule_ops.run import Run
from mecharule_ops.slices import CompactSlices
from mecharule_ops.subject.path_gradients import AttributionPair
from mecharule_ops.types import Agonist, Basis, Candidates, LayerCandidates, Regime, SearchStatus

Approve = Callable[[Price], bool]
"""Whether to go on at this price."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Localised:
    """What the searches of one basis and regime gave, before controls and rules."""

    basis: Basis
    regime: Regime
    slices: CompactSlices
    candidates: Candidates
    trees: tuple[ChaTree, ...]
    exhaustive: tuple[ChaTree, ...]
    """Singletons of every unit; empty when they were not asked for."""

    @property
    def agonists(self) -> tuple[Agonist, ...]:
        """Localized units, strongest first."""
        found = [agonist for tree in self.trees for agonist in tree.agonists(self.basis)]
        return tuple(sorted(found, key=lambda agonist: (-agonist.estimate.strength, agonist.neuron)))

    @property
    def examples(self) -> list[int]:
        """Positions of both slices, associated first."""
        return [*self.slices.associated.tolist(), *self.slices.unrelated.tolist()]


def rank_candidates(run: Run, journal: Journal, basis: Basis, slices: CompactSlices) -> Candidates:
    """EAP-IG candidates of one basis on the slices' pairs; every unit with score 0 when there is no pair."""
    name = f"attribution-{basis.value}-{slices.regime.value}"
    with journal.stage(f"EAP-IG {basis.value} {slices.regime.arrow}", len(slices.pairs), "pairs") as stage:
        stage.reused = run.store.has(name)
        if not stage.reused:
            run.store.put(name, _scores(run, journal, basis, slices, stage.name))
        scores = cast(np.ndarray, run.store.get(name))
        candidates = top_candidates(basis, scores, cap=run.config.cap)
        stage.summary = f"{candidates.total:,} units ranked on {len(slices.pairs)} pairs"
    return candidates


def _scores(run: Run, journal: Journal, basis: Basis, slices: CompactSlices, stage: str) -> np.ndarray:
    subject, records = run.subject, run.records
    if not len(slices.pairs):
        return np.zeros((subject.n_layers, subject.width(basis)))
    prompts = subject.encode([records[int(position)].example.prompt for position in slices.pairs.reshape(-1)])
    pairs = [
        AttributionPair(clean=clean, corrupt=corrupt, completion=records[int(associated)].tokens)
        for clean, corrupt, (associated, _) in zip(prompts[::2], prompts[1::2], slices.pairs, strict=True)
    ]
    attribution = eap_ig(
        subject,
        pairs,
        basis,
        run.intervention(basis).phase,
        steps=run.config.ig_steps,
        on_progress=journal.progress(stage),
    )
    return attribution.scores


def search_settings(config: RunConfig, slices: CompactSlices) -> ChaSettings:
    """The settings of every layer's search; with `parity`, Algorithm 1 as printed."""
    alpha = AlphaPolicy(alpha=config.alpha, spending=config.spending)
    settings = ChaSettings(
        tau=config.tau,
        epsilon=config.epsilon,
        alpha=alpha,
        n_associated=len(slices.associated),
        n_unrelated=len(slices.unrelated),
        testing=config.testing,
        seed=config.seed,
    )
    if not config.parity:
        return settings
    printed = ChaSettings.algorithm_1()
    return replace(
        settings, testing=printed.testing, order=printed.order, small=printed.small, overhead=printed.overhead
    )


def price(run: Run, candidates: Candidates, settings: ChaSettings, seconds_a_forward: float) -> Price:
    """The most that the searches of one basis and regime can cost; CHA usually costs a small part of it."""
    limit = 2 * candidates.total - 1 if settings.overhead is None else candidates.total
    exhaustive = candidates.total if candidates.total <= run.config.exhaustive_up_to else 0
    evaluations = limit + exhaustive
    forwards = evaluations * settings.full_test
    return Price(evaluations=evaluations, example_forwards=forwards, seconds=forwards * seconds_a_forward)


def localise(
    run: Run, journal: Journal, candidates: Candidates, slices: CompactSlices, should_stop: Callable[[], bool]
) -> Localised:
    """Search every layer, then every unit singly where the basis is small enough; both reuse stored outcomes."""
    settings = search_settings(run.config, slices)
    engine = run.engine(run.intervention(candidates.basis))
    drive = Drive(
        engine=engine,
        basis=candidates.basis,
        regime=slices.regime,
        associated=slices.associated.tolist(),
        unrelated=slices.unrelated.tolist(),
        tau=run.config.tau,
        budget=run.config.budget,
        should_stop=should_stop,
    )
    cha = [
        _named(
            "cha", slices.regime, layer, ChaSearch(layer, settings=settings, regime=slices.regime), candidates
        )
        for layer in candidates.layers
    ]
    with journal.stage(f"CHA {candidates.basis.value} {slices.regime.arrow}", unit="ablations") as stage:
        stage.summary = _search(journal, drive, cha, candidates)
    singly: list[NamedSearch] = []
    if candidates.total <= run.config.exhaustive_up_to and not should_stop():
        singly = [
            _named(
                "exhaustive",
                slices.regime,
                layer,
                exhaustive_search(layer, settings=settings, regime=slices.regime),
                candidates,
            )
            for layer in candidates.layers
        ]
        name = f"exhaustive {candidates.basis.value} {slices.regime.arrow}"
        with journal.stage(name, candidates.total, "ablations") as stage:
            stage.summary = _search(journal, drive, singly, candidates)
    return Localised(
        basis=candidates.basis,
        regime=slices.regime,
        slices=slices,
        candidates=candidates,
        trees=tuple(named.search.tree for named in cha),
        exhaustive=tuple(named.search.tree for named in singly),
    )


def _named(
    kind: str, regime: Regime, layer: LayerCandidates, search: ChaSearch, candidates: Candidates
) -> NamedSearch:
    identifier = f"{kind}:{regime.value}:{candidates.basis.letter}{layer.layer}"
    return NamedSearch(id=identifier, search=search, layer=layer.layer)


def _search(journal: Journal, drive: Drive, searches: Sequence[NamedSearch], candidates: Candidates) -> str:
    """Drive the searches, tell what happens, and sum up in a line."""
    sizes = {layer.layer: len(layer.channels) for layer in candidates.layers}
    for named in searches:
        journal.emit(
            SearchStarted(
                search=named.id, regime=drive.regime.value, layer=named.layer, units=sizes[named.layer]
            )
        )
    for event in drive.run(searches):
        journal.emit(event)
    trees = [named.search.tree for named in searches]
    queries = sum(tree.queries for tree in trees)
    kept = [node for tree in trees for node in tree.kept]
    strong = sum(node.estimate.strength >= drive.tau for node in kept)
    statuses = {tree.status for tree in trees} - {SearchStatus.COMPLETE}
    tail = "".join(f"; {status.value}" for status in sorted(statuses, key=str) if status is not None)
    return f"{queries:,} group ablations, {len(kept)} localized, {strong} τ-agonists{tail}"
