"""Every number and unit of an answer against the source it cites, by rule and without a model.

- Uncited: marked `[unverified]`.
- A number that its source does not hold, at the precision printed, or a unit that it does not name: struck out.
- A citation of nothing: struck out, and what rests on it alone is unverified. A unit that no source names: struck.

A number is compared with what its source says of the units named in the same stretch of text, and, when a word
beside it says what it is of (associated, unrelated, MCC, upper, lower, random, fake), with that. Quoted rules,
prompts and completions are compared as texts (`quoting`). What the check cannot see: a number that is true of something
else in the same source where no word says of what, and sentences without numbers and units:
`none`, `all` and `never` pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.answering.claims import Claim, Segment, citations_of, claims_of, segments_of
from agent.answering.marks import Mark, counted
from agent.answering.quoting import quoted_spans
from agent.answering.sources import GROUPS, Evidence, Quantity, Source
from mecharule_ops.numbers import plural

_NEAR = 30
"""Characters between a word and the number that it names."""
_TINY = 1e-9
_COMMAND = re.compile(r"`mecharule [^`\n]*`")
_RUN = re.compile(r"\brun `?(\w+)\b")


class Fault(StrEnum):
    """What is wrong with a piece of an answer."""

    UNCITED = "unverified"
    DIFFERS = "differs from its source"
    FORGED = "no such certificate"
    INVENTED = "no such unit in the evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An answer after its check."""

    text: str
    """With faulty pieces struck or marked."""
    marks: tuple[Mark, ...]
    cited: tuple[str, ...]
    """Whole ids of the sources that it cites, in order."""

    @property
    def verified(self) -> bool:
        """True when nothing was struck or marked."""
        return not self.marks

    def sentence(self) -> str:
        """One line on the outcome."""
        if self.verified:
            return f"every number checked against {plural(len(self.cited), 'source')}"
        return counted(self.marks, Fault)


def check(answer: str, evidence: Evidence) -> Checked:
    """The answer with every claim compared with the source it cites."""
    marks = list(_forged(answer, evidence))
    claims = claims_of(answer)
    cited: dict[str, None] = {}
    for segment in segments_of(answer):
        sources = [
            source
            for citation in segment.citations
            for id in citation.ids
            if (source := evidence.find(id)) is not None
        ]
        cited.update((source.id, None) for source in sources)
        inside = [claim for claim in claims if segment.begin <= claim.begin < segment.end]
        marks.extend(_marks(answer, segment, inside, sources, evidence))
    marks.sort(key=lambda mark: mark.begin)
    return Checked(text=_rendered(answer, marks), marks=tuple(marks), cited=tuple(cited))


def _forged(answer: str, evidence: Evidence) -> Iterator[Mark]:
    for citation in citations_of(answer):
        if any(evidence.find(id) is None for id in citation.ids):
            text = answer[citation.begin : citation.end]
            yield Mark(begin=citation.begin, end=citation.end, text=text, fault=Fault.FORGED)


def _marks(
    answer: str, segment: Segment, claims: Sequence[Claim], sources: Sequence[Source], evidence: Evidence
) -> Iterator[Mark]:
    quoted = [*quoted_spans(answer, segment, sources), *_spans_without_claims(answer, evidence)]
    units = {claim.text for claim in claims if claim.kind == "unit"}
    groups = _groups_by_claim(answer, segment, claims)
    for claim in claims:
        if any(begin <= claim.begin and claim.end <= end for begin, end in quoted):
            continue
        fault = _fault(claim, units, groups.get(claim.begin, frozenset()), sources, evidence)
        if fault is not None:
            struck = fault is not Fault.UNCITED
            yield Mark(begin=claim.begin, end=claim.end, text=claim.text, fault=fault, struck=struck)


def _fault(
    claim: Claim, units: set[str], groups: frozenset[str], sources: Sequence[Source], evidence: Evidence
) -> Fault | None:
    if claim.kind == "unit" and not evidence.knows_unit(claim.text):
        return Fault.INVENTED
    if claim.kind == "id":
        return None if evidence.find(f"c:{claim.text}") else Fault.FORGED
    if not sources:
        return Fault.UNCITED
    if claim.kind == "unit":
        holds = any(claim.text in source.units for source in sources)
    elif claim.kind == "layer":
        holds = any(unit.startswith(f"{claim.text}.") for source in sources for unit in source.units)
    elif claim.kind == "arrow":
        arrow = "".join(claim.text.replace("->", "→").split())
        holds = any(arrow in source.arrows for source in sources)
    elif claim.kind == "name":
        holds = any(claim.text in text for source in sources for text in source.texts)
    else:
        holds = any(_holds(claim, source, units, groups) for source in sources)
    return None if holds else Fault.DIFFERS


def _holds(claim: Claim, source: Source, units: set[str], groups: frozenset[str]) -> bool:
    """Whether the source has this number, of these units where it says so, of this kind where it knows the kind."""
    about = [
        quantity
        for quantity in source.quantities
        if quantity.unit is None or not units or quantity.unit in units
    ]
    kind = [quantity for quantity in about if quantity.groups & groups]
    return any(_equal(claim, quantity) for quantity in kind or about)


def _equal(claim: Claim, quantity: Quantity) -> bool:
    if claim.kind == "count":
        return quantity.of is not None and (quantity.value, quantity.of) == (claim.value, claim.of)
    if claim.percent:
        return not quantity.whole and abs(100 * quantity.value - claim.value) <= _half_unit(claim)
    if quantity.whole or (claim.decimals == 0 and abs(quantity.value) < 1):
        return quantity.value == claim.value
    return abs(quantity.value - claim.value) <= _half_unit(claim)


def _half_unit(claim: Claim) -> float:
    """Half a unit of the last printed place."""
    return 0.5 * 10.0**-claim.decimals + _TINY


def _groups_by_claim(answer: str, segment: Segment, claims: Sequence[Claim]) -> dict[int, frozenset[str]]:
    """What each number is of: every telling word names the number nearest to it in the same phrase."""
    numbers = [claim for claim in claims if claim.kind in ("number", "count")]
    named: dict[int, set[str]] = {}
    for group, pattern in GROUPS.items():
        for match in pattern.finditer(answer, segment.begin, segment.end):
            near = [(_distance(answer, claim, match.start(), match.end()), claim.begin) for claim in numbers]
            distance, begin = min(near, default=(_NEAR + 1, 0))
            if distance <= _NEAR:
                named.setdefault(begin, set()).add(group)
    return {begin: frozenset(groups) for begin, groups in named.items()}


def _distance(answer: str, claim: Claim, begin: int, end: int) -> int:
    """Characters between a word and a number; beyond reach when punctuation parts them."""
    between = answer[claim.end : begin] if claim.end <= begin else answer[end : claim.begin]
    parted = any(mark in between for mark in ",;()—|") or " and " in between or " but " in between
    return _NEAR + 1 if parted else len(between)


def _spans_without_claims(answer: str, evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Commands to type, and the names of runs that can be cited."""
    yield from (match.span() for match in _COMMAND.finditer(answer))
    for match in _RUN.finditer(answer):
        if f"run:{match[1]}" in evidence.sources:
            yield match.span()


def _rendered(answer: str, marks: Sequence[Mark]) -> str:
    parts, begin = [], 0
    for mark in marks:
        parts += [answer[begin : mark.begin], str(mark)]
        begin = mark.end
    return "".join([*parts, answer[begin:]])
