"""How a unit's flips come about, link by link: what breaks, what it writes and reads, what it goes through, who else.

The counts of breaks, mediation and pairs are ablations and have certificates; writes, reads and the direct share
describe the clean run to first order and cite the run that measured them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.mechanism.breaks import Breaks
from mecharule_ops.mechanism.links import DirectShare, Reads, Writes
from mecharule_ops.mechanism.mediation import Mediation
from mecharule_ops.mechanism.pairs import PairFlips
from mecharule_ops.types import Neuron, Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The chain of one unit in one regime, measured on the run's compact slices."""

    unit: Neuron
    regime: Regime
    breaks: Breaks
    writes: Writes
    reads: Reads
    direct: tuple[DirectShare, ...]
    mediation: Mediation
    mediation_certificate: str
    pairs: tuple[PairFlips, ...] = ()
    pairs_certificate: str | None = None
    notes: tuple[str, ...] = ()
    """A sentence for each link that has nothing to say."""
