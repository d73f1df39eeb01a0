"""What this program's own words mean. A text that holds one explains it in a line of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

GLOSSES: Mapping[str, tuple[str, str]] = {
    "τ-agonist": (
        r"τ-agonists?",
        "a unit whose ablation alone flips at least the share τ of one half of the records",
    ),
    "τ": (r"τ(?!-agonist)", "the least share of flips that the run looks for"),
    "localized": (r"[Ll]ocalized", "not ruled out: the upper bound of what it flips reaches that share"),
    "D+, D-": (r"D[+-](?![\w.])", "the records where the splitter rule holds, and where it does not"),
    "splitter rule": (r"[Ss]plitter", "the rule by which the records were halved before the search"),
    "D_b": (r"\bD_b\b", "the records that the model gets right (1→0) or wrong (0→1) unablated"),
    "slice": (r"\b[Ss]lices?\b", "the records of one half on which units were ablated"),
    "search bound": (
        r"[Ss]earch bound|[Uu]pper bound",
        "the share that what was tested flips at most, as far as its counts tell",
    ),
    "lead": (r"\bleads?\b", "the logit difference of the token written and the best other one"),
    "drop": (r"\bdrops?\b|\bdrop_", "by how much a unit's ablation lowers the lead, to first order"),
    "first order": (r"[Ff]irst[- ]order", "what the gradient of the unablated run predicts"),
    "mechanism rule": (r"\bmechanism\b", "a rule over what a backward pass of the unablated run shows"),
    "clean run": (r"\b[Cc]lean run\b", "the model unablated"),
    "HQ-T": (r"\bHQ-T\b", "a rule of high quality: held-out MCC and coverage reach the paper's floors"),
    "selective": (
        r"\b[Ss]electiv\w*",
        "flipping more where the splitter rule holds than elsewhere, or the reverse",
    ),
    "strength": (r"\b[Ss]trength\b", "the larger of the shares that a unit flips on the two halves"),
}
"""By word: the pattern that finds it, and its meaning."""
HEAD = "Words: "


def explained(text: str) -> str:
    """`Words: D+, D-: …; lead: ….` for the private words in a text; empty without any.

    A meaning that itself uses a private word brings that word's own with it.
    """
    told: dict[str, str] = {}
    read = text
    while more := {
        word: meaning
        for word, (pattern, meaning) in GLOSSES.items()
        if word not in told and re.search(pattern, read)
    }:
        told |= more
        read = " ".join(more.values())
    ordered = [f"{word}: {told[word]}" for word in GLOSSES if word in told]
    return f"{HEAD}{'; '.join(ordered)}." if ordered else ""


def unexplained(text: str) -> tuple[str, ...]:
    """The private words that a text holds and whose meaning it does not give."""
    return tuple(
        word
        for word, (pattern, meaning) in GLOSSES.items()
        if re.search(pattern, text) and meaning not in " ".join(text.split())
    )
