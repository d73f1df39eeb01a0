"""What a run holds, as tables: units, rules, certificates, claims, search trees, candidates, slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.facts.unit_rules import shown_of_all
from mecharule_ops.findings.suppression import RISKY
from mecharule_ops.numbers import two_decimals
from mecharule_ops.pages.document import Column, Table
from mecharule_ops.pages.tables import RULE, WORDS, agonists
from mecharule_ops.pages.tables import rules as rule_table
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_direction, findings_of, regime_of, short_name
from mecharule_ops.state.run_state import HypothesisView
from mecharule_ops.state.search_id import OF_A_RUN, SearchId
from mecharule_ops.state.search_view import NodeView, SearchView
from mecharule_ops.types import Candidates as Ranked
from mecharule_ops.types import Neuron, Regime
from tools._tables import joined, shown
from tools.arguments import CandidatesArguments, ShowArguments, ShownTable, TableArguments
from tools.registry import Tell, ToolResult


def _units(run: Run, given: ShowArguments) -> ToolResult:
    """A row a localized unit with flips a slice, bounds, selectivity, its effect and whether it is selective."""
    findings = findings_of(run)
    tables = [(short_name(outcome), agonists(findings, outcome)) for outcome in findings.searches]
    return shown(f"localized units of run {run.id}", joined(tables), given, key="units", run=run.id)


def _rules(run: Run, given: ShowArguments) -> ToolResult:
    """A row a localized unit and family: its rule, whether it is shown, held-out MCC, that of free-form trees."""
    findings = findings_of(run)
    tables = [(short_name(outcome), rule_table(findings, outcome)) for outcome in findings.searches]
    counted = f": {said}" if (said := shown_of_all(findings)) else ""
    title = f"rules of run {run.id}{counted}"
    return shown(title, joined(tables), given, under=(WORDS, RULE), key="rules", run=run.id)


_CERTIFICATE: tuple[Column[Certificate], ...] = (
    ("certificate", "l", lambda one: one.id),
    ("kind", "l", lambda one: one.kind),
    ("units", "l", lambda one: ", ".join(one.units)),
    ("examples", "r", lambda one: str(len(one.example_ids))),
    ("claim", "l", lambda one: one.claim),
)


def _certificates(run: Run, given: ShowArguments) -> ToolResult:
    """A row a certificate: id, kind, units, examples, claim. A changed certificate is refused by name."""
    table = Table.of(run.store.certificates(), _CERTIFICATE)
    return shown(f"certificates of run {run.id}", table, given, key="certificates", run=run.id)


def _value(view: HypothesisView) -> str:
    outcome = view.decided
    return "–" if outcome is None or outcome.value is None else f"{outcome.value:.2f}"


_CLAIM: tuple[Column[HypothesisView], ...] = (
    ("id", "l", lambda one: one.registered.hypothesis),
    ("unit", "l", lambda one: one.registered.subject),
    ("state", "l", lambda one: one.state),
    ("value", "r", _value),
    ("needed", "r", lambda one: f"{one.registered.threshold:.2f}"),
    ("n", "r", lambda one: "–" if one.decided is None else str(one.decided.n)),
    ("flips", "r", lambda one: "–" if one.decided is None else str(one.decided.positives)),
    ("statement", "l", lambda one: one.registered.statement),
)


def _claims(run: Run, given: ShowArguments) -> ToolResult:
    """A row a registered claim, in the order registered."""
    table = Table.of(run.told.hypotheses.values(), _CLAIM)
    return shown(f"claims registered in run {run.id}", table, given, key="claims", run=run.id)


_Placed = tuple[SearchView, NodeView, int]
_NODE: tuple[Column[_Placed], ...] = (
    ("search", "l", lambda at: at[0].search),
    ("node", "l", lambda at: f"{'· ' * at[2]}{at[1].node}"),
    ("units", "l", lambda at: at[1].units),
    ("size", "r", lambda at: f"{at[1].size:,}"),
    ("flips D+", "r", lambda at: f"{at[1].associated_flips}/{at[1].associated_n}"),
    ("flips D-", "r", lambda at: f"{at[1].unrelated_flips}/{at[1].unrelated_n}"),
    ("upper bound", "r", lambda at: two_decimals(at[1].ucb)),
    ("verdict", "l", lambda at: str(at[1].verdict)),
)


def _tree(run: Run, given: ShowArguments) -> ToolResult:
    """A row a tested group, children under their parent, as far as the run has got."""
    chosen = [view for view in run.told.searches.values() if _is_wanted(view, given)]
    table = Table.of((node for view in chosen for node in _nodes(view)), _NODE)
    return shown(f"search trees of run {run.id}", table, given, key="tree", run=run.id)


def _is_wanted(view: SearchView, given: ShowArguments) -> bool:
    if given.search is not None:
        return view.search == given.search
    return SearchId.parse(view.search).kind in OF_A_RUN and given.layer in (None, view.layer)


def _nodes(view: SearchView) -> Iterator[_Placed]:
    """Depth first; a stack, since a tree may be deeper than Python's own."""
    waiting = [(node, 0) for node in reversed(view.children())]
    while waiting:
        number, depth = waiting.pop()
        yield view, view.nodes[number], depth
        waiting += [(child, depth + 1) for child in reversed(view.children(number))]


