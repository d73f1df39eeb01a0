"""Why a unit is not among the results: the first hurdle of the recorded search that it did not pass."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.codec import encode
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.numbers import percent, told_apart, two_decimals
from mecharule_ops.questions.fates import (
    AttributionRank,
    Promise,
    attribution_rank,
    promise,
    settled_by,
)
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, opened
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.flips import unit_flips
from mecharule_ops.saying.searches import search_name
from mecharule_ops.saying.unit_rules import UnitRule
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.types import Neuron, Regime, SearchStatus
from tools._ablations import accepted, price_words
from tools._accounts import Asked, slices_data, slices_words
from tools.arguments import WhyNotArguments
from tools.registry import Tell, ToolResult, stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Where a unit fell out."""

    word: str
    sentence: str


def why_not(given: WhyNotArguments, tell: Tell) -> ToolResult:
    """The unit's rank in attribution, the test that settled it, and the hurdle; with `test` an exact ablation."""
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        findings, neuron, regime = asked.findings, asked.neuron, asked.regime
        scores = run.attribution(neuron.basis, regime)
        rank = None if scores is None else attribution_rank(neuron, scores)
        path = settled_by(run, neuron, regime)
        predicted = _promise(run, neuron, regime)
        stored = find_certificate(run, (neuron,), regime)
        if given.estimate or (given.test and stored is None):
            price = price_words(run, 0 if stored else len(run.slices(regime).positions))
            if given.estimate:
                return price.stated(findings.run)
            accepted(price, given.yes, tell)
    node = path[-1] if path else None
    reason = _reason(asked, node, rank)
    data: dict[str, object] = {
        **asked.data,
        "search": search_name(asked.search),
        "reason": reason.word,
        "sentence": reason.sentence,
        "attribution": None if rank is None else {"rank": rank.rank, "of": rank.units, "score": rank.score},
        "path": [_node_data(step) for step in path],
    }
    facts = asked.facts([f"{neuron} ({regime.arrow}): {reason.sentence}"], "why-not")
    if rank is not None:
        ranked = (
            f"Attribution ranked {neuron} {rank.rank:,} of {rank.units:,}; that chose the order of tests and is no "
            "evidence of causation"
        )
        facts += asked.facts([ranked], "why-not how")
    if predicted is not None:
        told = encode(predicted)
        data["predicted"] = {"of": told.pop("units"), **told}
        said = (
            f"First order, before any ablation: flips {percent(predicted.associated)} of D+ and "
            f"{percent(predicted.unrelated)} of D-, rank {predicted.rank:,} of {predicted.units:,}"
        )
        facts += asked.facts([said], "why-not")
    if given.test:
        from mecharule_ops.run.certify import certificate_now

        certificate = stored or certificate_now(given.run, (neuron,), regime, tell)
        data["test"] = {"slices": slices_data(certificate), "certificate": certificate.id}
        data["certificate"] = certificate.id
        flips = slices_words(certificate)
        facts.append(
            fact(f"Tested alone now it flips {flips}", f"c:{certificate.id}", unit=neuron, kinds="why-not")
        )
    elif node is None or node.size > 1:
        offer = f"`mecharule why-not {findings.run} {neuron} --test` tests it alone now, by one ablation"
        facts += asked.facts([offer], "why-not")
    steps = [_node_words(step) for step in path] or ["The recorded search never settled it"]
    return stated(data, facts, asked=asked.facts(steps, "how"))


def _promise(run: Run, neuron: Neuron, regime: Regime) -> Promise | None:
    """What first order predicted of a candidate; None where it was not asked."""
    predictions, layers = run.predictions(neuron.basis, regime), run.candidates(neuron.basis, regime).layers
    own = next((layer for layer in layers if layer.layer == neuron.layer), None)
    if not predictions or own is None or neuron.channel not in own.channels:
        return None
    return promise(neuron.channel, neuron.layer, layers, predictions)


def _reason(asked: Asked, node: NodeView | None, rank: AttributionRank | None) -> Reason:
    """The first hurdle that the unit did not pass, in the order of the method."""
    findings, candidates = asked.findings, asked.search.cost.candidates
    if asked.unit is not None:
        return _after_localization(asked, asked.unit)
    if node is None:
        if rank is not None and rank.rank > candidates:
            return Reason(
                word="not a candidate",
                sentence=f"its attribution rank {rank.rank:,} lies beyond the {candidates:,} candidates "
                "searched",
            )
        if SearchStatus.LEFT.value in asked.search.status:
            left = "first order did not promise it, so the search did not ask it; the audit alone bounds such units"
            return Reason(word="not promised", sentence=left)
        return Reason(word="not settled", sentence="the search ended before it was settled")
    assert node.ucb is not None, "what was ruled out has a bound"
    bound = f"upper bound {told_apart(node.ucb, findings.tau)} < τ = {findings.tau:g}"
    if node.size == 1:
        return Reason(word="tested below τ", sentence=f"tested alone it flips {node.flips}; {bound}")
    return Reason(
        word="pruned in a group",
        sentence=f"never tested alone: a group of {node.size} units with it (node {node.node}, {node.units}), switched "
        f"off together, flips only {node.flips}; {bound}, so all were ruled out. That is safe where a group is at "
        "least as strong as its strongest member",
    )


def _after_localization(asked: Asked, known: Unit) -> Reason:
    findings, agonist, rule = asked.findings, known.agonist, asked.told
    flips = unit_flips(known)
    if not agonist.is_tau_agonist:
        return Reason(
            word="below τ",
            sentence=f"not ruled out, since its upper bound {told_apart(agonist.ucb, agonist.tau)} reaches τ = "
            f"{agonist.tau:g}, but it flips only {flips}: no τ-agonist",
        )
    if rule is None:
        return Reason(
            word="not anchored", sentence=f"it is a τ-agonist ({flips}), but no rule was sought for it"
        )
    if not rule.shown or rule.held_out is None:
        return Reason(word="no rule", sentence=f"it is a τ-agonist ({flips}), but {asked.told_words}")
    if rule.held_out.mcc < findings.mcc_floor or not _covers(findings, rule):
        return Reason(
            word="weak rule",
            sentence=f"it is a τ-agonist ({flips}), but its rule is not of high quality: {asked.told_words}",
        )
    return Reason(
        word="it is one", sentence=f"it is a τ-agonist ({flips}) with a rule of high quality; ask why instead"
    )


def _covers(findings: Findings, rule: UnitRule) -> bool:
    """Whether a rule that was anchored fires on enough records; of others no coverage is asked."""
    return rule.anchored is None or findings.is_hq_t(rule.anchored)


def _node_data(node: NodeView) -> dict[str, object]:
    return {
        "node": node.node,
        "units": node.units,
        "size": node.size,
        "associated": {"flips": node.associated_flips, "n": node.associated_n},
        "unrelated": {"flips": node.unrelated_flips, "n": node.unrelated_n},
        "upper_bound": node.ucb,
        "verdict": node.verdict,
    }


def _node_words(node: NodeView) -> str:
    what = "the unit alone" if node.size == 1 else f"a group of {node.size} units"
    return (
        f"Node {node.node}, {what}, flipped {node.associated_flips} of these {node.associated_n} of D+ and "
        f"{node.unrelated_flips} of these {node.unrelated_n} of D- (upper bound {two_decimals(node.ucb)}): "
        f"{node.verdict}"
    )
