"""Sentence pairs of our own for the three heuristics of HANS (McCoy et al. 2019, §3 and table 1).

Each construction makes a premise and a hypothesis whose words all occur in the premise: in any order (lexical
overlap), side by side (subsequence), or as one of its constituents (constituent). A reader who trusts that says
"entailed" always, which is right for half of the constructions. Words and templates are ours; the published
items are not reproduced.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from mecharule_ops.tasks.table import read_table
from mecharule_ops.tasks.text import Row

HEURISTICS = ("lexical_overlap", "subsequence", "constituent")
_NOUNS = (
    *("baker", "pilot", "nurse", "farmer", "singer", "tailor", "miner", "sailor", "painter", "waiter"),
    *("dancer", "teacher", "driver", "plumber", "captain", "gardener", "barber", "porter", "poet", "clerk"),
)
_WORDS = {
    "v": ("thanked", "helped", "followed", "called", "visited", "admired", "warned", "met"),
    "i": ("slept", "laughed", "waited", "danced", "arrived", "shouted"),
    "p": ("near", "behind", "beside", "next to"),
    "g": ("happy", "tall", "young", "tired", "quiet"),
}
"""Transitive verbs, intransitive verbs, prepositions, adjectives."""


CONSTRUCTIONS = read_table(str(Path(__file__).with_name("hans_constructions.jsonl")))
"""Templates over a, b, c (different nouns), v and w (transitive), i and j (intransitive), p, g: three for every
heuristic and label."""


def generate(count: int, generator: np.random.Generator) -> tuple[Row, ...]:
    """`count` distinct pairs, as many entailed as not where `count` is even, heuristics in turn."""
    lines = {
        (heuristic, entailed): cycle(
            [c for c in CONSTRUCTIONS if (c["heuristic"], c["entailed"]) == (heuristic, entailed)]
        )
        for heuristic in HEURISTICS
        for entailed in (True, False)
    }
    found: dict[tuple[str, str], Row] = {}
    for line in islice(cycle(lines.values()), count):
        construction = next(line)
        row = next(row for row in _drawn(construction, generator) if _key(row) not in found)
        found[_key(row)] = row
    return tuple(found.values())


def _drawn(construction: Row, generator: np.random.Generator) -> Iterator[Row]:
    """Pairs of one construction, again and again with other words."""
    while True:
        nouns = generator.choice(_NOUNS, size=3, replace=False).tolist()
        verbs = generator.choice(_WORDS["i"], size=2, replace=False).tolist()
        one = {kind: str(generator.choice(words)) for kind, words in _WORDS.items()}
        words = {**one, **dict(zip("abc", nouns, strict=True)), **dict(zip("ij", verbs, strict=True))}
        texts = {part: str(construction[part]).format(**words) for part in ("premise", "hypothesis")}
        yield {**construction, **texts}


def _key(row: Row) -> tuple[str, str]:
    return str(row["premise"]), str(row["hypothesis"])
