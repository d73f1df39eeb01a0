"""The figures of a text: what a sentence, a fact or a question states in numbers, and what its words say of them.

    count      12 of 64, 58/64, 12 réponses sur 64      percentage  22 %, 22 Prozent
    interval   [.29, .66], between .29 and .66          number      .49, 1,840, twelve channels
    example    105 + 70 = 175 → 176, '8'                strange     40k: a digit that is none of these

A figure has a side (`at least`, `below`), a measure (the name before it: MCC, p, τ …), a part of the records (train,
held-out), and whom it is of (a unit, random units, how many units), as the words of its clause say. These words are
those of `figures.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from typing import Any

UNIT = re.compile(r"(?<![\w.])[mna]\d+\.h?\d+(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as it is written, with what the words beside it say of it."""

    kind: str
    text: str
    begin: int
    end: int
    values: tuple[frozenset[float], ...] = ()
    """One set a number in it: its readings, since `1.234` is 1234 in German."""
    decimals: int = 0
    side: str = ""
    """`>` or `<`: the figure lies there, or is the bound itself."""
    denied: bool = False
    measure: str = ""
    part: str = ""
    """`train` or `held_out`."""
    of: str = ""
    """`random`, `units` or `confidence`; empty where it is of a unit or of records."""
    units: frozenset[str] = frozenset()
    """It is said of any of these; of nobody where none is named."""
    joint: bool = False
    """It is said of all of them together."""
    is_total: bool = False
    """It stands where a total does: `all 64`."""

    def at_most(self, other: Figure) -> bool:
        """Whether it may be a count of another."""
        return min(self.values[0]) <= max(other.values[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A text, read."""

    text: str
    figures: tuple[Figure, ...]
    units: frozenset[str]


_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


def _rule(pattern: str) -> re.Pattern[str]:
    """A pattern with the words of a list in the place of its name: `{of}`."""
    return re.compile(re.sub(r"{([a-z]+)}", lambda name: _any(_WORDS[name[1]]), pattern), re.I | re.S)


def _named(table: str, pattern: str) -> re.Pattern[str]:
    """A pattern that finds any of the lists of a table, as a group of the list's name."""
    groups = "|".join(f"(?P<{name}>{_any(words)})" for name, words in _WORDS[table].items())
    return _rule(pattern.replace("{}", f"(?:{groups})"))


_NUMBERS = {word: float(value) for value, word in enumerate(_WORDS["numbers"])}
_NUMBERS |= {
    f"{tens}{more}": 10.0 * place + value
    for place, tens in enumerate(_WORDS["tens"], start=2)
    for value, more in enumerate(["", *(f"-{ones}" for ones in _WORDS["numbers"][1:10])])
}
_DIGITS = r"(?:\d{1,3}(?:[,.']\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d+)?"
_ATOM = rf"[-+]?{_DIGITS}"
_TOKEN = re.compile(
    rf"(?P<example>(?<![\w.]){_ATOM}(?:(?:\s+[-+×*÷]\s+|[+×*÷]){_ATOM}(?:\s*=(?:\s*{_ATOM})?)?(?:\s*→\s*{_ATOM})?"
    rf"|\s*→\s*{_ATOM})(?!\w)|['\"`]\s*\d+\s*['\"`])"
    rf"|(?P<number>(?<![\w.,])(?:(?<![)\]%])(?<!\d )[-+])?{_DIGITS}(?:st|nd|rd|th|er|e|º|ª)?(?!\w)(?![.,]\d))"
    rf"|(?P<word>(?<!\w){_any(sorted(_NUMBERS, key=len, reverse=True))}(?!\w))"
    r"|(?P<strange>\w*\d\w*(?:[-.]\w*\d\w*)*)",
    re.IGNORECASE,
)
_BREAK = _rule(
    rf"\s·\s|;|\s[–—]\s|(?<=[.!?])\s|(?<!\w){{breaks}}(?!\w)|(?<!\w){{against}}(?!\w)(?=[^;]*{UNIT.pattern})"
)
_FIRST = _rule(r"(?:^|[.:,(])\s*{first}(?: {article}| same){0,2}\s+$")
_OF = _rule(r"\s*/\s*|(?:\s+(?!{of}\s|instead|au\s|en\s)[^\W\d]+){0,2}\s+{of}\s+(?:[^\W\d]+\s+){0,2}")
_TO = _rule(r"\s*[,;]\s*|\s*%?\s+(?:and|und|et|y)\s+")
_UP_TO = _rule(r"\s*%?\s+(?:to|bis|à|a|–)\s+")
_OPENS = _rule(r"(?:[\[(]|between\s|zwischen\s|entre\s)$")
_PERCENT = _rule(r"\s*{percent}")
_COUNTED = _rule(r"\s+(?:[a-z-]+\s+)?{counted}")
_THESE = re.compile(r"\b(?:of the|these)\s+$", re.IGNORECASE)
_BEFORE = _named("before", r"(?<!\w){}(?:\s*(?:=|:|\b{beside}\b))*\s*[\[(]?$")
_AFTER = _named("after", r"^\s*{}")
BOUND = _named("bound", "{}")
"""Names the lower or the upper end of an interval."""
_DENIED = _rule(r"(?<!\w){denied}(?:\s+{article})*\s+$")
_MEASURE = _named("measures", r"^.*(?<!\w){}(?!\w)\W*(?:\w+\W+){0,4}$")
_JOINED = _rule(r"[\s,()\[\]=–]*(?:and|to|und|bis|et|y)?[\s,()\[\]=]*")
_PART = _named("parts", "{}")
_ASIDE = re.compile(r",|\((?![^)]*\))")
OF = {"random": _rule(r"\b{random}"), "units": _rule(r"\b{units}")}
"""Words that speak of the units which a unit is compared with, and of units that are counted."""
_OF_WHOM = {
    "confidence": _rule(r"^,? {confidence}"),
    "units": _rule(r"^(?:\s+[^\W\d]+){0,2}?\s+{units}"),
    "random": _rule(r"^(?:\s+[^\W\d]+){0,3}?\s+(?:random|others)\b"),
}
_TOGETHER = re.compile(r"\b(?:together|both)\b(?:\s+[a-z]+){0,4}\s+$", re.IGNORECASE)
_TOTAL = _rule(r"\b(?:{of}|{article}|all|on)\s+$")


def plain(text: str) -> str:
    """A text with signs that look like others made these: full-width digits, minus signs, arrows, quotes."""
    text = unicodedata.normalize("NFKC", re.sub(r"(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))", "'", text))
    text = re.sub(r"->|⇒", "→", text.replace("⁄", "/").replace("−", "-"))
    return re.sub(r"[’‘‚“”„«»]", "'", text)


@lru_cache(4096)
def read(text: str, forward: bool = True) -> Read:
    """Every figure of a text, in order, each said of the units named before it in its clause, else of those after it;
    where a clause begins with a figure and it is not read `forward`, of those after it."""
    text = plain(text)
    units = [(match.start(), match[0].lower()) for match in UNIT.finditer(text)]
    bare = UNIT.sub(lambda match: " " * len(match[0]), text)
    ends = [0, *(match.end() for match in _BREAK.finditer(text)), len(bare)]
    figures: list[Figure] = []
    for begin, end in pairwise(ends):
        here = _owned(
            _described(bare[begin:end]),
            [(place - begin, unit) for place, unit in units if begin <= place < end],
            forward,
        )
        figures += [replace(one, begin=one.begin + begin, end=one.end + begin) for one in here]
    return Read(text=text, figures=tuple(figures), units=frozenset(unit for _, unit in units))


def _found(clause: str) -> Iterator[Figure]:
    """The figures of a clause: its numbers, two of them joined where the words between say so."""
    tokens = list(_TOKEN.finditer(clause))
    while tokens:
        one = tokens.pop(0)
        kind, end, written = str(one.lastgroup), one.end(), [one[0]]
        after = tokens[0] if tokens and tokens[0].lastgroup in ("number", "word") else None
        between = clause[end : after.start()] if after else ""
        if kind == "example":
            written = re.findall(_ATOM.replace("[-+]", r"(?<!\d)[-+]"), one[0])
        elif kind == "word" and re.match(r"one(?! of | in )", clause[one.start() : end + 4], re.IGNORECASE):
            continue
        elif kind in ("number", "word"):
            kind = "number"
            is_rate = re.search(r"[.,]\d|%", clause[one.start() : end + 2])
            opens = _OPENS.search(clause[: one.start()])
            if after and _OF.fullmatch(between) and not _PERCENT.match(clause, after.end()):
                kind = "count"
            elif after and ((opens and _TO.fullmatch(between)) or (is_rate and _UP_TO.fullmatch(between))):
                kind = "interval"
            elif percent := _PERCENT.match(clause, end):
                kind, end = "percentage", percent.end()
            elif one.lastgroup == "word" and (
                _THESE.search(clause[: one.start()]) or not _COUNTED.match(clause, end)
            ):
                continue
            if kind in ("count", "interval") and after:
                written, end = [one[0], after[0]], after.end()
                del tokens[0]
        values = () if kind == "strange" else tuple(map(_readings, written))
        decimals = max(
            (len(d[1]) for each in written if (d := re.search(r"[.,](\d+)(?:e|$)", each))), default=0
        )
        yield Figure(
            kind=kind,
            text=clause[one.start() : end],
            begin=one.start(),
            end=end,
            values=values,
            decimals=decimals,
        )


def _readings(written: str) -> frozenset[float]:
    """The numbers that a written one may be."""
    if (value := _NUMBERS.get(written.lower())) is not None:
        return frozenset([value])
    spaced = re.sub(r"[^\d.,+e-]|(?<=\d)e(?!-?\d)", "", written)
    texts = {spaced.replace(",", ".")}
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:[.,]\d{3})+(?:[.,]\d+)?", spaced):
        texts = {spaced.replace(",", ""), spaced.replace(".", "").replace(",", ".")}
    return frozenset(float(one) for one in texts if one.count(".") <= 1)


def _described(clause: str) -> Iterator[Figure]:
    """The figures of a clause with what the words beside each say of it."""
    end, measure, part, total, claimed = 0, "", "", None, 0
    for one, after in zip_longest(found := list(_found(clause)), found[1:]):
        left, right = clause[end : one.begin], clause[one.end :]
        is_word = one.text.isalpha()
        side = None if is_word else _AFTER.search(right) or _BEFORE.search(left)
        joined = measure if _JOINED.fullmatch(left) else ""
        measure = _group(_MEASURE.search(left)) or joined
        of = next((of for of, rule in _OF_WHOM.items() if rule.search(right)), "")
        near = _PART.search(_ASIDE.split(clause[one.end : after.begin if after else None])[0])
        said = near or _PART.search(clause[claimed : one.begin]) or (None if after else _PART.search(right))
        part = _group(said) or part
        end = one.end
        claimed = end + near.end() if near else end
        is_total = bool(_TOTAL.search(left))
        if one.kind == "number" and _FIRST.search(left):
            total = one
        elif one.kind == "number" and total and not (is_total or one.decimals) and one.at_most(total):
            text = f"{one.text} of {total.text}"
            one = replace(one, kind="count", values=(*one.values, *total.values), text=text)
        yield replace(
            one,
            side={"below": "<", "above": ">"}.get(_group(side), ""),
            denied=not side and bool(_DENIED.search(left)),
            measure=measure,
            part="" if is_word else part,
            of=of,
            is_total=is_total,
            joint=bool(_TOGETHER.search(left)),
        )


def _group(match: re.Match[str] | None) -> str:
    return str(match.lastgroup) if match else ""


def _owned(figures: Iterable[Figure], units: Sequence[tuple[int, str]], forward: bool) -> Iterator[Figure]:
    """Figures with the units that they are said of; as many figures as units follow their order."""
    items: list[tuple[int, Figure | str]] = [*((one.begin, one) for one in figures), *units]
    items.sort(key=lambda each: each[0])
    runs = [[each for _, each in run] for _, run in groupby(items, key=lambda each: isinstance(each[1], str))]
    before, after = (-1, 1) if forward or (units and isinstance(runs[0][0], str)) else (1, -1)
    for nth, run in enumerate(runs):
        beside = [runs[nth + step] for step in (before, after) if 0 <= nth + step < len(runs)]
        named = [each for each in beside[0] if isinstance(each, str)] if beside else []
        for place, one in enumerate(run):
            if isinstance(one, Figure):
                of = named[place : place + 1] if len(named) == len(run) > 1 else named
                yield replace(one, units=frozenset(of))
