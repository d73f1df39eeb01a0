"""Who proposes predicates: one protocol for the offline grammar and a language model.

A proposer sees the train split only and returns texts; what becomes of a text (parse, score, filter) is
decided in `predicates`, so that a proposal can be wrong but never unsafe (paper, §4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.language import parse_predicate
from mecharule_ops.predicates.proposal_grammar import enumerate_candidates
from mecharule_ops.predicates.table import PredicateScore, Refusal, build_table, is_one_sided
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.types import Columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProposalContext:
    """What a proposer may look at."""

    columns: Columns
    """Typed columns of the train records."""
    labels: Bool[np.ndarray, " record"]
    """B(x) of the same records."""
    schema: Mapping[str, type]
    """int, float, str or bool by column."""
    prompt_columns: frozenset[str]
    """Columns known before generation."""
    known: Mapping[str, PredicateScore]
    """Predicates already in the table, by canonical text."""
    refusals: tuple[Refusal, ...] = ()
    """Earlier proposals that were refused, and why."""


@runtime_checkable
class Proposer(Protocol):
    """Anything that proposes predicate texts."""

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """Texts to try next, best first; empty when there is nothing more to propose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineProposer:
    """The best candidates of a fixed grammar by train score; deterministic, no model, no network."""

    limit: int = 60
    """Most proposals a call."""

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """Up to `limit` new predicates by falling |AUC − 0.5|; ties in the order of the grammar.

        Candidates that a filter of `build_table` would drop, or that fire like a known predicate, are left
        out; where the labels have one value only there are none.
        """
        if is_one_sided(context.labels):
            return ()
        candidates = enumerate_candidates(
            context.columns, context.labels, context.schema, context.prompt_columns
        )
        everything = np.ones(len(context.labels), dtype=bool)
        table, _ = build_table(
            (*context.known, *candidates),
            context.columns,
            context.labels,
            everything,
            prompt_columns=context.prompt_columns,
        )
        done = _answered(context)
        scored = [
            (abs(score.auc - 0.5), predicate.text)
            for predicate, score in zip(table.predicates, table.scores, strict=True)
            if predicate.text not in done
        ]
        scored.sort(key=lambda pair: -pair[0])
        return tuple(text for _, text in scored[: self.limit])


def _answered(context: ProposalContext) -> frozenset[str]:
    """Known and refused texts, the refused ones as proposed and in canonical form."""
    refused = [refusal.text for refusal in context.refusals]
    return frozenset([*context.known, *refused, *(_canonical(text, context) for text in refused)])


def _canonical(text: str, context: ProposalContext) -> str:
    """The canonical form, or the text itself when it is no predicate."""
    try:
        return parse_predicate(text, context.schema).text
    except PredicateRefused:
        return text
