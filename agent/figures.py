"""The figures of a text: a small grammar of what a sentence, a fact or a question states in numbers.

    figure    = count | interval | percentage | example | number      12 of 64, [.29, .66], 22 %, 105 + 70 = 175, .49
    count     = value [two words] ("of" | "/" | "out of" | "von" | "sur" | "de" …) value
    value     = digits, with separators of thousands and a decimal point or comma, or a word up to twenty
    sign      = before it "at least", "below", …; after it "or more", "or fewer"
    measure   = the name before it: MCC, AUC, p, τ, α, strength, rank …
    part      = the words beside it that say train or held-out

Words are those of `figures.toml`, in four languages; digits need none. A word holding a digit that is nothing of this
(`40k`) is `strange`, so no digit goes unread.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

UNIT = re.compile(r"(?<![\w.])[mna]\d+\.h?\d+(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as it is written, with what the words beside it say of it."""

    kind: str
    """`count`, `interval`, `percentage`, `example`, `number` or `strange`."""
    text: str
    begin: int
    end: int
    values: tuple[frozenset[float], ...] = ()
    """One set a number in it: its readings, since `1.234` is 1234 in German."""
    decimals: int = 0
    sign: str = ""
    """`>=`, `>`, `<=` or `<` where that is said of it."""
    denied: bool = False
    measure: str = ""
    parts: frozenset[str] = frozenset()
    """`train`, `held-out`, as its words say."""
    is_total: bool = False
    """Whether it stands where a total does: `on 64 answers`."""
    is_aside: bool = False
    """Whether it opens a bracket."""
    units: frozenset[str] = frozenset()
    """In a fact, whom it is about: any of these, or all of them where it is `joint`; nobody where none."""
    joint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A text, read."""

    text: str
    figures: tuple[Figure, ...]
    units: tuple[tuple[int, str], ...]
    """Each unit with its place."""
    breaks: tuple[int, ...]
    """Where another clause begins."""


_TOLD: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


_W: Mapping[str, str] = {name: _any(words) for name, words in _TOLD.items() if isinstance(words, list)}


def _signs(table: str, rule: str) -> list[tuple[str, re.Pattern[str]]]:
    """The rules of a table of signs, each in the place of `{}`."""
    return [
        (sign, re.compile(rule.replace("{}", _any(words)), re.IGNORECASE))
        for sign, words in _TOLD[table].items()
    ]


_NUMBERS = {
    word: float(value)
    for line in _TOLD["numbers"]
    for value, words in enumerate(line.split())
    for word in words.split(":")
}
_TENS = {word: 10.0 * place for place, word in enumerate(_TOLD["tens"].split(), start=2)}
_ONES = _TOLD["numbers"][0].split()[1:10]
_NUMBERS |= _TENS | {
    f"{tens}-{unit}": value + _NUMBERS[unit] for tens, value in _TENS.items() for unit in _ONES
}
_WORD = rf"(?<!\w){_any(sorted(_NUMBERS, key=len, reverse=True))}(?!\w)"
_THOUSANDS = r"\d{1,3}(?:[,.']\d{3})+"
_DIGITS = (
    r"(?<![\w.,])(?:(?<![\w)\]%])(?<!\d )[-+])?"
    rf"(?:{_THOUSANDS}(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d+)?(?!\w)(?![.,]\d)"
)
_WHOLE = rf"(?:(?<![\w.,])(?:{_THOUSANDS}|\d+)(?!\w)(?![.,]\d)|{_WORD})"
_ATOM = r"[-−+]?\d+(?:[.,]\d+)?"
_RULES = {
    "example": rf"(?<![\w.]){_ATOM}(?:(?:\s+[-−+×*÷]\s+|[+×*÷])(?=[-−+]?\d){_ATOM}(?:\s*=\s*(?:{_ATOM})?)?"
    rf"(?:\s*(?:→|->|⇒)\s*{_ATOM})?|\s*(?:→|->|⇒)\s*{_ATOM})(?!\w)|['‘‚\"“„«`]\s*\d+\s*['’‘\"”“»`]",
    "interval": rf"[\[(](?P<low>{_DIGITS})\s*[,;]\s*(?P<high>{_DIGITS})[\])]"
    rf"|(?:between|zwischen|entre)\s+(?P<low2>{_DIGITS})\s*%?\s+(?:and|und|et|y)\s+(?P<high2>{_DIGITS})(?:\s*%)?"
    rf"|(?P<low3>{_DIGITS})\s*%?\s*(?:to|bis|à|a|–)\s*(?P<high3>{_DIGITS})(?:\s*%|(?<=[.,]\d)|(?<=[.,]\d\d))",
    "count": rf"(?P<first>(?!(?:one|ein\w*|une?|una)\s+(?!{_W['of']}\s)){_WHOLE})"
    rf"(?:\s*/\s*|(?:\s+(?!{_W['of']}\s|instead|au\s|en\s)[^\W\d_]+){{0,2}}\s+{_W['of']}\s+(?:{_W['which']}\s+){{0,2}}"
    rf"(?:[a-z-]+\s+)?)(?P<second>{_WHOLE})(?!\s*%)",
    "percentage": rf"(?P<share>{_DIGITS}|{_WORD})\s*{_W['percent']}",
    "number": rf"(?P<word>{_WORD})(?=\s+(?:[a-z-]+\s+)?{_W['counted']})|(?P<plain>{_DIGITS})"
    r"|(?P<ordinal>\d+)(?:st|nd|rd|th|er|ère|e|º|ª)(?!\w)",
    "strange": r"\w*\d\w*(?:[-.]\w*\d\w*)*",
}
_GRAMMAR = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in _RULES.items()), re.IGNORECASE)
SCORES = ("MCC", "AUC", "p", "rank", "selectivity")
"""Measures that are no share of anything, so never a percentage."""
_MEASURES = list(_TOLD["measures"])
_MEASURE = re.compile(
    "|".join(
        rf"(?P<m{place}>(?<!\w){_any(_TOLD['measures'][name])}(?!\w))" for place, name in enumerate(_MEASURES)
    )
)
_NEAR = re.compile(r"^\W*(?:\w+\W+){0,4}$")
_JOINT = re.compile(r"^[\s,()\[\]=–]*(?:and|to|und|bis|et|y)?[\s,()\[\]=]*$")
CONTROL = re.compile(rf"\b{_W['control']}\w*", re.IGNORECASE)
"""Words that speak of the units which a unit is compared with."""
UNITS = re.compile(rf"\b{_W['units']}\w*", re.IGNORECASE)
BOUNDS = _signs("bound", "{}")
_CONFIDENCE = re.compile(rf"^,? {_W['confidence']}", re.IGNORECASE)
_OF_CONTROL = re.compile(r"^(?:\s+[^\W\d]+){0,3}?\s+(?:random|others)\b")
_CONTROL_IS = re.compile(r"\brandom \w+(?: \w+)?\s+$")
_OF_UNITS = re.compile(rf"^(?:\s+[a-z]+)?\s+{UNITS.pattern}", re.IGNORECASE)
_BESIDE = rf"(?<!\w){{}}(?:\s*(?:=|:|\b{_W['beside']}\b|τ|α|MCC|AUC|tau|alpha|strength))*\s*[\[(]?$"
_BEFORE, _BEFORE_RATE = _signs("before", _BESIDE), _signs("before_rate", _BESIDE)
_AFTER = _signs("after", r"^\s*{}")
_BOUND = _signs("bound", r"{}(?!\W+(?:reach|erreich|atte|alcan))(?:[^\w.;]+[^\W\d]+){0,4}?[^\w.;]+$")
_DENIED = re.compile(rf"(?<!\w){_W['denied']}(?:\s+{_W['article']})*\s+$", re.IGNORECASE)
_OF_THEM = re.compile(r"\b(?:of the|of these|des|der|de los|de las)\s+$", re.IGNORECASE)
_TOTAL = re.compile(rf"(?:\b{_W['total']}\s+|/\s*)$", re.IGNORECASE)
_FIRST = re.compile(rf"(?:^|[.;:,(]\s*){_W['first']}(?: {_W['article']}){{0,2}}\s+$", re.IGNORECASE)
_PART = re.compile(
    "|".join(f"(?P<{name[:4]}>{_any(words)})" for name, words in _TOLD["parts"].items()), re.IGNORECASE
)
_AGAINST = re.compile(rf"\b{_W['against']}", re.IGNORECASE)
_BREAK = re.compile(rf"\s·\s|;|\s[–—]\s|(?<=[.!?])\s|(?<!\w){_W['breaks']}(?!\w)", re.IGNORECASE)
_ENDS = re.compile(r";|[.!?]\s")
_SCOPE = re.compile(r"[()]|;|\s·\s|(?<=\w[.!?])\s")


def plain(text: str) -> str:
    """A text with signs that look like others made these: full-width digits, fractions, minus signs."""
    text = re.sub(r"(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))", "'", text)
    return unicodedata.normalize("NFKC", text).replace("⁄", "/").replace("−", "-").replace("’", "'")


@lru_cache(4096)
def read(text: str) -> Read:
    """Every figure and unit of a text, in order; a number after `Of 64 answers …` is a count of these too."""
    text = plain(text)
    units = tuple((match.start(), match[0].lower()) for match in UNIT.finditer(text))
    bare = UNIT.sub(lambda match: " " * len(match[0]), text)
    breaks = [match.start() for match in _BREAK.finditer(bare)]
    for match in _AGAINST.finditer(bare):
        end = next((place for place in breaks if place > match.start()), len(bare))
        if any(match.start() < place < end for place, _ in units):
            breaks = sorted([*breaks, match.start()])
    figures: list[Figure] = []
    total: Figure | None = None
    for match in _GRAMMAR.finditer(bare):
        last = figures[-1] if figures else None
        if (one := _figure(match, bare, last)) is None:
            continue
        if total is not None and last is not None and _ENDS.search(bare, last.end, one.begin):
            total = None
        figures.append(one)
        if one.kind != "number" or one.decimals:
            continue
        if _FIRST.search(bare[max(0, one.begin - 24) : one.begin]):
            total = one
        elif total is not None and not one.is_total and min(one.values[0]) <= max(total.values[0]):
            text_of = f"{one.text} of {total.text}"
            figures.append(replace(one, kind="count", values=(*one.values, *total.values), text=text_of))
    return Read(text=text, figures=tuple(figures), units=units, breaks=tuple(breaks))


def _figure(match: re.Match[str], text: str, last: Figure | None) -> Figure | None:
    """What a match of the grammar is, with the words beside it; None of `one unit` and `one of the two`."""
    kind = str(match.lastgroup)
    written = [found for name, found in match.groupdict().items() if found and name not in _RULES]
    if kind == "example":
        written = re.findall(r"(?<!\d)[-+]?\d+(?:[.,]\d+)?", match[0])
    figure = Figure(
        kind=kind,
        text=match[0].strip(),
        begin=match.start(),
        end=match.end(),
        values=tuple(map(_readings, written)),
        decimals=max((len(d[1]) for one in written if (d := re.search(r"[.,](\d+)(?:e|$)", one))), default=0),
    )
    is_word = kind == "number" and figure.text.isalpha()
    if is_word and (figure.values[0] == {1.0} or _OF_THEM.search(text[: figure.begin])):
        return None
    if kind == "count" and max(map(min, figure.values)) <= 3 and not re.search(r"\d| in ", figure.text):
        return None
    if kind == "strange":
        return figure
    begin = last.end if last else 0
    left, right = text[max(begin, figure.begin - 80) : figure.begin], text[figure.end :]
    is_rate = kind in ("percentage", "interval") or figure.decimals
    signs = [] if figure.text.isalpha() else [*_BEFORE, *(_BEFORE_RATE if is_rate else ()), *_BOUND]
    sign = next((sign for sign, rule in _AFTER if rule.search(right)), "")
    sign = sign or next((sign for sign, rule in signs if rule.search(left)), "")
    return replace(
        figure,
        sign=sign,
        denied=not sign and bool(_DENIED.search(left)),
        measure=_measure(figure, left, right)
        or (last.measure if last and _JOINT.match(text[begin : figure.begin]) else ""),
        is_total=bool(_TOTAL.search(left)),
        is_aside=left.endswith("("),
    )


def _measure(figure: Figure, left: str, right: str) -> str:
    """What a figure is of, by the words about it; empty where they do not say."""
    if figure.kind == "percentage" and _CONFIDENCE.match(right):
        return "confidence"
    if _OF_CONTROL.match(right[:40]) or _CONTROL_IS.search(left):
        return "control"
    if figure.kind in ("count", "number") and _OF_UNITS.match(right[:30]):
        return "units"
    named = [match for match in _MEASURE.finditer(left) if _NEAR.match(left[match.end() :])]
    after = _MEASURE.search(right[:20]) if figure.decimals else None
    if not named and after and re.fullmatch(r"(?:\s+\w+){0,2}\s+", right[: after.start()]):
        named = [after]
    return _MEASURES[int(str(named[-1].lastgroup)[1:])] if named else ""


def _readings(written: str) -> frozenset[float]:
    """The numbers that a written one may be."""
    if (value := _NUMBERS.get(written.lower())) is not None:
        return frozenset([value])
    spaced = re.sub(r"[\s']", "", written)
    texts = {spaced.replace(",", ".")}
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:[.,]\d{3})+(?:[.,]\d+)?", spaced):
        texts = {spaced.replace(",", ""), spaced.replace(".", "").replace(",", ".")}
    return frozenset(float(one) for one in texts if one.count(".") <= 1)


def told(found: Read) -> tuple[Figure, ...]:
    """The figures of a sentence, with the part that its words give them.

    A word such as `held-out` speaks of the figure nearest to it in its clause and of those that follow, until the next.
    """

    def clause(place: int) -> int:
        return sum(each <= place for each in found.breaks)

    def apart(match: re.Match[str], one: Figure) -> int:
        between = found.text[match.end() : one.begin] or found.text[one.end : match.start()]
        return len(between) + (100 if re.search(r"[()]", between) else 0)

    parts: dict[int, str] = {}
    for match in _PART.finditer(found.text):
        here = clause(match.start())
        near = [
            (apart(match, one), nth) for nth, one in enumerate(found.figures) if clause(one.begin) == here
        ]
        parts |= {min(near)[1]: _part(match)} if near else {}
    said: list[Figure] = []
    for nth, one in enumerate(found.figures):
        named = frozenset([parts[nth]] if nth in parts else [])
        goes_on = nth and not named and clause(one.begin) == clause(said[-1].begin)
        said.append(replace(one, parts=said[-1].parts if goes_on else named))
    return tuple(said)


def stated(found: Read) -> tuple[Figure, ...]:
    """The figures of a fact, each with every part that is named in its brackets, else in the clause about them."""
    # Each character's chain of scopes, innermost last: brackets open one, semicolons and full stops begin it anew.
    chains: list[tuple[int, ...]] = []
    chain: tuple[int, ...] = (0,)
    for made, match in enumerate(_SCOPE.finditer(found.text), start=1):
        chains += [chain] * (match.start() - len(chains))
        kept = chain if match[0] == "(" else chain[:-1]
        chain = (kept or (made,)) if match[0] == ")" else (*kept, made)
    chains += [chain] * (len(found.text) - len(chains))
    named: dict[int, frozenset[str]] = {}
    for match in _PART.finditer(found.text):
        scope = chains[match.start()][-1]
        named[scope] = named.get(scope, frozenset()) | {_part(match)}
    return tuple(
        replace(one, parts=next((named[s] for s in reversed(chains[one.begin]) if s in named), frozenset()))
        for one in found.figures
    )


def _part(match: re.Match[str]) -> str:
    return "held-out" if match.lastgroup == "held" else "train"
