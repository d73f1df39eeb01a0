"""Named pieces of a record's text: what a unit that reads a token reads, in the task's own words.

A piece is a span of characters of prompt + completion. Pieces of one task never overlap and together cover the
whole text, so that shares over them sum to 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mecharule_ops.types import Value

FEW_SHOT, TEMPLATE, ANSWER = "few-shot lines", "template", "the answer"
"""Names that every task uses alike: the lines before the question, its fixed words, what was generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpan:
    """One named piece of a text."""

    name: str
    start: int
    """First character."""
    stop: int
    """Behind the last one."""


def end_to_end(pieces: Iterable[tuple[str, str]]) -> tuple[SourceSpan, ...]:
    """The spans of (name, text) laid end to end; empty texts are left out."""
    spans, at = [], 0
    for name, text in pieces:
        if text:
            spans.append(SourceSpan(name=name, start=at, stop=at + len(text)))
        at += len(text)
    return tuple(spans)


def field_pieces(question: str, fields: Mapping[str, Value]) -> list[tuple[str, str]]:
    """A question cut into its fields' values, found as whole words, the longest first; the rest is template."""
    claimed: list[tuple[int, int, str]] = []
    for name, value in sorted(fields.items(), key=lambda item: -len(str(item[1]))):
        if isinstance(value, bool) or not str(value).strip():
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(str(value))}(?!\w)", question):
            if all(match.end() <= start or match.start() >= stop for start, stop, _ in claimed):
                claimed.append((match.start(), match.end(), name))
                break
    pieces, at = [], 0
    for start, stop, name in sorted(claimed):
        pieces += [(TEMPLATE, question[at:start]), (name, question[start:stop])]
        at = stop
    return [*pieces, (TEMPLATE, question[at:])]
