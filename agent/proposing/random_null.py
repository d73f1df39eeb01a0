"""Random predicates of the same grammar and size as a model's, through the same filters: its figures by chance."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.predicates.proposal_grammar import enumerate_candidates
from mecharule_ops.predicates.table import build_table
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.run.live_run import Run

DRAWS = 20
_JOINT = re.compile(r"\b(?:and|or)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """A figure of the model's beside the same figure of each draw."""

    measured: float
    draws: tuple[float, ...]

    @property
    def mean(self) -> float:
        """By chance."""
        return float(np.mean(self.draws))

    @property
    def ends(self) -> tuple[float, float]:
        """The middle 95 % of the draws."""
        low, high = np.quantile(self.draws, [0.025, 0.975])
        return float(low), float(high)

    @property
    def worth(self) -> tuple[float, float, float]:
        """What the model has over chance: the mean, and the ends of the middle 95 % of the differences."""
        low, high = self.ends
        return self.measured - self.mean, self.measured - high, self.measured - low

    @property
    def is_more(self) -> bool:
        """Whether it lies above every draw: p ≤ 1 / (draws + 1), which 20 draws take below .05 for one figure."""
        return self.measured > max(self.draws)


def size_of(text: str) -> int:
    """Conditions that a predicate joins."""
    return 1 + len(_JOINT.findall(text))


def random_texts(
    run: Run, sizes: Sequence[int], known: Collection[str], seed: Sequence[int]
) -> tuple[str, ...]:
    """As many new predicates as there are sizes, each of so many conditions of the offline grammar, drawn uniformly.

    The grammar's cuts and words are made for shuffled outcomes, so that no draw has seen the true ones.
    """
    generator = np.random.default_rng(list(seed))
    schema = schema_of(run.columns)
    train = {name: column[run.train] for name, column in run.columns.items()}
    shuffled = generator.permutation(run.labels[run.train])
    candidates = enumerate_candidates(train, shuffled, schema, run.task.prompt_columns)
    drawn: dict[str, None] = {}
    for size in sizes:
        for _ in range(100):
            parts = generator.choice(len(candidates), size=size, replace=False)
            joint = " and " if generator.random() < 0.5 else " or "
            text = _canonical(joint.join(candidates[int(part)] for part in parts), schema)
            if text and text not in known and text not in drawn:
                drawn[text] = None
                break
    return tuple(drawn)


def kept_of(run: Run, texts: Sequence[str], beside: Sequence[str]) -> tuple[str, ...]:
    """Those of the texts that pass the run's filters beside others."""
    table, _ = build_table(
        (*beside, *texts), run.columns, run.labels, run.train, prompt_columns=run.task.prompt_columns
    )
    passed = {predicate.text for predicate in table.predicates}
    return tuple(text for text in texts if text in passed)


def _canonical(text: str, schema: Mapping[str, type]) -> str:
    try:
        return parse_predicate(text, schema).text
    except PredicateRefused:
        return ""
