"""Whether a learned rule predicts held-out records better than chance, as a p that can be corrected over many rules.

Fisher's exact test (1935), one-sided: with n records, `fired` of them where the rule fires and `positives` where the
target is true, the share of all ways to place them that have as many hits or more. MCC > 0 is more hits than
fired × positives / n, so small p speaks for it. Where records are exchangeable under a rule that knows nothing, a p of
at most α comes up with probability α at most, for every n.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Bool
from scipy.stats import fisher_exact

from mecharule_ops.types import ChanceTest


def chance_test(fires: Bool[np.ndarray, " record"], target: Bool[np.ndarray, " record"]) -> ChanceTest:
    """The test of one rule, not corrected; p is 1 where there are no records, or rule or target is constant."""
    hits, fired = int(np.count_nonzero(fires & target)), int(np.count_nonzero(fires))
    return ChanceTest(p=fisher_p(hits, fired, int(np.count_nonzero(target)), len(target)))


@lru_cache(4096)
def fisher_p(hits: int, fired: int, positives: int, n: int) -> float:
    """One-sided p of a confusion table."""
    if not (0 < fired < n and 0 < positives < n):
        return 1.0
    table = [[hits, fired - hits], [positives - hits, n - fired - positives + hits]]
    return float(min(1.0, fisher_exact(table, alternative="greater").pvalue))
