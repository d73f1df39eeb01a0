"""The runs that each experiment needs: the settings that its conditions change, under every seed."""

from collections.abc import Mapping
from pathlib import Path

from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.slices import E1Condition
from mecharule_ops.tasks.task_names import settings_for
from mecharule_ops.types import Baseline, Basis

MAIN = "main"
REFERENCE, SPECTRAL, DRAWN, FAKE = "rule + spectral", "spectral split", "random draw", "fake rule"
"""The conditions of E1: the paper's main one, no rule, slices drawn at random (the default here), permuted targets."""
SPLITS = {
    label: {"condition": each.value}
    for label, each in zip((REFERENCE, SPECTRAL, DRAWN, FAKE), E1Condition, strict=True)
}
HEADS, LAYER, CHANNELS = "heads of SmolLM2", "channels of layer 11 of SmolLM2", "channels of arith-tiny"
_AS_PRINTED = {"parity": True, "condition": "rule-spectral", "audit": 0, "controls_for": 0, "anchor_for": 64}
_AS_PRINTED |= {"exhaustive_up_to": 0, "max_pairs": 64}
_EACH_ALONE = {"model": "arith-tiny", "records": 300, "parity": False, "search": "exhaustive"}
_OF_LAYER = {"model": "smollm2-135m", "records": 400, "slice_size": 32}
_OF_LAYER |= {"layer": 11, "cap": 16, "anchor_for": 6}
PUBLISHED: Mapping[str, Mapping[str, object]] = {
    HEADS: {"model": "smollm2-135m", "records": 1200, "bases": (Basis.ATTN_HEAD,), "regimes": (1,)},
    LAYER: {**_OF_LAYER, "published": True, "regimes": (1,), "baseline": Baseline.SLOT0},
    CHANNELS: {**_EACH_ALONE, "baseline": Baseline.SLOT0},
    f"{CHANNELS}, mean-positional": _EACH_ALONE,
}
"""Where the published count is taken apart: by what chooses a rule, by target, by replacement."""
_FOUR = {"operators": ["+", "-", "*", "/"], "high": 299, "template": "{a}{op}{b}="}
_FOUR |= {"prefix": "12+5=17\n40-13=27\n7*6=42\n36/9=4\n"}
_EACH_HEAD = {"task_settings": _FOUR, "attribution": "read", "exhaustive_up_to": 336, "controls_for": 0}
_EACH_HEAD |= {"bases": (Basis.ATTN_HEAD,), "records": 400, "slice_size": 32, "anchor_for": 16}
_AUDITED = {**_EACH_HEAD, "bases": (Basis.MLP_OUT,), "rest": "audited", "audit": 64}
_GUIDED_HEADS = {**_AUDITED, "bases": (Basis.ATTN_HEAD,), "exhaustive_up_to": 0}
_DRAWN = {**_AUDITED, "baseline": Baseline.SLOT0, "audit": 1500}
REQUESTS = "harmbench_behaviors_text_all.csv"
"""HarmBench's file of that name (MIT licence), put into the folder where the command is given; without it that
condition is left out."""
LARGER = "qwen2.5-coder-1.5b-instruct.gguf"
"""The model of three conditions, in the folder where the command is given; without it these are left out."""
_CHAT = "<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
_BEST_OF_2 = {"requests": REQUESTS, "attempts": 2, "max_new_tokens": 16, "template": _CHAT}
_JAILBREAKING = {**_GUIDED_HEADS, "task": "jailbreak", "task_settings": _BEST_OF_2}
SCALE: Mapping[str, Mapping[str, object]] = {
    "attn_head, mean-positional": _EACH_HEAD,
    "mlp_out, mean-positional": _AUDITED,
    "mlp_out, slot0": _DRAWN,
    "mlp_out, slot0, CHA": {**_DRAWN, "search": "cha"},
    "attn_head, HANS, whole prompt": {
        **_AUDITED,
        "task": "hans",
        "task_settings": settings_for("hans", "smollm2-135m"),
        "bases": (Basis.ATTN_HEAD,),
        "phase": "whole",
    },
    "attn_head, jailbreaking": _JAILBREAKING,
    "attn_head, jailbreaking, last prompt token": {**_JAILBREAKING, "phase": "last-prompt"},
    "1.5 B, attn_head, mean-positional": {**_EACH_HEAD, "model": LARGER},
    "1.5 B, mlp_out, mean-positional": {**_AUDITED, "model": LARGER},
    "1.5 B, mlp_out, slot0": {**_AUDITED, "baseline": Baseline.SLOT0, "model": LARGER},
}
"""The paper's four operators, HANS over the whole prompt, and Best-of-2 jailbreaking graded by how a completion begins,
on a model of 0.5 B whose heads are 336; the operators on one of 1.5 B, which has as many."""


CONDITIONS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "e0": {MAIN: {}},
    "e1": SPLITS,
    "published": {label: {**_AS_PRINTED, **of} for label, of in PUBLISHED.items()},
    "scale": SCALE,
}
"""What each condition of an experiment changes. Those of E1 name all that tells them apart, whatever the base says."""


def plan(
    name: str, base: RunConfig, seeds: int, given: Mapping[str, object] | None = None
) -> dict[str, list[RunConfig]]:
    """The config of every condition of an experiment under every seed, or the first; what is given goes before what
    a condition says. Raises `UsageError`."""
    settings = {**base.model_dump(), "attribution": "always"}
    return {
        label: [
            make_config(**{**settings, **changes, **(given or {}), "seed": seed})
            for seed in range(1 if name in ("published", "scale") else seeds)
        ]
        for label, changes in CONDITIONS[name].items()
        if Path(str(changes.get("model", REQUESTS if changes.get("task") == "jailbreak" else "."))).exists()
    }
