"""One more search on a stored run, now: its slices, its ranking, its stored ablations; groups of another size."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.errors import UsageError
from mecharule_ops.report.document import Column, Table
from mecharule_ops.run.driver import NamedSearch
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import driver_of
from mecharule_ops.run.opening import opened
from mecharule_ops.run.planning import SearchPlan, price
from mecharule_ops.state.search_id import AGAIN, search_id
from mecharule_ops.types import Agonist, Basis, Candidates, Regime
from tools._ablations import accepted, price_words
from tools._accounts import direction
from tools._tables import shown
from tools.arguments import LocaliseArguments
from tools.registry import Tell, ToolResult

COLUMNS: tuple[Column[Agonist], ...] = (
    ("unit", "l", lambda found: str(found.neuron)),
    ("flips D+", "r", lambda found: f"{found.estimate.associated.flips}/{found.estimate.associated.n}"),
    ("flips D-", "r", lambda found: f"{found.estimate.unrelated.flips}/{found.estimate.unrelated.n}"),
    ("strength", "r", lambda found: f"{found.estimate.strength:.3f}"),
    ("upper bound", "r", lambda found: f"{found.ucb:.3f}"),
    ("status", "l", lambda found: "τ-agonist" if found.is_tau_agonist else "not ruled out"),
)


def localise(given: LocaliseArguments, tell: Tell) -> ToolResult:
    """The units that it localizes, by name, and what it asked; nothing of the run's report changes."""
    with opened(given.run) as run:
        basis = _basis_of(run, given.basis)
        regime = direction(run, given.regime)
        slices = run.slices(regime)
        candidates = _candidates(run, basis, regime, given.layer)
        settings = run.search_settings(regime)
        settings = replace(settings, largest=given.largest or settings.largest)
        alone = run.config.model_copy(update={"audit": 0, "exhaustive_up_to": 0})
        quoted = price_words(
            run, price(alone, candidates, SearchPlan(settings=settings), 0.0).example_forwards
        )
        identifier = run.id
    if given.estimate:
        return quoted.stated(identifier, at_most=True)
    accepted(quoted, given.yes, tell)
    with opened(given.run, write=True, tell=tell) as run:
        searches = [
            NamedSearch(
                id=search_id(AGAIN, regime, basis, layer.layer),
                search=ChaSearch(layer, settings=settings, regime=regime),
                layer=layer.layer,
            )
            for layer in candidates.layers
        ]
        for _ in driver_of(run, basis, slices).run(searches):
            pass
        trees = [named.search.tree for named in searches]
        found = [agonist for tree in trees for agonist in tree.agonists(basis)]
        cost = run.cost
    return shown(
        f"{basis.value} {regime.arrow} of run {identifier}: {sum(tree.queries for tree in trees):,} groups asked, "
        f"{cost.group_evaluations:,} of them new to the run",
        Table.of(sorted(found, key=lambda unit: unit.neuron), COLUMNS),
        given,
        run=identifier,
        groups=sum(tree.queries for tree in trees),
        example_forwards=sum(tree.example_forwards for tree in trees),
        new_groups=cost.group_evaluations,
    )


def _basis_of(run: Run, name: str | None) -> Basis:
    known = [basis.value for basis in run.config.bases]
    if name not in (None, *known):
        raise UsageError(f"expected a basis of run {run.id}: {', '.join(known)}; got {name!r}")
    return run.config.bases[0] if name is None else Basis(name)


def _candidates(run: Run, basis: Basis, regime: Regime, layer: int | None) -> Candidates:
    """What the run's attribution handed to its search, one layer of it if asked. Raises `UsageError`."""
    ranked = run.candidates(basis, regime)
    layers = tuple(each for each in ranked.layers if layer in (None, each.layer))
    if not layers:
        known = ", ".join(str(each.layer) for each in ranked.layers)
        raise UsageError(f"expected a layer of run {run.id} with candidates ({known}), got {layer}")
    return replace(ranked, layers=layers)
