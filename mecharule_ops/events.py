"""Frozen events: the one stream that displays, stores, replays and tests consume.

Every event has a `kind` (its class name in snake case) and JSON-able fields only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Root of the events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    run: str
    """Run id, four or more hex digits."""
    task: str
    model: str
    basis: str
    baseline: str
    phase: str
    regimes: tuple[int, ...]
    tau: float
    epsilon: float
    alpha: float
    slice_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted(Event):
    stage: str
    total: int | None = None
    """Work units of the stage when known."""
    unit: str = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress(Event):
    stage: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished(Event):
    stage: str
    summary: str
    """One line for a person."""
    seconds: float
    reused: bool = False
    """True when the result came from the run file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(Event):
    """What the slow part is expected to cost, said before it starts."""

    evaluations: int
    example_forwards: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStarted(Event):
    search: str
    """Search id: `cha:1:m4` is CHA, regime 1, layer 4 of basis m; `exhaustive:…` likewise."""
    regime: int
    layer: int
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAsked(Event):
    search: str
    node: int
    size: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTested(Event):
    search: str
    node: int
    parent: int | None
    depth: int
    size: int
    units: str
    """A compact printed form, such as `m4.1234` or `m4.[12 … 99]`."""
    associated_flips: int
    associated_n: int
    unrelated_flips: int
    unrelated_n: int
    ucb: float
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgonistFound(Event):
    search: str
    regime: int
    neuron: str
    strength: float
    ucb: float
    signed_selectivity: float
    is_tau_agonist: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFinished(Event):
    search: str
    status: str
    queries: int
    example_forwards: int
    localized: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAnchored(Event):
    regime: int
    neuron: str
    rule: str
    held_out_mcc: float | None
    full_mcc: float | None
    prompt_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateWritten(Event):
    certificate: str
    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostChanged(Event):
    """Cumulative cost of the run so far."""

    group_evaluations: int
    example_forwards: int
    reused: int
    """Evaluations answered from the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """Something a person should know: a status sentence, a guard result, a warning."""

    text: str
    level: str = "info"
    """`info` or `warning`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    run: str
    status: str
