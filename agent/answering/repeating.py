"""What an addition says that the answer above it does not say already: a sentence is never shown twice."""

from __future__ import annotations

import re
from dataclasses import replace

from agent.answering.claims import CITATION
from agent.answering.prose import Rendered

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SAME = 0.8
"""Share of a sentence's words that stand in one sentence above, from which it is a repetition."""


def unsaid(addition: Rendered, answer: str) -> Rendered:
    """The addition without sentences that repeat one of the answer or of itself; without a fact where none is left."""
    said = [words for sentence in _SENTENCE.split(answer) if (words := _words(sentence))]
    kept = []
    for sentence in _SENTENCE.split(addition.text):
        words = _words(sentence)
        if words and not any(len(words & known) >= _SAME * len(words) for known in said):
            kept.append(sentence)
            said.append(words)
    return replace(addition, text=" ".join(kept), used=addition.used if kept else ())


def _words(sentence: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", CITATION.sub(" ", sentence).lower()))
