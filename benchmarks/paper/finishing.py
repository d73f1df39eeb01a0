"""The runs of the experiments: finished by `analyse`, found again by their settings, read without the model.

A stored run with the same settings is reused, one that was stopped or killed is resumed, so that experiments share
runs and a second start repeats nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from mecharule_ops.config import RunConfig
from mecharule_ops.errors import MechaRuleError, UsageError
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.loading.model_names import load
from mecharule_ops.notebook.door import analyse, open_run, resume
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from mecharule_ops.store.run_directory import SUFFIX
from mecharule_ops.types import Basis, Regime


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperRun:
    """A finished run of an experiment."""

    config: RunConfig
    findings: Findings
    scores: Mapping[Regime, Float[np.ndarray, "layer channel"]]
    """Signed EAP-IG scores, by regime in which they were asked."""
    flips: Mapping[Regime, Bool[np.ndarray, "unit record"]]
    """A row for each of the first localized units, a column for each record of the regime."""

    def search(self, regime: Regime) -> SearchOutcome | None:
        """The search of one regime; None when the run did not analyse it."""
        return next((search for search in self.findings.searches if search.regime is regime), None)


Runs = Mapping[str, Sequence[PaperRun]]
"""The runs of each condition, by seed."""


def finished(
    plans: Mapping[str, Mapping[str, Sequence[RunConfig]]], folder: Path, tell: Callable[[str], None]
) -> dict[str, Runs]:
    """The finished run of each config of each plan; equal configs share one. Raises what a stage raises."""
    held = stored(folder)
    made: dict[str, PaperRun] = {}
    wanted = {_key(one): one for plan in plans.values() for same in plan.values() for one in same}
    for key, config in wanted.items():
        tell(f"run {len(made) + 1} of {len(wanted)}, seed {config.seed}: {held.get(key, 'new')}")
        made[key] = _read(config, _finish(config, held.get(key)))
    return {
        name: {label: [made[_key(one)] for one in same] for label, same in plan.items()}
        for name, plan in plans.items()
    }


def _key(config: RunConfig) -> str:
    return config.model_dump_json()


def stored(folder: Path) -> dict[str, Path]:
    """The run files of a folder by their settings; those of other versions and damaged ones are left out."""
    held = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with suppress(MechaRuleError), opened(str(path)) as run:
            held[_key(run.config)] = path
    return held


def _finish(config: RunConfig, path: Path | None) -> Path:
    if path is None:
        return analyse(**dict(config), progress=False).path
    try:
        return open_run(path).path
    except MechaRuleError:
        return resume(path, progress=False).path


def _read(config: RunConfig, path: Path) -> PaperRun:
    with opened(str(path)) as run:
        findings, basis = run.findings, config.bases[0]
        asked = {search.regime: search for search in findings.searches}
        scores = {regime: run.attribution(basis, regime) for regime in asked}
        return PaperRun(
            config=config,
            findings=findings,
            scores={regime: found for regime, found in scores.items() if found is not None},
            flips={regime: _flips(run, search) for regime, search in asked.items()},
        )


def _flips(run: Run, search: SearchOutcome) -> Bool[np.ndarray, "unit record"]:
    """Flips of each anchored unit on every record of the regime; no rows where none was measured."""
    named = () if search.union is None else search.agonists[: run.config.anchor_for]
    return run.flips([(unit.neuron,) for unit in named], run.eligible(search.regime), search.regime)


def units_of_model(model: str) -> dict[Basis, int]:
    """How many units the model has in each basis that it supports."""
    subject, units = load(model), {}
    for basis in Basis:
        with suppress(UsageError):
            units[basis] = subject.n_layers * subject.width(basis)
    return units
