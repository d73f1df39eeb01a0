"""Workers as Ray actors, on this machine or on a cluster: Ray deals what is asked, restarts who is lost and asks again.

A Ray of our own listens on the loopback only, keeps its files in a folder that goes with it, and reports nothing to
anybody. A cluster is joined as it is; `mecharule` must be installed on its machines, the model under the same name.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mecharule_ops.engine.group_questions import Answer, Answering, GroupQuestion
from mecharule_ops.errors import AblationStopped, MechaRuleError, ModelUnavailable, UsageError

if TYPE_CHECKING:
    from mecharule_ops.workers.replica import Assignment, Part

SHARES = 3
"""Parts a worker and wave, at least, where a wave is that large."""
LEAST, MOST = 64, 8192
"""Pairs of a part: below the first cutting it saves nothing, more than the second a lost worker shall not lose."""
LOSSES = 3
"""Times that a question is asked again after its worker was lost."""
POLL = 0.1
"""Seconds after which a stop is noticed."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_LOOPBACK = {
    **_QUIET,
    # Workers do what this process would do itself; at Ray's 15 whatever else runs here would go first.
    "RAY_worker_niceness": "0",
}


class WorkerFailed(MechaRuleError):
    """What a worker met that this process would have met too, or that no other worker can make good."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"a worker failed: {_first_line(cause)}")
        self.exit_code = getattr(cause, "exit_code", 1)


def cut(wave: Sequence[GroupQuestion], workers: int) -> Iterator[Part]:
    """The parts of a wave, in its order; together they hold every pair of every question once.

    By groups first, because a worker keeps the clean pass of examples that it has seen.
    """
    from mecharule_ops.workers.replica import Part

    total = sum(question.pairs for question in wave)
    size = min(MOST, max(LEAST, -(-total // (workers * SHARES))))
    for place, asked in enumerate(wave):
        wide = min(len(asked.examples), size) or 1
        high = max(1, size // wide)
        for top in range(0, len(asked.groups), high):
            for left in range(0, len(asked.examples), wide):
                groups, examples = asked.groups[top : top + high], asked.examples[left : left + wide]
                rows, columns = range(top, top + len(groups)), range(left, left + len(examples))
                yield Part(
                    place, tuple(rows), tuple(columns), GroupQuestion(groups=groups, examples=examples)
                )


@dataclass(kw_only=True, eq=False)
class Workers:
    """The workers of a run; the first assignment starts them."""

    count: int
    threads: int
    """Of each."""
    folder: str | None = None
    """Removed in the end."""
    ours: bool
    """Whether the Ray was started for them, so that it ends with them."""
    _actors: list[Any] = field(default_factory=list)
    _closed: bool = False

    def assigned(self, assignment: Assignment, should_stop: Callable[[], bool] = lambda: False) -> Answering:
        """The workers under one assignment, each of which has loaded the model.

        Raises `ModelUnavailable` where not all of them find room, `WorkerFailed`, `AblationStopped`.
        """
        import ray

        if self._closed:
            raise AblationStopped("the workers were stopped")
        if not self._actors:
            self._actors += self._hired(assignment.cards)
        sent = ray.put(assignment)
        asked = _Assigned(workers=self, key=assignment.key, assignment=[sent], should_stop=should_stop)
        asked.wait([actor.take.remote(sent) for actor in self._actors])
        return asked

    def _hired(self, cards: int) -> list[Any]:
        """Actors, each with as many graphics cards of its own as the run's model lies on."""
        import ray

        from mecharule_ops.workers.replica import Replica

        there, wanted = ray.cluster_resources(), {"CPU": self.count * self.threads, "GPU": self.count * cards}
        for kind, many in wanted.items():
            if many > there.get(kind, 0):
                raise ModelUnavailable(
                    f"expected {many} {kind}s for {self.count} workers, Ray has {there.get(kind, 0):g}; start fewer"
                )
        hire = ray.remote(num_cpus=self.threads, num_gpus=cards, max_restarts=-1, max_task_retries=LOSSES)(
            Replica
        )
        return [hire.remote(self.threads) for _ in range(self.count)]

    def close(self) -> None:
        """End every actor, and a Ray that was started for them; doing it twice is harmless."""
        import ray

        self._closed = True
        if ray.is_initialized():
            for actor in self._actors:
                ray.kill(actor)
            if self.ours:
                ray.shutdown()
        self._actors.clear()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Assigned:
    """The workers, asked under one assignment."""

    workers: Workers
    key: str
    assignment: list[Any]
    """Ray's reference to it, in a list so that only a worker which lost it reads it again."""
    should_stop: Callable[[], bool]

    def answers(self, wave: Sequence[GroupQuestion]) -> Iterator[Answer]:
        """Parts of answers as they come. Raises `AblationStopped`, and `WorkerFailed` as the type says."""
        from ray.util import ActorPool

        pool = ActorPool(self.workers._actors)
        for part in cut(wave, self.workers.count):
            pool.submit(lambda actor, part: actor.answer.remote(self.key, self.assignment, part), part)
        while pool.has_next():
            if answer := self._got(lambda: pool.get_next_unordered(timeout=POLL)):
                yield answer

    def wait(self, calls: list[Any]) -> None:
        """Until all of some calls have ended. Raises as `answers`."""
        import ray

        while calls:
            ended, calls = ray.wait(calls, timeout=POLL)
            self._got(partial(ray.get, ended))

    def _got(self, result: Callable[[], Any]) -> Any:
        """What a call gives, None where it has not ended; where a stop is asked for the workers end."""
        from ray.exceptions import RayError, RayTaskError

        if self.should_stop():
            self.workers.close()
            raise AblationStopped("the workers were stopped; what they had answered is kept")
        try:
            return result()
        except TimeoutError:
            return None
        except RayTaskError as error:
            raise WorkerFailed(error.cause) from error
        except RayError as error:
            cure = "give each more memory, start fewer, or none"
            lost = f"{LOSSES + 1} of them were lost over the same question; {cure}"
            raise WorkerFailed(MechaRuleError(lost)) from error


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
        if self.any and find_spec("ray") is None:
            raise ModelUnavailable(
                "expected Ray for --workers and --ray, it is not installed; install it with `pip install "
                "'mecharule[ray]'`"
            )


@contextmanager
def hired(wanted: Wanted) -> Iterator[Workers | None]:
    """The workers, None where none are wanted; all of them have ended afterwards. Raises as `started`."""
    if not wanted.any:
        yield None
        return
    wanted.check()
    workers = started(wanted.workers or 0) if wanted.ray is None else joined(wanted.ray, wanted.workers)
    try:
        yield workers
    finally:
        workers.close()


def started(count: int, processors: int | None = None) -> Workers:
    """A Ray on this machine for so many workers, which share its processors.

    Raises `UsageError` for no worker at all, `ModelUnavailable` when Ray does not start.
    """
    if count < 1:
        raise UsageError(f"expected 1 or more workers, got {count}")
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
    return Workers(count=count, threads=threads, folder=folder, ours=ours)


def joined(address: str, count: int | None) -> Workers:
    """A running cluster; without a count one worker a graphics card, or a processor where there is none.

    Raises `ModelUnavailable` when nothing answers under this address.
    """
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
    processors = int(there.get("CPU", 1))
    count = count or int(there.get("GPU", 0)) or processors
    return Workers(count=count, threads=max(1, processors // count), ours=ours)


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
    text = (str(error).strip().splitlines() or [""])[0]
    return text if isinstance(error, MechaRuleError) else f"{type(error).__name__}: {text}"[:200]
