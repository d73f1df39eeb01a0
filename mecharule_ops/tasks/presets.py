"""Settings of each task that suit a model, as `presets.toml` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PRESETS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (task, model): {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()
    }
    for task, models in tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8")).items()
    for model, settings in models.items()
}
"""By task and model, or another name."""
