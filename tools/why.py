"""Why a unit counts as an agonist: all that is stored of it; and why another is not among the results: the first hurdle
of the recorded search that it did not pass."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from mecharule_ops import codec, config, errors, nodes, types
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.confidence import lower_bound, searched_alpha, upper_bound
from mecharule_ops.facts import control_facts, flips, rules, shown_units, unit_facts
from mecharule_ops.facts.claims import claim_fact
from mecharule_ops.facts.examples import changed_examples, fitting
from mecharule_ops.facts.fact import Fact, FactValue, said
from mecharule_ops.facts.unit_facts import READS, REGISTERED, SAID_SURE, WHEN, WRITES
from mecharule_ops.findings.controls import Selective
from mecharule_ops.findings.records import Unit
from mecharule_ops.loading import model_names
from mecharule_ops.loading.shape import read_shape
from mecharule_ops.numbers import of_n, percent, percent_at_least, plural, told_apart
from mecharule_ops.rules import matthews
from mecharule_ops.run import live_run, opening, tabulating
from mecharule_ops.store.ledger import HypothesisState
from tools import _asked, _counts, arguments
from tools.result import About, Priced, Tell, ToolResult, of_facts, price_words

MOST_CLAIMS = 2
"""Registered predictions that were shown, in the order of registration, which the short answer tells."""
BRIEF = ("evidence", "flips", "certificate", "when", "breaks", "through", "claims", "rank", "selective")
"""What the short answer tells; of a head also what it reads, of a channel or neuron what it writes, and of what is not
shown the bound of what it flips, of what is how often it is found again."""


def why(run: live_run.Run, given: arguments.WhyArguments, tell: Tell) -> ToolResult:
    """The account of a localized unit, from what is stored; where no certificate is, the command that makes one.

    Raises `ClaimNotSupported` for a unit that the search did not localize.
    """
    asked = _asked.Asked.of(run, given)
    if given.recipe:
        model, how = model_names.resolve(run.config.model, offline=True), run.intervention(asked.neuron.basis)
        counts = config.given_text(f"the run's counts are of {how.baseline}, {how.phase}", run.config.given)
        return ToolResult(text=f"# Zero everywhere; {counts}.\n" + read_shape(model).recipe(asked.neuron))
    if (known := asked.unit) is None:
        raise errors.ClaimNotSupported(
            f"{asked.neuron} was not localized {asked.regime.arrow}; ask `mecharule why-not {run.id} {asked.neuron}`"
        )
    of = About.of_unit(run, asked.neuron)
    facts = list(_Told(run, asked, known, given.show_text, of).facts())
    if given.full:
        return of_facts(facts)
    brief = {*BRIEF, READS if known.chain is None or known.chain.reads.heads else WRITES}
    brief |= {"resampled", "again"} if known.is_shown else {"least"}
    brief |= set() if known.is_tau_agonist else {"interval", "observed"}
    verdicts: list[Any] = [one for one in facts if one.key.endswith(".verdict")]
    shown = [one.key for one in verdicts if one.value["state"] == HypothesisState.SUPPORTED][:MOST_CLAIMS]
    return of_facts([one for one in facts if one.key in shown or one.key.removeprefix(f"{of.key}.") in brief])


@dataclass(frozen=True)
class _Told:
    """Everything that is told of one unit, in the order of an answer."""

    run: live_run.Run
    asked: _asked.Asked
    known: Unit
    show_text: bool
    of: About

    @cached_property
    def slices(self) -> dict[str, tuple[types.FlipCount, float]]:
        """The counts of the halves that there are, each with its lower bound over all units searched."""
        estimate, search = self.known.estimate, self.known.search
        level = searched_alpha(self.asked.findings.alpha, search.cost.candidates) / 2
        both = {"associated": estimate.associated, "unrelated": estimate.unrelated}
        return {name: (one, lower_bound(one.flips, one.n, level)) for name, one in both.items() if one.n}

    def facts(self) -> Iterator[Fact]:
        """What it does, when, how, how sure that is, and who is like it."""
        certificate = opening.find_certificate(self.run, (self.known.neuron,), self.asked.regime)
        if self.known.is_tau_agonist and not self.known.is_shown:
            yield self._evidence()
        yield from self._flips(certificate)
        yield from self._counts()
        yield from self._explanation()
        yield from self._sure()
        yield from self._covers()
        if certificate is not None:
            yield self._shared(certificate)

    def _evidence(self, part: str = "") -> Fact:
        findings = self.asked.findings
        value: Any = shown_units.evidence_data(findings, self.known)
        return self.of("evidence", shown_units.evidence_words(findings, self.known), value, part=part)

    def _flips(self, certificate: Certificate | None) -> Iterator[Fact]:
        """`Switch head a20.h8 off and 92 of 122 answers of SmolLM2 that were right turn wrong (…)`, with examples."""
        known, findings, label = self.known, self.asked.findings, bool(self.asked.regime.value)
        whole = codec.encode(known.estimate.associated + known.estimate.unrelated)
        parts: dict[str, Any] = {"f": findings, "beside": control_facts.beside_random(known.controls)}
        rank = shown_units.rank_words(known)
        if known.controls is None and known.evidence is not None and rank != shown_units.NOT_MEASURED:
            flips = known.evidence.flips
            parts["beside"] = f"{flips.flips:,} of {flips.n:,} kept aside, {rank} units"
        parts |= {"before": findings.words.of(label), "after": findings.words.of(not label)}
        proof = () if certificate is None else (f"c:{certificate.id}",)
        yield self.of.told("flips", "why.flips", whole, *proof, self.of.source, **parts)
        if certificate is None:
            other = "" if self.asked.regime is self.run.regimes[0] else f" --regime {self.asked.regime.value}"
            price = price_words(self.run, len(self.run.slices(self.asked.regime).positions)).words
            parts = {"run": self.run.id, "other": other, "price": price}
            yield self.of.told("certificate", "why.certificate.none", **parts)
            return
        said, spared = changed_examples(certificate, self.show_text, fitting(self.run, known, certificate))
        yield self.of("certificate", said, certificate.id, *proof)
        flipped = _counts.flipped_fact(certificate, self.show_text, self.of)
        unharmed = None if spared is None else _counts.example_data(spared)
        yield replace(flipped, value={"rows": flipped.value, "unharmed": unharmed})

    def _counts(self) -> Iterator[Fact]:
        """Its counts on the two halves, its strength between bounds, and its flips of every record observed."""
        known, agonist, least = self.known, self.known.agonist, self.asked.findings.alpha / 2
        counts: dict[str, FactValue] = {
            name: {**codec.encode(one), "lower": lower, "upper": upper_bound(one.flips, one.n, least)}
            for name, (one, lower) in self.slices.items()
        }
        counted = flips.both_slices(known.estimate, agonist.tau, known.search.bounded)
        yield self.of("slices", f"Ablating {known.neuron} alone flips {counted}", counts)
        tau = agonist.tau
        parts: dict[str, Any] = {"reaches": "reaches" if agonist.is_tau_agonist else "is below", "tau": tau}
        parts |= {"low": told_apart(known.lower, tau, -1), "high": told_apart(agonist.ucb, tau, 1)}
        parts["strength"] = told_apart(known.estimate.strength, tau)
        value = {"lower": known.lower, "upper": agonist.ucb, "searched": known.search.cost.candidates}
        yield self.of.told("interval", "why.interval", value, **parts)
        if known.account is not None:
            every = types.FlipCount(flips=known.account.flips, n=known.account.records)
            yield self.of.told("observed", "why.observed", codec.encode(every), counted=of_n(every))

    def _explanation(self) -> Iterator[Fact]:
        """When, what breaks, how; what was registered and shown of when it flips stands behind what was learned."""
        known = self.known
        parts = unit_facts.unit_parts(known.neuron, known.account, known.chain, self.run.id, known.rule)
        for each in unit_facts.explanation(parts):
            yield self._told_before(each, each.key)
            if each.key == WHEN:
                yield from self._drive()
                yield from self._claims()
        if (rule := self.asked.told) is not None:
            said = f"The rule of {known.neuron}: {rules.rule_words(rule, self.run.id)}"
            yield self.of("rule", said, rules.rule_value(rule))

    def _drive(self) -> Iterator[Fact]:
        """Of a drive that is told: the held-out flips where it is said to work most; the conditions only counted."""
        known, run, positions = self.known, self.run, self.run.observed.eligible(self.asked.regime)
        drive = None if known.account is None else known.account.drive
        if drive is None or not rules.when_in_short(known.account).startswith("drive"):
            return
        held_out, named = positions[~run.observed.train[positions]], rules.named_terms(drive)
        records = [run.observed.records[position] for position in held_out]
        fires = [tabulating.rule_fires(term.rule, run.task, records) for term in named if term.lifts > 0]
        if fires:
            flips = run.flips([(known.neuron,)], held_out, self.asked.regime)[0]
            where = types.FlipsWhere.of(np.any(fires, axis=0), flips)
            yield self.of.told("where", "when.flips", codec.encode(where), part="When", w=where)
        rest = [term for term in drive.terms if term not in named]
        if finer := "; ".join(f"{'most' if term.lifts > 0 else 'least'} where {term.words}" for term in rest):
            yield self.of("finer", f"Finer, each added to those before: {finer}", finer, part="When")

    def _told_before(self, one: Fact, name: str) -> Fact:
        """A part of an explanation as a fact of this answer, whose value is its sentence where it has none."""
        return replace(one, key=f"{self.of.key}.{name}", value=one.value or one.sentence)

    def _claims(self) -> Iterator[Fact]:
        """Registered predictions of when it flips, and what became of them."""
        claims = tabulating.claims_of(self.run, self.known.neuron, self.asked.regime)
        yield from (claim_fact(self.run, *each) for each in claims)
        states = [entry.state for _, entry in claims]
        if borne := states.count(HypothesisState.SUPPORTED):
            open_ = states.count(HypothesisState.OPEN)
            others = {"not tested": open_, "not supported": len(states) - borne - open_}
            rest = "".join(f", {number:,} {how}" for how, number in others.items() if number)
            counts = {"registered": len(states), "supported": borne, **others}
            of_all = plural(len(states), "registered prediction")
            yield self.of.told("claims", "why.claims", counts, of=of_all, rest=rest)

    def _sure(self) -> Iterator[Fact]:
        """How sure the flips are: the rank, whether they follow the split, the bounds, what was registered."""
        known, findings, controls = self.known, self.asked.findings, self.known.controls
        if known.is_shown or not known.is_tau_agonist:
            yield self._evidence(SAID_SURE)
        if (above := shown_units.above(known)) is not None:
            rank = f"It stands {shown_units.rank_words(known)} units"
            yield self.of("rank", rank, codec.encode(above), part=SAID_SURE)
        if (again := known.resampled) is not None:
            text = f"It {shown_units.resampled_words(known)}"
            yield self.of("resampled", text, codec.encode(again), part=SAID_SURE)
        if (more := known.again) is not None:
            found = shown_units.again_words(known)
            yield self.of.told("again", "unit.again", codec.encode(more), part=SAID_SURE, found=found)
        if controls is not None and controls.selective is Selective.SELECTIVE:
            yield self.of("selective", control_facts.split_words(controls), True, part=SAID_SURE)
        least = max(lower for _, lower in self.slices.values()) if known.search.bounded else None
        parts = {
            "among": plural(known.search.cost.candidates, known.neuron.basis.row.noun),
            "sure": f"{100 * (1 - findings.alpha):g} %",
            "bound": least is not None and percent_at_least(least),
        }
        yield self.of.told("least", f"why.least{'.none' * (least is None)}", least, part=SAID_SURE, **parts)
        registered = unit_facts.unit_parts(known.neuron, known.account, None, self.run.id).get(REGISTERED)
        if registered is not None:
            yield self._told_before(registered, REGISTERED)
        yield from _counts.controls_facts(controls, known.estimate, known.agonist.tau, self.of)

    def _covers(self) -> Iterator[Fact]:
        """What else its rule covers, and whether it is the splitter rule in disguise."""
        told, run = self.asked.told, self.run
        if told is None or told.rule is None:
            return
        eligible = run.eligible(self.asked.regime)
        fires = tabulating.rule_fires(told.rule, run.task, [run.records[place] for place in eligible])
        held_out = ~run.train[eligible]
        count = {"fires": int(fires.sum()), "eligible": len(eligible)}
        count |= {"held_out_fires": int(fires[held_out].sum()), "held_out": int(held_out.sum())}
        yield self.of.told("rule.covers", "why.covers", count)
        if (split := run.splitter.rule) is None or not held_out.any():
            return
        by_rule, by_split = fires[held_out], split.fires(run.fires)[eligible[held_out]]
        agree = types.Share(count=int((by_rule == by_split).sum()), n=len(by_rule))
        ours, theirs = float(by_rule.mean()), float(by_split.mean())
        chance = ours * theirs + (1 - ours) * (1 - theirs)
        score = matthews.mcc(by_rule, by_split)
        near = agree.count == agree.n or score >= self.asked.findings.mcc_floor
        value = {**codec.encode(agree), "by_chance": chance, "mcc": score}
        value |= {"splitter": str(split), "rule": str(told.rule)}
        parts = {"no": "" if near else "not ", "agree": of_n(agree), "chance": percent(chance)}
        yield self.of.told("rule.disguise", "why.disguise", value, **parts)

    def _shared(self, own: Certificate) -> Fact:
        """For every other certified unit the examples that both flip, of those that either flips, most alike first."""
        others = {
            one.units[0]: one
            for one in self.run.store.certificates()
            if len(one.units) == 1 and one.kind in ("ablate", "why")
            if one.regime == own.regime and one.units != own.units
        }
        shared: dict[str, Any] = {}
        for unit, other in others.items():
            (left, right), _ = _counts.flips_of(own, other)
            if left & right:
                shared[unit] = {"both": len(left & right), "either": len(left | right)}
        told = sorted(shared.items(), key=lambda one: -one[1]["both"] / one[1]["either"])
        said = ", ".join(f"{one['both']} of {one['either']} with {unit}" for unit, one in told) or "none"
        proof = f"c:{own.id}", *(f"c:{others[unit].id}" for unit in shared)
        of = plural(len(others), "other unit")
        return self.of.told("shared", "why.shared", shared, *proof, of=of, said=said)


def why_not(run: live_run.Run, given: arguments.WhyNotArguments, tell: Tell) -> Priced:
    """The hurdle, the unit's rank in attribution, the tests on the way; with `test` an exact ablation.

    Cost: both slices, with `test` and without a certificate of the unit alone.
    """
    asked = _asked.Asked.of(run, given)
    neuron, regime = asked.neuron, asked.regime
    made = opening.find_certificate(run, (neuron,), regime) if given.test else None
    yield len(run.slices(regime).positions) if given.test and made is None else 0
    of = About.of_unit(run, neuron, "why_not")
    scores, path = run.attribution(neuron.basis, regime), run.told.settled(neuron, regime.value)
    rank = None if scores is None else attribution_rank(neuron, scores)
    alone, n = _alone(run, neuron, regime), len(run.slices(regime).positions)
    word, parts = _reason(asked, path[-1] if path else None, rank, alone)
    facts = [of.told("reason", f"why_not.{word.replace(' ', '_')}", word, regime=regime, **parts)]
    if rank is not None and scores is not None:
        value = {"rank": rank, "units": scores.size, "score": float(scores[neuron.layer, neuron.channel])}
        facts.append(of.told("attribution", "why_not.attribution", value))
    if path:
        said = ". ".join(_node_words(each, run.config.tau) for each in path)
        facts.append(of("tests", said, [_node_data(each, neuron) for each in path], part="Tests"))
    if alone.n and not path:
        facts.append(of.told("alone", "why_not.alone", codec.encode(alone), alone=alone, part="Tests"))
    if given.test:
        made = _counts.certificate_of(run, neuron, regime)
        facts.append(_counts.flips_fact(made, About.of_unit(run, neuron)))
    elif alone.n < n and (not path or path[-1].size > 1):
        facts.append(of.told("next", "why_not.next", f"mecharule why-not {run.id} {neuron} --test", n=n))
    return of_facts(facts)


def _alone(run: live_run.Run, unit: types.Neuron, regime: types.Regime) -> types.FlipCount:
    """Its flips on the records of the slices on which it was ablated alone, by an audit or since."""
    asked = np.array(run.slices(regime).positions)
    known = asked[~run.engine(run.intervention(unit.basis)).missing((unit,), asked)]
    return types.FlipCount(flips=int(run.flips([(unit,)], known, regime).sum()), n=len(known))


def _reason(
    asked: _asked.Asked, node: nodes.Node | None, rank: int | None, alone: types.FlipCount
) -> tuple[str, dict[str, Any]]:
    """The first hurdle that the unit did not pass, in the order of the method, and what its sentence names."""
    findings, search, known = asked.findings, asked.search, asked.unit
    parts: dict[str, Any] = {"rank": rank, "s": search, "node": node, "f": findings}
    if known is None:
        if node is None and search.audit and search.audit.counted:
            return "counted", parts
        if node is None:
            left = types.SearchStatus.LEFT.value in search.status
            beyond = rank is not None and rank > search.cost.candidates
            return "not a candidate" if beyond else "not promised" if left else "not settled", parts
        plus, minus = node.estimate.associated, node.estimate.unrelated
        parts |= {"plus": plus, "minus": minus, "group": node.printed(asked.neuron.basis)}
        parts |= {"bound": told_apart(node.ucb, findings.tau, 1), "alone": alone}
        return "tested below τ" if node.size == 1 else "audited" if alone.n else "pruned in a group", parts
    parts |= {"flips": flips.unit_flips(known), "bound": told_apart(known.agonist.ucb, findings.tau, 1)}
    if not known.is_tau_agonist:
        return "below τ", parts
    return "it is one" if known.is_shown else "not shown", parts


def _node_data(node: nodes.Node, unit: types.Neuron) -> dict[str, FactValue]:
    told: dict[str, FactValue] = {"node": node.id, "units": node.printed(unit.basis), "size": node.size}
    halves = {name: codec.encode(getattr(node.estimate, name)) for name in ("associated", "unrelated")}
    return {**told, **halves, "upper_bound": node.ucb, "verdict": node.verdict}


def _node_words(node: nodes.Node, tau: float) -> str:
    what = "the unit alone" if node.size == 1 else f"a group of {node.size} units"
    plus, minus, bound = node.estimate.associated, node.estimate.unrelated, told_apart(node.ucb, tau, 1)
    return said("why_not.node", node=node, what=what, plus=plus, minus=minus, bound=bound)


def attribution_rank(neuron: types.Neuron, scores: Float[np.ndarray, "layer channel"]) -> int:
    """The rank of a unit by |score| among all of its basis; units with equal |score| share the best of their ranks."""
    return 1 + int((np.abs(scores) > abs(scores[neuron.layer, neuron.channel])).sum())
