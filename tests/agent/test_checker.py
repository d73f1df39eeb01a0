"""The citation checker: hundreds of lies caught, hundreds of truths left alone, each rule by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import pytest
from findings_fixture import FINDINGS

from agent.answering.checker import Fault, check
from agent.answering.claims import claims_of, segments_of
from agent.answering.sources import Evidence, Source
from mecharule_ops.certificates.certificate import (
    Certificate,
    CertifiedIntervention,
    CertifiedRule,
    Completion,
    ExampleRow,
    ModelIdentity,
    SliceTotal,
)
from mecharule_ops.certificates.verification import totals_of
from mecharule_ops.confidence import lower_bound, upper_bound

N = 40
SEEDS = 7


def _completion(token: int, label: bool) -> Completion:
    return Completion(tokens=(token,), text=f" {token}", label=label, margin=2.0)


def certificate(unit: str, plus: int, minus: int, rule: str, mcc: float, seed: int) -> Certificate:
    """A certificate with these flips of N a slice, and six of its examples."""
    rows = tuple(
        ExampleRow(
            example=seed * 100 + place,
            prompt=f"1+1=2\n{seed * 100 + place}-7=",
            slice="associated" if place < 3 else "unrelated",
            before=_completion(seed * 100 + place - 7, True),
            after=_completion(seed * 100 + place + 23, False),
        )
        for place in range(6)
    )
    totals = tuple(
        SliceTotal(slice=name, flips=k, n=N, lower=lower_bound(k, N, 0.025), upper=upper_bound(k, N, 0.025))
        for name, k in (("associated", plus), ("unrelated", minus))
    )
    return Certificate(
        kind="why",
        claim=f"ablating {unit} flips {plus}/{N} associated and {minus}/{N} unrelated examples (1→0)",
        model=ModelIdentity(name="arith-tiny", model_hash="ab" * 32, tokenizer_hash="cd" * 32),
        task={"name": "arithmetic", "operands": 299},
        regime=1,
        intervention=CertifiedIntervention(
            basis="mlp_out", hook="m", baseline="mean-positional", baseline_hash="ef", phase="decode"
        ),
        units=(unit,),
        rows=rows,
        totals=totals,
        alpha=0.05,
        seed=7,
        dtype="float32",
        versions={"torch": "2.13.0"},
        rule=CertifiedRule(text=rule, scope="held-out", mcc=mcc, coverage=0.25, n=100, positives=30),
    )


@dataclass(frozen=True)
class Fact:
    """One certificate as a writer of answers sees it."""

    unit: str
    plus: int
    minus: int
    rule: str
    mcc: float
    proof: Certificate
    id: str

    @property
    def cite(self) -> str:
        return f"[c:{self.id}]"


@cache
def _facts(seed: int) -> list[Fact]:
    draw = random.Random(seed)
    facts = []
    for place in range(3):
        plus, minus = draw.randint(15, 36), draw.randint(0, 10)
        unit = f"m{draw.randint(0, 9)}.{1000 + draw.randint(0, 99) * 3 + place}"
        rule, mcc = f"op == '-' and b >= {draw.randint(20, 250)}", round(draw.uniform(0.3, 0.99), 4)
        proof = certificate(unit, plus, minus, rule, mcc, seed=draw.randint(10, 99))
        facts.append(Fact(unit, plus, minus, rule, mcc, proof, proof.id))
    return facts


@cache
def _evidence(seed: int) -> Evidence:
    evidence = Evidence()
    evidence.add_certificates(fact.proof for fact in _facts(seed))
    return evidence


TRUTHS: list[Callable[[Fact], str]] = [
    lambda f: (
        f"Ablating {f.unit} flips {f.plus}/{N} associated and {f.minus}/{N} unrelated examples {f.cite}."
    ),
    lambda f: f"It breaks {f.plus} of the {N} subtractions {f.cite} but {f.minus}/{N} others {f.cite}.",
    lambda f: f"On D+ it flips {f.plus / N:.1%}, on D- {f.minus / N:.1%} {f.cite}.",
    lambda f: f"{f.unit} is an agonist: E {f.plus / N:.2f}. {f.cite} Nothing else is claimed.",
    lambda f: f"Predicted by {f.rule}, MCC {f.mcc:.2f} {f.cite}.",
    lambda f: f"Its rule is `{f.rule}` (held-out MCC {f.mcc:.4f}, coverage 25%) {f.cite}.",
    lambda f: (
        f"For example `{f.proof.rows[0].prompt.splitlines()[1]}` became "
        f"`{f.proof.rows[0].before.text.strip()}→{f.proof.rows[0].after.text.strip()}` {f.cite}."
    ),
    lambda f: (
        f"The upper bound on the associated slice is {f.proof.totals[0].upper:.3f} and the lower "
        f"bound {f.proof.totals[0].lower:.3f} {f.cite}."
    ),
    lambda f: (
        f"1. {f.unit} flips {f.plus} out of {N} examples of the associated slice {f.cite}\n"
        f"2. Of the unrelated slice it flips {f.minus} of {N} {f.cite}"
    ),
    lambda f: f"At α = 0.05, {f.unit} in {f.unit.split('.')[0]} was ablated 1→0 {f.cite[:8]}].",
    lambda f: "I cannot tell from the evidence why that is so.",
    lambda f: (
        f"It flips {100 * f.plus / N:g} percent of D+, selectivity {(f.plus - f.minus) / N:+.2f} {f.cite}."
    ),
    lambda f: f"D+ is in [{f.proof.totals[0].lower:.2f}, {f.proof.totals[0].upper:.2f}] {f.cite}.",
    lambda f: (
        f"On {f.proof.rows[0].prompt.splitlines()[1]} it says {f.proof.rows[0].before.text.strip()} {f.cite}."
    ),
    lambda f: f"(**{f.plus}/{N}**; “{f.unit}”): zero doubt that {f.plus} ∕ {N} flip {f.cite}!".replace(
        "zero", "no"
    ),
    lambda f: f"What flips: .{round(100 * f.plus / N):02d} of D+ {f.cite}; see certificate {f.id}.",
]


def _other(draw: random.Random, right: set[int]) -> int:
    return draw.choice([number for number in range(11, N - 1) if number not in right])


FRACTIONS = {"½": 1 / 2, "⅔": 2 / 3, "⅞": 7 / 8}
SPOKEN = {"Two thirds": 2 / 3, "Three quarters": 3 / 4, "A fifth": 1 / 5}


def _untrue(fact: Fact, draw: random.Random, said: dict[str, float]) -> str:
    """A fraction that is none of the certificate's rates, bounds and scores."""
    shares = [share for total in fact.proof.totals for share in (total.flips / N, total.lower, total.upper)]
    true = [*shares, fact.mcc, 0.25, (fact.plus - fact.minus) / N]
    return draw.choice([text for text, value in said.items() if min(abs(value - x) for x in true) > 0.01])


