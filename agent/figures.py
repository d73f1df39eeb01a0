"""The figures of a text: a small grammar of what a sentence, a fact or a question states in numbers.

    figure    = count | interval | percentage | example | number      12 of 64, [.29, .66], 22 %, 105 + 70 = 175, .49
    count     = value [two words] ("of" | "/" | "out of" | "von" | "sur" | "de" …) value
    value     = digits, with separators of thousands and a decimal point or comma, or a word up to twenty
    direction = before it "at least", "below", …; after it "or more", "or fewer"
    measure   = the name before it: MCC, AUC, p, τ, α, strength, rank …
    part      = the words beside it that say train or held-out
    units     = those that are named before it, else those after it

Words of direction and part are read in English, German, French and Spanish. A word holding a digit that is nothing of
this (`40k`) is `STRANGE`, so no digit goes unread.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any

UNIT = re.compile(r"(?<![\w.])[mna]\d+\.h?\d+(?!\w)", re.IGNORECASE)


class Kind(Enum):
    """What a figure is."""

    COUNT = "count"
    INTERVAL = "interval"
    PERCENT = "percentage"
    EXAMPLE = "example"
    NUMBER = "number"
    STRANGE = "word with a digit"


class Sign(Enum):
    """What is said of a figure: itself, or what lies on one side of it, as a bound or as a comparison."""

    IS = ""
    AT_LEAST = "at least"
    MORE = "more than"
    AT_MOST = "at most"
    LESS = "less than"

    @property
    def side(self) -> int:
        """1 above, -1 below."""
        return {Sign.AT_LEAST: 1, Sign.MORE: 1, Sign.AT_MOST: -1, Sign.LESS: -1}.get(self, 0)

    @property
    def is_bound(self) -> bool:
        """Whether it is `at least` or `at most`."""
        return self in (Sign.AT_LEAST, Sign.AT_MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as it is written, with what the words beside it say of it."""

    kind: Kind
    text: str
    begin: int
    end: int
    values: tuple[frozenset[float], ...]
    """One set a number in it: its readings, since `1.234` is 1234 in German."""
    decimals: int = 0
    sign: Sign = Sign.IS
    denied: bool = False
    measure: str = ""
    parts: frozenset[str] = frozenset()
    """`train`, `held-out`, as its words say."""
    is_total: bool = False
    """Whether it stands where a total does: `on 64 answers`."""
    is_aside: bool = False
    """Whether it opens a bracket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A text, read."""

    text: str
    figures: tuple[Figure, ...]
    units: tuple[tuple[int, str], ...]
    """Each unit with its place."""
    breaks: tuple[int, ...] = field(default=())
    """Where another clause begins."""


