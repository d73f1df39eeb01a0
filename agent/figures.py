"""The numbers of a text, in digits or words: the readings of each, what its last digit is worth, whether per cent."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from mecharule_ops.bases import UNIT_NAME

_UNIT = re.compile(rf"(?<![\w.]){UNIT_NAME}(?!\w)", re.IGNORECASE)
_NO_FIGURE = re.compile(
    rf"{_UNIT.pattern}|\b[01]→[01](?!\d)|(?<![A-Za-z\d_])[A-Za-z_]\w*\d\w*", re.IGNORECASE
)
"""Names of units, directions of a flip, and words that hold a digit, such as `SmolLM2`."""
_NUMBER = re.compile(
    r"(?<![A-Za-z\d_.,])(?P<sign>(?:(?<![)\]%])(?<!\d )-)?)"
    r"(?P<digits>\d{1,3}(?:[,.']\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e(?P<power>-?\d+))?"
    r"(?:st|nd|rd|th|er|e|º|ª)?(?P<tail>[A-Za-z]*)(?P<percent>\s*%)?",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(\d[\d,]*)(?:/| (?:\w+ )?of (?:these |the )?)(\d[\d,]*)")
_PERCENT = re.compile(r"\s*\b(?:per\s?cent|Prozent|pour\s+cent|por\s+ciento)\b", re.IGNORECASE)
_WORDS = files(__package__).joinpath("number_words.txt").read_text(encoding="utf-8").splitlines()
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: value for value, words in enumerate(_WORDS) for word in words.split()}
_VALUES |= {ten: 10 * place for place, ten in enumerate(_TENS, start=2)}
_VALUES |= {f"{ten}-{_WORDS[one].split()[0]}": _VALUES[ten] + one for ten in _TENS for one in range(1, 10)}
_ANY = "|".join(sorted(_VALUES, key=len, reverse=True))
_WORD = re.compile(
    rf"\b(?:{_ANY})\b(?=\s*%|\s+(?:out\s+)?(?:of|in|von|aus|der|sur|de|des)(?:\s+\w+)?\s+(?:\d|(?:{_ANY})\b)"
    r"|\s+(?:[a-z-]+\s+)?(?:units?|channels?|heads?|neurons?|answers|records|ablations?|prompts)\b"
    r"|\s+(?:Einheiten|Kanäle|Köpfe|Neuronen|Antworten|unités|canaux|têtes|neurones|réponses"
    r"|unidades|canales|cabezas|neuronas|respuestas)\b)",
    re.IGNORECASE,
)
"""A number word of a count, or before what is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number as it is written."""

    text: str
    values: frozenset[float]
    """Its readings, since `1.234` is 1234 in German."""
    step: float
    """What its last digit is worth."""
    percent: bool
    strange: bool
    """It goes on as a word, such as `40k`."""


def as_digits(text: str) -> str:
    """A text in which number words are digits, and full-width digits, minus signs, arrows and quotes are plain ones."""
    text = unicodedata.normalize("NFKC", re.sub(r"(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))", "'", text))
    text = re.sub(r"->|⇒", "→", text.replace("⁄", "/").replace("−", "-"))
    text = _PERCENT.sub(" %", re.sub(r"[’‘‚“”„«»]", "'", text))
    return _WORD.sub(lambda match: str(_VALUES[match[0].lower()]), text)


def units_named(*texts: str) -> frozenset[str]:
    """The units that texts name."""
    return frozenset(name.lower() for text in texts for name in _UNIT.findall(text))


@lru_cache(4096)
def figures_in(text: str) -> tuple[Figure, ...]:
    """Every number of a plain text, in order."""
    return tuple(map(_figure, _NUMBER.finditer(_NO_FIGURE.sub(" ", text))))


def _figure(match: re.Match[str]) -> Figure:
    digits, power = match["digits"].replace("'", ""), int(match["power"] or 0)
    texts = {digits.replace(",", ".")}
    if re.fullmatch(r"[1-9]\d{0,2}(?:[.,]\d{3})+(?:[.,]\d+)?", digits):
        texts = {digits.replace(",", ""), digits.replace(".", "").replace(",", ".")}
    decimals = re.search(r"[.,](\d+)$", digits)
    return Figure(
        text=match[0].strip(),
        values=frozenset(float(f"{match['sign']}{one}e{power}") for one in texts if one.count(".") <= 1),
        step=10.0 ** (power - (len(decimals[1]) if decimals else 0)),
        percent=bool(match["percent"]),
        strange=bool(match["tail"]),
    )


def percentages(text: str) -> Iterator[float]:
    """The percentages that a text of the program states, and those of its counts."""
    yield from (value for one in figures_in(text) if one.percent for value in one.values)
    for count in _COUNT.finditer(text):
        first, second = (float(each.replace(",", "")) for each in count.groups())
        if second:
            yield 100 * first / second
