"""Predicates for one unit, proposed from what its ablation flips (after localisation, before its rule).

The paper learns every anchored rule over one vocabulary Φ, chosen to tell success from failure; what tells a
unit's flips apart may be missing from it. Here the offline grammar is searched once more with the unit's flips as
the target, on train records of D_b only, and the best texts are added to Φ for that unit's rule alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.predicates.language import schema_of
from mecharule_ops.predicates.proposer import OfflineProposer, ProposalContext
from mecharule_ops.predicates.table import PredicateScore, score_predicates
from mecharule_ops.run.live_run import Run

LEAST = 10
"""Flipped and unflipped train records below which nothing is proposed."""


def refined_texts(
    run: Run,
    eligible: Int[np.ndarray, " eligible"],
    flips: Bool[np.ndarray, " eligible"],
    known: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Φ and up to `refinements` predicates proposed from one unit's train flips on these records of D_b.

    `known` stands in for Φ.
    """
    texts = tuple(run.vocabulary["kept"] if known is None else known)
    observed = run.observed
    train = observed.train[eligible]
    flipped = int(flips[train].sum())
    if not run.config.refinements or min(flipped, int(train.sum()) - flipped) < LEAST:
        return texts
    columns = {name: column[eligible[train]] for name, column in observed.columns.items()}
    context = ProposalContext(
        columns=columns,
        labels=flips[train],
        schema=schema_of(columns),
        prompt_columns=run.task.prompt_columns,
        known=known_scores(texts, evaluated(texts, columns).matrix, flips[train]),
    )
    proposed = OfflineProposer(limit=run.config.refinements).propose(context)
    return texts + tuple(text for text in proposed if text not in texts)


def known_scores(
    texts: Sequence[str], matrix: Bool[np.ndarray, "record predicate"], target: Bool[np.ndarray, " record"]
) -> dict[str, PredicateScore]:
    """The predicates that vary on these records, with their scores against the flips."""
    varied = np.flatnonzero(matrix.any(axis=0) & ~matrix.all(axis=0))
    scores = score_predicates(matrix[:, varied], target)
    return {texts[int(index)]: score for index, score in zip(varied, scores, strict=True)}
