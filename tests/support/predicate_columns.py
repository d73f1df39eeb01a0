"""Tables of predicates for tests."""

from collections.abc import Sequence

import numpy as np

from mecharule_ops.predicates.cuts import PredicateColumns


def table(matrix: np.ndarray, texts: Sequence[str]) -> PredicateColumns:
    """The columns of a matrix by their texts."""
    return PredicateColumns(texts=tuple(texts), matrix=matrix)
