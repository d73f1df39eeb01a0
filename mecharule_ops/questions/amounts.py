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
_WORDED = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_N = rf"(?:-?\d{{1,3}}(?:,\d{{3}})+|-?\d+|{_WORDED})"
_SOME = re.compile(rf"(?<![\w.]){_N}(?![\w.]*\w)", re.IGNORECASE)
"""A number that is no part of a name: without one nothing else is looked for."""
_LIST = rf"{_N}(?:(?:\s*,\s*(?:or\s+)?|\s+or\s+|\s+and\s+){_N})*"
_ANSWER = (
    r"(?<!cross )(?<!digit )(?<!wrong )(?<!written )(?<!model's )(?<!its )(?<!their )"
    r"(?:(?:right|true|correct)\s+)?(?:answer|result|sum|total)s?"
)
_PLACE = "units?|ones|last|final|tens|hundreds"
_OF = r"(?:of\s+(?:the\s+|both\s+|two\s+)*)?"
_TERMS = (
    (rf"(?:{_ANSWER}(?:'s|')?|(?P<of>\b[ab])'s)\s+(?P<place>{_PLACE})\s+digit", "digit"),
    (rf"(?P<place>{_PLACE})\s+digit(?:\s+of\s+(?:the\s+)?(?:{_ANSWER}|(?P<of>\b[ab]\b)))?", "digit"),
    (rf"(?:magnitude|size|absolute\s+value)s?\s+of\s+(?:the\s+)?{_ANSWER}", "abs(expected)"),
    (rf"{_ANSWER}\s+(?:(?:of|whose|with)\s+(?:a\s+)?)?(?:magnitude|absolute\s+value)s?", "abs(expected)"),
    (r"magnitudes?", "abs(expected)"),
    (_ANSWER, "expected"),
    (
        rf"both\s+(?:operands|numbers|a\s+and\s+b)|(?:the\s+)?smaller\s+{_OF}(?:operand|number)s?",
        "min(a, b)",
    ),
    (rf"(?:the\s+)?(?:larger|bigger|largest|biggest)\s+{_OF}(?:operand|number)s?", "max(a, b)"),
    (
        rf"(?:an|one|either|some)\s+{_OF}(?:operand|number)s?|(?:operands|numbers)[\s(,]+(?:one|either)\s+of\s+them",
        "one",
    ),
    (r"operands|numbers", "max(a, b)"),
    (
        r"(?:difference|distance|gap)\s+(?:between|of)\s+(?:the\s+)?(?:two\s+|both\s+)?(?:operands|numbers|a\s+and\s+b)",
        "abs(a - b)",
    ),
)
"""What is spoken of, the most words first; of `one` of both numbers the larger has to be above, the smaller below."""
_BIND = r"[\s(,]+(?:(?:that|which)\s+)?(?:(?:is|are|being|be|of|has|have|at|with)\s+)?(?:an?\s+)?"
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
    (rf"(?:below|under|less\s+than|fewer\s+than|smaller\s+than|lower\s+than|<)\s*(?P<n>{_N})", "<"),
    (rf"(?P<list>{_LIST})", "in"),
)
_OF_OTHERS = (
    r"(?![\w.]|,\d|\s*(?:%|percent|of\b|apart\b|records|units\b|times|logits|tokens|seconds|digits?|flips?|answers?|cases|bits|"
    rf"letters|words)|\s+(?:and\s+)?(?:\d|(?:{_WORDED})\b))"
)
"""Behind an amount: that it is one of something else, or that the number goes on."""
_ENDS = re.compile(
    rf"(?:(?:(?P<parity>even|odd)\s+)?{_ANSWER}\s+)?(?:(?:that|which)\s+)?(?:ends?|ending)\s+(?:in|on|with)\s+(?:an?\s+)?"
    rf"(?P<list>{_LIST})(?:\s+(?:or|and)\s+(?P<more>more|above|over|up|higher|larger))?\b",
    re.IGNORECASE,
)
_IN_PLACE = re.compile(
    rf"(?:an?\s+|the\s+)?(?P<list>{_LIST})\s+in\s+(?:the|its)\s+(?P<place>{_PLACE})\s+(?:place|position|digit)\b",
    re.IGNORECASE,
)
_BOTH = r"(?:the\s+)?(?:two\s+|both\s+)?(?:numbers|operands|a\s+and\s+b)"
_TOGETHER = r"(?:close\s+together,?\s+)?"
_FIRST = re.compile(
    r"(?:first\s+(?:number|operand)\s+(?:is\s+)?|\ba\s+is\s+)(?:more\s+)?(?P<sign>bigger|big|larger|large|greater|smaller|less)"
    r"\s+than\s+(?:the\s+)?(?:second(?:\s+(?:number|operand|one)\b|(?=\s*(?:[,?.]|$)))|b\b)(?!\s+by\b)",
    re.IGNORECASE,
)
"""Both numbers beside each other, which needs no amount."""
_PARITIES = {"even": "divisible(expected, 2) and ", "odd": "not divisible(expected, 2) and "}
_NOT_SO = re.compile(
    r"(?:\b(?:not|unless|except|but|never|without|wrong|written|model's|its|their)|n't)\s+(?:(?:the|an?|for|on|in)\s+){0,2}$",
    re.IGNORECASE,
)
"""Before an amount: that the contrary, or another answer, is meant; then it is left unread."""


