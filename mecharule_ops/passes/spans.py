"""Which positions of prompt + completion an intervention acts on, and where one example's span begins and ends.

The offset of a position counts from the last prompt token: 0 is the last prompt token, 1 the first generated
token that is fed back. A phase intervenes at every offset from `first_offset` on (paper, §3 and appendix B),
so the positions below a span are clean and their keys and values never change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mecharule_ops.types import Phase


def first_offset(phase: Phase, prompt_length: int) -> int:
    """The lowest intervened offset of a prompt of `prompt_length` tokens."""
    return {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: 1 - prompt_length}[phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The intervened positions of one example: fed tokens, and which completion token each of them predicts."""

    prefix: tuple[int, ...]
    """Token ids below the span."""
    fed: tuple[int, ...]
    """Token ids of the span; never contains the last completion token, which predicts nothing."""
    offset: int
    """Offset of the first span position."""

    def after(self, count: int) -> "Span":
        """Without its first positions, which count as its prefix."""
        prefix = *self.prefix, *self.fed[:count]
        return Span(prefix=prefix, fed=self.fed[count:], offset=self.offset + count)

    @property
    def prompt(self) -> tuple[int, ...]:
        """Token ids of the prompt."""
        return (*self.prefix, *self.fed)[: len(self.prefix) - self.offset + 1]

    @property
    def prompt_part(self) -> int:
        """How many span positions belong to the prompt and predict no completion token."""
        return max(0, -self.offset)

    @property
    def first_predicted(self) -> int:
        """Index of the first completion token that the span predicts: 1 in the decode phase, else 0."""
        return max(0, self.offset)


def span_of(prompt: Sequence[int], completion: Sequence[int], phase: Phase) -> Span:
    """The span of a prompt and a (partial) completion; empty when no intervened position is fed."""
    fed = (*prompt, *completion[:-1])
    offset = first_offset(phase, len(prompt))
    start = min(len(prompt) - 1 + offset, len(fed))
    return Span(prefix=fed[:start], fed=fed[start:], offset=offset)
