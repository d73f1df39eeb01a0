"""The nouns that cross borders between rooms, and nothing else.

Axis names used in every shape: record, predicate, clause, layer, channel, position, pair, neuron, group.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.bases import ROWS, Basis
from mecharule_ops.codec import Printed
from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.errors import UsageError
from mecharule_ops.thresholds import reaches

Value = int | float | str | bool
"""A parsed field of a record: one cell of a typed column."""


class Regime(Enum):
    """Which baseline outcome a search starts from; the two flip directions are never mixed (paper, §3)."""

    BASELINE_POSITIVE = 1
    BASELINE_NEGATIVE = 0

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


_HEAD = re.compile(r"L?(\d{1,4})[.]?H(\d{1,4})", re.IGNORECASE)
"""Another name of a head in the field."""
_UNDOTTED = re.compile(r"([a-z])(\d)(\d{1,7})")
"""A unit whose dot was left out."""
_NEURON = re.compile(r"([a-z])(\d{1,4})\.(h)?(\d{1,7})")


@dataclass(frozen=True, slots=True, order=True)
class Neuron(Printed):
    """One unit of a basis; prints and parses as `m4.1234`, `n4.1234` or `a20.h8`.

    >>> Neuron.parse("a20.h8").layer, str(Neuron(Basis.MLP_OUT, 4, 1234))
    (20, 'm4.1234')
    """

    basis: Basis
    """The basis the unit belongs to."""
    layer: int
    """Zero-based layer."""
    channel: int
    """Zero-based coordinate in the layer; the head index for `attn_head`."""

    def __str__(self) -> str:
        return f"{self.basis.letter}{self.layer}{self.basis.row.mark}{self.channel}"

    @classmethod
    def parse(cls, text: str) -> Neuron:
        """Read a printed name. Raises `UsageError` on anything else."""
        match = _NEURON.fullmatch(text.strip())
        letter, layer, kind, number = match.groups("") if match else ("",) * 4
        basis = next(
            (each for each, row in ROWS.items() if (row.letter, row.mark) == (letter, f".{kind}")), None
        )
        if basis is None:
            head = _HEAD.fullmatch(text.strip())
            near = f"; did you mean a{head[1]}.h{head[2]}?" if head else ""
            if undotted := _UNDOTTED.fullmatch(text.strip()):
                near = f"; a dot stands behind the layer, as in {undotted[1]}{undotted[2]}.{undotted[3]}"
            raise UsageError(f"expected a unit such as m4.1234, n4.1234 or a20.h8, got {text!r}{near}")
        return cls(basis, int(layer), int(number))


def ends_printed(first: Neuron, last: Neuron) -> str:
    """The first and the last unit of a group, or the one that it is."""
    return str(first) if first == last else f"{first} … {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One input of a task before any model has seen it."""

    id: int
    """Stable within the task and its settings; names the example in stores and certificates."""
    prompt: str
    """The full text given to the model, few-shot prefix included."""
    fields: Mapping[str, Value]
    """Parsed prompt fields, for example `{"a": 3, "op": "+", "b": 4}`."""


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
class FlipCount:
    """Flips seen among n examples of one slice."""

    flips: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.flips <= self.n:
            raise UsageError(f"expected 0 to {self.n} flips, got {self.flips}")

    @property
    def flip_rate(self) -> float:
        """δ̂ = flips / n; NaN for an empty slice."""
        return self.flips / self.n if self.n else float("nan")

    def __add__(self, other: FlipCount) -> FlipCount:
        return FlipCount(flips=self.flips + other.flips, n=self.n + other.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipsWhere:
    """Flips among the records on which a rule holds, and among those on which it does not."""

    holds: FlipCount
    elsewhere: FlipCount

    @classmethod
    def of(cls, fires: Bool[np.ndarray, " record"], flips: Bool[np.ndarray, " record"]) -> FlipsWhere:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipEstimate:
    """Flip counts of one unit or group on the two compact slices (paper, definition 3.1)."""

    associated: FlipCount
    """D⁺: the rule fires."""
    unrelated: FlipCount
    """D⁻: the rule does not fire."""

    @property
    def strength(self) -> float:
        """Ê = max(δ̂₊, δ̂₋)."""
        return float(np.nanmax([self.associated.flip_rate, self.unrelated.flip_rate, 0.0]))

    def reaches(self, tau: float) -> bool:
        """Whether the point estimate is that of a τ-agonist: Ê ≥ τ."""
        return reaches(self.strength, tau)

    @property
    def stronger(self) -> tuple[str, FlipCount]:
        """`D+` or `D-`, whichever flips more often (D+ on a tie, never an empty slice beside another)."""
        plus, minus = self.associated, self.unrelated
        on_plus = minus.n == 0 or (plus.n > 0 and plus.flip_rate >= minus.flip_rate)
        return ("D+", plus) if on_plus else ("D-", minus)

    @property
    def signed_selectivity(self) -> float:
        """δ̂₊ − δ̂₋; positive when the associated slice flips more."""
        return self.associated.flip_rate - self.unrelated.flip_rate

    def ucb(self, slice_alpha: float) -> float:
        """Û_E: the larger of the two one-sided Clopper–Pearson upper bounds, each at `slice_alpha`.

        It falls below the strength with probability `slice_alpha` at most: only the stronger slice's bound can.
        """
        return max(upper_bound(part.flips, part.n, slice_alpha) for part in (self.associated, self.unrelated))

    def lcb(self, alpha: float) -> float:
        """The larger of the two one-sided lower bounds, each at α/2, since either can exceed the strength."""
        return max(lower_bound(part.flips, part.n, alpha / 2) for part in (self.associated, self.unrelated))

    def __add__(self, other: FlipEstimate) -> FlipEstimate:
        return FlipEstimate(
            associated=self.associated + other.associated, unrelated=self.unrelated + other.unrelated
        )


class Verdict(StrEnum):
    """What became of a queried node."""

    PRUNED = "pruned"
    """A group whose UCB is below τ."""
    SPLIT = "split"
    """A group that could contain an agonist and was opened."""
    KEPT = "kept"
    """A single unit whose UCB reaches τ: localized."""
    DROPPED = "dropped"
    """A single unit whose UCB is below τ."""


class SearchStatus(StrEnum):
    """How a search ended; the value is the sentence a person reads."""

    COMPLETE = "every group was tested or pruned"
    LEFT = "what first order promises was tested alone; of the rest the audit alone says how many it may hide"
    UNDERPOWERED = "the slices are too small to prune at this α and τ"
    EMPTY = "there were no candidates to search"
    BUDGET_SPENT = "the budget was spent before the search ended; what was found is kept"
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

    def without(self, channels: Collection[int]) -> LayerCandidates:
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
    ) -> Candidates:
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
    ) -> Candidates:
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
class ChaNode:
    """One queried node of a CHA tree, after its test."""

    node: int
    parent: int | None
    layer: int
    depth: int
    channels: tuple[int, ...]
    estimate: FlipEstimate
    ucb: float
    """Û_E at the node's α, in [0, 1]."""
    verdict: Verdict


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
