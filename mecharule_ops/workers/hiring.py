"""Workers for as long as a piece of work lasts: the one place that starts them, and that ends them however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mecharule_ops.workers.on_ray import check_installed, joined, started
from mecharule_ops.workers.pool import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for; nothing of it changes a result, so it is no setting of a run."""

    workers: int | None = None
    ray: str | None = None
    """Address of a cluster to join; None starts a Ray of our own."""

    @property
    def any(self) -> bool:
        """Whether workers are wanted at all."""
        return self.workers is not None or self.ray is not None

    @property
    def sentence(self) -> str:
        """What is about to be started, for a person."""
        many = (
            f"{self.workers} worker{'s' * (self.workers != 1)}"
            if self.workers
            else "a worker a card or processor"
        )
        return f"starting {many} on {f'the Ray cluster {self.ray}' if self.ray else 'this machine'}"

    def check(self) -> None:
        """Raises `ModelUnavailable` when workers are wanted and Ray is not installed. Starts nothing."""
        if self.any:
            check_installed()


@contextmanager
def hired(wanted: Wanted) -> Iterator[Workers | None]:
    """The workers, None where none are wanted; all of them have ended afterwards. Raises as `on_ray`."""
    if not wanted.any:
        yield None
        return
    if wanted.ray is None:
        assert wanted.workers is not None
        crew = started(wanted.workers)
    else:
        crew = joined(wanted.ray, wanted.workers)
    workers = Workers(crew=crew)
    try:
        yield workers
    finally:
        workers.close()
