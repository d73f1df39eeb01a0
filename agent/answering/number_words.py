"""Numbers that are written without plain digits: in words, as fractions, as raised or circled figures.

`one` and `two` say a number only inside a larger one or in a count; `first` to `ninth` only after a ten. The
baseline called `zero` is no number. What is said vaguely (`dozens`) has a value that no source can hold.
"""

from __future__ import annotations

import re
import unicodedata

_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_TIMES = {"twice": 2, "double": 2, "doubled": 2, "thrice": 3, "triple": 3, "tripled": 3}
_VALUES = {
    **{word: value for value, word in enumerate((*_ONES, *_TEENS), 1)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
    **{word: value for value, word in enumerate(_ORDINALS, 1)},
    **{"zero": 0, "half": 0.5, "a": 1},
    **_SCALES,
    **_TIMES,
}


def _any(words: object) -> str:
    return "|".join(sorted(map(str, words), key=len, reverse=True))  # type: ignore[call-overload]


_SMALL = rf"(?:(?:{_any(_TENS)})(?:[- ](?:{_any((*_ONES, *_ORDINALS))}))?|{_any((*_ONES, *_TEENS))})"
_VAGUE = rf"(?:{_any(_SCALES)})s"
_PART = rf"(?:a|{_any(_ONES)})[- ](?:{_any(_PARTS)})s?"
_SCALED = rf"(?:(?:a|{_SMALL})[- ])?(?:{_any(_SCALES)})"
_ZERO = r"(?<!baseline )(?<!`)zero(?![-` ](?:baseline|ablat|replac))(?!`)"
_FOLD = rf"{_SMALL}fold"
WORD = rf"\b(?i:{_VAGUE}|{_PART}|{_SCALED}|{_FOLD}|{_any(_TIMES)}|{_ZERO}|half|{_SMALL})\b"
"""A number in words."""
FIGURE = (
    r"[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u2188"
    r"\u2460-\u249b\u24ea-\u24ff\u2776-\u2793]"
)
"""One raised, lowered or circled figure, vulgar fraction or Roman numeral sign."""
_COUNTED = ("one", "two")


def counts_alone(text: str) -> bool:
    """False for `one` and `two`, which mostly are no claim."""
    return text.lower() not in _COUNTED


def word_value(text: str) -> float | None:
    """The value of a number in words or of one figure; None when the text is neither."""
    low = text.lower().removesuffix("fold")
    if len(text) == 1 and re.fullmatch(FIGURE, text):
        return float(unicodedata.numeric(text))
    if re.fullmatch(_VAGUE, low):
        return float("inf")
    words = re.split(r"[- ]", low)
    if re.fullmatch(_PART, low):
        return _VALUES[words[0]] / _PARTS[words[-1].removesuffix("s")]
    if any(word not in _VALUES for word in words):
        return None
    *first, last = words
    if last in _SCALES:
        return float((sum(_VALUES[word] for word in first) or 1) * _SCALES[last])
    return float(sum(_VALUES[word] for word in words))
