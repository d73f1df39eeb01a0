"""From a question's text to the tool that answers it, with no language model: fixed patterns, first match wins.

A question that no pattern knows is routed nowhere. Nothing is guessed: the answer then lists what can be asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mecharule_ops.bases import UNIT_NAME

Arguments = dict[str, object]

ORDINALS = {"strongest": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The kind of a question and what it names. A tool with the kind's name need not exist."""

    kind: str
    """`why`, `why-not`, `flip`, `covers`, `shared`, `mind`, `missed`, `strongest`, `how`, `compare`, `summary`."""
    unit: str | None = None
    """A unit named in the question."""
    place: int = 1
    """Which unit by strength is meant when none is named."""
    regime: str | None = None
    """`1` or `0` where the question says so."""
    given: Arguments = field(default_factory=dict)
    """Other arguments, such as the prompt of a flip or the run to compare with."""


def route(question: str) -> Route | None:
    """The route of a question; None when no pattern knows it."""
    text = " ".join(question.replace("’", "'").split())
    for kind, pattern in PATTERNS:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            given = {name: value for name, value in match.groupdict().items() if value}
            if kind == "flip":
                given["prompt"] = _prompt(text)
                if not given["prompt"]:
                    continue
            return Route(kind=kind, unit=_unit(text), place=_place(text), regime=_regime(text), given=given)
    return None


PATTERNS: tuple[tuple[str, str], ...] = (
    ("compare", r"\bcompare\b.*?\b(?:with|to|and|against)\s+(?:run\s+)?(?P<second>[0-9a-f]{4,16}|last)\b"),
    ("flip", r"\b(?:would|does|will|what if|if)\b.*\d+\s*[-+*/−×÷]\s*\d+"),
    ("mind", r"change your mind|refute|falsif|prove.* wrong|what would it take|disprove"),
    ("missed", r"\bmiss(?:ed|es|ing)?\b|overlook|recall|how complete"),
    ("covers", r"\b(?:rule|clause)\b.*\b(?:cover|fire|appl|else)|what else .*(?:cover|fire|appl)"),
    (
        "shared",
        r"(?:share|same|overlap|common).*\bflip|flip.*\b(?:same|share|common|overlap)|which (?:other )?"
        r"(?:neurons?|units?|heads?).*\b(?:share|same|too|also)",
    ),
    ("why-not", r"\bwhy\b.*(?:\bnot\b|n't\b)|\bwhy (?:is|was).*(?:absent|excluded|pruned|dropped)"),
    ("how", r"\bhow (?:was|were|did).*(?:found|find|locali[sz]ed|search)|how did (?:you|it|the search)"),
    ("why", r"\bwhy\b|\bexplain\b|what (?:does|makes|makes up) .*(?:do|flip)|tell me about|\bevidence\b"),
    (
        "strongest",
        r"\b(?:strongest|top|best|most important|which)\b.*\b(?:neurons?|units?|heads?|agonists?)\b",
    ),
    (
        "summary",
        r"\bsummar|what (?:did|was) (?:you|the run|it|this run)? ?(?:find|found)|what was found|results?\b",
    ),
)
"""(kind, pattern), in order of trial; a question is matched without regard to case."""


def _unit(text: str) -> str | None:
    match = re.search(rf"\b{UNIT_NAME}\b", text)
    return match[0] if match else None


def _place(text: str) -> int:
    found = (
        place
        for word, place in ORDINALS.items()
        if word != "strongest" and re.search(rf"\b{word}\b", text, re.I)
    )
    return next(found, 1)


def _regime(text: str) -> str | None:
    """The direction, as an arrow or in words."""
    if re.search(r"1\s*(?:→|->|to)\s*0|\bbreak|\bwrong\b", text, re.IGNORECASE):
        return "1"
    return "0" if re.search(r"0\s*(?:→|->|to)\s*1|\brepair|\bfix", text, re.IGNORECASE) else None


def _prompt(text: str) -> str:
    """The typed question inside quotes or backticks, else the bare `a op b` in the text; the last one counts."""
    quoted = re.findall(r"[\"'`“‘]([^\"'`”’]*\d[^\"'`”’]*)[\"'`”’]", text)
    bare = re.findall(r"(?<![\w.])\d+\s*[-+*/−×÷]\s*\d+\s*=?", text)
    return (quoted or bare or [""])[-1].strip()