_WORDS = {
    word: float(value)
    for line in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty",
        "null ein:eine:einer:einem zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
        "fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig",
        "zéro un:une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
        "dix-huit dix-neuf vingt",
        "cero uno:un:una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
        "diecisiete dieciocho diecinueve veinte",
    )
    for value, words in enumerate(line.split())
    for word in words.split(":")
}
_TENS = {
    word: float(10 * (place + 2))
    for place, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
    )
}
_WORDS |= _TENS | {
    f"{tens}-{unit}": value + _WORDS[unit]
    for tens, value in _TENS.items()
    for unit in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
}
_WORD = rf"(?<!\w)(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?!\w)"
_THOUSANDS = r"\d{1,3}(?:[,.']\d{3})+"
_DIGITS = (
    r"(?<![\w.,])(?:(?<![\w)\]%])(?<!\d )[-+])?"
    rf"(?:{_THOUSANDS}(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d+)?(?!\w)(?![.,]\d)"
)
_VALUE = rf"(?:{_DIGITS}|{_WORD})"
_WHOLE = rf"(?:(?<![\w.,])(?:{_THOUSANDS}|\d+)(?!\w)(?![.,]\d)|{_WORD})"
_OF = r"(?:out\s+of|in\s+every|in|of|von|aus|der|sur|de|des|di|su|parmi)"
_WHICH = r"(?:the|all|these|those|its|every|den|allen|diesen|les|las|los|cada|ces|estos|estas)"
_COUNT = (
    rf"(?P<first>(?!(?:one|ein\w*|une?|una)\s+(?!{_OF}\s)){_WHOLE})"
    rf"(?:\s*/\s*|(?:\s+(?!{_OF}\s|instead|au\s|en\s)[^\W\d_]+){{0,2}}\s+{_OF}\s+(?:{_WHICH}\s+)?(?:{_WHICH}\s+)?"
    rf"(?:[a-z-]+\s+)?)(?P<second>{_WHOLE})(?!\s*%)"
)
_INTERVAL = (
    rf"[\[(](?P<low>{_DIGITS})\s*[,;]\s*(?P<high>{_DIGITS})[\])]"
    rf"|(?:between|zwischen|entre)\s+(?P<low2>{_DIGITS})\s*%?\s+(?:and|und|et|y)\s+(?P<high2>{_DIGITS})(?:\s*%)?"
    rf"|(?P<low3>{_DIGITS})\s*%?\s*(?:to|bis|à|a|–)\s*(?P<high3>{_DIGITS})(?:\s*%|(?<=[.,]\d)|(?<=[.,]\d\d))"
)
_PERCENT = rf"(?P<percent>{_VALUE})\s*(?:%|percent\b|per\s+cent\b|Prozent\b|pour\s+cent\b|por\s+ciento\b)"
_ATOM = r"[-−+]?\d+(?:[.,]\d+)?"
_EXAMPLE = (
    rf"(?<![\w.]){_ATOM}(?:(?:\s+[-−+×*÷]\s+|[+×*÷])(?=[-−+]?\d){_ATOM}(?:\s*=\s*(?:{_ATOM})?)?(?:\s*(?:→|->|⇒)\s*{_ATOM})?"
    rf"|\s*(?:→|->|⇒)\s*{_ATOM})(?!\w)"
)
_QUOTED = r"['‘‚\"“„«`]\s*\d+\s*['’‘\"”“»`]"
_COUNTED = (
    r"(?:unit|channel|head|neuron|answer|record|flip|sum|control|rule|layer|certificate|time|example|ablation|forward|run\b|request|Kan[aä]l|K[oö]pf"
    r"|Einheit|Antwort|Schicht|Regel|canal|canaux|tête|unité|réponse|couche|règle|cabeza|unidad|respuesta|capa|regla)"
)
_COUNTING = rf"(?P<word>{_WORD})(?=\s+(?:[a-z-]+\s+)?{_COUNTED})"
_ORDINAL = r"(?P<ordinal>\d+)(?:st|nd|rd|th|er|ère|e|º|ª)(?!\w)"
_STRANGE = r"\w*\d\w*(?:[-.]\w*\d\w*)*"
_GRAMMAR = re.compile(
    "|".join(
        f"(?P<{name}>{rule})"
        for name, rule in (
            ("example", f"{_EXAMPLE}|{_QUOTED}"),
            ("interval", _INTERVAL),
            ("count", _COUNT),
            ("percentage", _PERCENT),
            ("counting", _COUNTING),
            ("number", rf"(?P<plain>{_DIGITS})"),
            ("rank", _ORDINAL),
            ("strange", _STRANGE),
        )
    ),
    re.IGNORECASE,
)

