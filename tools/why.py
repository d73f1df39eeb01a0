"""Why a unit counts as an agonist: its account, with the certificate that every number rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.confidence import flips_needed, lower_bound, searched_alpha, upper_bound
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.controls import Selective
from mecharule_ops.findings.records import Findings, Unit
from mecharule_ops.numbers import percent, plural, signed, told_apart
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from mecharule_ops.run.registered_claims import claims_of
from mecharule_ops.saying import unit_evidence
from mecharule_ops.saying.account_facts import (
    BREAKS,
    CARRIERS,
    PREDICTION,
    READS,
    REGISTERED,
    SAID_SURE,
    SAID_WHEN,
    THROUGH,
    WHEN,
    WRITES,
    explained,
    explanation,
)
from mecharule_ops.saying.claims import counts_words
from mecharule_ops.saying.control_facts import beside_random, brief_rank, split_words
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.flips import both_slices, leaning
from mecharule_ops.saying.searches import search_name, searched_words
from mecharule_ops.saying.shown_units import evidence_data, evidence_words
from mecharule_ops.saying.unit_rules import told_rule, told_words, when_told
from mecharule_ops.store.ledger import Claim, Hypothesis, HypothesisState
from mecharule_ops.types import FlipCount
from tools._ablations import price_words
from tools._accounts import (
    Asked,
    about,
    controls_data,
    controls_facts,
    example_fact,
    finite,
    flipped_data,
    flipped_fact,
    instead_fact,
    rule_data,
)
from tools.arguments import WhyArguments
from tools.registry import Tell, ToolResult, stated

MOST_CLAIMS = 2
"""Registered predictions that an explanation tells, in the order in which they were registered."""
SINGLETON, HELD_OUT = "exact singleton on the compact slice", "held-out"
"""Grades: the unit alone was ablated; its rule predicts flips on records that chose nothing."""
_WHERE = {"associated": "where the splitter rule holds", "unrelated": "where it does not"}
_KINDS = {
    WHEN: "why when responds",
    BREAKS: "why breaks",
    READS: "reads writes",
    WRITES: "reads writes",
    THROUGH: "why through",
    CARRIERS: "through",
    PREDICTION: "when prediction",
    REGISTERED: "why sure mind",
}
"""The kinds of question that each part of an explanation answers, in the order of an answer."""


def why(given: WhyArguments, tell: Tell) -> ToolResult:
    """The account of a localized unit, from what is stored; where no certificate is, the command that makes one.

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
        learned = asked.account
        certificate = _stored(run.store.certificates(str(neuron)), known)
        examples = _examples(run, known, certificate, given.show_text)
        claims = claims_of(run, neuron, asked.regime)
        claimed = list(_claimed(run, claims))
    parts = explained(neuron, learned, chain, findings.run)
    if learned is None and known.rule is not None:
        parts[WHEN] = _anchored(findings, known, certificate)
    data = {
        "run": findings.run,
        "explanation": [part.cited for part in explanation(parts)],
        "parts": {name: part.cited for name, part in parts.items()},
        "account": None if learned is None else encode(learned),
        "chain": None if chain is None else encode(chain),
        "search": search,
        "claims": [encode(entry) for _, entry in claims],
        **_data(findings, known, certificate, given.show_text, learned),
    }
    below = () if known.is_tau_agonist else unit_evidence.strength(findings, asked.search, neuron, known)
    facts = (
        *_flips(findings, known, certificate, examples),
        *asked.facts(list(below)[1:], "why"),
        *_explanation(parts, chain, asked.facts(claimed, "why when")),
        *asked.facts([f"The rule of {neuron}: {asked.told_words}"], "rule"),
        *_sure(findings, known, parts),
        *_refutations(findings, known, certificate, learned),
    )
    shown = facts if given.full else [one for one in facts if "why" in one.kinds]
    return replace(stated(data, shown), facts=facts)


def _examples(run: Run, known: Unit, certificate: Certificate | None, show_text: bool) -> tuple[Fact, Fact]:
    """Two answers before and after, then more of them; without a certificate what would measure them, at what price."""
    if certificate is not None:
        return (
            example_fact(certificate, show_text, "why flipped breaks"),
            flipped_fact(certificate, show_text, "flipped"),
        )
    regime = known.search.regime
    other = "" if regime is run.regimes[0] else f" --regime {regime.value}"
    price = price_words(run, len(run.slices(regime).positions))
    said = (
        "The counts are the search's; no answers before and after are stored, and no certificate: "
        f"`mecharule ablate {run.id} {known.neuron}{other}` makes one ({price.words})"
    )
    missing = fact(said, f"run:{run.id}", unit=known.neuron, kinds="why flipped breaks")
    return missing, missing


