"""Where an answer repeats a text of what it cites: such a stretch makes no claim of its own.

White space does not matter. A completion such as `214` may be repeated only where its question is repeated too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.answering.claims import Segment
from agent.answering.sources import Source

Span = tuple[int, int]


def quoted_spans(answer: str, segment: Segment, sources: Sequence[Source]) -> list[Span]:
    """Spans of a segment that repeat a text of its sources, or a completion beside its question."""
    places = [place for place in range(segment.begin, segment.end) if not answer[place].isspace()]
    squeezed = "".join(answer[place] for place in places)

    def spans(text: str) -> Iterator[Span]:
        begin = squeezed.find(text)
        while begin >= 0:
            span = places[begin], places[begin + len(text) - 1] + 1
            if _bounded(answer, span):
                yield span
            begin = squeezed.find(text, begin + 1)

    texts = {text for source in sources for text in source.texts}
    found = [span for text in texts for span in spans(text)]
    for question, replies in [pair for source in sources for pair in source.replies.items()]:
        asked = list(spans(question))
        found += asked
        found += [span for reply in replies if asked and reply for span in spans("".join(reply.split()))]
    return found


def _bounded(answer: str, span: Span) -> bool:
    """Whether a span is not the middle of a longer word or number."""
    begin, end = span
    before, after = answer[begin - 1 : begin], answer[end : end + 1]
    left = not (before.isalnum() and answer[begin].isalnum())
    return left and not (after.isalnum() and answer[end - 1].isalnum())
