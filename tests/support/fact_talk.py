"""Facts as tools state them, and what models say beside them: truths, restatements and lies in many wordings."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from mecharule_ops.saying.fact import Fact

N = 40


@dataclass(frozen=True)
class Case:
    """Seven facts about one unit and its neighbour; f1 is the first."""

    unit: str
    other: str
    plus: int
    minus: int
    mcc: float
    lower: float
    facts: tuple[Fact, ...]


def case(seed: int) -> Case:
    """Drawn so that no two counts, bounds and scores coincide."""
    draw = random.Random(seed)
    plus, minus = draw.randint(22, 35), draw.randint(1, 9)
    unit, other = f"m{draw.randint(0, 9)}.{1000 + seed}", f"a{draw.randint(10, 29)}.h{draw.randint(0, 9)}"
    mcc, lower = round(draw.uniform(0.7, 0.99), 2), round(draw.uniform(0.21, 0.45), 2)
    proof, run = (f"c:{draw.randrange(16**12):012x}",), ("run:0c1f",)
    said = (
        (f"Ablating {unit} alone flips {plus}/{N} of D+", unit, proof),
        (f"Ablating {unit} alone flips {minus}/{N} of D-", unit, proof),
        (f"The lower bound of {unit}'s strength is {lower:.2f}, against τ = 0.2", unit, run),
        (f"Its rule b >= 100 reaches a held-out MCC of {mcc:.2f}", unit, run),
        (f"4 random units of its layer, each ablated alone, flip 0/{4 * N} of D+", None, run),
        (f"{unit} flips more of them than {other} (exact paired test p = 0.003, α = 0.05)", unit, run),
        (f"Ablating {other} alone flips {plus}/{N} of D+ and {minus}/{N} of D-", other, run),
    )
    facts = tuple(Fact(sentence=sentence, unit=about, sources=sources) for sentence, about, sources in said)
    return Case(unit, other, plus, minus, mcc, lower, facts)


TRUTHS: tuple[Callable[[Case], str], ...] = (
    lambda c: "The unit matters on the associated slice ⟦f1⟧.",
    lambda c: "On the associated slice it matters ⟦f1⟧, on the unrelated one hardly ⟦f2⟧.",
    lambda c: "Removing it does harm [f1], and so it matters [f5].",
    lambda c: "I cannot tell from these facts what the unit reads.",
    lambda c: "This does not explain the behaviour ⟦f1⟧.",
    lambda c: "The next test would be another baseline ⟦f3⟧.",
    lambda c: "That is evidence for an effect ⟦f1⟧ and against chance ⟦f5⟧.",
    lambda c: "- The effect: ⟦f1⟧",
    lambda c: "[f1] A second task would say whether that holds elsewhere [f3, f4]",
    lambda c: "The rule predicts when it happens (f4).",
)
"""10 wordings that state nothing of their own: each may stand beside facts."""
RESTATED: tuple[Callable[[Case], str], ...] = (
    lambda c: f"{c.unit} matters here ⟦f1⟧.",
    lambda c: f"It flips {c.plus}/{N} of D+ ⟦f1⟧.",
    lambda c: f"It breaks {c.plus} of {N} associated examples (f1).",
    lambda c: f"Of D- it flips {c.minus}/{N} and of D+ {c.plus}/{N} ⟦f7⟧.",
    lambda c: "It flips most of D+ ⟦f1⟧.",
    lambda c: "Random units flip none of them ⟦f5⟧.",
    lambda c: f"The lower bound is {c.lower:.2f} ⟦f3⟧.",
    lambda c: f"Its rule has a held-out MCC of {c.mcc:.2f} ⟦f4⟧.",
    lambda c: f"{c.unit} flips more of them than {c.other} ⟦f6⟧.",
)
"""9 true wordings that say a fact's own number or comparison again: left out, since the fact stands beside them."""


def _not(draw: random.Random, *right: int) -> int:
    return draw.choice([number for number in range(11, N - 1) if number not in right])