def _source(findings: Findings, certificate: Certificate | None) -> str:
    """Where the unit's counts can be checked."""
    return f"run:{findings.run}" if certificate is None else f"c:{certificate.id}"


def _flips(
    findings: Findings, known: Unit, certificate: Certificate | None, examples: tuple[Fact, Fact]
) -> Iterator[Fact]:
    """What switching it off does, beside random units, with examples; then its counts on the two halves."""
    agonist, unit, source = known.agonist, known.neuron, _source(findings, certificate)
    selectivity = known.estimate.signed_selectivity
    if known.is_tau_agonist and not known.is_shown:
        yield _judged(findings, known)
    yield switched_off(findings, known, certificate)
    yield examples[0]
    instead = None if certificate is None else instead_fact(certificate, "why flipped breaks")
    if instead is not None:
        yield instead
    counted = both_slices(known.estimate, agonist.tau, known.search.bounded)
    yield fact(f"Ablating {unit} alone flips {counted}", source, unit=unit, kinds="strength when controls")
    yield fact(
        f"{unit} ({agonist.regime.arrow}) has strength {told_apart(agonist.estimate.strength, agonist.tau)} "
        f"{'≥' if agonist.is_tau_agonist else '<'} τ {agonist.tau:g} · selectivity {signed(selectivity)} "
        f"({leaning(selectivity, agonist.epsilon)}) · grade {_grade(findings, known)}",
        source,
        unit=unit,
        kinds="strength",
    )
    yield examples[1]


def _judged(findings: Findings, known: Unit) -> Fact:
    """Whether it is shown; of a unit that is not, what is said first."""
    said = evidence_words(findings, known)
    return fact(said, f"run:{findings.run}", unit=known.neuron, kinds="why sure controls strength")


def _anchored(findings: Findings, known: Unit, certificate: Certificate | None) -> Fact:
    """The paper's rule, where no account says when the unit flips."""
    cited = (_source(findings, certificate),) if _certified(known, certificate) else ()
    said = when_told(None, known.rule, findings.run)
    return fact(said, *cited, f"run:{findings.run}", unit=known.neuron, part=SAID_WHEN)


def switched_off(findings: Findings, known: Unit, certificate: Certificate | None) -> Fact:
    """`Switch head a20.h8 off and 92 of 122 answers of SmolLM2 that were right turn wrong (…)`."""
    unit, words, label = known.neuron, findings.words, bool(known.search.regime.value)
    total = _all_flips(known)
    said = (
        f"Switch {unit.basis.row.noun} {unit} off and {total.flips:,} of {total.n:,} answers of {findings.model} that "
        f"were {words.of(label)} turn {words.of(not label)} ({beside_random(known.controls)})"
    )
    sources = dict.fromkeys((_source(findings, certificate), f"run:{findings.run}"))
    return fact(said, *sources, unit=unit, kinds="why when controls")


def _slices(known: Unit) -> dict[str, FlipCount]:
    """The counts of the halves that there are, by name."""
    both = {"associated": known.estimate.associated, "unrelated": known.estimate.unrelated}
    return {name: count for name, count in both.items() if count.n}


def _all_flips(known: Unit) -> FlipCount:
    """Of both halves together."""
    counts = _slices(known).values()
    return FlipCount(flips=sum(count.flips for count in counts), n=sum(count.n for count in counts))


def _claimed(run: Run, claims: Sequence[tuple[Claim, Hypothesis]]) -> Iterator[str]:
    """The first registered predictions of when it flips that were shown, and what became of all."""
    shown = [(claim, entry) for claim, entry in claims if entry.state == HypothesisState.SUPPORTED]
    for claim, entry in shown[:MOST_CLAIMS]:
        assert entry.outcome is not None
        told = counts_words(claim.unit, rule_in_words(claim.rule, run.task), entry.outcome.counts)
        p = "" if entry.outcome.p is None else f", corrected p {entry.outcome.p:.2g}"
        yield f"{told[:1].upper()}{told[1:]} (a registered prediction, shown{p})"
    if shown:
        open_ = sum(entry.state == HypothesisState.OPEN for _, entry in claims)
        others = {"not decided": open_, "not shown": len(claims) - len(shown) - open_}
        rest = "".join(f", {number:,} {how}" for how, number in others.items() if number)
        yield f"Of {plural(len(claims), 'registered prediction')} of when it flips: {len(shown):,} shown{rest}"


