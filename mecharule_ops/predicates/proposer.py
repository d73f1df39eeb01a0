"""Who proposes predicates: one protocol for the offline grammar, scripted replies and a language model.

A proposer sees the train split only and returns texts; what becomes of a text (parse, score, filter) is
decided in `predicates`, so that a proposal can be wrong but never unsafe (paper, §4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError
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


@dataclass(frozen=True, slots=True)
class MockProposer:
    """Scripted replies from a JSON file: a list of rounds, each a list of predicate texts.

        [["a > b", "op == '-'"], ["carry(a, b)"]]

    A call gets the first round that holds a text which is neither known nor refused yet. So the reply
    depends on what has been tried and not on how often it was asked, and a step that runs twice asks for
    the same round twice. When every round has been tried the reply is empty.
    """

    path: Path
    rounds: tuple[tuple[str, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", _read_rounds(self.path))

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """The first round with something untried, whole; empty when there is none."""
        done = _answered(context)
        for texts in self.rounds:
            if any(text not in done and _canonical(text, context) not in done for text in texts):
                return texts
        return ()


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


def _read_rounds(path: Path) -> tuple[tuple[str, ...], ...]:
    """The file's rounds. Raises `UsageError` when it cannot be read or has another shape."""
    wanted = 'a JSON list of rounds such as [["a > b"], ["carry(a, b)"]]'
    try:
        rounds = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"expected {wanted} in {path}, got {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"expected {wanted} in {path}, got no JSON: {error}") from error
    if not isinstance(rounds, list) or not all(isinstance(texts, list) for texts in rounds):
        raise UsageError(f"expected {wanted} in {path}, got another shape")
    if not all(isinstance(text, str) for texts in rounds for text in texts):
        raise UsageError(f"expected {wanted} in {path}, got an entry that is no text")
    return tuple(tuple(texts) for texts in rounds)