LIES: dict[str, Callable[[Fact, random.Random], str]] = {
    "wrong count": lambda f, d: (
        f"Ablating {f.unit} flips {_other(d, {f.plus, f.minus})}/{N} examples {f.cite}."
    ),
    "wrong denominator": lambda f, d: f"It flips {f.plus}/{_other(d, {N})} examples {f.cite}.",
    "swapped slices": lambda f, d: f"It flips {f.minus}/{N} associated examples {f.cite}.",
    "swapped slices backwards": lambda f, d: f"Unrelated: {f.plus} of {N} {f.cite}.",
    "wrong rate": lambda f, d: f"It flips {_other(d, {f.plus, f.minus}) / N:.1%} of them {f.cite}.",
    "wrong MCC": lambda f, d: f"Its rule reaches MCC {f.mcc - d.choice([0.1, 0.2, -0.02]):.3f} {f.cite}.",
    "wrong rule": lambda f, d: f"Predicted by `op == '-' and b >= {_other(d, {20})}.5` {f.cite}.",
    "wrong quote": lambda f, d: f"For example `{d.randint(300, 900)}-8=` flips {f.cite}.",
    "invented unit": lambda f, d: (
        f"m11.{d.randint(2000, 9999)} flips {f.plus}/{N} associated examples {f.cite}."
    ),
    "invented unit uncited": lambda f, d: f"Look at a{d.randint(30, 40)}.h{d.randint(0, 9)} too.",
    "uncited count": lambda f, d: f"Ablating it flips {f.plus}/{N} associated examples.",
    "uncited after a citation": lambda f, d: f"It is an agonist {f.cite}. It flips {f.plus} of {N}.",
    "uncited word": lambda f, d: f"It flips {d.choice(['thirty-one', 'forty', 'a dozen', 'half'])} examples.",
    "wrong word": lambda f, d: (
        f"It flips {d.choice(['forty-one', 'seventeen hundred', 'ninety'])} examples {f.cite}."
    ),
    "uncited unit": lambda f, d: f"The cause is {f.unit}.",
    "forged certificate": lambda f, d: (
        f"It flips {f.plus}/{N} associated examples [c:{d.randrange(16**12):012x}]."
    ),
    "forged near miss": lambda f, d: f"It is an agonist [c:{f.id[:6]}zz].",
    "forged run": lambda f, d: f"It flips {f.plus}/{N} [run:{d.randrange(16**4):04x}].",
    "citation too short": lambda f, d: f"It flips {f.plus}/{N} [c:{f.id[:2]}].",
    "forged bare id": lambda f, d: f"See certificate {d.randrange(16**11):012x}.",
    "wrong regime": lambda f, d: f"The flips are 0→1 {f.cite}.",
    "name with a number": lambda f, d: f"This holds for model{_other(d, {N})} {f.cite}.",
    "stuck together": lambda f, d: f"It flips{_other(d, {f.plus, f.minus})}examples {f.cite}.",
    "other script": lambda f, d: f"It flips {chr(0xFF13)}{chr(0xFF17)} of {N} {f.cite}.",
    "vulgar fraction": lambda f, d: f"It flips {_untrue(f, d, FRACTIONS)} of the examples {f.cite}.",
    "fraction in words": lambda f, d: f"{_untrue(f, d, SPOKEN)} flip {f.cite}.",
    "fraction slash": lambda f, d: f"It flips {_other(d, {f.plus, f.minus})}{d.choice('⁄∕')}{N} {f.cite}.",
    "percent in words": lambda f, d: (
        f"{_other(d, {0})}.3 {d.choice(['percent', 'per cent', '‰'])} flip {f.cite}."
    ),
    "scaled word": lambda f, d: f"It flips {d.choice(['two', 'nine', 'thirty'])} hundred examples {f.cite}.",
    "vague word": lambda f, d: f"It flips {d.choice(['dozens', 'hundreds', 'thousands'])} of them {f.cite}.",
    "multiple in words": lambda f, d: f"{d.choice(['Twice', 'Triple', 'Tenfold'])} the others {f.cite}.",
    "ordinal": lambda f, d: f"It is the {d.choice(['eighty-first', 'ninety-second'])} unit {f.cite}.",
    "raised figures": lambda f, d: f"It flips {d.choice('³⁴')}{d.choice('⁸⁹')} examples {f.cite}.",
    "interval": lambda f, d: f"D+ is in [0.0{d.randint(1, 4)}, {f.proof.totals[0].upper:.2f}] {f.cite}.",
    "unicode minus": lambda f, d: f"MCC {d.choice('−–-')}{f.mcc - 0.11:.2f} {f.cite}.",
    "unit with a wrong layer": lambda f, d: f"n{f.unit[1:]} flips {f.plus}/{N} {f.cite}.",
    "citation in another form": lambda f, d: (
        f"{f.plus}/{N} flip {d.choice(['(c:', '[C:', '[cert:'])}{f.id}]."
    ),
    "another answer": lambda f, d: (
        f"On {f.proof.rows[0].prompt.splitlines()[1]} it says {_other(d, {7})}8 {f.cite}."
    ),
    "answer without its question": lambda f, d: f"It says {f.proof.rows[0].before.text.strip()} {f.cite}.",
    "rounded the wrong way": lambda f, d: f"MCC {f.mcc + 0.011:.2f} {f.cite}.",
}