def _explanation(parts: dict[str, Fact], chain: Chain | None, claims: list[Fact]) -> list[Fact]:
    """The parts of the explanation; one that says the same for several questions answers all of them.

    What was registered and shown of when it flips stands behind what the run learned of it. Of a head `why` says what
    it reads, of a channel or neuron, which reads all at once, what it writes.
    """
    telling = None if chain is None else READS if chain.reads.heads else WRITES
    told: dict[Fact, list[str]] = {}
    for name, kinds in _KINDS.items():
        if name in parts and name != REGISTERED:
            told.setdefault(parts[name], []).extend([*kinds.split(), *(["why"] if name == telling else [])])
    said = [replace(part, kinds=tuple(dict.fromkeys(kinds))) for part, kinds in told.items()]
    place = next((place for place, each in enumerate(said, 1) if "when" in each.kinds), 0)
    return [*said[:place], *claims, *said[place:]]


def _sure(findings: Findings, known: Unit, parts: dict[str, Fact]) -> Iterator[Fact]:
    """How sure the flips are: the rank, whether they follow the split, the bounds, what was registered beforehand."""
    unit, source, controls = known.neuron, f"run:{findings.run}", known.controls
    if known.is_shown:
        yield replace(_judged(findings, known), part=SAID_SURE)
    if controls is not None:
        if controls.basis is not None:
            said = f"It stands {brief_rank(controls)}"
            yield fact(said, source, unit=unit, kinds="why sure controls", part=SAID_SURE)
        if controls.selective is Selective.SELECTIVE:
            yield fact(split_words(controls), source, unit=unit, kinds="why", part=SAID_SURE)
    yield least_fact(findings, known)
    yield bounds_fact(findings, known)
    if REGISTERED in parts:
        yield replace(parts[REGISTERED], kinds=tuple(_KINDS[REGISTERED].split()))
    for count in controls_facts(controls, known.estimate, known.agonist.tau, source):
        yield replace(count, kinds=("sure", "controls", "mind"))


def bounds_fact(findings: Findings, known: Unit) -> Fact:
    """The lower bounds of its flips on both sides, against τ; none where the slices were not drawn at random."""
    said = "The examples were chosen to cover what is rare, so the counts speak of these alone"
    if known.search.bounded:
        bounds = " and ".join(
            f"{percent(lower)} {_WHERE[name]}" for name, lower in _lower_bounds(findings, known).items()
        )
        said = (
            f"These counts show that it flips at least {bounds}, of all such answers and as one of "
            f"{known.search.cost.candidates:,} units ({100 * (1 - findings.alpha):g} % confidence); "
            f"{percent(findings.tau)} of those tried was looked for"
        )
    return fact(said, f"run:{findings.run}", unit=known.neuron, kinds="sure", part=SAID_SURE)


def least_fact(findings: Findings, known: Unit) -> Fact:
    """The larger of the two lower bounds alone."""
    said = "The examples were chosen to cover what is rare, so the counts speak of these alone"
    if known.search.bounded:
        lower = max(_lower_bounds(findings, known).values())
        sure = f"{100 * (1 - findings.alpha):g} % confidence"
        said = (
            f"As one of {searched_words(known.search)} it flips at least "
            f"{percent(lower)} of one half of all such answers ({sure}); {percent(findings.tau)} of those tried was "
            "looked for"
        )
    return fact(said, f"run:{findings.run}", unit=known.neuron, kinds="why", part=SAID_SURE)


def _refutations(
    findings: Findings, known: Unit, certificate: Certificate | None, learned: Account | None
) -> Iterator[Fact]:
    """What would refute the claim about a unit, with the thresholds in its own counts."""
    name, count = known.estimate.stronger
    needed = _flips_needed(findings, known)
    seen = f"these {count.n} of {name}"
    open_still = needed is not None and count.flips < needed
    threshold = (
        f"nothing on {seen}, since even all of them flipping would not bound it above τ"
        if needed is None
        else f"in a second run, for which it is named beforehand, {needed} flips on the slice of {name} would show it, "
        f"fewer would not; it was {count.flips} of {seen}, as one of all units searched, which does not"
        if open_still
        else f"fewer than {needed} flips on the slice of {name} in a second run, for which it is named "
        f"beforehand: {needed} would put its lower bound at τ or above; it was {count.flips} of {seen}, as one of all "
        "units searched"
    )
    said = [
        f"{'That it reaches τ is not shown' if open_still else 'Any of these would'}: {threshold}",
        f"{'Against it would speak' if open_still else 'So would'} random units that flip as many held-out records as "
        "it does",
    ]
    if known.controls is not None and known.controls.selective is Selective.SELECTIVE:
        said.append(
            "That it is selective would be refuted by held-out records on which its flips do not follow the split"
        )
    rule = told_rule(learned, known.rule)
    if rule is not None and rule.shown and rule.held_out is not None:
        mark = f"a held-out MCC below {findings.mcc_floor:.2f}"
        has = (
            f"Its rule already has {mark}"
            if rule.held_out.mcc < findings.mcc_floor
            else f"For its rule: {mark}"
        )
        said.append(f"{has}. Its flips: {told_words(learned, known.rule, findings.run)}")
    for sentence in said:
        sources = dict.fromkeys((_source(findings, certificate), f"run:{findings.run}"))
        yield fact(sentence, *sources, unit=known.neuron, kinds="mind")