def candidates(run: Run, given: CandidatesArguments, tell: Tell) -> ToolResult:
    """A row a unit: rank by |EAP-IG|, signed score, and whether the search localized it.

    Without scores, where nothing read them, in the order of channels and without ranks.
    """
    asked = regime_of(given.regime)
    if asked is not None:
        check_direction(run.id, asked, hidden=run.config.suppress_only)
    return _candidates(run, given, given.layer, asked)


def _candidates(run: Run, given: TableArguments, layer: int | None, asked: Regime | None) -> ToolResult:
    told = [one for one in run.regimes if one is not RISKY or not run.config.suppress_only]
    found = {
        (search.regime, agonist.neuron): "τ-agonist" if agonist.is_tau_agonist else "localized"
        for search in (run.findings.searches if run.finished else ())
        for agonist in search.agonists
    }
    tables, scored = [], False
    for basis in run.config.bases:
        for regime in told if asked is None else [asked]:
            scored |= run.attribution(basis, regime) is not None
            rows = _ranked(run.candidates(basis, regime), layer)
            said = tuple((*row, found.get((regime, unit), "")) for unit, row in rows)
            header = ("rank", "unit", "score", "search")
            tables.append((f"{basis.value} {regime.arrow}", Table(header=header, rows=said, align="rlrl")))
    by = (
        "by EAP-IG"
        if scored
        else "in the order of channels: EAP-IG was not asked (--set attribution=always asks it)"
    )
    return shown(f"candidates of run {run.id} {by}", joined(tables), given, key="candidates", run=run.id)


def _ranked(kept_units: Ranked, layer: int | None) -> list[tuple[Neuron, tuple[str, ...]]]:
    """Kept units, strongest first; in the order of channels where none has a score."""
    kept = [
        (score, Neuron(kept_units.basis, part.layer, int(channel)))
        for part in kept_units.layers
        for channel, score in zip(part.channels, part.scored, strict=True)
    ]
    kept.sort(key=lambda pair: (-abs(pair[0] or 0.0), pair[1]))
    rows = [
        (unit, ("–", str(unit), "not asked") if score is None else (f"{rank:,}", str(unit), f"{score:+.4f}"))
        for rank, (score, unit) in enumerate(kept, 1)
    ]
    return [(unit, row) for unit, row in rows if layer in (None, unit.layer)]


def _slices(run: Run, given: ShowArguments) -> ToolResult:
    """A row a direction and side: records that were eligible, those kept, radius, power, rule."""
    rows = []
    for regime in run.regimes:
        made = run.slices(regime)
        for side, positions, size, radius in (
            ("D+", made.associated, made.associated_size, made.associated_radius),
            ("D-", made.unrelated, made.unrelated_size, made.unrelated_radius),
        ):
            counts = (f"{len(positions):,}", f"{size:,}", two_decimals(radius))
            rows.append((regime.arrow, side, *counts, str(len(made.pairs)), str(made.rule or "–")))
    header = ("direction", "side", "records", "of", "radius", "pairs", "split by")
    table = Table(header=header, rows=tuple(rows), align="llrrrrl")
    return shown(f"slices of run {run.id}", table, given, key="slices", run=run.id)


TABLES: Mapping[ShownTable, Callable[[Run, ShowArguments], ToolResult]] = {
    "units": _units,
    "rules": _rules,
    "certificates": _certificates,
    "claims": _claims,
    "tree": _tree,
    "candidates": lambda run, given: _candidates(run, given, given.layer, None),
    "slices": _slices,
}
"""What `show --table` prints."""