_MEASURES = {
    "MCC": "MCC",
    "AUC": "AUC",
    "p": r"p(?:[- ](?:value|Wert|valeur|valor))?",
    "τ": "τ|tau",
    "α": "α|alpha",
    "strength": "strength|Stärke|force|fuerza",
    "selectivity": "selectivity|Selektivität|sélectivité|selectividad",
    "rank": "rank(?:ed)?|Rang|rang|rango|node",
    "layer": "[Ll]ayer|Schicht|couche|capa",
}
SCORES = ("MCC", "AUC", "p", "rank", "selectivity")
"""Measures that are no share of anything, so never a percentage."""
_MEASURE = re.compile(
    "|".join(rf"(?P<m{place}>(?<!\w)(?:{rule})(?!\w))" for place, rule in enumerate(_MEASURES.values()))
)
_NEAR = re.compile(r"^\W*(?:\w+\W+){0,4}$")
_JOINT = re.compile(r"^[\s,()\[\]=–]*(?:and|to|und|bis|et|y)?[\s,()\[\]=]*$")
_CONFIDENCE = re.compile(
    r"^,? (?:as one of|confidence|bound|point|Konfidenz|Sicherheit|Vertrauen|de confiance|de confianza)",
    re.IGNORECASE,
)
CONTROL = re.compile(
    r"\b(?:random|control|others?\b|compar|zufäll|Zufall|Kontroll|andere|Vergleich|aléatoire|contrôle|autres|témoin"
    r"|aleatori|otr[oa]s)\w*",
    re.IGNORECASE,
)
"""Words that speak of the units which a unit is compared with."""
_OF_CONTROL = re.compile(r"^(?:\s+[^\W\d]+){0,3}?\s+(?:random|others)\b")
UNITS = re.compile(
    r"\b(?:unit|channel|head|neuron|Einheit|Kan[aä]l|K[oö]pf|unité|canal|canaux|tête|unidad|cabeza)\w*",
    re.IGNORECASE,
)
_OF_UNITS = re.compile(rf"^(?:\s+[a-z]+)?\s+{UNITS.pattern}", re.IGNORECASE)
_CONTROL_IS = re.compile(r"\brandom \w+(?: \w+)?\s+$")
_BESIDE = (
    r"(?:\s*(?:=|:|\b(?:the|an?|its|of|is|was|ist|der|die|das|den|dem|einer|eine[mn]?|von|est|la|le|les|un|une|de|du|el|los"
    r"|las|es|Schwelle|threshold|seuil|umbral|all|only)\b|τ|α|MCC|AUC|tau|alpha|strength))*\s*[\[(]?$"
)
_BEFORE = (
    (
        Sign.AT_LEAST,
        r"at least|no (?:less|fewer) than|not (?:less|fewer) than|not below|minimum of|≥|>="
        r"|mindestens|wenigstens|nicht weniger als|au moins|pas moins de|al menos|como mínimo|no menos de",
    ),
    (
        Sign.AT_MOST,
        r"at most|no more than|not more than|not (?:above|over)|up to|maximum of|≤|<=|höchstens|maximal|bis zu"
        r"|nicht mehr als|nicht über|au plus|jusqu'à|pas plus de|a lo sumo|como mucho|como máximo|hasta|no más de",
    ),
    (
        Sign.MORE,
        r"more than|greater than|higher than|larger than|above|beyond|exceed(?:s|ing|ed)?|>"
        r"|mehr als|größer als|höher als"
        r"|oberhalb von|plus de|plus que|supérieure? à|au-dessus de|más de|más que|mayor que|por encima de",
    ),
    (
        Sign.LESS,
        r"less than|fewer than|lower than|smaller than|below|<|weniger als|kleiner als|unterhalb von|moins de|moins que"
        r"|inférieure? à|au-dessous de|en dessous de|menos de|menos que|menor que|por debajo de",
    ),
)
_OVER = ((Sign.MORE, "over|über"), (Sign.LESS, "under|unter"), (Sign.AT_LEAST, "reach(?:es|ed)?(?= *$)"))
"""Also `over 64 records`: a direction only of a percentage, an interval or a decimal."""
_SIGNS = [
    (sign, re.compile(rf"(?<!\w)(?:{rule}){_BESIDE}", re.IGNORECASE)) for sign, rule in (*_BEFORE, *_OVER)
]
_BOUNDS = (
    (
        Sign.AT_LEAST,
        r"lower (?:bound|limit|end)|untere \w+|borne inférieure|limite inférieure|límite inferior|cota inferior",
    ),
    (
        Sign.AT_MOST,
        r"upper (?:bound|limit|end)|obere \w+|borne supérieure|limite supérieure|límite superior|cota superior",
    ),
)
BOUNDS = tuple((sign, re.compile(rule, re.IGNORECASE)) for sign, rule in _BOUNDS)
_BOUND = [
    (
        sign,
        re.compile(
            rf"(?:{rule})(?!\W+(?:reach|erreich|atte|alcan))(?:[^\w.;]+[^\W\d]+){{0,4}}?[^\w.;]+$",
            re.IGNORECASE,
        ),
    )
    for sign, rule in _BOUNDS
]
_AFTER = (
    (Sign.AT_LEAST, re.compile(r"^\s*(?:or|oder|ou|o)\s+(?:more|above|mehr|plus|más)", re.IGNORECASE)),
    (
        Sign.AT_MOST,
        re.compile(r"^\s*(?:or|oder|ou|o)\s+(?:fewer|less|below|weniger|moins|menos)", re.IGNORECASE),
    ),
)
_DENIED = re.compile(
    r"(?<!\w)(?:not|\w+n't|nicht|pas|non|no)(?:\s+(?:the|an?|die|den|les?|la|las|los))*\s+$",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"(?:\b(?:of|on|among|from|in|for|over|all|the|these|those|both|von|auf|unter|bei|aus|über|den|der|die|alle[nr]?|sur|de|des"
    r"|les|parmi|en|sobre|entre|las|los|drawn|asked|tried)\s+|/\s*)$",
    re.IGNORECASE,
)
_PARTS = {
    "held-out": r"held[- ]out|kept[- ]aside|set aside|out[- ]of[- ]sample|test (?:set|split|records)|zurückgehalten\w*"
    r"|beiseite\w*|retenue?s?|mise?s? de côté|réservée?s?|apartad[oa]s?|reservad[oa]s?",
    "train": r"(?<!learned on )(?<!fitted on )(?<!chosen on )train(?:ing)?(?!\w)|slices?|D[+-]|in[- ]sample"
    r"|Training\w*|Trainings\w*|entraînement|entrenamiento",
}
_PART = re.compile("|".join(f"(?P<{name[:4]}>{rule})" for name, rule in _PARTS.items()), re.IGNORECASE)
_AGAINST = re.compile(
    r"\b(?:against|versus|vs|compared|gegen|gegenüber|contre|frente|contra"
    r"|(?:than|als|que|de)(?= (?:the |die |den |les |las |los )?\d))",
    re.IGNORECASE,
)
"""Before what a unit is compared with."""
_BREAK = re.compile(
    r"\s·\s|;|\s[–—]\s|(?<=[.!?])\s"
    r"|(?<!\w)(?:but|though|although|while|whereas|aber|während|obwohl"
    r"|mais|tandis que|alors que|pero|mientras|aunque)(?!\w)",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"(?:^|[.;:,(]\s*)(?:Of|Von|Sur|De|Among|On|Auf)(?: (?:the|same|these|den|diesen|las|les|ces)){0,2}\s+$",
    re.IGNORECASE,
)
_ENDS = re.compile(r";|[.!?]\s")
_SCOPE = re.compile(r"[()]|;|\s·\s|(?<=\w[.!?])\s")


