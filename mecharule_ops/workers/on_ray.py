"""Workers as Ray actors, on this machine or on a cluster; the one place where Ray is started and ended.

A Ray of our own listens on the loopback only, keeps its files in a folder that goes with it, and reports nothing to
anybody. A cluster is joined as it is; `mecharule` must be installed on its machines, the model under the same name.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.workers.assignment import Assignment, WorkerShare
from mecharule_ops.workers.pool import Lost, Workers

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_LOOPBACK = {
    **_QUIET,
    # Workers do what this process would do itself; at Ray's 15 whatever else runs here would go first.
    "RAY_worker_niceness": "0",
}


def check_installed() -> None:
    """Raises `ModelUnavailable` with what to install when Ray is not."""
    if find_spec("ray") is None:
        raise ModelUnavailable(
            "expected Ray for --workers and --ray, it is not installed; install it with `pip install 'mecharule[ray]'`"
        )


class RayCrew:
    """Ray actors that hold a replica each; see `pool.Crew`."""

    def __init__(self, count: int, threads: int, folder: str | None, ours: bool) -> None:
        """`threads` a worker; `folder` is removed in the end; a Ray that is not `ours` is left running."""
        import ray

        self._ray = ray
        self.count = count
        self._threads = threads
        self._folder = folder
        self._ours = ours
        self._workers: list[Any] = []
        self._sent: dict[str, Any] = {}

    def hire(self, cards: int) -> Any:
        """A new actor, with as many graphics cards of its own as the run's model lies on."""
        from mecharule_ops.workers.replica import Replica

        kind = self._ray.remote(num_cpus=self._threads, num_gpus=cards)(Replica)
        worker = kind.remote(self._threads)
        self._workers.append(worker)
        return worker

    def take(self, worker: Any, assignment: Assignment) -> Any:
        """The call's reference; the assignment is sent to each machine once."""
        if assignment.key not in self._sent:
            self._sent[assignment.key] = self._ray.put(assignment)
        return worker.take.remote(self._sent[assignment.key])

    def answer(self, worker: Any, key: str, part: WorkerShare) -> Any:
        """The call's reference."""
        return worker.answer.remote(key, part.groups, part.examples)

    def ended(self, tickets: Sequence[Any], seconds: float) -> list[tuple[Any, object]]:
        """Calls that have ended; a worker that Ray reports dead, or its machine out of memory, is lost."""
        from ray.exceptions import RayActorError, RayError

        if not tickets:
            return []
        ready, _ = self._ray.wait(list(tickets), num_returns=1, timeout=seconds)
        more, _ = self._ray.wait(list(tickets), num_returns=len(tickets), timeout=0)
        found: list[tuple[Any, object]] = []
        for ticket in {*ready, *more}:
            try:
                found.append((ticket, self._ray.get(ticket)))
            except RayActorError:
                found.append((ticket, Lost(reason="its process ended")))
            except RayError as error:
                found.append((ticket, Lost(reason=_first_line(error))))
        return found

    def dismiss(self, worker: Any) -> None:
        """End an actor."""
        self._ray.kill(worker)

    def close(self) -> None:
        """End every actor, and a Ray that was started for them."""
        if self._ray.is_initialized():
            for worker in self._workers:
                self._ray.kill(worker)
            if self._ours:
                self._ray.shutdown()
        self._workers.clear()
        self._sent.clear()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def started(count: int, processors: int | None = None) -> RayCrew:
    """A Ray on this machine for so many workers, which share its processors.

    Raises `UsageError` for no worker at all, `ModelUnavailable` when Ray is not installed or does not start.
    """
    if count < 1:
        raise UsageError(f"expected 1 or more workers, got {count}")
    check_installed()
    import torch

    threads = max(1, (processors or torch.get_num_threads()) // count)
    os.environ.update(_LOOPBACK)
    # A Ray of one machine asks for a token by itself; this one is written nowhere.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    # The names of its sockets end about 70 characters further, and the system takes at most 107.
    parent = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="mecharule-", dir=parent if len(parent) <= 24 else "/tmp")
    try:
        ours = _init(here=True, num_cpus=count * threads, include_dashboard=False, _temp_dir=folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ModelUnavailable(f"expected Ray to start on this machine, got {_first_line(error)}") from error
    return RayCrew(count, threads, folder, ours)


def joined(address: str, count: int | None) -> RayCrew:
    """A running cluster; without a count one worker a graphics card, or a processor where there is none.

    Raises `ModelUnavailable` when Ray is not installed or nothing answers under this address.
    """
    check_installed()
    os.environ.update(_QUIET)
    os.environ.setdefault("RAY_gcs_server_request_timeout_seconds", "10")
    import ray

    try:
        ours = _init(here=False, address=address)
    except Exception as error:
        raise ModelUnavailable(
            f"expected a Ray cluster at {address}, got {_first_line(error)}; start one with `ray start --head`"
        ) from error
    there = ray.cluster_resources()
    processors, cards = int(there.get("CPU", 1)), int(there.get("GPU", 0))
    count = count or cards or processors
    return RayCrew(count, max(1, processors // count), None, ours)


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


def _init(*, here: bool, **settings: Any) -> bool:
    """Connect, unless this process is connected already, and say which."""
    import ray
    from ray._private import ray_constants

    # Ray takes the machine's outward address unless it believes that there can be no cluster; it reads no setting of
    # this once it is imported, and other packages import it.
    if ray.is_initialized():
        return False
    outward, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, not here
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        ray.init(log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=True, **settings)
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = outward
    return True


def _first_line(error: BaseException) -> str:
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{type(error).__name__}: {text}"[:200]
