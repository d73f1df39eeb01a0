"""The runs that each experiment needs: the settings that its conditions change, under every seed."""

from collections.abc import Mapping

from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.errors import UsageError
from mecharule_ops.slices import E1Condition
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Baseline, Basis

MAIN = "main"
REFERENCE, SPECTRAL, DRAWN, FAKE = "rule + spectral", "spectral split", "random draw", "fake rule"
"""The conditions of E1: the paper's main one, no rule, slices drawn at random (the default here), permuted targets."""
SPLITS = {
    label: {"condition": each.value}
    for label, each in zip((REFERENCE, SPECTRAL, DRAWN, FAKE), E1Condition, strict=True)
}
GUIDED, PRINTED = "guided", "Algorithm 1"
SEARCHES: Mapping[str, Mapping[str, object]] = {
    GUIDED: {"search": "guided", "parity": False},
    "cha": {"search": "cha", "parity": False},
    PRINTED: {"parity": True},
}
HEADS, LAYER, CHANNELS = "heads of SmolLM2", "channels of layer 11 of SmolLM2", "channels of arith-tiny"
_AS_PRINTED = {"parity": True, "condition": "rule-spectral", "audit": 0, "controls_for": 0, "anchor_for": 64}
_AS_PRINTED |= {"exhaustive_up_to": 0, "ig_steps": 2, "max_pairs": 64}
_EACH_ALONE = {"model": "arith-tiny", "records": 300, "parity": False, "search": "exhaustive"}
_OF_LAYER = {
    "model": "smollm2-135m",
    "records": 400,
    "slice_size": 32,
    "layer": 11,
    "cap": 16,
    "anchor_for": 6,
}
PUBLISHED: Mapping[str, Mapping[str, object]] = {
    HEADS: {"model": "smollm2-135m", "records": 1200, "bases": (Basis.ATTN_HEAD,), "regimes": (1,)},
    LAYER: {**_OF_LAYER, "published": True, "regimes": (1,), "baseline": Baseline.SLOT0},
    CHANNELS: {**_EACH_ALONE, "baseline": Baseline.SLOT0},
    f"{CHANNELS}, mean-positional": _EACH_ALONE,
}
"""Where the published count is taken apart: by what chooses a rule, by target, by replacement."""
FEW = 3
"""Seeds of the experiments that vary much."""


def plan(name: str, base: RunConfig, seeds: int, units: Mapping[Basis, int]) -> dict[str, list[RunConfig]]:
    """The config of every condition of an experiment under every seed, or the first few. Raises `UsageError`."""
    settings = {**base.model_dump(), "attribution": "always"}
    first = seeds if name in ("e0", "e1", "e2") else min(seeds, 1 if name == "published" else FEW)
    return {
        label: [make_config(**{**settings, **changes, "seed": seed}) for seed in range(first)]
        for label, changes in _conditions(name, base, units).items()
    }


def _conditions(name: str, base: RunConfig, units: Mapping[Basis, int]) -> Mapping[str, Mapping[str, object]]:
    """What each condition changes. Those of E1 and E2 name all that tells them apart, whatever the base says."""
    basis = base.bases[0]
    match name:
        case "e1":
            return SPLITS
        case "e2":
            if (total := min(units[basis], base.cap)) > base.exhaustive_up_to:
                raise UsageError(
                    f"expected brute force for e2, {basis} has {total:,} units; add --set exhaustive_up_to={total}"
                )
            return SEARCHES
        case "published":
            return {label: {**_AS_PRINTED, **of} for label, of in PUBLISHED.items()}
        case "sensitivity":
            return _swept(base, units[basis])
        case "baselines":
            return {each.value: {"baseline": each.value} for each in Baseline}
        case "overlap":
            task = task_of(base)
            operators = task.operators if isinstance(task, Arithmetic) and len(task.operators) > 1 else ()
            splits = {label: changes for label, changes in SPLITS.items() if label != DRAWN}
            bases = {other.value: {"bases": (other,)} for other in units if other is not basis}
            tasks = {
                f"only {each}": {"task_settings": {**base.task_settings, "operators": [each]}}
                for each in operators
            }
            return {MAIN: {}, **splits, **bases, **tasks}
    return {MAIN: {}}


def _swept(base: RunConfig, units: int) -> dict[str, dict[str, object]]:
    """One setting changed at a time; the main condition's value is among its own."""
    axes: dict[str, tuple[str, Mapping[float, object]]] = {
        "τ": ("tau", {tau: tau for tau in {0.1, 0.2, 0.3, 0.4, 0.5, base.tau}}),
        "α": ("alpha", {alpha: alpha for alpha in {0.01, 0.05, 0.2, base.alpha}}),
        "cap": ("cap", {min(cap, units): cap for cap in (max(1, units // 4), max(1, units // 2), base.cap)}),
    }
    return {
        f"{axis} {value:g}": {setting: changed}
        for axis, (setting, values) in axes.items()
        for value, changed in sorted(values.items())
    }
