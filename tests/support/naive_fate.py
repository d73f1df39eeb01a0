"""The fate of a unit by looking at every group of a search's tree, each with all its units."""

from __future__ import annotations

from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.types import ChaNode, Verdict


def fate(tree: ChaTree, channel: int) -> ChaNode | None:
    """The node that settled a unit: its own test if it had one, else the smallest decided group with it, or None."""
    settled = [node for node in tree.nodes if node.verdict is not Verdict.SPLIT and channel in node.channels]
    return min(settled, key=lambda node: len(node.channels), default=None)
