"""A child process for commands and a folder for its runs, one of each a test module; a plugin of `conftest`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_process import Commands


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder; a module that wants another one has a fixture of this name."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def commands(runs: Path) -> Iterator[Commands]:
    """The command line over that folder."""
    child = Commands(runs)
    yield child
    child.close()
