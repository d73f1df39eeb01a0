"""What an experiment asks for: runs named by their settings, and what each gives once it is finished.

A run's id is a hash of its settings, so that two experiments which need the same run share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from mecharule_ops.codec import canonical_json
from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.types import Basis, Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """What a person asks every experiment for."""

    base: RunConfig
    """Settings of the main condition; its seed does not matter."""
    seeds: tuple[int, ...]
    units: Mapping[Basis, int]
    """How many units the model has, by each basis that it supports."""

    def __post_init__(self) -> None:
        if len(self.base.bases) != 1:
            raise UsageError(
                f"expected one basis an experiment, got {', '.join(self.base.bases)}; run it once for each"
            )

    @property
    def basis(self) -> Basis:
        """The one basis of the request."""
        return self.base.bases[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run of an experiment, before or after it exists."""

    label: str
    """What sets it apart within its experiment, for example `fake-rule`."""
    config: RunConfig

    @property
    def id(self) -> str:
        """Twelve hex digits of SHA-256 over the settings; device and dtype count only where they were asked for."""
        said = self.config.model_dump(mode="json")
        unsaid = [name for name in ("device", "dtype") if said[name] == "auto"]
        text = canonical_json({name: value for name, value in said.items() if name not in unsaid})
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]

    @property
    def seed(self) -> int:
        """Seed of the sample of records, the held-out split and the slices."""
        return self.config.seed

    @property
    def name(self) -> str:
        """`fake-rule, seed 3`."""
        return f"{self.label}, seed {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedRunDone:
    """A planned run with what it found."""

    planned: PlannedRun
    path: Path
    findings: Findings
    scores: Mapping[Regime, Float[np.ndarray, "layer channel"]]
    """Signed EAP-IG scores of the run's basis, by regime in which they were asked."""
    flips: Mapping[Regime, Bool[np.ndarray, "neuron eligible"]]
    """A row for each of the first localized units, strongest first, a column for each record of D_b."""
    norms: Float[np.ndarray, "layer channel"] | None = None
    """Of what each unit writes to the residual stream; None where it was not kept or depends on the input."""

    @property
    def label(self) -> str:
        """The condition that it ran under."""
        return self.planned.label

    @property
    def seed(self) -> int:
        """Runs of one seed share records and held-out split, so measures are compared seed by seed."""
        return self.planned.seed

    def search(self, regime: Regime) -> SearchOutcome | None:
        """The search of one regime; None when the run did not analyse it."""
        return next((search for search in self.findings.searches if search.regime is regime), None)


MAIN = "main"
"""The label of the main condition, the same in every experiment."""


def planned(base: RunConfig, seed: int, label: str = MAIN, **changes: object) -> PlannedRun:
    """The base settings with a seed and changes, validated; attribution is always asked, for it is one of the measures.

    Raises `UsageError`.
    """
    settings = {**base.model_dump(), "attribution": "always", **changes, "seed": seed}
    return PlannedRun(label=label, config=make_config(**settings))


def under(
    request: ExperimentRequest, conditions: Mapping[str, Mapping[str, object]], seeds: int | None = None
) -> tuple[PlannedRun, ...]:
    """Every condition, a label with its changes of the base settings, under the first `seeds`, or under all."""
    return tuple(
        planned(request.base, seed, label, **changes)
        for label, changes in conditions.items()
        for seed in request.seeds[:seeds]
    )


def distinct(runs: Sequence[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Each run once, in the order in which it is first asked for."""
    return tuple({run.id: run for run in reversed(runs)}[name] for name in dict.fromkeys(r.id for r in runs))


def labelled(runs: Sequence[PlannedRunDone], label: str) -> tuple[PlannedRunDone, ...]:
    """The runs of one label, by seed."""
    return tuple(sorted((run for run in runs if run.label == label), key=lambda run: run.seed))


def labels(runs: Sequence[PlannedRunDone]) -> tuple[str, ...]:
    """The labels in the order in which they first occur."""
    return tuple(dict.fromkeys(run.label for run in runs))
