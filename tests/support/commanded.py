"""A child process for commands, one a worker, and a folder for its runs, one a test module; a plugin of `conftest`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_process import Child, Commands


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder; a module that wants another one has a fixture of this name."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def child() -> Iterator[Child]:
    """The process."""
    made = Child()
    yield made
    made.close()


@pytest.fixture(scope="module")
def commands(child: Child, runs: Path) -> Commands:
    """The command line over that folder."""
    return Commands(child, runs)