def test_truthful_answers_are_never_flagged() -> None:
    """Sixteen forms of truth about 21 certificates: 336 answers, no mark."""
    checked = 0
    for seed, truth in product(range(SEEDS), TRUTHS):
        evidence = _evidence(seed)
        for fact in _facts(seed):
            answer = truth(fact)
            outcome = check(answer, evidence)
            assert outcome.verified, (answer, outcome.text)
            assert outcome.text == answer
            checked += 1
    assert checked == len(TRUTHS) * 3 * SEEDS == 336


@pytest.mark.parametrize("kind", LIES)
def test_every_kind_of_lie_is_caught(kind: str) -> None:
    """Ten lies of each of 40 kinds, 400 in all: none passes, and the mark is readable in the text."""
    for draw in range(10):
        seed = draw % SEEDS
        answer = LIES[kind](_facts(seed)[draw % 3], random.Random(draw))
        outcome = check(answer, _evidence(seed))
        assert not outcome.verified, answer
        assert all(str(mark) in outcome.text for mark in outcome.marks)
        assert any(fault in outcome.sentence() for fault in Fault)


def test_a_lie_among_truths_is_the_only_thing_struck() -> None:
    """Sixteen true sentences stay as they are around one that is false, whatever its kind."""
    facts = _facts(1)
    evidence = _evidence(1)
    truths = [truth(facts[0]) for truth in TRUTHS]
    for kind, lie in LIES.items():
        false = lie(facts[0], random.Random(5))
        alone = check(false, evidence)
        text = "\n".join([*truths[:6], false, *truths[6:]])
        outcome = check(text, evidence)
        assert [mark.text for mark in outcome.marks] == [mark.text for mark in alone.marks], kind
        assert outcome.text == text.replace(false, alone.text)


