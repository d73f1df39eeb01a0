"""One thing that is stated: its words, its value, what it is about, and where it can be checked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One sentence, with what it is about and where it can be checked."""

    template: str
    """The sentence without its full stop, `{value}` where the value stands."""
    value: str = ""
    """As printed, such as `28/64`; empty where the sentence has no value of its own."""
    unit: str | None = None
    slice: str | None = None
    """`D+`, `D-`, or None when it is about neither or both."""
    sources: tuple[str, ...] = ()
    """`c:ID` for a certificate, `run:ID` for what the run itself states."""

    @property
    def sentence(self) -> str:
        """The template with its value."""
        return self.template.replace("{value}", self.value)

    @property
    def cited(self) -> str:
        """The sentence with its sources."""
        return f"{self.sentence} {self.citation}".rstrip() + "."

    @property
    def citation(self) -> str:
        """The sources in brackets, as they stand behind a sentence."""
        return " ".join(f"[{source}]" for source in self.sources)
