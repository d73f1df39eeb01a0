"""What an answer claims: its numbers, counts, units and citations, each with its place in the text.

A number is digits in any script with separators, sign, decimals and percent, or what `number_words` reads. A count
is `k/n`, `k of n`, `k of these n`. A citation speaks for what stands before it on its line, back to the one before.
Nothing is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.answering.number_words import FIGURE, WORD, counts_alone, word_value
from mecharule_ops.bases import LETTERS, UNIT_NAME

CITATION = re.compile(r"\[((?:c|run):[\w-]*(?:\s*[,;]\s*(?:c|run):[\w-]*)*)\]")
UNIT = re.compile(rf"(?<![\w.]){UNIT_NAME}(?!\w)(?!\.\d)")
_LAYER = re.compile(rf"(?<![\w.])[{LETTERS}]\d+(?![\w.]*\w)")
_NAME = re.compile(r"(?<![\w.])[^\W\d_]\w*\d\w*")
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_PERCENT = r"(?:\s?%|\s?‰|\s(?:percent|per cent)\b)?"
_NUMBER = re.compile(
    rf"(?:(?<=[\s(\[=~:])|^)[-+−](?:{_DIGITS})(?:[eE][-+]?\d+)?{_PERCENT}"
    rf"|(?:{_DIGITS})(?:[eE][-+]?\d+)?{_PERCENT}|{WORD}{_PERCENT}|{FIGURE}"
)
_COUNT = re.compile(
    rf"(?P<k>(?:{_DIGITS})|{WORD})(?:\s*[/⁄∕]\s*|\s+(?:out\s+)?of\s+(?:the\s+|all\s+|these\s+)?)(?P<n>(?:{_DIGITS})|{WORD})"
)
ARROW = re.compile(r"(?<!\w)[01]\s*(?:→|->)\s*[01](?!\w)")
_ID = re.compile(r"(?<![\w:])[0-9a-f]{12}(?!\w)")
_LISTED = re.compile(r"^[ \t]*(\d+)[.)](?=\s)", re.MULTILINE)
_PATTERNS = (
    *(("id", _ID), ("arrow", ARROW), ("unit", UNIT), ("layer", _LAYER)),
    *(("name", _NAME), ("count", _COUNT), ("number", _NUMBER)),
)
"""In order of precedence: what one takes, the next does not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One checkable piece of a text."""

    begin: int
    end: int
    kind: str
    """`number`, `count`, `unit`, `layer`, `name`, `arrow` (1→0), or `id`, the bare id of a certificate."""
    text: str
    value: float = 0.0
    """Of a number; k of a count."""
    of: float = 0.0
    """n of a count."""
    decimals: int = 0
    percent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One `[c:id]` or `[run:id]`, or several in one pair of brackets."""

    begin: int
    end: int
    ids: tuple[str, ...]
    """Such as `c:7f3a` or `run:0c1f`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of one line and the citations that end it."""

    begin: int
    end: int
    citations: tuple[Citation, ...]


def citations_of(text: str) -> list[Citation]:
    """Every citation in order."""
    return [
        Citation(begin=match.start(), end=match.end(), ids=tuple(re.split(r"\s*[,;]\s*", match[1])))
        for match in CITATION.finditer(text)
    ]


def segments_of(text: str) -> list[Segment]:
    """The text cut at line ends and after each run of adjacent citations."""
    groups: list[list[Citation]] = []
    for citation in citations_of(text):
        if groups and not text[groups[-1][-1].end : citation.begin].strip(" \t,;"):
            groups[-1].append(citation)
        else:
            groups.append([citation])
    cuts: dict[int, tuple[Citation, ...]] = {
        **{match.end(): () for match in re.finditer("\n", text)},
        len(text): (),
    }
    cuts |= {group[-1].end: tuple(group) for group in groups}
    segments, begin = [], 0
    for end in sorted(cuts):
        segments.append(Segment(begin=begin, end=end, citations=cuts[end]))
        begin = end
    return segments


def claims_of(text: str) -> list[Claim]:
    """Every claim in order; list numbers (1., 2., 3. at line starts) and citations are none."""
    taken = [(citation.begin, citation.end) for citation in citations_of(text)] + list(_list_numbers(text))
    claims: list[Claim] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            begin, end = match.span()
            if any(begin < there and here < end for here, there in taken):
                continue
            claim = _claim(kind, match)
            if claim is not None:
                claims.append(claim)
                taken.append((begin, end))
    return sorted(claims, key=lambda claim: claim.begin)


def _claim(kind: str, match: re.Match[str]) -> Claim | None:
    begin, end = match.span()
    if kind == "count":
        k, n = _value(match["k"]), _value(match["n"])
        return Claim(begin=begin, end=end, kind=kind, text=match[0], value=k, of=n)
    if kind != "number":
        return Claim(begin=begin, end=end, kind=kind, text=match[0])
    if not counts_alone(match[0]):
        return None
    digits = re.split(rf"{_PERCENT}$", match[0])[0]
    share = match[0][len(digits) :].strip()
    value = _value(digits) / (10 if share == "‰" else 1)
    return Claim(
        begin=begin,
        end=end,
        kind=kind,
        text=match[0].strip(),
        value=value,
        decimals=_decimals(digits, value) + (share == "‰"),
        percent=bool(share),
    )


def _decimals(digits: str, value: float) -> int:
    """Places after the point that are claimed; two for a fraction in words or in one sign."""
    if not digits[-1:].isdecimal():
        return 0 if value.is_integer() else 2
    mantissa, _, exponent = digits.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - (int(exponent) if exponent else 0))


def _value(text: str) -> float:
    said = word_value(text)
    return float(text.lower().replace("−", "-").replace(",", "")) if said is None else said


def _list_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Spans of line-start numbers that count up from 1."""
    expected = 1
    for match in _LISTED.finditer(text):
        number = int(match[1])
        if number not in (1, expected):
            continue
        expected = number + 1
        yield match.span()
