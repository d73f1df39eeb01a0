"""Whether this machine can run the method: versions, devices, models, keys, and ablations proved exact on a model."""

import os
import platform
from importlib.metadata import version

from agent.verbs import runner
from agent.verbs.options import DoctorOptions
from mecharule_ops.errors import MechaRuleError, UsageError
from mecharule_ops.facts.fact import FactValue, fact
from mecharule_ops.loading import model_names, placement
from mecharule_ops.store.run_directory import runs_directory
from tools.result import Tell, ToolResult

PACKAGES = "torch transformers transformer-lens numpy scipy xgboost shap langgraph anthropic openai textual"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")
"""Only whether they are set is ever said."""
RECORDS = 32
"""Prompts that the proof looks at."""


def doctor(given: DoctorOptions, tell: Tell) -> ToolResult:
    """One line a check. Exit code 3 when the model cannot be used or its proof fails.

    Cost: completions of `RECORDS` prompts, the proof's forwards, what a dry run measures.
    """
    model = given.model or model_names.BUNDLED
    tell(f"loading {model}")
    proof, passed = _proved(model, given)
    found: dict[str, FactValue] = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": {name: version(name) for name in PACKAGES.split()},
        "devices": _devices(),
        "models": {row.name: bool(row.where) for row in model_names.models()},
        "keys": {name: bool(os.environ.get(name)) for name in KEYS},
        "runs": str(runs_directory()),
        "model": model,
        **proof,
        "ok": passed,
        "next": "`mecharule selftest` compares all that is claimed with models whose circuit is known",
    }
    told = [fact(_line(name, value), key=name, value=value) for name, value in found.items()]
    text = "\n".join(one.sentence for one in told)
    return ToolResult(text=text, facts=tuple(told), exit_code=0 if passed else 3)


def _devices() -> dict[str, str]:
    import torch

    free = {name: f"{size / 1e9:.1f} GB free" for name, size in placement.this_machine().items()}
    return {**free, "cpu": f"{free['cpu']}, {torch.get_num_threads()} threads"}


def _proved(model: str, given: DoctorOptions) -> tuple[dict[str, FactValue], bool]:
    """(what was shown on the model and the arithmetic task, whether all of it holds)."""
    import numpy as np

    from mecharule_ops import config, types
    from mecharule_ops.engine import behaviour, guard, soundness
    from mecharule_ops.replacement.baselines import replacement_table
    from mecharule_ops.tasks.task_names import task_of

    placed: list[str] = []
    try:
        subject = model_names.load(model, given.device, given.dtype, placed.append)
        heads = {"bases": ("attn_head",), "regimes": (1,), "device": given.device, "dtype": given.dtype}
        task = task_of(asked := config.make_config(model=model, **heads))
        seen = behaviour.behaviour_on(task, subject, task.examples(RECORDS, np.random.default_rng(0)))
        intervention = types.Intervention(basis=types.Basis.MLP_OUT, phase=task.phase)
        sound = soundness.check_soundness(subject, seen.prompts, [record.tokens for record in seen.records])
        table = replacement_table(subject, seen.records, intervention)
        checked = guard.check_intervention(subject, task, seen.records, intervention, table)
    except UsageError:
        raise
    except MechaRuleError as error:
        return {"hook_check": str(error)}, False
    return {
        "placed": placed[0],
        "heads": f"of one direction of {task.name}, searched and explained: {runner.priced(asked).splitlines()[0]}",
        "hook_check": checked.sentence,
        "contributions": f"sum to the residual stream, {sound.sums:.1e} of its largest entry apart at most",
        "padding": f"changes no answer, {sound.padding:.1e} of a hidden state's largest entry at most",
        "passes": f"give the model's own logits, {sound.passes:.1e} of the largest apart at most",
    }, True


def _line(name: str, value: FactValue) -> str:
    entries = value.items() if isinstance(value, dict) else [("", value)]
    said = (f"{key} {('no', 'yes')[one] if isinstance(one, bool) else one}".strip() for key, one in entries)
    return f"{name.replace('_', ' '):12} {', '.join(said)}"
