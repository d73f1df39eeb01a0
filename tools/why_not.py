"""Why a unit is not among the results: the first hurdle of the recorded search that it did not pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mecharule_ops.facts.fact import FactValue
from mecharule_ops.facts.flips import unit_flips
from mecharule_ops.numbers import told_apart
from mecharule_ops.rules.families import Family
from mecharule_ops.run.certify import certify
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, keep
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.types import Neuron, Regime, SearchStatus
from tools._asked import Asked
from tools._counts import flips_fact
from tools.arguments import WhyNotArguments
from tools.result import About, Priced, Tell, of_facts


def why_not(run: Run, given: WhyNotArguments, tell: Tell) -> Priced:
    """The hurdle, the unit's rank in attribution, the tests on the way; with `test` an exact ablation.

    Cost: both slices, with `test` and without a certificate of the unit alone.
    """
    asked = Asked.of(run, given)
    neuron, regime = asked.neuron, asked.regime
    made = find_certificate(run, (neuron,), regime) if given.test else None
    yield len(run.slices(regime).positions) if given.test and made is None else 0
    of = About(f"unit.{neuron}.why_not", f"run:{run.id}", neuron)
    scores, path = run.attribution(neuron.basis, regime), settled_by(run, neuron, regime)
    rank = None if scores is None else attribution_rank(neuron, scores)
    word, parts = _reason(asked, path[-1] if path else None, rank)
    facts = [of.told("reason", f"why_not.{word.replace(' ', '_')}", word, regime=regime, **parts)]
    if rank is not None and scores is not None:
        score = float(scores[neuron.layer, neuron.channel])
        facts.append(
            of.told(
                "attribution", "why_not.attribution", {"rank": rank, "units": scores.size, "score": score}
            )
        )
    if path:
        said = ". ".join(_node_words(each, run.config.tau) for each in path)
        facts.append(of("tests", said, list(map(_node_data, path)), part="Tests"))
    if given.test:
        made = made or keep(run, certify(run, (neuron,), regime))
        facts.append(flips_fact(made, About(f"unit.{neuron}", f"c:{made.id}", neuron)))
    elif not path or path[-1].size > 1:
        facts.append(of.told("next", "why_not.next", f"mecharule why-not {run.id} {neuron} --test"))
    return of_facts(facts)


def _reason(asked: Asked, node: NodeView | None, rank: int | None) -> tuple[str, dict[str, Any]]:
    """The first hurdle that the unit did not pass, in the order of the method, and what its sentence names."""
    findings, search, known, rule = asked.findings, asked.search, asked.unit, asked.told
    if known is None:
        if node is None:
            left = SearchStatus.LEFT.value in search.status
            last = "not promised" if left else "not settled"
            beyond = rank is not None and rank > search.cost.candidates
            return "not a candidate" if beyond else last, {"rank": rank, "s": search}
        parts = {"node": node, "bound": told_apart(node.ucb or 0.0, findings.tau), "f": findings}
        return "tested below τ" if node.size == 1 else "pruned in a group", parts
    parts = {"flips": unit_flips(known), "bound": told_apart(known.agonist.ucb, findings.tau), "f": findings}
    parts["rule"] = asked.told_words
    if not known.is_tau_agonist:
        return "below τ", parts
    if rule is None:
        return "not anchored", parts
    if not rule.shown or rule.held_out is None:
        return "no rule", parts
    # A rule that is not the paper's has no coverage to reach.
    covers = rule.family is not Family.ANCHORED or findings.is_hq_t(rule)
    weak = rule.held_out.mcc < findings.mcc_floor or not covers
    return "weak rule" if weak else "it is one", parts


def _node_data(node: NodeView) -> dict[str, FactValue]:
    return {
        **{"node": node.node, "units": node.units, "size": node.size},
        "associated": {"flips": node.associated_flips, "n": node.associated_n},
        "unrelated": {"flips": node.unrelated_flips, "n": node.unrelated_n},
        **{"upper_bound": node.ucb, "verdict": node.verdict},
    }


def _node_words(node: NodeView, tau: float) -> str:
    what = "the unit alone" if node.size == 1 else f"a group of {node.size} units"
    return (
        f"Node {node.node}, {what}, flipped {node.associated_flips} of these {node.associated_n} of D+ and "
        f"{node.unrelated_flips} of these {node.unrelated_n} of D- (upper bound {told_apart(node.ucb or 0, tau)}): "
        f"{node.verdict}"
    )


def attribution_rank(neuron: Neuron, scores: Float[np.ndarray, "layer channel"]) -> int:
    """The rank of a unit by |score| among all of its basis; units with equal |score| share the best of their ranks."""
    return 1 + int((np.abs(scores) > abs(scores[neuron.layer, neuron.channel])).sum())


def settled_by(run: Run, neuron: Neuron, regime: Regime) -> tuple[NodeView, ...]:
    """The nodes of the recorded search from a root to the one that settled the unit; empty when none did."""
    view = run.search_view(neuron.basis, regime, neuron.layer)
    path = [settled] if view and (settled := view.settled(neuron.channel)) else []
    while view and path and (above := path[0].parent) is not None and above in view.nodes:
        path.insert(0, view.nodes[above])
    return tuple(path)