def _data(
    findings: Findings,
    known: Unit,
    certificate: Certificate | None,
    show_text: bool,
    learned: Account | None,
) -> dict[str, object]:
    """Everything about a localized unit as JSON; lower bounds hold over all units searched."""
    agonist, (stronger, _) = known.agonist, known.estimate.stronger
    needed, lower = _flips_needed(findings, known), _lower_bounds(findings, known)
    return {
        **about(findings.run, known.neuron, agonist.regime),
        "arrow": agonist.regime.arrow,
        "flips": encode(_all_flips(known)),
        "status": "τ-agonist" if agonist.is_tau_agonist else "localized only",
        "tau": agonist.tau,
        "evidence": evidence_data(findings, known),
        "mcc_floor": findings.mcc_floor,
        "slices": {
            name: {
                "flips": count.flips,
                "n": count.n,
                "lower": lower[name],
                "upper": upper_bound(count.flips, count.n, findings.alpha / 2),
            }
            for name, count in _slices(known).items()
        },
        "at_random": known.search.bounded > 0,
        "searched": known.search.cost.candidates,
        "confidence": 1 - findings.alpha,
        "strength": known.estimate.strength,
        "upper_bound": agonist.ucb,
        "selectivity": finite(known.estimate.signed_selectivity),
        "leaning": leaning(known.estimate.signed_selectivity, agonist.epsilon),
        "rule": rule_data(known.rule),
        "rule_words": told_words(learned, known.rule, findings.run),
        "rule_certified": _certified(known, certificate),
        "hq_t": _is_hq_t(findings, known),
        "controls": controls_data(known.controls, known.estimate, agonist.tau),
        "grade": _grade(findings, known),
        "stronger_slice": stronger,
        "flips_needed": None
        if needed is None
        else {"associated" if stronger == "D+" else "unrelated": needed},
        **({"certificate": None} if certificate is None else flipped_data(certificate, show_text)),
    }


def _is_hq_t(findings: Findings, known: Unit) -> bool:
    return known.rule is not None and findings.is_hq_t(known.rule)


def _grade(findings: Findings, known: Unit) -> str:
    """The highest grade that its claims reach."""
    return HELD_OUT if _is_hq_t(findings, known) else SINGLETON


def _flips_needed(findings: Findings, known: Unit) -> int | None:
    """Fewest flips on the stronger slice whose lower bound, of a unit named beforehand, reaches τ, or None."""
    return flips_needed(known.estimate.stronger[1].n, findings.tau, findings.alpha)


def _lower_bounds(findings: Findings, known: Unit) -> dict[str, float]:
    """Of each slice, over all units searched."""
    level = searched_alpha(findings.alpha, known.search.cost.candidates) / 2
    return {name: lower_bound(count.flips, count.n, level) for name, count in _slices(known).items()}


def _certified(known: Unit, certificate: Certificate | None) -> bool:
    """Whether a certificate states the unit's rule too."""
    rule = None if certificate is None else certificate.rule
    return known.rule is not None and rule is not None and rule.text == known.rule.rule


def _stored(certificates: tuple[Certificate, ...], known: Unit) -> Certificate | None:
    """Of those of the unit alone the one whose counts are those of the account."""
    wanted = {name: part for name, part in encode(known.estimate).items() if part["n"]}
    for certificate in certificates:
        totals = {total.slice: {"flips": total.flips, "n": total.n} for total in certificate.totals}
        same = certificate.regime == known.search.regime.value
        if same and certificate.kind in ("ablate", "why") and totals == wanted:
            return certificate
    return None
