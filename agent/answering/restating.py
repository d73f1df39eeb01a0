"""Whether a sentence says nothing but one fact in other words: word by word, value by value.

Every word must be the fact's own, or one that means the same of an ablation, or one that says nothing. A number must
be the fact's and of the same thing (associated or unrelated slice, bound, score).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.answering.claims import UNIT, Claim, claims_of
from agent.answering.overclaims import COMPARISON, QUANTIFIERS
from agent.answering.sources import GROUPS
from agent.answering.words import FILLERS
from mecharule_ops.saying.fact import Fact

_ALIKE = """
flip flips flipped flipping break breaks broken breaking change changes changed turn turns turned switch
switches ablate ablated ablates ablating ablation remove removed removing removal knock knocked knocking
out off silence silenced silencing when while once alone single singly itself it its unit neuron head
channel coordinate example examples record records case cases prompt prompts answer answers outcome
outcomes completion completions slice associated unrelated rate share percent percentage strength lower
upper bound bounds interval confidence mcc held rule score random controls control run search count
counts number tested test shows show shown measured measure here only there that which these those them
they one this according fact see neighbour neighbours others other far but yet though although however
while harm
"""
_WORDS = frozenset(_ALIKE.split()) | FILLERS

_QUANTITY = """
nearly almost virtually practically hardly barely scarcely vast majority minority handful very few not close
"""
_PARTS = frozenset(_QUANTITY.split())
"""Words that a quantity of several words is made of."""
_CUT = re.compile(r"\s(?:and|but|while|whereas|against)\s|;|:\s|,\s(?![^\[]*\])", re.IGNORECASE)
"""Where one phrase ends and the next begins; not inside an interval."""


def restates(bare: str, fact: Fact) -> bool:
    """Whether every word of a sentence is one of the fact, or means the same, or says nothing."""
    own = set(_words(fact.sentence))
    return all(word in own or word in _WORDS or _is_quantity(word) for word in _words(_without_claims(bare)))


def same_value(bare: str, claim: Claim, fact: Fact) -> bool:
    """Whether the fact holds this number, of what the words beside it say it is of."""
    sentence = fact.sentence
    of = _groups(bare, claim)
    for own in claims_of(sentence):
        if _equal(claim, own) and (
            not of or of <= _groups(sentence, own) or of & _groups(sentence, own) == of
        ):
            return True
    return False


def shares_of(bare: str, fact: Fact) -> list[float]:
    """The shares k/n of a fact, of the slice that a sentence names; all of them when it names none."""
    sentence = fact.sentence
    counts = [claim for claim in claims_of(sentence) if claim.kind == "count" and claim.of]
    slices = frozenset({"associated", "unrelated"})
    said = {group for group in slices if GROUPS[group].search(bare)}
    chosen = [claim for claim in counts if not said or said & _groups(sentence, claim)]
    return [claim.value / claim.of for claim in chosen]


def same_order(bare: str, fact: Fact) -> bool:
    """Whether units and comparing words come in the fact's own order, so that neither side was swapped."""
    wanted = list(_compared(fact.sentence))
    said = list(_compared(bare))
    units = [word for word in said if UNIT.fullmatch(word)]
    if len({word for word in wanted if UNIT.fullmatch(word)}) < 2:
        return True
    rest = iter(wanted)
    return len(units) >= 2 and all(word in rest for word in said)


def _compared(text: str) -> Iterator[str]:
    for match in re.finditer(rf"{UNIT.pattern}|{COMPARISON.pattern}", text, re.IGNORECASE):
        yield match[0].lower()


def _equal(left: Claim, right: Claim) -> bool:
    if left.kind != right.kind:
        return False
    if left.kind == "count":
        return (left.value, left.of) == (right.value, right.of)
    if left.kind == "number":
        half = 0.5 * 10.0 ** -min(left.decimals, right.decimals) + 1e-9
        exact = left.value == right.value
        rounded = (
            left.decimals <= right.decimals and left.decimals > 0 and abs(left.value - right.value) <= half
        )
        return left.percent == right.percent and (exact or rounded)
    return left.text.lower() == right.text.lower()


def _groups(text: str, claim: Claim) -> frozenset[str]:
    """What the phrase around a number says that it is of."""
    cuts = [match.span() for match in _CUT.finditer(text)]
    begin = max((end for _, end in cuts if end <= claim.begin), default=0)
    stop = min((start for start, _ in cuts if start >= claim.end), default=len(text))
    return frozenset(group for group, pattern in GROUPS.items() if pattern.search(text, begin, stop))


def _is_quantity(word: str) -> bool:
    """Quantities and comparisons are judged by their own rules."""
    return (
        any(pattern.fullmatch(word) for pattern, _ in QUANTIFIERS.values())
        or bool(COMPARISON.fullmatch(word))
        or word in _PARTS
    )


def _without_claims(text: str) -> str:
    for claim in claims_of(text):
        text = text[: claim.begin] + " " * (claim.end - claim.begin) + text[claim.end :]
    return text


def _words(text: str) -> list[str]:
    return [word.lower().strip("'") for word in re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*|D[+⁺⁻−-]", text)]
