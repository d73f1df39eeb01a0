"""Whether a text begins with an answer, and from where on no continuation changes that.

White space before either is ignored, capitals count, and a word or number must end where the answer does: `1` is not
what `17` begins with, nor `is` what `island` does. The end of the text ends a word.
"""

from __future__ import annotations

from collections.abc import Sequence

_BROKEN = "\ufffd"
"""Stands for the first bytes of a character whose others are not generated yet."""


def begins(text: str, answer: str) -> bool:
    """Whether the text begins with the answer.

    >>> begins(" Mary, of course", "Mary"), begins("17", "1"), begins("Maryland", "Mary")
    (True, False, False)
    """
    text, answer = text.lstrip(), answer.strip()
    rest = text.removeprefix(answer)
    return text.startswith(answer) and not (rest[:1].isalnum() and answer[-1:].isalnum())


def begins_with_any(partial: str, answers: Sequence[str]) -> bool | None:
    """Whether every continuation of the text begins with one of the answers, or none does; None while that is open.

    >>> [begins_with_any(text, ["is", "are"]) for text in (" ", " is", " is a", " island", "was")]
    [None, None, True, False, False]
    """
    settled = partial.lstrip().rstrip(_BROKEN)
    if any(begins(settled, answer) and len(settled) > len(answer.strip()) for answer in answers):
        return True
    return None if any(answer.strip().startswith(settled) for answer in answers) else False