def test_a_checker_without_its_word_rule_would_miss_swapped_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie is true of the other slice; only the word beside the number gives it away."""
    facts = _facts(2)
    lie = LIES["swapped slices"](facts[0], random.Random(0))
    assert not check(lie, _evidence(2)).verified
    monkeypatch.setattr("agent.answering.checker._groups_by_claim", lambda *_: {})
    assert check(lie, _evidence(2)).verified


def test_what_differs_is_struck_and_what_is_uncited_is_marked() -> None:
    """The exact form of each mark."""
    fact, evidence = _facts(3)[0], _evidence(3)
    wrong = check(f"It flips 11/40 {fact.cite}.", evidence)
    assert wrong.text == f"It flips ~~11/40~~ [differs from its source] {fact.cite}."
    assert wrong.sentence() == "1 differs from its source"
    assert check("It flips 28/40.", evidence).text == "It flips 28/40 [unverified]."
    forged = check(f"It flips {fact.plus}/40 [c:00000000].", evidence)
    assert forged.text == f"It flips {fact.plus}/40 [unverified] ~~[c:00000000]~~ [no such certificate]."
    assert check("m0.0 did it.", evidence).text == "~~m0.0~~ [no such unit in the evidence] did it."


def test_commands_and_names_of_runs_claim_nothing() -> None:
    """Numbers inside a quoted `mecharule` command or a known run's id are no claims; outside they are."""
    evidence = _evidence(3)
    assert check("Try `mecharule why-not 0c1f m9.77 --test`.", evidence).verified
    assert not check("Try mecharule why-not 0c1f m9.77.", evidence).verified
    evidence = Evidence()
    evidence.at("run:0c1f")
    assert check("See run 0c1f.", evidence).verified
    assert not check("See run 0c2f.", evidence).verified


