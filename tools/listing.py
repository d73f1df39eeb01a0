"""What a run holds, as tables: units, rules, certificates, hypotheses, search trees, candidates."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.findings.suppression import RISKY
from mecharule_ops.numbers import two_decimals
from mecharule_ops.pipeline.opening import check_direction, findings_of, opened, regime_of, short_name
from mecharule_ops.report.document import Table
from mecharule_ops.report.tables import RULE, agonists
from mecharule_ops.report.tables import rules as rule_table
from mecharule_ops.saying.unit_rules import shown_of_all
from mecharule_ops.state.run_state import HypothesisView
from mecharule_ops.state.search_id import OF_A_RUN, kind_of
from mecharule_ops.state.search_view import NodeView, SearchView
from mecharule_ops.types import Candidates as Ranked
from mecharule_ops.types import Neuron
from tools._tables import joined, shown
from tools.arguments import Candidates, Evidence, Hypotheses, Neurons, Rules, Tree
from tools.registry import Tell
from tools.result import ToolResult


def neurons(given: Neurons, tell: Tell) -> ToolResult:
    """A row a localized unit with flips a slice, bounds, selectivity, its effect and whether it is selective."""
    with opened(given.run) as run:
        findings = findings_of(run)
    tables = [(short_name(outcome), agonists(findings, outcome)) for outcome in findings.searches]
    return shown(f"localized units of run {findings.run}", joined(tables), given, run=findings.run)


def rules(given: Rules, tell: Tell) -> ToolResult:
    """A row a localized unit and family: its rule, whether it is shown, held-out MCC, that of free-form trees."""
    with opened(given.run) as run:
        findings = findings_of(run)
    tables = [(short_name(outcome), rule_table(findings, outcome)) for outcome in findings.searches]
    counted = f": {said}" if (said := shown_of_all(findings)) else ""
    return shown(f"rules of run {findings.run}{counted}", joined(tables), given, under=RULE, run=findings.run)


def evidence(given: Evidence, tell: Tell) -> ToolResult:
    """A row a certificate: id, kind, units, examples, claim. A changed certificate is refused by name."""
    with opened(given.run) as run:
        rows = tuple(
            (
                certificate.id,
                certificate.kind,
                ", ".join(certificate.units),
                str(len(certificate.example_ids)),
                certificate.claim,
            )
            for certificate in run.store.certificates()
        )
        table = Table(header=("certificate", "kind", "units", "examples", "claim"), rows=rows, align="lllrl")
        return shown(f"certificates of run {run.id}", table, given, run=run.id)


def hypotheses(given: Hypotheses, tell: Tell) -> ToolResult:
    """A row a hypothesis, in the order registered; none before a refinement."""
    with opened(given.run) as run:
        known, identifier = run.told.hypotheses, run.id
    header = ("id", "unit", "state", "value", "needed", "n", "flips", "statement")
    rows = tuple(_hypothesis(view) for view in known.values())
    table = Table(header=header, rows=rows, align="lllrrrrl")
    return shown(f"hypotheses of run {identifier}", table, given, run=identifier)


def _hypothesis(view: HypothesisView) -> tuple[str, ...]:
    told, outcome = view.registered, view.decided
    measured = (
        ("–", "–", "–")
        if outcome is None
        else (
            "–" if outcome.value is None else f"{outcome.value:.2f}",
            str(outcome.n),
            str(outcome.positives),
        )
    )
    value, n, positives = measured
    return (
        told.hypothesis,
        told.subject,
        view.state,
        value,
        f"{told.threshold:.2f}",
        n,
        positives,
        told.statement,
    )


def tree(given: Tree, tell: Tell) -> ToolResult:
    """A row a tested group, children under their parent, as far as the run has got."""
    with opened(given.run) as run:
        searches = run.told.searches
        identifier = run.id
    chosen = [view for view in searches.values() if _is_wanted(view, given)]
    rows = tuple(row for view in chosen for row in _nodes(view))
    header = ("search", "node", "units", "size", "flips D+", "flips D-", "upper bound", "verdict")
    table = Table(header=header, rows=rows, align="lllrrrrl")
    return shown(f"search trees of run {identifier}", table, given, run=identifier)


def _is_wanted(view: SearchView, given: Tree) -> bool:
    if given.search is not None:
        return view.search == given.search
    return kind_of(view.search) in OF_A_RUN and given.layer in (None, view.layer)


def _nodes(view: SearchView) -> Iterator[tuple[str, ...]]:
    """Depth first; a stack, since a tree may be deeper than Python's own."""
    waiting = [(node, 0) for node in reversed(view.children())]
    while waiting:
        number, depth = waiting.pop()
        node = view.nodes[number]
        yield (view.search, f"{'· ' * depth}{number}", *_cells(node))
        waiting += [(child, depth + 1) for child in reversed(view.children(number))]


def _cells(node: NodeView) -> tuple[str, ...]:
    return (
        node.units,
        f"{node.size:,}",
        f"{node.associated_flips}/{node.associated_n}",
        f"{node.unrelated_flips}/{node.unrelated_n}",
        two_decimals(node.ucb),
        str(node.verdict),
    )


def candidates(given: Candidates, tell: Tell) -> ToolResult:
    """A row a unit: rank by |EAP-IG|, signed score, and whether the search localized it."""
    with opened(given.run) as run:
        asked = regime_of(given.regime)
        if asked is not None:
            check_direction(run.id, asked, hidden=run.config.suppress_only)
        told = [one for one in run.regimes if one is not RISKY or not run.config.suppress_only]
        regimes = told if asked is None else [asked]
        found = {
            (search.regime, agonist.neuron): "τ-agonist" if agonist.is_tau_agonist else "localized"
            for search in (run.findings.searches if run.finished else ())
            for agonist in search.agonists
        }
        tables = []
        for basis in run.config.bases:
            for regime in regimes:
                rows = _ranked(run.candidates(basis, regime), given.layer)
                said = tuple((*row, found.get((regime, unit), "")) for unit, row in rows)
                header = ("rank", "unit", "score", "search")
                tables.append(
                    (f"{basis.value} {regime.arrow}", Table(header=header, rows=said, align="rlrl"))
                )
        identifier = run.id
    return shown(f"candidates of run {identifier} by EAP-IG", joined(tables), given, run=identifier)


def _ranked(kept_units: Ranked, layer: int | None) -> list[tuple[Neuron, tuple[str, ...]]]:
    """Kept units, strongest first."""
    kept = [
        (float(score), Neuron(kept_units.basis, part.layer, int(channel)))
        for part in kept_units.layers
        for channel, score in zip(part.channels, part.scores, strict=True)
    ]
    kept.sort(key=lambda pair: (-abs(pair[0]), pair[1]))
    rows = [(unit, (f"{rank:,}", str(unit), f"{score:+.4f}")) for rank, (score, unit) in enumerate(kept, 1)]
    return [(unit, row) for unit, row in rows if layer in (None, unit.layer)]
