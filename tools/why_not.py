"""Why a unit is not among the results: the first hurdle of the recorded search that it did not pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.facts.fact import FactValue
from mecharule_ops.facts.flips import unit_flips
from mecharule_ops.findings.records import Unit
from mecharule_ops.numbers import percent, told_apart
from mecharule_ops.rules.families import Family
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, keep
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.types import LayerCandidates, Neuron, Regime, SearchStatus
from tools._asked import Asked
from tools._counts import slices_data, slices_words
from tools.arguments import WhyNotArguments
from tools.result import About, Priced, Tell, of_facts

Reason = tuple[str, str]
"""Where a unit fell out: in a word, and in a sentence."""


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
    word, sentence = _reason(asked, path[-1] if path else None, rank)
    facts = [of("reason", f"{neuron} ({regime.arrow}): {sentence}", word)]
    if rank is not None and scores is not None:
        said = (
            f"Attribution ranked {neuron} {rank:,} of {scores.size:,}; that chose the order of tests and is no "
            "evidence of causation"
        )
        score = float(scores[neuron.layer, neuron.channel])
        facts.append(of("attribution", said, {"rank": rank, "units": scores.size, "score": score}))
    layers = run.candidates(neuron.basis, regime).layers
    if (predicted := promise(neuron, layers, run.predictions(neuron.basis, regime))) is not None:
        rates = percent(predicted["associated"]), percent(predicted["unrelated"])
        said = (
            f"First order, before any ablation: flips {rates[0]} of D+ and {rates[1]} of D-, "
            f"rank {predicted['rank']:,} of {predicted['units']:,}"
        )
        facts.append(of("predicted", said, predicted))
    if path:
        said = ". ".join(_node_words(each, run.config.tau) for each in path)
        facts.append(of("tests", said, list(map(_node_data, path)), part="Tests"))
    if given.test:
        from mecharule_ops.run.certify import certify

        made = made or keep(run, certify(run, (neuron,), regime))
        said = f"Tested alone now it flips {slices_words(made)}"
        facts.append(About(f"unit.{neuron}", f"c:{made.id}", neuron)("flips", said, slices_data(made)))
    elif not path or path[-1].size > 1:
        offer = f"mecharule why-not {run.id} {neuron} --test"
        facts.append(of("next", f"`{offer}` tests it alone now, by one ablation", offer))
    return of_facts(facts)


def _reason(asked: Asked, node: NodeView | None, rank: int | None) -> Reason:
    """The first hurdle that the unit did not pass, in the order of the method."""
    findings, candidates = asked.findings, asked.search.cost.candidates
    if asked.unit is not None:
        return _after_localization(asked, asked.unit)
    if node is None:
        if rank is not None and rank > candidates:
            return (
                "not a candidate",
                f"its attribution rank {rank:,} lies beyond the {candidates:,} candidates searched",
            )
        if SearchStatus.LEFT.value in asked.search.status:
            left = "first order did not promise it, so the search did not ask it; the audit alone bounds such units"
            return "not promised", left
        return "not settled", "the search ended before it was settled"
    assert node.ucb is not None, "what was ruled out has a bound"
    bound = f"upper bound {told_apart(node.ucb, findings.tau)} < τ = {findings.tau:g}"
    if node.size == 1:
        return "tested below τ", f"tested alone it flips {node.flips}; {bound}"
    return "pruned in a group", (
        f"never tested alone: a group of {node.size} units with it (node {node.node}, {node.units}), switched off "
        f"together, flips only {node.flips}; {bound}, so all were ruled out. That is safe where a group is at least as "
        "strong as its strongest member"
    )


def _after_localization(asked: Asked, known: Unit) -> Reason:
    findings, agonist, rule = asked.findings, known.agonist, asked.told
    flips = unit_flips(known)
    if not agonist.is_tau_agonist:
        return "below τ", (
            f"not ruled out, since its upper bound {told_apart(agonist.ucb, agonist.tau)} reaches τ = "
            f"{agonist.tau:g}, but it flips only {flips}: no τ-agonist"
        )
    found = f"it is a τ-agonist ({flips})"
    if rule is None:
        return "not anchored", f"{found}, but no rule was sought for it"
    if not rule.shown or rule.held_out is None:
        return "no rule", f"{found}, but {asked.told_words}"
    # A rule that is not the paper's has no coverage to reach.
    covers = rule.family is not Family.ANCHORED or findings.is_hq_t(rule)
    if rule.held_out.mcc < findings.mcc_floor or not covers:
        return "weak rule", f"{found}, but its rule is not of high quality: {asked.told_words}"
    return "it is one", f"{found} with a rule of high quality; ask why instead"


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


def promise(
    unit: Neuron, candidates: Sequence[LayerCandidates], predictions: Sequence[LayerPrediction]
) -> dict[str, float] | None:
    """What was predicted of a candidate, and its rank by predicted strength and then by score, ties at the best rank.

    It chose what was tested and proves nothing. None of a unit that was not predicted.
    """
    named = [(each.layer, int(channel)) for each in candidates for channel in each.channels]
    if not predictions or (unit.layer, unit.channel) not in named:
        return None
    place, names = named.index((unit.layer, unit.channel)), ("strength", "scores", "associated", "unrelated")
    strength, scores, *rates = (
        np.concatenate([getattr(each, name) for each in predictions]) for name in names
    )
    above = (strength > strength[place]) | ((strength == strength[place]) & (scores > scores[place]))
    associated, unrelated = (float(each[place]) for each in rates)
    return {
        "rank": int(above.sum()) + 1,
        "units": len(named),
        "associated": associated,
        "unrelated": unrelated,
    }


def settled_by(run: Run, neuron: Neuron, regime: Regime) -> tuple[NodeView, ...]:
    """The nodes of the recorded search from a root to the one that settled the unit; empty when none did."""
    view = run.search_view(neuron.basis, regime, neuron.layer)
    path = [settled] if view and (settled := view.settled(neuron.channel)) else []
    while view and path and (above := path[0].parent) is not None and above in view.nodes:
        path.insert(0, view.nodes[above])
    return tuple(path)
