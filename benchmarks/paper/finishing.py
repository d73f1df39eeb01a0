"""The runs of the experiments: finished by `analyse`, found again by their settings, read without the model.

A stored run with the same settings is reused, one that was stopped or killed is resumed, so that experiments share
runs and a second start repeats nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mecharule_ops.config import RunConfig
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.notebook.door import analyse, open_run, resume
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.ruleshap import DEFAULTS, PUBLISHED, chosen_scores
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import opened
from mecharule_ops.run.outlook import settled
from mecharule_ops.store.run_directory import SUFFIX
from mecharule_ops.types import Regime


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperRun:
    """A finished run of an experiment."""

    config: RunConfig
    findings: Findings
    chosen: Mapping[Regime, Sequence[Mapping[str, float]]]
    """`chosen_scores` of each of the first localized units, in a published run over both regimes; there none of one
    that breaks every right answer."""

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
    """Whatever the order of the task's settings, which a run file sorts, with what it adds to those of a table."""
    return json.dumps(settled(config).model_dump(mode="json"), sort_keys=True)


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
        chosen = {search.regime: _chosen(run, search, path) for search in run.findings.searches}
        return PaperRun(config=config, findings=run.findings, chosen=chosen)


def _chosen(run: Run, search: SearchOutcome, path: Path) -> Sequence[Mapping[str, float]]:
    """Learned from the flips that the run holds, and kept beside it; as printed with the published learner."""
    if run.config.published:
        b, rules = search.regime.value, search.anchored
        return [{} if b and r.flips and r.flips.flips == r.flips.n else r.published for r in rules]
    kept = path.with_suffix(f".{search.regime.value}.json")
    if not kept.exists():
        here, units = run.eligible(search.regime), [(rule.neuron,) for rule in search.anchored]
        table, right = evaluated(run.vocabulary["kept"], run.columns).on(here), np.ones(len(here), bool)
        learner = run.config.seed, PUBLISHED if run.config.parity else DEFAULTS
        flips = run.flips(units, here, search.regime)
        scores = [chosen_scores(table, each, right, run.train[here], *learner) for each in flips]
        kept.write_text(json.dumps(scores), encoding="utf-8")
    found: list[dict[str, float]] = json.loads(kept.read_text(encoding="utf-8"))
    return found
