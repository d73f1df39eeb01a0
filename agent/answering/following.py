"""A question that only swaps a name of the one before it, put whole: `and without m1.99?`, `and on subtractions?`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.answering.understanding import LETTERS, NAMED, PLACE, PROPERTY_WORD, WORD, read

_NUMBER = re.compile(r"\s*(?:number |no\. ?|option )?([1-9])\s*[.)!]?\s*", re.IGNORECASE)
_YES = re.compile(r"\s*(?:yes|y|yep|yes please|ok|okay|sure|the first(?: one)?)\s*[.!]*\s*", re.IGNORECASE)
_BEGINS = re.compile(r"^(?:so |ok |okay )?(?:and|what about|how about|or|same|likewise|now)\b", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    r"so|ok|okay|and|what|about|how|or|same|likewise|now|for|on|with|without|the|an?|please|plz|then|instead|if|of|in|"
    r"those|these|that|this|it|too|is|ones?|only|just"
)
"""Words that such a question can have beside the name that it swaps."""


def picked(reply: str, offered: Sequence[str]) -> str:
    """The offered question that a reply picks by its number, or the first by a yes; empty where it picks none."""
    number = _NUMBER.fullmatch(reply)
    place = int(number[1]) if number else int(_YES.fullmatch(reply) is not None)
    return offered[place - 1] if 1 <= place <= len(offered) else ""


def followed(question: str, earlier: str) -> str:
    """The earlier question with the name that this one swaps; this one itself where it is no such thing."""
    if not earlier or not _BEGINS.match(question.strip()):
        return question
    words = set(WORD.findall(read(question).texts[-1])) - LETTERS
    if not all(map(_SAYS_NOTHING.fullmatch, words)):
        return question
    if (swapped := with_its_name(question, earlier)) != question:
        return swapped
    said = PROPERTY_WORD.search(question.lower())
    if said is None:
        return question
    asked = earlier.rstrip(" ?.!")
    known = PROPERTY_WORD.search(asked.lower())
    return asked.replace(known[0], said[0]) if known else f"{asked} on {said[0]}"


def with_its_name(question: str, earlier: str) -> str:
    """The earlier question with the one unit, prompt or layer of this one for its own; this one where there is none.

    A unit may be named by its place: `and the second one?`.
    """
    for patterns in NAMED:
        found = {match[0] for pattern in patterns for match in pattern.finditer(question)}
        before = {match[0] for pattern in patterns for match in pattern.finditer(earlier)}
        if len(found) == len(before) == 1:
            return earlier.replace(before.pop(), found.pop())
    place = PLACE.search(question.lower())
    units = {match[0] for match in NAMED[0][0].finditer(earlier)}
    return (
        earlier.replace(units.pop(), f"the {place[0].removeprefix('the ')}")
        if place and len(units) == 1
        else question
    )
