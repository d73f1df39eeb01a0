"""Amounts that a question states of a sum in plain words: `answers ending in 1 or 3`, `the tens digit is 7 or more`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mecharule_ops.tasks.base import Task

READ = frozenset({"a", "b", "expected"})
"""Columns of a task that they are read for."""
_PLACES = {"unit": 0, "units": 0, "ones": 0, "last": 0, "final": 0, "tens": 1, "hundreds": 2}
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_NUMBERS = {
    **{word: value for value, word in enumerate(_ONES)},
    **{"a hundred": 100, "one hundred": 100, "two hundred": 200, "three hundred": 300, "hundred": 100},
    **{"ten": 10, "twenty": 20, "fifty": 50},
}
_N = rf"(?:-?\d+|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_LIST = rf"{_N}(?:(?:\s*,\s*(?:or\s+)?|\s+or\s+|\s+and\s+){_N})*"
_ANSWER = r"(?<!cross )(?<!digit )(?:(?:right|true|correct)\s+)?(?:answer|result|sum|total|difference)s?"
_PLACE = "units?|ones|last|final|tens|hundreds"
_TERMS = (
    (rf"(?:{_ANSWER}(?:'s|')?|(?P<of>\b[ab])'s)\s+(?P<place>{_PLACE})\s+digit", "digit"),
    (rf"(?P<place>{_PLACE})\s+digit(?:\s+of\s+(?:the\s+)?(?:{_ANSWER}|(?P<of>\b[ab]\b)))?", "digit"),
    (rf"(?:magnitude|size|absolute\s+value)s?\s+of\s+(?:the\s+)?{_ANSWER}", "abs(expected)"),
    (rf"{_ANSWER}\s+(?:(?:of|whose|with)\s+(?:a\s+)?)?(?:magnitude|absolute\s+value)s?", "abs(expected)"),
    (r"magnitudes?", "abs(expected)"),
    (_ANSWER, "expected"),
    (r"both\s+(?:operands|numbers|a\s+and\s+b)|(?:the\s+)?smaller\s+(?:operand|number)", "min(a, b)"),
    (r"(?:the\s+)?(?:larger|bigger|largest|biggest)\s+(?:operand|number)", "max(a, b)"),
    (r"(?:an|one|either|some)\s+(?:operand|number)|operands|numbers", "max(a, b)"),
)
"""What is spoken of, the most words first."""
_BIND = (
    r"[\s(,]+(?:(?:that|which|(?:one|either)\s+of\s+them)\s+)?(?:(?:is|are|being|be|of|has|have|at|with)\s+)?"
)
_COMPARED = (
    (rf"(?:between|from)\s+(?P<low>{_N})\s+(?:and|to)\s+(?P<high>{_N})", "between"),
    (rf"(?P<n>{_N})\s+(?:or|and)\s+(?:more|above|over|up|upwards?|greater|higher|larger|bigger)", ">="),
    (rf"(?:at\s+least|no\s+less\s+than)\s+(?P<n>{_N})", ">="),
    (rf"(?P<n>{_N})\s+(?:or|and)\s+(?:less|below|under|fewer|lower|smaller)", "<="),
    (rf"(?:at\s+most|up\s+to|no\s+more\s+than)\s+(?P<n>{_N})", "<="),
    (
        rf"(?:above|over|more\s+than|greater\s+than|larger\s+than|bigger\s+than|beyond|exceeding|>)\s*(?P<n>{_N})",
        ">",
    ),
    (rf"(?:below|under|less\s+than|smaller\s+than|lower\s+than|<)\s*(?P<n>{_N})", "<"),
    (rf"(?P<list>{_LIST})", "in"),
)
_PARITIES = {"even": "divisible(expected, 2) and ", "odd": "not divisible(expected, 2) and "}
_OF_OTHERS = r"(?![\w.]|\s*(?:%|percent|of\b|records|units\b|times|logits|tokens|seconds))"
"""Behind an amount: that it is one of something else."""
_ENDS = re.compile(
    rf"(?:(?:(?P<parity>even|odd)\s+)?{_ANSWER}\s+)?(?:(?:that|which)\s+)?(?:ends?|ending)\s+(?:in|on|with)\s+(?:an?\s+)?"
    rf"(?P<list>{_LIST})(?:\s+(?:or|and)\s+(?P<more>more|above|over|up|higher|larger))?\b",
    re.IGNORECASE,
)


def amounts_in(question: str, task: Task) -> dict[str, str]:
    """Predicates by the words of the question that state them; none for a task without the columns of a sum.

    `the answer` is the right one. A number alone counts as an amount of a digit and of what an answer ends in only.
    Longer readings win over those that lie within them.
    """
    if not task.prompt_columns >= READ:
        return {}
    found: list[tuple[int, int, str]] = []
    for begin, end, predicate in sorted(_read(question), key=lambda one: one[0] - one[1]):
        if all(end <= other[0] or begin >= other[1] for other in found):
            found.append((begin, end, predicate))
    return {question[begin:end]: predicate for begin, end, predicate in sorted(found)}


def _read(question: str) -> Iterator[tuple[int, int, str]]:
    """(begin, end, predicate) of every reading."""
    for match in _ENDS.finditer(question):
        numbers = _numbers(match["list"])
        digit = (
            f"digit(expected, 0) >= {max(numbers)}"
            if match["more"]
            else _among("digit(expected, 0)", numbers)
        )
        parity = _PARITIES.get((match["parity"] or "").lower(), "")
        yield *match.span(), f"{parity}{digit}"
    for words, term in _TERMS:
        for compared, sign in _COMPARED:
            if sign == "in" and term != "digit":
                continue
            pattern = re.compile(rf"(?<![\w.])(?:{words}){_BIND}(?:{compared}){_OF_OTHERS}", re.IGNORECASE)
            for match in pattern.finditer(question):
                named = match.groupdict()
                spoken = _digit(named) if term == "digit" else term
                yield *match.span(), _compared(spoken, sign, named)


def _digit(named: Mapping[str, str | None]) -> str:
    place = _PLACES[str(named["place"]).lower()]
    return f"digit({named.get('of') or 'expected'}, {place})".lower()


def _compared(term: str, sign: str, named: Mapping[str, str | None]) -> str:
    if sign == "between":
        return f"{_number(str(named['low']))} <= {term} <= {_number(str(named['high']))}"
    if sign == "in":
        return _among(term, _numbers(str(named["list"])))
    return f"{term} {sign} {_number(str(named['n']))}"


def _among(term: str, numbers: Sequence[int]) -> str:
    values = sorted(set(numbers))
    return f"{term} == {values[0]}" if len(values) == 1 else f"{term} in ({', '.join(map(str, values))})"


def _numbers(text: str) -> list[int]:
    return [_number(match[0]) for match in re.finditer(_N, text, re.IGNORECASE)]


def _number(text: str) -> int:
    words = " ".join(text.lower().split())
    return _NUMBERS[words] if words in _NUMBERS else int(words)
