"""The science of MechaRule as a library: engine, search, rules, accounts, certificates; imports nothing above it.

    import mecharule_ops as mr

    run = mr.analyse("arithmetic", model="arith-tiny", bases=("mlp_out",), regimes=(1,))
    run = mr.open_run("last")
    run.units, run.rules, run.tree(), run.account("m1.37"), run.to_dataframe("units"), run.verify()

Nothing is loaded before one of these names is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.errors import MechaRuleError, UsageError
    from mecharule_ops.notebook.door import analyse, open_run, resume
    from mecharule_ops.notebook.finished_run import FinishedRun

__all__ = ["FinishedRun", "MechaRuleError", "UsageError", "analyse", "open_run", "resume"]

_HOMES = {
    **dict.fromkeys(("analyse", "open_run", "resume"), "mecharule_ops.notebook.door"),
    **dict.fromkeys(("MechaRuleError", "UsageError"), "mecharule_ops.errors"),
    "FinishedRun": "mecharule_ops.notebook.finished_run",
}
"""The module of each name."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
