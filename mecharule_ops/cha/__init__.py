"""Contrastive Hierarchical Ablation: the search, its settings, its tree and its audit. No model, no I/O."""

from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree

__all__ = ["ChaSearch", "ChaSettings", "ChaTree"]
