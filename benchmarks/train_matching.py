"""The weights by which an offline question finds its kind, made anew from `agent/answering/wordings.txt` and from the
wordings of others in `benchmarks/wordings`, a file a hand.

    python benchmarks/train_matching.py [--left-out [--write]]

`--left-out` says instead how the wordings of each hand are taken by a model of all the others. The hands of
`benchmarks/wordings` are a language model that was told to write as such a person, and saw the kinds and none of the
router.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from pages import ROOT, made_at, put_between
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from agent.answering import matching
from agent.answering.matching import ranked
from agent.answering.questions import QUESTIONS
from agent.answering.router import meant
from agent.answering.understanding import PROPERTY_WORDS, read
from agent.answering.wordings import NONE, WORDINGS, by_kind
from mecharule_ops.saying.glossary import SPELLINGS

_UNITS = ("m1.14", "m1.99", "a20.h8", "n4.12", "m7.301", "n2.5", "m0.7", "m3.8")
_NAMES = {
    "P": ("120 - 7 =",),
    "L": ("layer 1",),
    "R": ("run 0c1f",),
    "T": tuple(sorted(SPELLINGS)),
    "C": tuple(sorted(PROPERTY_WORDS)),
}
HANDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "own": WORDINGS,
    **{
        path.stem: by_kind(path.read_text(encoding="utf-8"))
        for path in sorted((Path(__file__).parent / "wordings").glob("*.txt"))
    },
}
"""Wordings by who wrote them, then by kind."""
_LETTER = re.compile(r"\blayer L\b|\brun R\b|\b[UPLRTC]\b")
BEGIN, END = "<!-- left out: begin -->", "<!-- left out: end -->"
_FILLINGS = 4
"""Names that a wording with a term or a property is filled with."""


def filled(wording: str, turn: int) -> str:
    """A wording with names for its letters: each unit another, a term and a property by turns."""
    units = islice(cycle(_UNITS), turn, None)

    def named(match: re.Match[str]) -> str:
        letter = match[0][-1]
        return next(units) if letter == "U" else _NAMES[letter][turn % len(_NAMES[letter])]

    return _LETTER.sub(named, wording)


def fillings(hand: str) -> list[list[tuple[str, str]]]:
    """(kind, a question) of every wording of a hand; several of one with a term or a property."""
    return [
        [
            (kind, filled(wording, 7 * place + turn))
            for turn in range(_FILLINGS if re.search(r"\b[TC]\b", wording) else 1)
        ]
        for kind, wordings in HANDS[hand].items()
        for place, wording in enumerate(wordings)
    ]


def follow_ups() -> list[tuple[str, str, str]]:
    """(kind, a question, the kind of the question before it) of every follow-up."""
    rows = (
        line.split(" | ")
        for path in sorted((Path(__file__).parent / "follow_ups").glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    return [(kind, filled(wording, place), last) for place, (last, wording, kind) in enumerate(rows)]


def every(*, but: str = "") -> list[tuple[str, str, str]]:
    """What is learned from: all hands and the follow-ups; without these where a hand is left out.

    Every other short wording counts once more after a question of some kind: that it can be asked there too.
    """
    asked = {question for hand in HANDS if hand != but for each in fillings(hand) for question in each}
    alone = sorted(asked)  # The order is of no file's name: it moves the machine in its last digits.
    kinds = [*QUESTIONS]
    after = [
        (kind, question, kinds[zlib.crc32(question.encode()) % len(kinds)])
        for kind, question in [each for each in alone if each[1].count(" ") < matching.SHORT][::2]
    ]
    pairs = [] if but else sorted(follow_ups())
    return [*((kind, question, "") for kind, question in alone), *after, *pairs]


def trained(asked: Sequence[tuple[str, str, str]]) -> matching.Weights:
    """A linear support-vector machine, one kind against the others, over features by their rarity."""
    looked_at = [matching.features(read(question), last) for _, question, last in asked]
    holders = np.bincount([one for each in looked_at for one in each], minlength=matching.BUCKETS)
    rarity = np.log((1 + len(asked)) / (1 + holders)) + 0.3
    values = [rarity[each] / np.linalg.norm(rarity[each]) for each in looked_at]
    table = csr_matrix(
        (np.concatenate(values), np.concatenate(looked_at), np.cumsum([0, *map(len, looked_at)])),
        shape=(len(asked), matching.BUCKETS),
    )
    machine = LinearSVC(C=1.5, dual=False, random_state=0).fit(table, [kind for kind, *_ in asked])
    return matching.Weights(
        kinds=tuple(machine.classes_), of=machine.coef_.T, bias=machine.intercept_, rarity=rarity
    )


def packed(made: matching.Weights) -> dict[str, np.ndarray]:
    """As they are kept: each weight in a byte."""
    scale = np.float32(np.abs(made.of).max() / 127)
    return {
        "kinds": np.array(made.kinds),
        "weights": np.round(made.of / scale).astype(np.int8),
        "scale": np.asarray(scale),
        "bias": made.bias.astype(np.float32),
        "rarity": made.rarity.astype(np.float32),
    }


def left_out(hand: str) -> Counter[tuple[bool, str]]:
    """How a hand's wordings are taken by a model of the others; of the two kinds that may answer one is right."""
    counts: Counter[tuple[bool, str]] = Counter()
    known = trained(every(but=hand))
    for (kind, question), *_ in fillings(hand):
        rows = [match.row for match in meant(ranked(read(question), known=known))]
        answers = [row.kind for row in rows if not row.lacks]
        is_held = kind != NONE and not QUESTIONS[kind].lacks
        verdict = "refused" if not answers else "right" if kind in answers else "wrong"
        counts[is_held, verdict] += 1
    return counts


def table(found: Mapping[str, Counter[tuple[bool, str]]]) -> str:
    """A row a hand: how its wordings that have an answer are taken, and how many of the others are answered."""
    lines = [
        "| hand | wordings | right kind | refused | other kind | of those without an answer, taken for one |"
    ]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for hand, counts in found.items():
        held, other = (
            sum(n for (is_held, _), n in counts.items() if is_held == which) for which in (True, False)
        )
        shares = [f"{counts[True, verdict] / held:.1%}" for verdict in ("right", "refused", "wrong")]
        answered = (other - counts[False, "refused"]) / other
        lines.append(
            f"| {hand.replace('_', ', ')} | {held + other:,} | {' | '.join(shares)} | {answered:.1%} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the weights, or measure them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--left-out", action="store_true")
    options.add_argument("--write", action="store_true", help="put what is left out into docs/agent.md")
    chosen = options.parse_args(arguments)
    if chosen.left_out:
        found = {hand: left_out(hand) for hand in HANDS}
        print(table(found))
        if chosen.write:
            put_between(ROOT / "docs" / "agent.md", f"{table(found)}\n\n{made_at()}", BEGIN, END)
        return 0
    np.savez_compressed(matching.WEIGHTS, **packed(trained(every())))  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
