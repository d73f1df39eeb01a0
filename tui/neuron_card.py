"""What is known of the line under the cursor: counts, rule, controls, certificate, flipped examples.

How far it goes is named by its grade: attributed, group-ablated, exact singleton, held-out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from mecharule_ops.events import RuleAnchored
from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import NodeView, SearchView
from mecharule_ops.thresholds import Thresholds
from tui.character_charts import interval, leads_and_drops
from tui.session import Session, known_unit
from tui.words import arrow, bounds, look_of, node_lower_bound, rate, signed_rate, slices_of, threshold

if TYPE_CHECKING:
    from mecharule_ops.certificates.certificate import Certificate
    from mecharule_ops.findings.controls import AgonistControls
    from mecharule_ops.findings.records import Unit

SHOWN_FLIPS = 6


def card(state: RunState, view: SearchView, number: int, session: Session, width: int) -> Text:
    """The card of one node, a unit or a group; of the session what a finished run adds to its events."""
    from mecharule_ops.saying.flips import leaning

    node = view.nodes[number]
    judged = view.thresholds
    look = look_of(node, judged, state.judged.get((view.regime, node.units)))
    grade = "exact singleton" if node.size == 1 else "group-ablated"
    text = Text().append(f"{look.glyph} {look.word}", look.style)
    text.append(f"  {plain(node.units) or f'node {number}'}  {arrow(view.regime)}\n", "bold")
    text.append(f"grade: {grade}\n", "dim")
    if node.verdict is None:
        return text.append("asked, not decided yet")
    text.append(f"E {rate(node.strength)} [{rate(node_lower_bound(node, judged))},{rate(node.ucb)}]")
    text.append(f"  U={node.size:,}  depth {node.depth}\n")
    for name, flips, n in slices_of(node):
        text.append_text(_slice_line(name, flips, n, judged.alpha, width))
    if node.signed_selectivity is not None:
        leans = leaning(node.signed_selectivity, judged.epsilon)
        text.append(f"Sel {signed_rate(node.signed_selectivity)} ({leans})\n")
    if node.size == 1:
        text.append_text(_unit_lines(state, view, node, session, width))
    else:
        text.append(_group_sentence(node, judged), "dim")
    return text


def _slice_line(name: str, flips: int, n: int, alpha: float, width: int) -> Text:
    if not n:
        return Text(f"{name} no examples\n", "dim")
    low, high = bounds(flips, n, alpha / 2)
    line = Text(f"{name} {rate(flips / n):>4} {f'{flips}/{n}':>7} ")
    return line.append(interval(low, flips / n, high, max(10, min(28, width - 18))), "cyan").append("\n")


def _group_sentence(node: NodeView, judged: Thresholds) -> str:
    from mecharule_ops.numbers import told_apart

    bound = "–" if node.ucb is None else told_apart(node.ucb, judged.tau).replace("0.", ".", 1)
    if node.verdict == "pruned":
        return f"It flips at most {bound}, below τ {threshold(judged)}: no unit inside is searched further."
    return f"It may flip up to {bound}, τ is {threshold(judged)}: it may hold a unit that reaches it."


def _unit_lines(state: RunState, view: SearchView, node: NodeView, session: Session, width: int) -> Text:
    findings = session.findings
    known = known_unit(findings, view.regime, node.units)
    text = _evidence_line(state, view.regime, node)
    text.append_text(_account_lines(known, findings.run, width) if findings and known else Text())
    if findings is None:
        from mecharule_ops.types import Neuron, Regime

        stage = f"controls {Neuron.parse(node.units).basis.value} {Regime(view.regime).arrow}"
        so_far = (
            "ran; told when the run has ended" if stage in state.stages else "run when the search has ended"
        )
        text.append(f"controls: {'not on file' if state.finished else so_far}\n", "dim")
    elif known is None or known.controls is None:
        text.append("controls: none were run for this unit\n", "dim")
    else:
        text.append_text(_control_lines(known.controls))
    rule = state.rules.get((view.regime, node.units))
    if rule is not None or node.verdict == "kept":
        text.append_text(_rule(rule, state.finished))
    found = [c for c in session.certificates if c.units == (node.units,) and c.regime == view.regime]
    for certificate in found:
        text.append_text(_flips(certificate))
    if not found:
        cited = [c for c in state.certificates.values() if c.units == (node.units,)]
        for claim in cited:
            text.append(f"{plain(claim.claim)}\nProof: `mecharule verify {plain(claim.certificate)}`\n")
    return text


def _evidence_line(state: RunState, regime: int, node: NodeView) -> Text:
    """What answers kept aside say of a unit that reaches τ."""
    from mecharule_ops.numbers import percent

    judged = state.judged.get((regime, node.units))
    if judged is None:
        reached = node.verdict == "kept" and state.thresholds.reached_by(node.strength)
        when = "not measured" if state.finished else "measured when the search has ended"
        return Text(f"kept aside: {when}\n" if reached else "", "dim")
    least = "" if judged.rank is None else f", at least {percent(judged.lower)}; rank {judged.rank}"
    more = "" if judged.rank else ", not told apart from chance"
    return Text(f"flips {judged.flips} of {judged.n} answers kept aside{least}{more}\n")


def _account_lines(known: Unit, run: str, width: int) -> Text:
    """When the unit flips and why, as every answer says it, and the picture of leads and drops."""
    from mecharule_ops.saying.account_facts import explained, explanation
    from mecharule_ops.saying.answer_text import lines

    text = Text()
    if known.account is None and known.chain is None:
        return text
    for line in lines(explanation(explained(known.neuron, known.account, known.chain, run))):
        name, _, said = line.partition(". ")
        text.append(f"{name}. ", "bold").append(f"{plain(said)}\n")
    if known.account is not None and known.account.points is not None:
        text.append("drop ↑ lead →  ● flips  ○ does not  · drop = lead\n", "dim")
        for line in leads_and_drops(known.account.points, max(16, min(48, width - 2))):
            text.append(f"{line}\n", "cyan")
    return text


def _rule(rule: RuleAnchored | None, settled: bool) -> Text:
    """The rule where held-out records bear it out, else that none predicts."""
    if rule is None:
        return Text(f"rule      none{'' if settled else ' yet'}\n", "dim")
    from mecharule_ops.saying.rules import worded

    text = Text().append("rule      ", "bold")
    if rule.held_out_low is None:
        return text.append("too few held-out flips to score one\n")
    score = f"MCC {rate(rule.held_out_mcc)} [{rate(rule.held_out_low)}, {rate(rule.held_out_high)}] held-out"
    if not rule.predicts:
        chance = f", p {rate(rule.adjusted_p)} over all rules of the run" if rule.failed else ""
        return text.append(f"none predicts: the best one learned has {score}{chance}\n")
    kind = "input rule" if rule.prompt_only else "rule over the output"
    return text.append(f"{score}, {kind}\n{plain(worded(rule.rule, rule.words))}\n")


def _control_lines(ran: AgonistControls) -> Text:
    from mecharule_ops.saying.control_facts import effect_cell, selective_cell

    text = Text().append("above random ", "bold").append(f"{effect_cell(ran)}\n")
    text.append("selective ", "bold").append(f"{selective_cell(ran)}\n")
    if ran.second_baseline is not None:
        second = "not run" if ran.second is None else rate(ran.second.strength)
        text.append("baseline  ", "bold").append(f"{ran.second_baseline.value} {second}\n")
    return text


def _flips(certificate: Certificate) -> Text:
    from mecharule_ops.certificates.certificate import shown_rows

    text = Text(f"{plain(certificate.claim)}\n")
    rows = shown_rows(certificate, show_text=False)
    flipped = [row for row in rows if row.flipped and row.held is None]
    for row in flipped[:SHOWN_FLIPS]:
        last = row.prompt.rstrip("\n").rsplit("\n", 1)[-1]
        text.append(f"  {plain(last)} {plain(row.before.text)} → {plain(row.after.text)}\n")
    if len(flipped) > SHOWN_FLIPS:
        text.append(f"  and {len(flipped) - SHOWN_FLIPS} more\n", "dim")
    return text.append(f"Proof: `mecharule verify {certificate.id}`\n", "dim")