def plain(text: str) -> str:
    """A text with signs that look like others made these: full-width digits, fractions, minus signs."""
    text = re.sub(r"(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))", "'", text)
    return unicodedata.normalize("NFKC", text).replace("⁄", "/").replace("−", "-").replace("’", "'")


@lru_cache(4096)
def read(text: str) -> Read:
    """Every figure and unit of a text, in order."""
    text = plain(text)
    units = tuple((match.start(), match[0].lower()) for match in UNIT.finditer(text))
    bare = UNIT.sub(lambda match: " " * len(match[0]), text)
    breaks = [match.start() for match in _BREAK.finditer(bare)]
    for match in _AGAINST.finditer(bare):
        end = next((place for place in breaks if place > match.start()), len(bare))
        if any(match.start() < place < end for place, _ in units):
            breaks = sorted([*breaks, match.start()])
    figures: list[Figure] = []
    for match in _GRAMMAR.finditer(bare):
        figures += _figures(match, bare, figures)
    return Read(
        text=text,
        figures=tuple(_of_totals(figures, bare)),
        units=units,
        breaks=tuple(breaks),
    )


def _of_totals(figures: Sequence[Figure], text: str) -> Iterator[Figure]:
    """The figures, each number after `Of 64 answers …` in its sentence as a count of these too."""
    total, end = None, 0
    for one in figures:
        if total is not None and _ENDS.search(text, end, one.begin):
            total = None
        end = one.end
        yield one
        is_whole = one.kind is Kind.NUMBER and not one.decimals
        if is_whole and _FIRST.search(text[max(0, one.begin - 24) : one.begin]):
            total = one
        elif (
            total is not None and is_whole and not one.is_total and min(one.values[0]) <= max(total.values[0])
        ):
            yield replace(
                one, kind=Kind.COUNT, values=(*one.values, *total.values), text=f"{one.text} of {total.text}"
            )


