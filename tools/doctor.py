"""Whether this machine can run the method: versions, device, models, keys, and an ablation that is proved exact."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.loading import registry
from mecharule_ops.store.run_directory import runs_directory
from tools.arguments import Doctor
from tools.registry import Tell
from tools.result import ToolResult

PACKAGES = (
    *("torch", "transformers", "transformer-lens", "numpy", "scipy", "xgboost", "shap"),
    *("langgraph", "anthropic", "openai", "textual"),
)
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")
"""Only whether they are set is ever said."""


def doctor(given: Doctor, tell: Tell) -> ToolResult:
    """One line a check. Exit code 3 when the bundled model cannot be used or the hook check fails."""
    tell("loading the bundled model")
    check, passed = _hook_check()
    data: dict[str, object] = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": {name: _version(name) for name in PACKAGES},
        "device": _device(),
        "models": {row.name: row.present for row in registry.models()},
        "keys": {name: bool(os.environ.get(name)) for name in KEYS},
        "runs": str(runs_directory()),
        "hook_check": check,
        "ok": passed,
    }
    return ToolResult(data=data, text=_text(data), exit_code=0 if passed else 3)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name(0)}); models run on the processor unless told otherwise"
    return f"cpu, {torch.get_num_threads()} threads"


def _hook_check() -> tuple[str, bool]:
    """(sentence, passed) of the no-op guard on the bundled model and task."""
    import numpy as np

    from mecharule_ops.engine.behaviour import observe
    from mecharule_ops.engine.guard import check_intervention
    from mecharule_ops.replacement.baselines import replacement_table
    from mecharule_ops.tasks.registry import preset
    from mecharule_ops.types import Basis, Intervention

    try:
        subject = registry.load(registry.BUNDLED)
        task = preset("arithmetic", registry.BUNDLED)
        records = observe(task, subject, task.examples(64, np.random.default_rng(0))).records
        intervention = Intervention(basis=Basis.MLP_OUT, phase=task.phase)
        table = replacement_table(subject, records, intervention)
        return check_intervention(subject, task, records, intervention, table).sentence, True
    except MechaRuleError as error:
        return str(error), False


def _text(data: dict[str, object]) -> str:
    lines = []
    for name, value in data.items():
        entries = value.items() if isinstance(value, dict) else [("", value)]
        shown = ", ".join(f"{key} {_word(entry)}".strip() for key, entry in entries)
        lines.append(f"{name.replace('_', ' '):12} {shown}")
    return "\n".join(lines)


def _word(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
