"""Dom^(m): how much of a group's effect its strongest small subgroup explains (paper, appendix A).

Dom^(m)(A) = max over B ⊆ A with 1 ≤ |B| ≤ m of E(B) / E(A). The search tests few subsets, so what is measured is the
maximum over the tested ones, a lower bound of Dom^(m).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mecharule_ops.findings.records import TreeNode
from mecharule_ops.types import Verdict

SIZES = (1, 2, 4, 8)
"""The m that are reported."""


def dominance(tree: Sequence[TreeNode], most: int) -> tuple[float, ...]:
    """The ratio of each opened group of more than `most` units with a tested subgroup of at most `most`.

    Groups of zero strength are left out, since their ratio is undefined.
    """
    nodes = {(node.layer, node.node): node for node in tree}
    best: dict[tuple[int, int], float] = {}
    for node in tree:
        if node.size <= most:
            for above in _ancestors(nodes, node):
                best[above] = max(best.get(above, 0.0), node.estimate.strength)
    return tuple(
        best[key] / group.estimate.strength
        for key, group in nodes.items()
        if group.verdict is Verdict.SPLIT
        and group.size > most
        and group.estimate.strength > 0
        and key in best
    )


def _ancestors(nodes: Mapping[tuple[int, int], TreeNode], node: TreeNode) -> list[tuple[int, int]]:
    found, parent = [], node.parent
    while parent is not None:
        key = (node.layer, parent)
        found.append(key)
        parent = nodes[key].parent
    return found
