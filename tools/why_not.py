"""Why a unit is not among the results: the first hurdle of the recorded search that it did not pass."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import percent
from mecharule_ops.pipeline.opening import check_unit, findings_of, opened, outcome_for, regime_of
from mecharule_ops.pipeline.run import Run
from mecharule_ops.questions.fates import (
    AttributionRank,
    Promise,
    attribution_rank,
    fate,
    guided_members,
    members,
    path_to,
    promise,
    search_order,
)
from mecharule_ops.questions.unit_account import UnitAccount, account
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.flips import of_these
from mecharule_ops.saying.rules import anchored_words, predicts
from mecharule_ops.saying.searches import search_name
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.types import Neuron, Regime
from tools._ablations import certificate_now
from tools._accounts import slices_data, slices_words
from tools.arguments import WhyNot
from tools.registry import Tell
from tools.result import ToolResult, stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Where a unit fell out."""

    word: str
    sentence: str


def why_not(given: WhyNot, tell: Tell) -> ToolResult:
    """The unit's rank in attribution, the test that settled it, and the hurdle; with `test` an exact ablation."""
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        findings = findings_of(run)
        check_unit(run, neuron)
        outcome = outcome_for(findings, neuron, regime_of(given.regime))
        rank = attribution_rank(neuron, run.attribution(neuron.basis, outcome.regime))
        path = _path(run, neuron, outcome.regime)
        predicted = _promise(run, neuron, outcome.regime)
    node = path[-1] if path else None
    reason = _reason(findings, outcome, neuron, node, rank)
    data: dict[str, object] = {
        "run": findings.run,
        "neuron": str(neuron),
        "regime": outcome.regime.value,
        "search": search_name(outcome),
        "reason": reason.word,
        "sentence": reason.sentence,
        "attribution": {"rank": rank.rank, "of": rank.units, "score": rank.score},
        "path": [_node_data(step) for step in path],
    }

    source = f"run:{findings.run}"
    ranked = (
        f"Attribution ranked {neuron} {rank.rank:,} of {rank.units:,}; that chose the order of tests and is no "
        "evidence of causation"
    )
    facts = [
        fact(f"{neuron} ({outcome.regime.arrow}): {reason.sentence}", source, unit=neuron, kinds="why-not"),
        fact(ranked, source, unit=neuron, kinds="why-not how"),
    ]
    if predicted is not None:
        data["predicted"] = {
            "rank": predicted.rank,
            "of": predicted.units,
            "associated": predicted.associated,
            "unrelated": predicted.unrelated,
        }
        said = (
            f"First order, before any ablation: flips {percent(predicted.associated)} of D+ and "
            f"{percent(predicted.unrelated)} of D-, rank {predicted.rank:,} of {predicted.units:,}"
        )
        facts.append(fact(said, source, unit=neuron, kinds="why-not"))
    if given.test:
        certificate = certificate_now(given.run, (neuron,), outcome.regime, tell)
        data["test"] = {"slices": slices_data(certificate), "certificate": certificate.id}
        data["certificate"] = certificate.id
        flips = slices_words(certificate, findings.tau)
        facts.append(
            fact(f"Tested alone now it flips {flips}", f"c:{certificate.id}", unit=neuron, kinds="why-not")
        )
    elif node is None or node.size > 1:
        offer = f"`mecharule why-not {findings.run} {neuron} --test` tests it alone now"
        facts.append(fact(offer, source, unit=neuron, kinds="why-not"))
    told = [_node_words(step) for step in path] or ["The recorded search never settled it"]
    asked = [fact(sentence, source, unit=neuron, kinds="how") for sentence in told]
    head = f"{neuron} ({outcome.regime.arrow}) in run {findings.run} · {search_name(outcome)}"
    return stated(data, facts, head=head, asked=asked)


def _promise(run: Run, neuron: Neuron, regime: Regime) -> Promise | None:
    """What first order predicted of a candidate; None where it was not asked."""
    predictions, layers = run.predictions(neuron.basis, regime), run.candidates(neuron.basis, regime).layers
    own = next((layer for layer in layers if layer.layer == neuron.layer), None)
    if not predictions or own is None or neuron.channel not in own.channels:
        return None
    return promise(neuron.channel, neuron.layer, layers, predictions)


def _path(run: Run, neuron: Neuron, regime: Regime) -> tuple[NodeView, ...]:
    """The nodes of the recorded search from a root to the one that settled the unit; empty when none did."""
    view = run.search_view(neuron.basis, regime, neuron.layer)
    layers = run.candidates(neuron.basis, regime).layers
    place = next((at for at, layer in enumerate(layers) if layer.layer == neuron.layer), None)
    if view is None or place is None:
        return ()
    settings, predictions = run.search_settings(regime), run.predictions(neuron.basis, regime)
    if predictions:
        nodes = guided_members(view, layers[place], predictions[place], settings)
    else:
        nodes = members(view, search_order(layers[place], settings))
    settled = fate(view, nodes, neuron.channel)
    return () if settled is None else path_to(view, settled)


def _reason(
    findings: Findings,
    outcome: SearchOutcome,
    neuron: Neuron,
    node: NodeView | None,
    rank: AttributionRank,
) -> Reason:
    """The first hurdle that the unit did not pass, in the order of the method."""
    known = account(findings, outcome, neuron)
    if known is not None:
        return _after_localization(findings, known)
    if node is None:
        if rank.rank > outcome.cost.candidates:
            return Reason(
                word="not a candidate",
                sentence=f"its attribution rank {rank.rank:,} lies beyond the {outcome.cost.candidates:,} candidates "
                "searched",
            )
        return Reason(word="not settled", sentence="the search ended before it was settled")
    bound = f"search bound {node.ucb:.3f} < τ = {findings.tau:g}"
    if node.size == 1:
        return Reason(word="tested below τ", sentence=f"tested alone it flips {node.flips}; {bound}")
    return Reason(
        word="pruned in a group",
        sentence=f"never tested alone: node {node.node}, a group of {node.size} units with it ({node.units}), flips "
        f"only {node.flips} together; {bound}, so all were pruned. That is safe where a group is at least as strong as "
        "its strongest member",
    )


def _after_localization(findings: Findings, known: UnitAccount) -> Reason:
    agonist, rule = known.agonist, known.rule
    name, count = known.stronger
    flips = of_these(count, name, agonist.tau, known.bounded)
    if not agonist.is_tau_agonist:
        return Reason(
            word="below τ",
            sentence=f"localized, since its search bound {agonist.ucb:.2f} reaches τ = {agonist.tau:g}, but it flips "
            f"only {flips}: no τ-agonist by point estimate",
        )
    if rule is None:
        return Reason(
            word="not anchored", sentence=f"it is a τ-agonist ({flips}), but no rule was sought for it"
        )
    said = anchored_words(rule, findings.run)
    if predicts(rule) is None:
        return Reason(word="no rule", sentence=f"it is a τ-agonist ({flips}), but {said}")
    if not known.hq_t:
        return Reason(
            word="weak rule",
            sentence=f"it is a τ-agonist ({flips}), but its rule is not of high quality: {said}",
        )
    return Reason(
        word="it is one", sentence=f"it is a τ-agonist ({flips}) with a rule of high quality; ask why instead"
    )


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
        f"{node.unrelated_flips} of these {node.unrelated_n} of D- (search bound {node.ucb:.3f}): {node.verdict}"
    )