def _figures(match: re.Match[str], text: str, before: Sequence[Figure]) -> Iterator[Figure]:
    """What a match of the grammar is, with the words beside it."""
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    if "strange" in found:
        yield Figure(kind=Kind.STRANGE, text=match[0], begin=match.start(), end=match.end(), values=())
        return
    kind, written = _written(found)
    figure = Figure(
        kind=kind,
        text=match[0].strip(),
        begin=match.start(),
        end=match.end(),
        values=tuple(_readings(one) for one in written),
        decimals=max((_decimals(one) for one in written), default=0),
    )
    if kind is Kind.NUMBER and figure.text.isalpha() and figure.values[0] == {1.0}:
        return  # "one unit" names it.
    if (
        kind is Kind.COUNT
        and max(min(values) for values in figure.values) <= 3
        and not re.search(r"\d| in ", figure.text)
    ):
        return  # "one of the two" counts nothing.
    yield replace(figure, **_beside(figure, text, before))


def _written(found: dict[str, str]) -> tuple[Kind, list[str]]:
    for names, kind in (
        (("example",), Kind.EXAMPLE),
        (("low", "high"), Kind.INTERVAL),
        (("low2", "high2"), Kind.INTERVAL),
        (("low3", "high3"), Kind.INTERVAL),
        (("first", "second"), Kind.COUNT),
        (("percent",), Kind.PERCENT),
    ):
        if names[0] in found:
            texts = [found[name] for name in names]
            return kind, re.findall(
                r"(?<!\d)[-+]?\d+(?:[.,]\d+)?", texts[0]
            ) if kind is Kind.EXAMPLE else texts
    return Kind.NUMBER, [found.get("word") or found.get("ordinal") or found["plain"]]


def _beside(figure: Figure, text: str, before: Sequence[Figure]) -> dict[str, Any]:
    """Sign, denial, measure and place of a total, by the words about a figure."""
    begin = before[-1].end if before else 0
    left, right = text[max(begin, figure.begin - 80) : figure.begin], text[figure.end : figure.end + 20]
    sign = next((sign for sign, rule in _AFTER if rule.search(right)), None)
    if sign is None:
        exact = figure.kind in (Kind.PERCENT, Kind.INTERVAL) or figure.decimals
        rules = [*_SIGNS[: None if exact else len(_BEFORE)], *_BOUND]
        sign = next((sign for sign, rule in rules if rule.search(left)), Sign.IS)
        sign = Sign.IS if figure.text.isalpha() else sign
    named = [match for match in _MEASURE.finditer(left) if _NEAR.match(left[match.end() :])]
    measure = ""
    if figure.kind is Kind.PERCENT and _CONFIDENCE.match(right):
        measure = "confidence"
    elif _OF_CONTROL.match(text[figure.end : figure.end + 40]) or _CONTROL_IS.search(left):
        measure = "control"
    elif figure.kind in (Kind.COUNT, Kind.NUMBER) and _OF_UNITS.match(text[figure.end : figure.end + 30]):
        measure = "units"
    elif named:
        measure = list(_MEASURES)[int(str(named[-1].lastgroup)[1:])]
    elif (
        figure.decimals
        and (after := _MEASURE.search(right))
        and re.fullmatch(r"(?:\s+\w+){0,2}\s+", right[: after.start()])
    ):
        measure = list(_MEASURES)[int(str(after.lastgroup)[1:])]
    elif before and _JOINT.match(text[begin : figure.begin]):
        measure = before[-1].measure
    return {
        "sign": sign,
        "denied": sign is Sign.IS and bool(_DENIED.search(left)),
        "measure": measure,
        "is_total": bool(_TOTAL.search(left)),
        "is_aside": left.endswith("("),
    }


