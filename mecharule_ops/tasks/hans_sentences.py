"""Sentence pairs of our own for the three heuristics of HANS (McCoy et al. 2019, §3 and table 1).

Each construction makes a premise and a hypothesis whose words all occur in the premise: in any order (lexical
overlap), side by side (subsequence), or as one of its constituents (constituent). A reader who trusts that says
"entailed" always, which is right for half of the constructions. Words and templates are ours; the published
items are not reproduced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

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


@dataclass(frozen=True, slots=True)
class Construction:
    """Templates over a, b, c (different nouns), v and w (transitive), i and j (intransitive), p, g."""

    heuristic: str
    entailed: bool
    name: str
    premise: str
    hypothesis: str


_LEXICAL, _SUBSEQUENCE, _CONSTITUENT = HEURISTICS
CONSTRUCTIONS = tuple(
    Construction(*row)
    for row in (
        (_LEXICAL, True, "passive", "The {a} was {v} by the {b}.", "The {b} {v} the {a}."),
        (_LEXICAL, True, "relative clause", "The {a} that the {b} {v} {i}.", "The {b} {v} the {a}."),
        (_LEXICAL, True, "conjunction", "The {a} {v} the {b} and the {c}.", "The {a} {v} the {c}."),
        (_LEXICAL, False, "swapped roles", "The {a} {v} the {b}.", "The {b} {v} the {a}."),
        (_LEXICAL, False, "passive role", "The {a} was {v} by the {b}.", "The {a} {v} the {b}."),
        (_LEXICAL, False, "relative role", "The {a} that the {b} {v} {i}.", "The {b} {i}."),
        (_SUBSEQUENCE, True, "conjoined subject", "The {a} and the {b} {v} the {c}.", "The {b} {v} the {c}."),
        (_SUBSEQUENCE, True, "phrase on object", "The {a} {v} the {b} {p} the {c}.", "The {a} {v} the {b}."),
        (_SUBSEQUENCE, True, "second verb", "The {a} {i} and {v} the {b}.", "The {a} {i}."),
        (_SUBSEQUENCE, False, "phrase on subject", "The {a} {p} the {b} {i}.", "The {b} {i}."),
        (
            _SUBSEQUENCE,
            False,
            "believed clause",
            "The {a} believed the {b} {i}.",
            "The {a} believed the {b}.",
        ),
        (_SUBSEQUENCE, False, "relative subject", "The {a} that {v} the {b} {i}.", "The {b} {i}."),
        (_CONSTITUENT, True, "because", "Because the {a} {i}, the {b} {j}.", "The {a} {i}."),
        (_CONSTITUENT, True, "certainly", "Certainly the {a} {v} the {b}.", "The {a} {v} the {b}."),
        (_CONSTITUENT, True, "knew that", "The {a} knew that the {b} {i}.", "The {b} {i}."),
        (_CONSTITUENT, False, "if", "If the {a} {i}, the {b} {j}.", "The {a} {i}."),
        (_CONSTITUENT, False, "perhaps", "Perhaps the {a} {v} the {b}.", "The {a} {v} the {b}."),
        (_CONSTITUENT, False, "thought that", "The {a} thought that the {b} {i}.", "The {b} {i}."),
    )
)
"""Three for every heuristic and label."""


def generate(count: int, generator: np.random.Generator) -> tuple[Row, ...]:
    """`count` distinct pairs, as many entailed as not where `count` is even, heuristics in turn."""
    lines = {
        (heuristic, entailed): cycle(
            [c for c in CONSTRUCTIONS if (c.heuristic, c.entailed) == (heuristic, entailed)]
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


def _drawn(construction: Construction, generator: np.random.Generator) -> Iterator[Row]:
    """Pairs of one construction, again and again with other words."""
    while True:
        nouns = generator.choice(_NOUNS, size=3, replace=False).tolist()
        verbs = generator.choice(_WORDS["i"], size=2, replace=False).tolist()
        one = {kind: str(generator.choice(words)) for kind, words in _WORDS.items()}
        words = {**one, **dict(zip("abc", nouns, strict=True)), **dict(zip("ij", verbs, strict=True))}
        yield {
            "premise": construction.premise.format(**words),
            "hypothesis": construction.hypothesis.format(**words),
            "heuristic": construction.heuristic,
            "construction": construction.name,
            "entailed": construction.entailed,
        }


def _key(row: Row) -> tuple[str, str]:
    return str(row["premise"]), str(row["hypothesis"])
