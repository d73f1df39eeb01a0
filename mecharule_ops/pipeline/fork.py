"""A search again under other settings, on what an earlier run has already observed and ablated.

Records, vocabulary, replacement values and every ablation outcome are taken over; the splitter, the slices and the
search follow anew from the settings. So another τ asks the model only what no earlier search has asked.
"""

from __future__ import annotations

from mecharule_ops.config import RunConfig
from mecharule_ops.errors import UsageError
from mecharule_ops.store.keys import is_observed
from mecharule_ops.store.run_store import RunStore

OBSERVED = (
    "model",
    "task",
    "task_settings",
    "records",
    "test_share",
    "seed",
    "proposer",
    "proposals",
    "dtype",
)
"""Settings that decide what is taken over, so a fork cannot change them."""


def check_fork(earlier: RunConfig, config: RunConfig) -> None:
    """Raises `UsageError` when the settings differ in what the earlier run observed, or in nothing."""
    changed = [name for name in OBSERVED if getattr(config, name) != getattr(earlier, name)]
    if changed:
        raise UsageError(
            f"expected a fork to keep {', '.join(changed)}: it reuses what the run observed; start a new run instead"
        )
    if config == earlier:
        raise UsageError("expected a fork to change a setting, got none; name one, such as --tau .3")


def take_over(store: RunStore, earlier: RunStore) -> None:
    """Fill a new run with what an earlier one observed and ablated."""
    store.take_over(earlier, filter(is_observed, earlier.names()))
