"""Named pieces of a record's text: what a unit that reads a token reads, in the task's own words.

A piece is a span of characters of prompt + completion. Pieces of one task never overlap and together cover the
whole text, so that shares over them sum to 1. In arithmetic they are digits by place, the operator, spaces between.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from mecharule_ops.types import Value

FEW_SHOT, TEMPLATE, ANSWER = "few-shot lines", "template", "the written answer"
"""Names that every task uses alike: the lines before the question, its fixed words, what was generated."""
PLACES = ("units", "tens", "hundreds", "thousands", "ten-thousands", "hundred-thousands")
_FIELDS = {"{a}": "a", "{op}": "operator", "{b}": "b"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpan:
    """One named piece of a text."""

    name: str
    start: int
    """First character."""
    stop: int
    """Behind the last one."""


def end_to_end(pieces: Iterable[tuple[str, str]]) -> tuple[SourceSpan, ...]:
    """The spans of (name, text) laid end to end; empty texts are left out."""
    spans, at = [], 0
    for name, text in pieces:
        if text:
            spans.append(SourceSpan(name=name, start=at, stop=at + len(text)))
        at += len(text)
    return tuple(spans)


def field_pieces(question: str, fields: Mapping[str, Value]) -> list[tuple[str, str]]:
    """A question cut into its fields' values, found as whole words, the longest first; the rest is template."""
    claimed: list[tuple[int, int, str]] = []
    for name, value in sorted(fields.items(), key=lambda item: -len(str(item[1]))):
        if isinstance(value, bool) or not str(value).strip():
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(str(value))}(?!\w)", question):
            if all(match.end() <= start or match.start() >= stop for start, stop, _ in claimed):
                claimed.append((match.start(), match.end(), name))
                break
    pieces, at = [], 0
    for start, stop, name in sorted(claimed):
        pieces += [(TEMPLATE, question[at:start]), (name, question[start:stop])]
        at = stop
    return [*pieces, (TEMPLATE, question[at:])]


def question_pieces(prefix: str, template: str, shown: Mapping[str, str]) -> list[tuple[str, str]]:
    """(name, text) of a prompt; `shown` has the text of `{a}`, `{op}` and `{b}`."""
    cut = [part for part in re.split(r"(\{(?:a|op|b)\}|\s+)", template) if part]
    pieces = [(FEW_SHOT, prefix)]
    for part, following in pairwise([*cut, ""]):
        if part == "{op}":
            pieces.append(("operator", shown[part]))
        elif part in _FIELDS:
            pieces += digits(_FIELDS[part], shown[part])
        elif part.isspace():
            pieces.append((f"space before {_FIELDS.get(following, following) or ANSWER}", part))
        else:
            pieces.append((part, part))
    return pieces


def answer_pieces(completion: str) -> Iterator[tuple[str, str]]:
    """(name, text) of a completion: its first number's digits by place, what stands before and behind."""
    match = re.match(r"(\s*)(-?)([0-9]*)(.*)", completion, re.DOTALL)
    assert match is not None
    yield f"space before {ANSWER}", match[1]
    yield f"{ANSWER}'s sign", match[2]
    yield from digits(ANSWER, match[3])
    yield f"after {ANSWER}", match[4]


def digits(owner: str, number: str) -> list[tuple[str, str]]:
    """Each digit of a number with its place, the highest first."""
    count = len(number)
    return [(f"{owner}'s {place_name(count - 1 - index)} digit", digit) for index, digit in enumerate(number)]


def place_name(power: int) -> str:
    """`tens` of 1; `10^7` where it has no common name."""
    return PLACES[power] if power < len(PLACES) else f"10^{power}"
