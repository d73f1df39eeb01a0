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
    part: str = ""
    """The part of an answer that it opens, such as `When`; empty where it speaks for itself."""

    @property
    def said(self) -> str:
        """The sentence with its part before it and a full stop."""
        return f"{self.part}. {self.sentence}." if self.part else f"{self.sentence}."

    @property
    def cited(self) -> str:
        """The same with its sources in brackets: for a language model, whose words must name them."""
        return " ".join([self.said.removesuffix("."), *(f"[{source}]" for source in self.sources)]) + "."


def certificate_ids(sources: Iterable[str]) -> tuple[str, ...]:
    """The ids of the certificates among sources, each once."""
    return tuple(dict.fromkeys(id.removeprefix("c:") for id in sources if id.startswith("c:")))


def run_ids(sources: Iterable[str]) -> tuple[str, ...]:
    """The ids of the runs among sources, each once."""
    return tuple(dict.fromkeys(id.removeprefix("run:") for id in sources if id.startswith("run:")))


def fact(sentence: str, *sources: str, unit: object = None, kinds: str = "", part: str = "") -> Fact:
    """A fact from its sources, about a unit where one is named; `kinds` are words with spaces between them."""
    about = None if unit is None else str(unit)
    return Fact(sentence=sentence, unit=about, sources=sources, kinds=tuple(kinds.split()), part=part)
