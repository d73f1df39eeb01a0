"""Names to models: what loads, what is refused and how it says so."""

from pathlib import Path

import pytest

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading import model_names
from mecharule_ops.loading.model_names import load


def test_names_that_lead_nowhere(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each says what was expected and what to do, in one line."""
    monkeypatch.setattr(model_names, "BUNDLED_DIRECTORY", tmp_path / "none")
    for name, message in {
        "smollm2-135m": "run `mecharule models fetch smollm2-135m`",
        "arith-tiny": "reinstall the package",
        "gpt5": "expected a model of: arith-tiny, smollm2-135m",
        "./no/such/place": "got './no/such/place'",
        "nobody/nothing": "expected nobody/nothing from the model hub, got LocalEntryNotFoundError",
    }.items():
        with pytest.raises((ModelUnavailable, UsageError)) as raised:
            load(name)
        assert isinstance(raised.value, UsageError) == message.startswith(("expected a model of", "got"))
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)
    with pytest.raises(ModelUnavailable, match="a run downloads it"):
        model_names.resolve("nobody/nothing", offline=True)
