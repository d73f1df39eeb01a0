"""Where each tested group of a CHA tree goes in an icicle drawing: depth downwards, units sideways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mecharule_ops.findings.records import TreeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One group: `left` and `width` in units of channels, `depth` in levels."""

    tree_node: TreeNode
    left: int
    width: int


def icicle(nodes: Sequence[TreeNode], most: int = 2000) -> tuple[Box, ...]:
    """A box a node, parents before children, at most `most`: the shallowest nodes are kept.

    Layers lie side by side in order, a node's children side by side inside it. A node whose parent is not
    among `nodes` counts as a root of its layer. O(n log n).
    """
    ordered = sorted(nodes, key=lambda node: (node.depth, node.layer, node.node))[:most]
    present = {(node.layer, node.node) for node in ordered}
    roots = [node for node in ordered if (node.layer, node.parent) not in present]
    cursor: dict[tuple[int, int], int] = {}
    boxes, edge = [], 0
    for root in sorted(roots, key=lambda node: (node.layer, node.node)):
        cursor[root.layer, root.node] = edge
        edge += root.size
    fresh = dict(cursor)
    for node in ordered:
        key = (node.layer, node.node)
        if key in fresh:
            left = fresh[key]
        else:
            assert node.parent is not None
            left = cursor[node.layer, node.parent]
            cursor[node.layer, node.parent] += node.size
        cursor[key] = left
        boxes.append(Box(tree_node=node, left=left, width=node.size))
    return tuple(boxes)
