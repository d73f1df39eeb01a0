"""The nouns that cross borders between rooms, and nothing else.

Axis names used in every shape: record, predicate, clause, layer, channel, position, pair, neuron, group.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.bases import Basis
from mecharule_ops.errors import UsageError
from mecharule_ops.nodes import FlipCount, FlipEstimate, Neuron
from mecharule_ops.thresholds import reaches

Value = int | float | str | bool
Tokens = tuple[int, ...]
"""A parsed field of a record: one cell of a typed column."""


class Regime(Enum):
    """Which baseline outcome a search starts from; the two flip directions are never mixed (paper, §3)."""

    BASELINE_POSITIVE = 1
    BASELINE_NEGATIVE = 0

    @classmethod
    def _missing_(cls, value: object) -> "Regime":
        if found := [each for each in cls if each.arrow == value]:
            return found[0]
        raise UsageError(f"expected a direction, 1 (1→0) or 0 (0→1), got {value!r}")

    @property
    def arrow(self) -> str:
        """`1→0` or `0→1`, the direction of a flip in this regime."""
        return "1→0" if self is Regime.BASELINE_POSITIVE else "0→1"

    def flipped(self, labels: Bool[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
        """Where a label is no longer this regime's."""
        return labels != bool(self.value)


class Baseline(StrEnum):
    """What a replaced unit is set to (paper, appendix B)."""

    ZERO = "zero"
    MEAN = "mean"
    MEAN_POSITIONAL = "mean-positional"
    MEAN_DONOR = "mean-donor"
    MEAN_DONOR_POSITIONAL = "mean-donor-positional"
    SLOT0 = "slot0"
    """Parity only: the mean at the first sequence slot, which the published code writes everywhere."""


class Phase(StrEnum):
    """Which positions are intervened on."""

    DECODE = "decode"
    """Generated tokens only, after a clean prefill; the first generated token cannot change."""
    LAST_PROMPT = "last-prompt"
    """The last prompt position and every generated token."""
    WHOLE = "whole"
    """Every position of prompt and generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One input of a task before any model has seen it."""

    id: int
    """Stable within the task and its settings; names the example in stores and certificates."""
    prompt: str
    """The full text given to the model, few-shot prefix included."""
    fields: Mapping[str, Value]
    """Parsed prompt fields, for example `{"a": 3, "op": "+", "b": 4}`."""
    offered: tuple[tuple[str, ...], ...] = ()
    """Targets and foils of which the model writes one, as they stand behind the prompt; none where any text may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviourRecord:
    """What the unablated model did on one example."""

    example: Example
    tokens: tuple[int, ...]
    """Generated token ids, greedy, the stop token included when it came."""
    completion: str
    """The same as text."""
    parsed: Mapping[str, Value]
    """Fields read off the completion, for example `{"answer": 7, "parsed": True}`."""
    label: bool
    """B(x): whether the task counts the completion as a success."""
    margin: float = float("nan")
    """Smallest lead of a generated token's logit over the next best one's; NaN where it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeWords:
    """What a task calls B(x) = 1 and B(x) = 0."""

    success: str = "right"
    failure: str = "wrong"
    success_is_harm: bool = False
    """Then a unit that flips 0→1 is a risk, and no improvement (paper, §5)."""

    def of(self, label: bool) -> str:
        """The word for B(x) = `label`."""
        return self.success if label else self.failure


RIGHT_OR_WRONG = OutcomeWords()
"""Of a task with right answers."""

