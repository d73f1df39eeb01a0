"""What an answer claims: its numbers, counts, units and citations, each with its place in the text.

A number is digits in any script with separators, sign, decimals and percent, or a number word from three up
(`one` and `two` count in `two of 64` only). A count is `k/n` or `k of n`. A citation speaks for
what stands before it on its line, back to the citation before. Nothing is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CITATION = re.compile(r"\[((?:c|run):[\w-]*(?:\s*[,;]\s*(?:c|run):[\w-]*)*)\]")
UNIT = re.compile(r"(?<![\w.])(?:[mn]\d+\.\d+|a\d+\.h\d+)(?!\w)(?!\.\d)")
_LAYER = re.compile(r"(?<![\w.])[mna]\d+(?![\w.]*\w)")
_NAME = re.compile(r"(?<![\w.])[^\W\d_]\w*\d\w*")
_ONES = [
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: value for value, word in enumerate(_ONES, 1)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
_WORDS |= {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 1_000_000}
_ALONE = "|".join(sorted(_WORDS, key=len, reverse=True))
_WORD = rf"(?:(?:{'|'.join(_TENS)})[- ](?:{'|'.join(_ONES[:9])})|{_ALONE}|half)"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"(?:(?<=[\s(\[=~:])|^)[-+−](?:{_DIGITS})(?:[eE][-+]?\d+)?\s?%?|(?:{_DIGITS})(?:[eE][-+]?\d+)?(?:\s?%)?"
    rf"|\b(?i:{_WORD})\b",
)
_COUNT = re.compile(
    rf"(?P<k>(?:{_DIGITS})|\b(?i:{_WORD})\b)(?:\s*/\s*|\s+(?:out\s+)?of\s+(?:the\s+|all\s+)?)(?P<n>(?:{_DIGITS})|\b(?i:{_WORD})\b)"
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
    if match[0].lower() in ("one", "two"):
        return None
    digits = match[0].rstrip("% ")
    mantissa, _, exponent = digits.lower().partition("e") if digits[-1:].isdigit() else (digits, "", "")
    fraction = mantissa.partition(".")[2]
    shift = int(exponent) if exponent else 0
    return Claim(
        begin=begin,
        end=end,
        kind=kind,
        text=match[0].strip(),
        value=_value(digits),
        decimals=1 if digits.lower() == "half" else max(0, len(fraction) - shift),
        percent="%" in match[0],
    )


def _value(text: str) -> float:
    low = text.lower().replace("−", "-")
    if low == "half":
        return 0.5
    if low in _WORDS:
        return float(_WORDS[low])
    parts = re.split(r"[- ]", low)
    if len(parts) == 2 and all(part in _WORDS for part in parts):
        return float(_WORDS[parts[0]] + _WORDS[parts[1]])
    return float(low.replace(",", ""))


def _list_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Spans of line-start numbers that count up from 1."""
    expected = 1
    for match in _LISTED.finditer(text):
        number = int(match[1])
        if number not in (1, expected):
            continue
        expected = number + 1
        yield match.span()