def amounts_in(question: str, task: Task) -> dict[str, str]:
    """Predicates by the words of the question that state them; none for a task without the columns of a sum.

    `the answer` is the right one. A number alone counts as an amount of a digit and of what an answer ends in only.
    Longer readings win over those that lie within them.
    """
    if not (task.prompt_columns >= READ and (_SOME.search(question) or _FIRST.search(question))):
        return {}
    found: list[tuple[int, int, str]] = []
    for begin, end, predicate in sorted(_read(question), key=lambda one: one[0] - one[1]):
        apart = all(end <= other[0] or begin >= other[1] for other in found)
        if apart and not _NOT_SO.search(question[:begin]):
            found.append((begin, end, predicate))
    return {question[begin:end]: predicate for begin, end, predicate in sorted(found)}


def _read(question: str) -> Iterator[tuple[int, int, str]]:
    """(begin, end, predicate) of every reading."""
    for match in _ENDS.finditer(question):
        if ending := _ending(match["list"], is_least=match["more"] is not None):
            yield *match.span(), f"{_PARITIES.get((match['parity'] or '').lower(), '')}{ending}"
    for match in _IN_PLACE.finditer(question):
        yield *match.span(), _compared(_spoken("digit", "in", match.groupdict()), "in", match.groupdict())
    for match in _FIRST.finditer(question):
        yield *match.span(), f"a {'<' if match['sign'].lower() in ('smaller', 'less') else '>'} b"
    for compared, sign in _COMPARED if "apart" in question.lower() else ():
        apart = rf"(?<![\w.])(?:{_BOTH}){_BIND}{_TOGETHER}(?:{compared})\s+apart\b"
        for match in re.finditer(apart, question, re.IGNORECASE) if sign != "in" else ():
            yield *match.span(), _compared("abs(a - b)", sign, match.groupdict())
    for words, term in _TERMS:
        for compared, sign in _COMPARED:
            if (sign == "in" and term != "digit") or (sign == "between" and term == "one"):
                continue
            pattern = re.compile(rf"(?<![\w.])(?:{words}){_BIND}(?:{compared}){_OF_OTHERS}", re.IGNORECASE)
            for match in pattern.finditer(question):
                named = match.groupdict()
                yield *match.span(), _compared(_spoken(term, sign, named), sign, named)


def _spoken(term: str, sign: str, named: Mapping[str, str | None]) -> str:
    if term == "one":
        return "max(a, b)" if sign.startswith(">") else "min(a, b)"
    if term != "digit":
        return term
    return f"digit({named.get('of') or 'expected'}, {_PLACES[str(named['place']).lower()]})".lower()


def _compared(term: str, sign: str, named: Mapping[str, str | None]) -> str:
    if sign == "between":
        return f"{_number(str(named['low']))} <= {term} <= {_number(str(named['high']))}"
    if sign == "in":
        return _among(term, _numbers(str(named["list"])))
    return f"{term} {sign} {_number(str(named['n']))}"


def _among(term: str, numbers: Sequence[int]) -> str:
    values = sorted(set(numbers))
    return f"{term} == {values[0]}" if len(values) == 1 else f"{term} in ({', '.join(map(str, values))})"


def _ending(text: str, *, is_least: bool) -> str:
    """What an answer ends in, of as many digits as are said; empty where these differ."""
    said = [match[0] for match in re.finditer(_N, text, re.IGNORECASE)]
    sizes = {len(one) if one.isdigit() else len(str(_number(one))) for one in said}
    if len(sizes) != 1 or (is_least and len(said) > 1):
        return ""
    size = sizes.pop()
    term = "digit(expected, 0)" if size == 1 else f"abs(expected) % {10**size}"
    return f"{term} >= {_number(said[0])}" if is_least else _among(term, [_number(one) for one in said])


def _numbers(text: str) -> list[int]:
    return [_number(match[0]) for match in re.finditer(_N, text, re.IGNORECASE)]


def _number(text: str) -> int:
    words = " ".join(text.lower().split())
    return _NUMBERS[words] if words in _NUMBERS else int(words.replace(",", ""))
