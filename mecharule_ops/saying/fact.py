"""One thing that is stated: a sentence, what it is about, and where it can be checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One sentence, with what it is about and where it can be checked."""

    sentence: str
    """Without its full stop."""
    unit: str | None = None
    sources: tuple[str, ...] = ()
    """`c:ID` for a certificate, `run:ID` for what the run itself states."""
    kinds: tuple[str, ...] = ()
    """The kinds of question that it answers; empty where it belongs to every answer of its tool."""

    @property
    def cited(self) -> str:
        """The sentence with its sources in brackets."""
        return " ".join([self.sentence, *(f"[{source}]" for source in self.sources)]) + "."


def certificate_ids(sources: Iterable[str]) -> tuple[str, ...]:
    """The ids of the certificates among sources, each once."""
    return tuple(dict.fromkeys(id.removeprefix("c:") for id in sources if id.startswith("c:")))


def fact(sentence: str, *sources: str, unit: object = None, kinds: str = "") -> Fact:
    """A fact from its sources, about a unit where one is named; `kinds` are words with spaces between them."""
    about = None if unit is None else str(unit)
    return Fact(sentence=sentence, unit=about, sources=sources, kinds=tuple(kinds.split()))