Columns = Mapping[str, np.ndarray]
"""Typed columns over records: int64, float64, bool or unicode arrays of one length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """How `do(A)` acts: basis, replacement baseline, positions. With a model it fixes every ablation."""

    basis: Basis
    baseline: Baseline = Baseline.MEAN_POSITIONAL
    phase: Phase = Phase.DECODE


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipsWhere:
    """Flips among the records on which a rule holds, and among those on which it does not."""

    holds: FlipCount
    elsewhere: FlipCount

    @classmethod
    def of(cls, fires: Bool[np.ndarray, " record"], flips: Bool[np.ndarray, " record"]) -> "FlipsWhere":
        """Counted on records of which it is known where the rule holds and which flip."""
        inside, outside = (
            FlipCount(flips=int(flips[part].sum()), n=int(part.sum())) for part in (fires, ~fires)
        )
        return cls(holds=inside, elsewhere=outside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """So many (`count`) of `n` things."""

    count: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.n:
            raise UsageError(f"expected a count from 0 to {self.n}, got {self.count}")

    @property
    def rate(self) -> float:
        """The share itself, count / n; NaN when n is 0."""
        return self.count / self.n if self.n else float("nan")


class SearchStatus(StrEnum):
    """How a search ended; the value is the sentence a person reads."""

    COMPLETE = "every group was tested or pruned"
    LEFT = "what first order promises was tested alone; of the rest the audit alone says how many it may hide"
    UNDERPOWERED = "the slices are too small to prune at this α and τ"
    EMPTY = "there were no candidates to search"
    BUDGET_SPENT = "the budget was spent before the search ended; what was found is kept"
    AUDIT_CUT = "the budget was spent before the audit of the search ended; what was found is kept"
    STOPPED = "the search was stopped; what was found is kept"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerCandidates:
    """The units of one layer that survive attribution, Uˡ (paper, §4.3)."""

    layer: int
    channels: Int[np.ndarray, " channel"]
    """Distinct, ascending."""
    scores: Float[np.ndarray, " channel"] | None
    """Signed EAP-IG scores, aligned with `channels`; None where attribution was not asked."""

    @property
    def scored(self) -> list[float | None]:
        """The score of each channel; None of each where attribution was not asked."""
        return [None] * len(self.channels) if self.scores is None else self.scores.tolist()

    def without(self, channels: Collection[int]) -> "LayerCandidates":
        """The other units of the layer."""
        kept = np.array([channel not in channels for channel in self.channels.tolist()], dtype=bool)
        scores = None if self.scores is None else self.scores[kept]
        return LayerCandidates(layer=self.layer, channels=self.channels[kept], scores=scores)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Units to search, by layer."""

    basis: Basis
    layers: tuple[LayerCandidates, ...]

    @classmethod
    def strongest(
        cls,
        basis: Basis,
        scores: Float[np.ndarray, "layer channel"],
        cap: int = 100_000,
        layer: int | None = None,
    ) -> "Candidates":
        """The `cap` units of largest |score| across layers, or in one (paper, §4.3); on a tie the lower one first.

        Units of score zero stay, so that the recall of the search does not rest on attribution; the paper keeps
        non-zero ones only. A layer that keeps nothing is left out.
        """
        searched = np.array([layer in (None, place) for place in range(len(scores))])[:, None]
        strength = np.where(searched, np.abs(scores), -1.0).reshape(-1)
        kept = np.zeros(strength.size, dtype=bool)
        kept[np.argsort(-strength, kind="stable")[:cap]] = True
        layers = []
        for place, mask in enumerate(kept.reshape(scores.shape) & searched):
            if (channels := np.flatnonzero(mask)).size:
                layers.append(LayerCandidates(layer=place, channels=channels, scores=scores[place, channels]))
        return cls(basis=basis, layers=tuple(layers))

    @classmethod
    def unranked(
        cls, basis: Basis, shape: tuple[int, int], *, cap: int = 100_000, layer: int | None = None
    ) -> "Candidates":
        """The first `cap` units in the order of channels, without scores: nobody asked attribution."""
        found = cls.strongest(basis, np.zeros(shape), cap=cap, layer=layer)
        return replace(found, layers=tuple(replace(layer, scores=None) for layer in found.layers))

    @property
    def total(self) -> int:
        """N: how many exhaustive singleton ablations these candidates would cost."""
        return sum(len(layer.channels) for layer in self.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuery:
    """A question the search asks: ablate these channels of this layer together on some of each slice."""

    node: int
    """Id of the node, unique within one layer's search."""
    layer: int
    channels: tuple[int, ...]
    associated: range
    """Examples of D̃⁺ to evaluate; empty for none."""
    unrelated: range
    """Examples of D̃⁻, likewise."""
    parent: int | None = None
    """The node that was split into it."""
    step: str = ""
    """The step of a guided search that opened it: `confirm`, `sweep`, `part` or `fallback`."""

    @property
    def examples(self) -> int:
        """Example-forwards that an answer costs."""
        return len(self.associated) + len(self.unrelated)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """Counts for exactly the examples that a query asked for."""

    node: int
    estimate: FlipEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Agonist:
    """A single unit that the search kept."""

    neuron: Neuron
    regime: Regime
    estimate: FlipEstimate
    ucb: float
    tau: float
    epsilon: float

    @property
    def localized(self) -> bool:
        """UCB ≥ τ: the paper's inclusion rule (its tables count these)."""
        return reaches(self.ucb, self.tau)

    @property
    def is_tau_agonist(self) -> bool:
        """Point estimate ≥ τ: what an honest sentence needs."""
        return self.estimate.reaches(self.tau)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScore:
    """How well a rule predicts a target on one scoring scope."""

    mcc: float
    """Matthews correlation in [−1, 1]."""
    coverage: float
    """Share of the scope's records on which the rule fires."""
    n: int
    positives: int
    """Records of the scope whose target is true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceTest:
    """Whether a learned rule tells held-out records apart better than chance: Fisher's exact test, one-sided."""

    p: float
    adjusted: float | None = None
    """After Holm's correction over every learned rule of the run; None until that ends."""
    rules: int = 0
    """How many those are."""
    level: float = 0.05
    """The rule is shown only where `adjusted` is at most this."""

    @property
    def failed(self) -> bool:
        """Whether chance may explain the rule, over all rules of the run."""
        return self.adjusted is not None and self.adjusted > self.level