def _readings(written: str) -> frozenset[float]:
    """The numbers that a written one may be."""
    if (value := _WORDS.get(written.lower())) is not None:
        return frozenset([value])
    spaced = re.sub(r"[\s']", "", written)
    texts = {spaced}
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:[.,]\d{3})+(?:[.,]\d+)?", spaced):
        texts = {spaced.replace(",", ""), spaced.replace(".", "").replace(",", ".")}
    else:
        texts = {spaced.replace(",", ".")}
    return frozenset(float(one) for one in texts if one.count(".") <= 1)


def _decimals(written: str) -> int:
    return len(match[1]) if (match := re.search(r"[.,](\d+)(?:e|$)", written)) else 0


def told(found: Read) -> tuple[Figure, ...]:
    """The figures of a sentence, with the part that its words give them.

    A word such as `held-out` speaks of the figure nearest to it in its clause and of those that follow, until the next.
    """
    clause = [sum(place <= one.begin for place in found.breaks) for one in found.figures]
    parts: dict[int, str] = {}
    for begin, end, part in _tags(found.text):
        here = sum(place <= begin for place in found.breaks)
        near = [
            (_apart(found.text, begin, end, one), place)
            for place, one in enumerate(found.figures)
            if clause[place] == here
        ]
        parts |= {min(near)[1]: part} if near else {}
    said: list[Figure] = []
    for place, one in enumerate(found.figures):
        goes_on = place and clause[place] == clause[place - 1] and place not in parts
        said.append(
            replace(
                one, parts=said[-1].parts if goes_on else frozenset([parts[place]] if place in parts else [])
            )
        )
    return tuple(said)


def _apart(text: str, begin: int, end: int, one: Figure) -> int:
    """Characters between a word and a figure; brackets between them part them widely."""
    between = text[end : one.begin] if one.begin >= end else text[one.end : begin]
    return len(between) + (100 if re.search(r"[()]", between) else 0)


def stated(found: Read) -> tuple[Figure, ...]:
    """The figures of a fact, each with every part that is named in its brackets, else in the clause about them."""
    tags = _tags(found.text)
    if not tags:
        return found.figures
    # Each character's chain of scopes, innermost last: brackets open one, semicolons and full stops begin it anew.
    chains: list[tuple[int, ...]] = []
    chain: tuple[int, ...] = (0,)
    for made, match in enumerate(_SCOPE.finditer(found.text), start=1):
        chains += [chain] * (match.start() - len(chains))
        kept = chain if match[0] == "(" else chain[:-1]
        chain = (kept or (made,)) if match[0] == ")" else (*kept, made)
    chains += [chain] * (len(found.text) - len(chains))
    named: dict[int, frozenset[str]] = {}
    for begin, _, part in tags:
        scope = chains[begin][-1]
        named[scope] = named.get(scope, frozenset()) | {part}
    return tuple(
        replace(one, parts=next((named[s] for s in reversed(chains[one.begin]) if s in named), frozenset()))
        for one in found.figures
    )


def _tags(text: str) -> list[tuple[int, int, str]]:
    """Where a text speaks of train or held-out records."""
    return [
        (match.start(), match.end(), "held-out" if match.lastgroup == "held" else "train")
        for match in _PART.finditer(text)
    ]