def test_one_true_citation_beside_a_forged_one_still_shows_the_forgery() -> None:
    """The number stands on the true one; the forged id is struck all the same."""
    fact = _facts(4)[0]
    answer = f"It flips {fact.plus}/40 {fact.cite} [c:deadbeef0000]."
    outcome = check(answer, _evidence(4))
    assert [mark.fault for mark in outcome.marks] == [Fault.FORGED]
    assert outcome.cited == (f"c:{fact.id}",)


def test_a_unit_of_another_certificate_is_struck_where_it_is_cited_wrongly() -> None:
    """Known to the run, unknown to the certificate cited."""
    first, second, _ = _facts(5)
    outcome = check(f"{second.unit} was ablated {first.cite}.", _evidence(5))
    assert [mark.fault for mark in outcome.marks] == [Fault.DIFFERS]


def test_the_findings_of_a_run_can_be_cited_unit_by_unit() -> None:
    """50/64 is true of a20.h8 and of no other unit; a share of the report is found whole."""
    evidence = Evidence()
    evidence.add_findings(FINDINGS)
    cite = f"[run:{FINDINGS.run}]"
    assert check(f"a20.h8 flips 50/64 associated examples {cite}.", evidence).verified
    assert not check(f"a21.h2 flips 50/64 associated examples {cite}.", evidence).verified
    assert check(f"The rule of a20.h8 is `b >= 50 or a % 10 == 9`, MCC 0.78 {cite}.", evidence).verified
    assert not check(f"The rule of a20.h8 has MCC 0.92 {cite}.", evidence).verified


def test_tool_results_can_be_cited_as_the_run() -> None:
    """Numbers that a tool printed or returned are those of the run, by unit where a line names one."""
    evidence = Evidence()
    evidence.add_result(
        "0c1f", {"rank": 17, "unit": "m4.7"}, "m4.7 sat in a group of 12, UCB 0.14\nm5.1: 3/64"
    )
    cite = "[run:0c1f]"
    assert check(f"m4.7 ranks 17th; its group of twelve has UCB .14 {cite}.", evidence).verified
    assert check(f"m5.1 flips 3 of 64 {cite}.", evidence).verified
    assert not check(f"m4.7 flips 3 of 64 {cite}.", evidence).verified
    assert not check(f"m4.7 ranks 18th {cite}.", evidence).verified


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("1,840 of 2,000", [("count", 1840.0, 2000.0)]),
        ("-0.5 and −.25, +3", [("number", -0.5, 0.0), ("number", -0.25, 0.0), ("number", 3.0, 0.0)]),
        ("1e-3 or 2.5E2", [("number", 0.001, 0.0), ("number", 250.0, 0.0)]),
        ("44 % or 4.5%", [("number", 44.0, 0.0), ("number", 4.5, 0.0)]),
        ("7 percent, 7 per cent, 7 ‰", [("number", 7.0, 0.0), ("number", 7.0, 0.0), ("number", 0.7, 0.0)]),
        ("½ or three quarters", [("number", 0.5, 0.0), ("number", 0.75, 0.0)]),
        (
            "two hundred, a dozen, tenfold",
            [("number", 200.0, 0.0), ("number", 12.0, 0.0), ("number", 10.0, 0.0)],
        ),
        ("the baseline zero, zero ablation, zero flips", [("number", 0.0, 0.0)]),
        ("28⁄64 and 28 ∕ 64", [("count", 28.0, 64.0), ("count", 28.0, 64.0)]),
        ("the second and the twenty-second", [("number", 22.0, 0.0)]),
        ("twenty-eight out of sixty-four", [("count", 28.0, 64.0)]),
        ("one of two things, one thing", [("count", 1.0, 2.0)]),
        ("m4.1 n3.2 a20.h8 m4", [("unit", 0, 0), ("unit", 0, 0), ("unit", 0, 0), ("layer", 0, 0)]),
        ("1. first\n2. second\n9. third", [("number", 9.0, 0.0)]),
        ("[c:7f3a] [run:0c1f, c:1234]", []),
        ("٣٤ and ６４", [("number", 34.0, 0.0), ("number", 64.0, 0.0)]),
    ],
)
def test_claims_read_as_a_person_reads_them(text: str, claims: list[tuple[str, float, float]]) -> None:
    """Kinds and values by hand."""
    assert [(claim.kind, claim.value, claim.of) for claim in claims_of(text)] == claims