LIES: dict[str, Callable[[Case, random.Random], str]] = {
    "wrong count": lambda c, d: f"It flips {_not(d, c.plus)}/{N} of D+ ⟦f1⟧.",
    "wrong denominator": lambda c, d: f"It flips {c.plus}/{_not(d, N)} of D+ ⟦f1⟧.",
    "right count of the other slice": lambda c, d: f"It flips {c.minus}/{N} of D+ ⟦f7⟧.",
    "right count, swapped words": lambda c, d: f"It flips {c.plus}/{N} unrelated examples ⟦f1⟧.",
    "right number, wrong thing": lambda c, d: f"It flips {c.plus}/{N} of the model's arithmetic ⟦f1⟧.",
    "right number, wrong verb": lambda c, d: f"It repairs {c.plus}/{N} of D+ ⟦f1⟧.",
    "right share, overclaimed": lambda c, d: f"It explains {c.plus / N:.0%} of the arithmetic ⟦f1⟧.",
    "right number of another fact": lambda c, d: f"Its MCC is {c.lower:.2f} ⟦f4⟧.",
    "number of a fact that is not named": lambda c, d: f"It flips {c.plus}/{N} of D+ ⟦f2⟧.",
    "number without a fact": lambda c, d: f"It flips {c.plus}/{N} of D+.",
    "number after its fact": lambda c, d: f"⟦f1⟧ So {_not(d, c.plus)} examples break.",
    "run-wide citation": lambda c, d: f"The search missed {_not(d)} units [run:0c1f].",
    "threshold of the run": lambda c, d: f"It holds at τ = 0.{d.randint(3, 9)} [run:0c1f].",
    "forged certificate": lambda c, d: f"It flips {c.plus}/{N} of D+ [c:{d.randrange(16**12):012x}].",
    "true certificate, no fact": lambda c, d: f"It flips {c.plus}/{N} of D+ [{c.facts[0].sources[0]}].",
    "forged fact": lambda c, d: f"It matters ⟦f{d.randint(8, 99)}⟧.",
    "fact zero": lambda c, d: "It matters ⟦f0⟧.",
    "nearly all": lambda c, d: f"It flips {d.choice(['nearly', 'almost', 'virtually'])} all of D+ ⟦f1⟧.",
    "all": lambda c, d: f"It flips {d.choice(['all', 'every one', 'each'])} of D+ ⟦f1⟧.",
    "every sum": lambda c, d: f"It breaks every {d.choice(['sum', 'answer', 'example'])} ⟦f1⟧.",
    "none": lambda c, d: f"It flips {d.choice(['none', 'nothing'])} of D- ⟦f2⟧.",
    "never": lambda c, d: f"It {d.choice(['never', 'always'])} flips D- ⟦f2⟧.",
    "most of the little": lambda c, d: f"It flips {d.choice(['most', 'the majority', 'half'])} of D- ⟦f2⟧.",
    "most of something else": lambda c, d: (
        f"It flips most {d.choice(['sums', 'carries', 'subtractions'])} ⟦f1⟧."
    ),
    "hardly any": lambda c, d: f"It flips {d.choice(['hardly any', 'very few', 'almost none'])} of D+ ⟦f1⟧.",
    "hardly ever": lambda c, d: f"{d.choice(['It hardly ever flips', 'Not a single answer survives'])} ⟦f1⟧.",
    "a figure in a command": lambda c, d: f"`mecharule it flips {d.randint(51, 99)} % of everything` ⟦f1⟧.",
    "quantity without a fact": lambda c, d: (
        f"{d.choice(['All', 'Most', 'Nearly all', 'Few'])} units do this."
    ),
    "only": lambda c, d: f"{d.choice(['Only', 'Solely'])} this unit flips D+ ⟦f1⟧.",
    "half": lambda c, d: f"It flips {d.choice(['half', 'two thirds', 'a quarter'])} of D- ⟦f2⟧.",
    "twice": lambda c, d: (
        f"It flips {d.choice(['twice', 'double', 'three times', 'tenfold'])} the control ⟦f1⟧."
    ),
    "number words": lambda c, d: f"It flips {d.choice(['eleven', 'forty-one', 'ninety'])} of D+ ⟦f1⟧.",
    "vague number": lambda c, d: f"It flips {d.choice(['dozens', 'hundreds', 'thousands'])} of D+ ⟦f1⟧.",
    "fraction sign": lambda c, d: f"It flips {d.choice('⅛⅞⅓')} of D- ⟦f2⟧.",
    "percentage": lambda c, d: f"It flips {d.randint(91, 99)} % of D+ ⟦f1⟧.",
    "percent in words": lambda c, d: f"It flips {d.randint(91, 99)} percent of D+ ⟦f1⟧.",
    "other script": lambda c, d: f"It flips {chr(0xFF13)}{chr(0xFF10 + d.randint(6, 9))} of {N} ⟦f1⟧.",
    "superlative": lambda c, d: f"It is the {d.choice(['strongest', 'largest', 'best', 'main'])} unit ⟦f1⟧.",
    "swapped comparison": lambda c, d: f"{c.other} flips more of them than {c.unit} ⟦f6⟧.",
    "turned comparison": lambda c, d: (
        f"{c.unit} flips {d.choice(['fewer', 'less'])} of them than {c.other} ⟦f6⟧."
    ),
    "comparison without a fact": lambda c, d: (
        f"It is {d.choice(['stronger', 'weaker', 'better'])} than random units."
    ),
    "comparison beside another fact": lambda c, d: f"{c.unit} flips more than {c.other} ⟦f1⟧.",
    "equal": lambda c, d: f"Both slices flip {d.choice(['equally', 'alike', 'similarly'])} ⟦f1⟧.",
    "above": lambda c, d: f"Its strength lies {d.choice(['above', 'below', 'beyond'])} chance ⟦f1⟧.",
    "increase": lambda c, d: f"Ablating it {d.choice(['increases', 'reduces', 'doubles'])} errors ⟦f1⟧.",
    "invented unit": lambda c, d: f"m{d.randint(30, 40)}.{d.randint(0, 99)} matters too ⟦f1⟧.",
    "invented head": lambda c, d: f"a{d.randint(30, 40)}.h{d.randint(0, 9)} does it.",
    "unit of another fact": lambda c, d: f"{c.other} matters ⟦f1⟧.",
    "unit without a fact": lambda c, d: f"The cause is {c.unit}.",
    "invented layer": lambda c, d: f"This sits in a{d.randint(31, 40)} ⟦f1⟧.",
    "explains": lambda c, d: (
        f"The unit {d.choice(['explains', 'computes', 'encodes', 'stores'])} the carry ⟦f1⟧."
    ),
    "causes": lambda c, d: f"It {d.choice(['causes', 'determines', 'drives', 'governs'])} the answer ⟦f1⟧.",
    "proves": lambda c, d: f"This {d.choice(['proves', 'guarantees'])} what it is for ⟦f1⟧.",
    "responsible": lambda c, d: (
        f"It is {d.choice(['responsible', 'essential', 'necessary'])} for addition ⟦f1⟧."
    ),
    "detector": lambda c, d: f"It is a carry {d.choice(['detector', 'mechanism'])} ⟦f1⟧.",
    "overclaim without a fact": lambda c, d: (
        f"The head {d.choice(['implements', 'performs', 'learned'])} addition."
    ),
    "denied, then claimed": lambda c, d: "It does not flip others, it computes sums ⟦f1⟧.",
    "regime turned": lambda c, d: "The flips are 0→1 ⟦f1⟧.",
    "bare id": lambda c, d: f"See certificate {d.randrange(16**11):012x} ⟦f1⟧.",
    "name with a number": lambda c, d: f"This holds for model{d.randint(11, 99)} ⟦f1⟧.",
    "rounded the wrong way": lambda c, d: f"The held-out MCC is {c.mcc + 0.02:.2f} ⟦f4⟧.",
    "bound called score": lambda c, d: f"Its held-out MCC is {c.lower:.2f} ⟦f3⟧.",
    "upper for lower": lambda c, d: f"The upper bound is {c.lower:.2f} ⟦f3⟧.",
    "negated fact": lambda c, d: f"It never flips {c.plus}/{N} of D+ ⟦f1⟧.",
}
"""62 kinds."""
