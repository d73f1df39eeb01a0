"""The text augmentations of Best-of-N jailbreaking (Hughes et al. 2024, §2 and appendix A), with a seed.

Applied in this order, each with a probability that grows with the strength σ in [0, 1]:

- word scrambling: the inner letters of a word of more than three characters are shuffled, with probability √σ;
- random capitals: a letter changes case, with probability √σ;
- ASCII noise: a printable character moves one code point up or down, with probability σ³.

σ = 0 changes nothing. At the paper's σ = 0.4 these are 63 %, 63 % and 6.4 %.
"""

from __future__ import annotations

import re

import numpy as np

from mecharule_ops.errors import UsageError

_FIRST, _LAST = 32, 126
"""The printable characters of ASCII."""


def augmented(text: str, sigma: float, generator: np.random.Generator) -> str:
    """One augmented version of a text, as long as it. Raises `UsageError` for σ outside [0, 1]."""
    if not 0 <= sigma <= 1:
        raise UsageError(f"expected a strength sigma between 0 and 1, got {sigma}")
    return noisy(capitals(scrambled(text, sigma**0.5, generator), sigma**0.5, generator), sigma**3, generator)


def scrambled(text: str, probability: float, generator: np.random.Generator) -> str:
    """The text with the inner characters of long words shuffled."""

    def shuffled(match: re.Match[str]) -> str:
        word = match[0]
        if len(word) <= 3 or generator.random() >= probability:
            return word
        inner = generator.permutation(list(word[1:-1])).tolist()
        return word[0] + "".join(inner) + word[-1]

    return re.sub(r"\S+", shuffled, text)


def capitals(text: str, probability: float, generator: np.random.Generator) -> str:
    """The text with letters whose case was changed; a letter whose other case is longer stays."""
    changed = [
        char.swapcase() if char.isalpha() and len(char.swapcase()) == 1 and draw < probability else char
        for char, draw in zip(text, generator.random(len(text)), strict=True)
    ]
    return "".join(changed)


def noisy(text: str, probability: float, generator: np.random.Generator) -> str:
    """The text with printable characters moved by one code point, staying printable."""
    draws, steps = generator.random(len(text)), generator.choice((-1, 1), size=len(text))
    return "".join(
        _moved(char, int(step)) if draw < probability else char
        for char, draw, step in zip(text, draws, steps, strict=True)
    )


def _moved(char: str, step: int) -> str:
    code = ord(char)
    if not _FIRST <= code <= _LAST:
        return char
    moved = code + step
    return chr(moved if _FIRST <= moved <= _LAST else code - step)