def test_a_negative_number_ends_where_its_digits_end() -> None:
    """By hand: the space after -192 is not part of it, so a quoted completion is struck nowhere."""
    (claim,) = claims_of("it says -192 now")
    assert (claim.text, claim.begin, claim.end) == ("-192", 8, 12)
    evidence = Evidence()
    evidence.at("c:7f3a7f3a7f3a").replies["7-199="] = {"-192"}
    assert check("On 7 - 199 = it says -192 and stops [c:7f3a].", evidence).verified
    assert not check("On 7 - 199 = it says -193 and stops [c:7f3a].", evidence).verified
    assert not check("It says -192 and stops [c:7f3a].", evidence).verified


def test_segments_end_at_citations_and_lines() -> None:
    """What stands before a citation on its line is its own, whole sentences and decimal points included."""
    text = "It is 0.5. So 3. [c:aaaa] [c:bbbb] Then 4 [c:cccc] and 5.\nseven"
    cut = [
        (text[part.begin : part.end], [id for c in part.citations for id in c.ids])
        for part in segments_of(text)
    ]
    assert cut == [
        ("It is 0.5. So 3. [c:aaaa] [c:bbbb]", ["c:aaaa", "c:bbbb"]),
        (" Then 4 [c:cccc]", ["c:cccc"]),
        (" and 5.\n", []),
        ("seven", []),
    ]


def test_short_texts_cannot_be_quoted() -> None:
    """A completion such as 214 is no licence for the number 214; a question with its answer is."""
    source = Source(id="c:x")
    source.quote("214")
    source.quote("1-7=")
    source.quote("217-3=214")
    assert source.texts == {"217-3=214"}


def test_flips_with_another_unit_held_are_no_flips_of_the_unit_alone() -> None:
    """A certificate of mediation supports what do(j) flips and how many of these a hold prevents, nothing mixed."""
    proof = certificate("m4.1000", 20, 5, "op == '-'", 0.8, seed=12)
    held = [
        replace(row, held="m5.7", after=row.before if place < 2 else row.after)
        for place, row in enumerate(proof.rows)
    ]
    rows = (*proof.rows, *held)
    mediated = replace(proof, kind="mediation", rows=rows, totals=totals_of(rows, 0.05))
    evidence = Evidence()
    evidence.add_certificates([mediated])
    cite = f"[c:{mediated.id}]"
    assert check(f"Ablating m4.1000 flips 3/3 associated examples {cite}.", evidence).verified
    assert check(f"With m5.7 held, 2/6 of the flips of m4.1000 do not happen {cite}.", evidence).verified
    assert not check(f"Ablating m4.1000 flips 1/3 associated examples {cite}.", evidence).verified


def test_random_names_what_random_units_do_and_nothing_else() -> None:
    """A count beside `at random` is the run's; one of random units is the control's alone."""
    evidence = Evidence()
    source = evidence.at("run:0c1f")
    source.read_json({"controls": {"random": {"flips": 0, "n": 512}}})
    source.read_text("9 of 9 have an effect\n31 were drawn")
    assert check("31 were drawn at random [run:0c1f].", evidence).verified
    assert check("random units flip 0/512 [run:0c1f].", evidence).verified
    assert not check("random units flip 9/9 [run:0c1f].", evidence).verified
