"""The named pieces of an arithmetic question and its answer: digits by place, the operator, what stands between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from mecharule_ops.tasks.text_pieces import FEW_SHOT

PLACES = ("units", "tens", "hundreds", "thousands", "ten-thousands", "hundred-thousands")
_FIELDS = {"{a}": "a", "{op}": "operator", "{b}": "b"}


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
            pieces.append((f"space before {_FIELDS.get(following, following) or 'answer'}", part))
        else:
            pieces.append((part, part))
    return pieces


def answer_pieces(completion: str) -> Iterator[tuple[str, str]]:
    """(name, text) of a completion: its first number's digits by place, what stands before and behind."""
    match = re.match(r"(\s*)(-?)([0-9]*)(.*)", completion, re.DOTALL)
    assert match is not None
    yield "space before answer", match[1]
    yield "answer's sign", match[2]
    yield from digits("answer", match[3])
    yield "after the answer", match[4]


def digits(owner: str, number: str) -> list[tuple[str, str]]:
    """Each digit of a number with its place, the highest first."""
    count = len(number)
    return [(f"{owner}'s {_place(count - 1 - index)} digit", digit) for index, digit in enumerate(number)]


def _place(power: int) -> str:
    return PLACES[power] if power < len(PLACES) else f"10^{power}"
