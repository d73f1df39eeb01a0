"""Why a unit counts as an agonist: its account, with the certificate that every number rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.confidence import flips_needed, lower_bound, searched_alpha
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.controls import Selective
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.numbers import signed
from mecharule_ops.run.opening import keep, opened
from mecharule_ops.saying.account_facts import (
    BREAKS,
    PREDICTION,
    READS,
    RESPONDS,
    THROUGH,
    WHEN,
    explained,
    explanation,
)
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.flips import leaning
from mecharule_ops.saying.rules import anchored_words, predicts
from mecharule_ops.saying.searches import search_name
from tools._accounts import (
    Asked,
    about,
    controls_data,
    controls_facts,
    finite,
    flipped_data,
    flipped_fact,
    flips_fact,
    rule_data,
    slice_name,
    slices_data,
)
from tools.arguments import WhyArguments
from tools.registry import Tell, ToolResult, stated

SINGLETON, HELD_OUT = "exact singleton on the compact slice", "held-out"
"""Grades: the unit alone was ablated; its rule predicts flips on records that chose nothing."""
_KINDS = {
    BREAKS: "why",
    WHEN: "why when",
    PREDICTION: "why when prediction",
    READS: "why reads writes",
    THROUGH: "why through",
    RESPONDS: "responds",
}
"""The kinds of question that each part of an explanation answers."""


def why(given: WhyArguments, tell: Tell) -> ToolResult:
    """The account of a localized unit. Its certificate is made now, by one ablation, if the run has none.

    Raises `ClaimNotSupported` for a unit that the search did not localize.
    """
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        findings, neuron, known, search = asked.findings, asked.neuron, asked.unit, search_name(asked.search)
        if known is None:
            raise ClaimNotSupported(
                f"{neuron} was not localized in run {findings.run} ({search}), so there is nothing to "
                f"explain; ask `mecharule why-not {findings.run} {neuron}`"
            )
        chain = run.chain(neuron, asked.regime)
        learned = run.account(neuron, asked.regime)
        certificate = _stored(run.store.certificates(), known)
    if certificate is None:
        tell(f"{neuron} has no certificate yet: one ablation on both slices")
        certificate = _made(given.run, known, tell)
    parts = explained(neuron, learned, chain, findings.run)
    data = {
        "run": findings.run,
        "explanation": [part.cited for part in explanation(parts)],
        "parts": {name: part.cited for name, part in parts.items()},
        "account": None if learned is None else encode(learned),
        "chain": None if chain is None else encode(chain),
        "search": search,
        **_data(findings, known, certificate, given.show_text),
    }
    facts = [
        *_flips(findings, known, certificate, chain, given.show_text),
        *_explanation(parts),
        *_claim(findings, known, certificate, learned),
    ]
    told = stated(data, facts, head=f"run {findings.run} · {search}")
    return replace(told, facts=(*_refutations(findings, known, certificate), *told.facts))


def _flips(
    findings: Findings, known: Unit, certificate: Certificate, chain: Chain | None, show_text: bool
) -> Iterator[Fact]:
    """What it flips, by how much more on which slice, and examples; where a chain says what breaks, that is why."""
    agonist, selectivity = known.agonist, known.estimate.signed_selectivity
    why = "" if chain else "why"
    yield flips_fact(certificate, known, f"when controls {why}")
    yield fact(
        f"{agonist.neuron} ({agonist.regime.arrow}) has strength {agonist.estimate.strength:.2f} "
        f"{'≥' if agonist.is_tau_agonist else '<'} τ {agonist.tau:g} · selectivity {signed(selectivity)} "
        f"({leaning(selectivity, agonist.epsilon)}) · grade {_grade(findings, known)}",
        f"c:{certificate.id}",
        unit=agonist.neuron,
        kinds="strength",
    )
    yield flipped_fact(certificate, show_text, f"flipped {why}")


def _explanation(parts: dict[str, Fact]) -> list[Fact]:
    """The parts of the explanation; one that says the same for several questions answers all of them."""
    told: dict[Fact, list[str]] = {}
    for name, kinds in _KINDS.items():
        if name in parts:
            told.setdefault(parts[name], []).extend(kinds.split())
    return [replace(part, kinds=tuple(kinds)) for part, kinds in told.items()]


def _claim(
    findings: Findings, known: Unit, certificate: Certificate, learned: Account | None
) -> Iterator[Fact]:
    """Its rule, how sure the flips are, and the controls; without an account the rule says when it flips."""
    unit, run = known.neuron, f"run:{findings.run}"
    cited = (f"c:{certificate.id}", run) if _certified(known, certificate) else (run,)
    words = f"When it flips: {anchored_words(known.rule, findings.run)}"
    yield fact(words, *cited, unit=unit, kinds="rule" if learned else "rule why when")
    if predicts(known.rule) is not None and known.rule is not None and not _is_hq_t(findings, known):
        yield fact(f"That rule reads {known.rule.rule}", run, unit=unit, kinds="rule")
    yield bounds_fact(findings, known, certificate)
    if known.controls and known.controls.flips:
        held_out = known.controls.flips
        said = f"On {held_out.n} held-out records, which chose nothing, it flips {held_out.flips}"
        yield fact(said, run, unit=unit, kinds="why")
    claims, *counts = controls_facts(known.controls, known.estimate, known.agonist.tau, run)
    yield replace(claims, kinds=("why", "sure", "controls", "mind"))
    for count in counts:
        yield replace(count, kinds=("sure", "controls", "mind"))


def bounds_fact(findings: Findings, known: Unit, certificate: Certificate) -> Fact:
    """The lower bounds of its flips on both sides, against τ; none where the slices were not drawn at random."""
    said = "the slices are covers that keep what is rare, so the counts speak of these examples alone"
    if known.search.bounded:
        lower = _lower_bounds(findings, known, certificate)
        bounds = " and ".join(
            f"{lower[total.slice]:.2f} on all of {slice_name(total)}" for total in certificate.totals
        )
        said = (
            f"its lower bounds are {bounds}, against τ = {findings.tau:g}; they hold over both slices of all "
            f"{known.search.cost.candidates:,} units searched at once ({100 * (1 - findings.alpha):g} % confidence)"
        )
    return fact(f"How sure: {said}", f"run:{findings.run}", unit=known.neuron, kinds="why sure")


def _refutations(findings: Findings, known: Unit, certificate: Certificate) -> Iterator[Fact]:
    """What would refute the claim about a unit, with the thresholds in its own counts."""
    name, count = known.estimate.stronger
    needed = _flips_needed(findings, known)
    seen = f"these {count.n} of {name}"
    threshold = (
        f"nothing on {seen}, since even all of them flipping would not bound it above τ"
        if needed is None
        else f"fewer than {needed} flips on the slice of {name} in a second run, for which it is named "
        f"beforehand: so many would put its lower bound at τ or above; it was {count.flips} of {seen}, as one of all "
        "units searched"
    )
    said = [
        f"Any of these would: {threshold}",
        "So would random units that flip as many held-out records as it does",
    ]
    if known.controls is not None and known.controls.selective is Selective.SELECTIVE:
        said.append(
            "That it is selective would be refuted by held-out records on which its flips do not follow the split"
        )
    found = predicts(known.rule)
    if found is not None:
        mark = f"a held-out MCC below {findings.mcc_floor:.2f}"
        has = f"Its rule already has {mark}" if found.mcc < findings.mcc_floor else f"For its rule: {mark}"
        said.append(f"{has}. When it flips: {anchored_words(known.rule, findings.run)}")
    for sentence in said:
        yield fact(sentence, f"c:{certificate.id}", f"run:{findings.run}", unit=known.neuron, kinds="mind")


def _data(findings: Findings, known: Unit, certificate: Certificate, show_text: bool) -> dict[str, object]:
    """Everything about a localized unit as JSON; lower bounds hold over all units searched."""
    agonist, (stronger, _) = known.agonist, known.estimate.stronger
    needed, slices = _flips_needed(findings, known), slices_data(certificate)
    for name, lower in _lower_bounds(findings, known, certificate).items():
        slices[name]["lower"] = lower
    return {
        **about(findings.run, known.neuron, agonist.regime),
        "arrow": agonist.regime.arrow,
        "status": "τ-agonist" if agonist.is_tau_agonist else "localized only",
        "tau": agonist.tau,
        "mcc_floor": findings.mcc_floor,
        "slices": slices,
        "at_random": known.search.bounded > 0,
        "searched": known.search.cost.candidates,
        "confidence": 1 - findings.alpha,
        "strength": known.estimate.strength,
        "upper_bound": agonist.ucb,
        "selectivity": finite(known.estimate.signed_selectivity),
        "leaning": leaning(known.estimate.signed_selectivity, agonist.epsilon),
        "rule": rule_data(known.rule),
        "rule_words": anchored_words(known.rule, findings.run),
        "rule_certified": _certified(known, certificate),
        "hq_t": _is_hq_t(findings, known),
        "controls": controls_data(known.controls, known.estimate, agonist.tau),
        "grade": _grade(findings, known),
        "stronger_slice": stronger,
        "flips_needed": None
        if needed is None
        else {"associated" if stronger == "D+" else "unrelated": needed},
        **flipped_data(certificate, show_text),
    }


def _is_hq_t(findings: Findings, known: Unit) -> bool:
    return known.rule is not None and findings.is_hq_t(known.rule)


def _grade(findings: Findings, known: Unit) -> str:
    """The highest grade that its claims reach."""
    return HELD_OUT if _is_hq_t(findings, known) else SINGLETON


def _flips_needed(findings: Findings, known: Unit) -> int | None:
    """Fewest flips on the stronger slice whose lower bound, of a unit named beforehand, reaches τ, or None."""
    return flips_needed(known.estimate.stronger[1].n, findings.tau, findings.alpha)


def _lower_bounds(findings: Findings, known: Unit, certificate: Certificate) -> dict[str, float]:
    """Of each slice, over all units searched."""
    level = searched_alpha(findings.alpha, known.search.cost.candidates) / 2
    return {total.slice: lower_bound(total.flips, total.n, level) for total in certificate.totals}


def _certified(known: Unit, certificate: Certificate) -> bool:
    """Whether the certificate states the unit's rule too."""
    return (
        known.rule is not None and certificate.rule is not None and certificate.rule.text == known.rule.rule
    )


def _stored(certificates: tuple[Certificate, ...], known: Unit) -> Certificate | None:
    """The certificate whose counts are those of the account."""
    wanted = {name: part for name, part in encode(known.estimate).items() if part["n"]}
    for certificate in certificates:
        totals = {total.slice: {"flips": total.flips, "n": total.n} for total in certificate.totals}
        same_units = (certificate.units, certificate.regime) == (
            (str(known.neuron),),
            known.search.regime.value,
        )
        if same_units and certificate.kind in ("ablate", "why") and totals == wanted:
            return certificate
    return None


def _made(name: str, known: Unit, tell: Tell) -> Certificate:
    from mecharule_ops.run.certify import certify

    with opened(name, write=True, tell=tell) as run:
        made = certify(run, (known.neuron,), known.search.regime, kind="why", rule=known.rule)
        return keep(run, made)
