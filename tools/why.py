"""Why a unit counts as an agonist: all that is stored of it, with the certificate that every number rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.confidence import lower_bound, searched_alpha, upper_bound
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.facts.account_facts import (
    READS,
    REGISTERED,
    SAID_SURE,
    SAID_WHEN,
    WHEN,
    WRITES,
    explained,
    explanation,
)
from mecharule_ops.facts.claims import counts_words
from mecharule_ops.facts.control_facts import beside_random, split_words
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.facts.flips import both_slices
from mecharule_ops.facts.rules import briefly, clipped, short
from mecharule_ops.facts.searches import search_name, searched_words
from mecharule_ops.facts.shown_units import evidence_data, evidence_words, rank_words
from mecharule_ops.facts.unit_rules import shown_words, when_told
from mecharule_ops.findings.controls import Selective
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.numbers import of_n, percent, percent_at_least, plural, told_apart
from mecharule_ops.rules.families import Family, UnitRule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate
from mecharule_ops.run.tabulating import claims_of, rule_fires
from mecharule_ops.store.ledger import HypothesisState
from mecharule_ops.types import FlipCount, Share
from tools._asked import Asked
from tools._counts import controls_facts, example_fact, finite, flipped_fact, flips_of
from tools.arguments import WhyArguments
from tools.result import About, Tell, ToolResult, of_facts, price_words

MOST_CLAIMS = 2
"""Registered predictions that were shown, in the order of registration, which the short answer tells."""
BRIEF = {
    *("evidence", "flips", "certificate", "when", "breaks"),
    *("through", "claims", "rank", "selective", "least"),
}
"""What the short answer tells; of a head also what it reads, of a channel or neuron what it writes, and of a shown unit
the bound of what it flips of answers kept aside alone."""


def why(run: Run, given: WhyArguments, tell: Tell) -> ToolResult:
    """The account of a localized unit, from what is stored; where no certificate is, the command that makes one.

    Raises `ClaimNotSupported` for a unit that the search did not localize.
    """
    asked = Asked.of(run, given)
    if asked.unit is None:
        raise ClaimNotSupported(
            f"{asked.neuron} was not localized in run {run.id} ({search_name(asked.search)}), so there is nothing to "
            f"explain; ask `mecharule why-not {run.id} {asked.neuron}`"
        )
    key = f"unit.{asked.neuron}"
    of = About(key, f"run:{run.id}", asked.neuron)
    facts = list(_Told(run, asked, asked.findings, asked.unit, given.show_text, of).facts())
    if not given.full:
        heads = asked.unit.chain is None or bool(asked.unit.chain.reads.heads)
        bounds = () if asked.unit.is_tau_agonist else ("interval", "observed")
        brief = {*BRIEF, READS if heads else WRITES, *bounds} - ({"least"} if asked.unit.is_shown else set())
        shown = [one.key for one in facts if one.value == "supported"][:MOST_CLAIMS]
        facts = [one for one in facts if one.key in shown or one.key.removeprefix(f"{key}.") in brief]
    return of_facts(facts)


@dataclass(frozen=True)
class _Told:
    """Everything that is told of one unit, in the order of an answer."""

    run: Run
    asked: Asked
    findings: Findings
    known: Unit
    show_text: bool
    of: About

    @cached_property
    def slices(self) -> dict[str, FlipCount]:
        """The counts of the halves that there are, by name."""
        both = {"associated": self.known.estimate.associated, "unrelated": self.known.estimate.unrelated}
        return {name: count for name, count in both.items() if count.n}

    @cached_property
    def lower_bounds(self) -> dict[str, float]:
        """Of each slice, over all units searched."""
        level = searched_alpha(self.findings.alpha, self.known.search.cost.candidates) / 2
        return {name: lower_bound(count.flips, count.n, level) for name, count in self.slices.items()}

    def facts(self) -> Iterator[Fact]:
        """What it does, when, how, how sure that is, and who is like it."""
        certificate = find_certificate(self.run, (self.known.neuron,), self.asked.regime)
        if self.known.is_tau_agonist and not self.known.is_shown:
            yield self._evidence()
        yield from self._flips(certificate)
        yield from self._counts()
        yield from self._explanation()
        yield from self._sure()
        yield from self._rules()
        yield from self._covers()
        if certificate is not None:
            yield from self._shared(certificate)

    def _evidence(self, part: str = "") -> Fact:
        value: Any = evidence_data(self.findings, self.known)
        return self.of("evidence", evidence_words(self.findings, self.known), value, part=part)

    def _flips(self, certificate: Certificate | None) -> Iterator[Fact]:
        """`Switch head a20.h8 off and 92 of 122 answers of SmolLM2 that were right turn wrong (…)`, with examples."""
        known, words, label = self.known, self.findings.words, bool(self.asked.regime.value)
        counts = self.slices.values()
        whole = FlipCount(flips=sum(each.flips for each in counts), n=sum(each.n for each in counts))
        said = (
            f"Switch {known.neuron.basis.row.noun} {known.neuron} off and {whole.flips:,} of {whole.n:,} answers of "
            f"{self.findings.model} that were {words.of(label)} turn {words.of(not label)} "
            f"({beside_random(known.controls)})"
        )
        proof = () if certificate is None else (f"c:{certificate.id}",)
        yield self.of("flips", said, encode(whole), *proof, self.of.source)
        if certificate is None:
            other = "" if self.asked.regime is self.run.regimes[0] else f" --regime {self.asked.regime.value}"
            price = price_words(self.run, len(self.run.slices(self.asked.regime).positions))
            said = (
                "The counts are the search's; no answers before and after are stored, and no certificate: "
                f"`mecharule ablate {self.run.id} {known.neuron}{other}` makes one ({price.words})"
            )
            yield self.of("certificate", said)
            return
        example, flipped = (make(certificate, self.show_text) for make in (example_fact, flipped_fact))
        yield self.of("certificate", example.sentence, certificate.id, *proof)
        value = {"rows": flipped.value, "unharmed": example.value}
        yield self.of("flipped", flipped.sentence, value, *proof)

    def _counts(self) -> Iterator[Fact]:
        """Its counts on the two halves, its strength between bounds, and its flips of every record observed."""
        known, findings = self.known, self.findings
        agonist, least = known.agonist, findings.alpha / 2
        slices = {
            name: {**encode(one), "lower": lower, "upper": upper_bound(one.flips, one.n, least)}
            for (name, one), lower in zip(self.slices.items(), self.lower_bounds.values(), strict=True)
        }
        counted = both_slices(known.estimate, agonist.tau, known.search.bounded)
        yield self.of("slices", f"Ablating {known.neuron} alone flips {counted}", slices)
        searched = known.search.cost.candidates
        said = (
            f"Its strength {told_apart(known.estimate.strength, agonist.tau)} on a half of the answers "
            f"{'reaches' if agonist.is_tau_agonist else 'is below'} τ = {agonist.tau:g}; the search bounds it from "
            f"{told_apart(known.lower, agonist.tau)} (over all {searched:,} units) to "
            f"{told_apart(agonist.ucb, agonist.tau)}"
        )
        yield self.of("interval", said, {"lower": known.lower, "upper": agonist.ucb, "searched": searched})
        if known.account is not None:
            every = FlipCount(flips=known.account.flips, n=known.account.records)
            said = (
                "Of every record observed in this direction, those of the slices and further ones drawn for its "
                f"account with them, it flips {of_n(every)}"
            )
            yield self.of("observed", said, encode(every))

    def _explanation(self) -> Iterator[Fact]:
        """When, what breaks, how; what was registered and shown of when it flips stands behind what was learned."""
        known = self.known
        parts = explained(known.neuron, known.account, known.chain, self.run.id)
        if known.account is None and known.rule is not None:
            said = when_told(None, known.rule, self.run.id)
            parts[WHEN] = fact(said, self.of.source, unit=known.neuron, part=SAID_WHEN)
        names = {each: name for name, each in reversed(parts.items())}
        for each in explanation(parts):
            yield replace(each, key=f"{self.of.key}.{names[each]}", value=each.sentence)
            if names[each] == WHEN:
                yield from self._claims()
        if (rule := self.asked.told) is not None:
            yield self.of("rule", f"The rule of {known.neuron}: {self.asked.told_words}", _rule_data(rule))

    def _claims(self) -> Iterator[Fact]:
        """Registered predictions of when it flips, and what became of them."""
        claims = claims_of(self.run, self.known.neuron, self.asked.regime)
        for claim, entry in claims:
            where, outcome = rule_in_words(claim.rule, self.run.task), entry.outcome
            said = f"{claim.sentence(where).removesuffix('.')}: registered, not decided"
            if outcome is not None:
                counted = counts_words(claim.unit, where, outcome.counts)
                p = "" if outcome.p is None else f", corrected p {outcome.p:.2g}"
                shown = "shown" if entry.state == HypothesisState.SUPPORTED else entry.state
                said = f"{counted[:1].upper()}{counted[1:]} (a registered prediction, {shown}{p})"
            key, value = f"claim.{entry.id}.state", str(entry.state)
            yield fact(said, self.of.source, unit=claim.unit, key=key, value=value)
        if borne := sum(entry.state == HypothesisState.SUPPORTED for _, entry in claims):
            open_ = sum(entry.state == HypothesisState.OPEN for _, entry in claims)
            others = {"not decided": open_, "not shown": len(claims) - borne - open_}
            rest = "".join(f", {number:,} {how}" for how, number in others.items() if number)
            of = plural(len(claims), "registered prediction")
            counts = {"registered": len(claims), "shown": borne, **others}
            yield self.of("claims", f"Of {of} of when it flips: {borne:,} shown{rest}", counts)

    def _sure(self) -> Iterator[Fact]:
        """How sure the flips are: the rank, whether they follow the split, the bounds, what was registered."""
        known, findings, controls = self.known, self.findings, self.known.controls
        if known.is_shown or not known.is_tau_agonist:
            yield self._evidence(SAID_SURE)
        if controls is not None and controls.basis is not None:
            drawn = {"above": controls.basis.n - controls.basis.count, "n": controls.basis.n}
            yield self.of("rank", f"It stands {rank_words(known)} units", drawn, part=SAID_SURE)
        if controls is not None and controls.selective is Selective.SELECTIVE:
            yield self.of("selective", split_words(controls), True, part=SAID_SURE)
        least = max(self.lower_bounds.values()) if known.search.bounded else None
        said = "The examples were chosen to cover what is rare, so the counts speak of these alone"
        if least is not None:
            bound = percent_at_least(least, findings.tau)
            said = (
                f"As one of {searched_words(known.search)} it flips at least {bound} of one half "
                f"of all such answers ({100 * (1 - findings.alpha):g} % confidence); {percent(findings.tau)} of "
                "those tried was looked for"
            )
        yield self.of("least", said, least, part=SAID_SURE)
        registered = explained(known.neuron, known.account, None, self.run.id).get(REGISTERED)
        if registered is not None:
            yield replace(registered, key=f"{self.of.key}.{REGISTERED}", value=registered.sentence)
        yield from controls_facts(controls, known.estimate, known.agonist.tau, self.of)

    def _rules(self) -> Iterator[Fact]:
        """Each rule that was learned for it, the shown ones first."""
        learned = [rule for rule in self.known.rules if rule.rule]
        for rule in sorted(learned, key=lambda rule: not rule.shown):
            kind = (
                "rule over the output (anchored)" if rule.family is Family.ANCHORED else f"{rule.family} rule"
            )
            held = rule.interval
            score = f"MCC {held} (n {held.n}, {held.positives} flips)" if held else "no held-out score"
            trees = f"; free-form trees reach {short(rule.free_form.mcc)}" if rule.free_form else ""
            text = clipped(briefly(rule), self.run.id)
            said = f"{kind}: {score}{trees}; shown: {shown_words(rule)}; it holds where {text}"
            yield self.of(f"rules.{rule.family.replace(' ', '_')}", said, _rule_data(rule))

    def _covers(self) -> Iterator[Fact]:
        """What else its rule covers, units with the same rule, and whether it is the splitter rule in disguise."""
        told, run, unit = self.asked.told, self.run, self.known.neuron
        if told is None or told.rule is None:
            return
        eligible = run.eligible(self.asked.regime)
        fires = rule_fires(told.rule, run.task, [run.records[place] for place in eligible])
        held_out = ~run.train[eligible]
        count = {"fires": int(fires.sum()), "eligible": len(eligible)}
        count |= {"held_out_fires": int(fires[held_out].sum()), "held_out": int(held_out.sum())}
        said = (
            f"The rule of {unit} holds on {count['fires']} of {count['eligible']} records that start from the same "
            f"outcome, {count['held_out_fires']} of the {count['held_out']} held out"
        )
        yield self.of("rule.covers", said, count)
        if (split := run.splitter.rule) is None or not held_out.any():
            return
        by_rule, by_split = fires[held_out], split.fires(run.fires)[eligible[held_out]]
        agree = Share(count=int((by_rule == by_split).sum()), n=len(by_rule))
        ours, theirs = float(by_rule.mean()), float(by_split.mean())
        chance = ours * theirs + (1 - ours) * (1 - theirs)
        score = finite(float(mcc(by_rule, by_split)))
        near = agree.count == agree.n or (score is not None and score >= self.findings.mcc_floor)
        said = (
            f"It is {'' if near else 'not '}the splitter rule in disguise ({split}): on held-out records the two agree "
            f"on {of_n(agree)}, two unrelated rules that hold as often would agree on {percent(chance)}"
        )
        value = {"by_chance": chance, "mcc": score, "splitter": str(split), "rule": str(told.rule)}
        yield self.of("rule.disguise", said, {**encode(agree), **value})

    def _shared(self, own: Certificate) -> Iterator[Fact]:
        """For every other certified unit the examples that both flip, of those that either flips, most alike first."""
        others = {
            one.units[0]: one
            for one in self.run.store.certificates()
            if len(one.units) == 1 and one.kind in ("ablate", "why")
            if one.regime == own.regime and one.units != own.units
        }
        rows = []
        for unit, other in others.items():
            (left, right), _ = flips_of(own, other)
            rows.append((len(left & right), len(left | right), unit, f"c:{other.id}"))
        for both, either, unit, proof in sorted(rows, key=lambda row: -row[0] / max(1, row[1])):
            if both:
                said = f"On the slices {unit} and {self.known.neuron} both flip {both} of the {either} examples that"
                value = {"both": both, "either": either}
                yield self.of(f"shared.{unit}", f"{said} either flips", value, f"c:{own.id}", proof)
        said = f"Units with a certificate that were compared with it: {len(others)}"
        yield self.of("shared", said, len(others))


def _rule_data(rule: UnitRule) -> dict[str, FactValue]:
    """A rule with its score, whether or not it is shown."""
    return {
        **{name: getattr(rule, name) for name in ("family", "words", "shown", "prompt_only")},
        "rule": rule.rule and str(rule.rule),
        "held_out": rule.interval and encode(rule.interval),
        "adjusted_p": rule.chance and rule.chance.adjusted,
    }
