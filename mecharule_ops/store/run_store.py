"""The store of one run: events, artefacts, ablation outcomes and certificates in one SQLite file.

What a method has returned from is on file and survives `kill -9`. One process writes; any number may read at
the same time. Methods may be called from several threads. Every failure of the file is a `StoreError`.
"""

import hashlib
import io
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from jaxtyping import Int

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import ClaimNotSupported, StoreError, system_errors
from mecharule_ops.events import Event
from mecharule_ops.store import keys, outcome_blocks, run_log
from mecharule_ops.store.run_file import (
    RunLock,
    check_there,
    connect_existing,
    connect_new,
    location,
    store_errors,
)

T = TypeVar("T")
_SINGLE = "array"


class RunStore(run_log.RunLog):
    """An open run; a context manager. Make one with `create` or `open`."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, lock: RunLock | None, clock: Callable[[], float]
    ) -> None:
        super().__init__(path, connection)
        self._lock = lock
        self._inside = False
        self._clock = clock
        self._outcomes = outcome_blocks.OutcomeTable(connection)

    @classmethod
    def create(
        cls,
        path: Path,
        config: Mapping[str, object],
        *,
        fill: "Callable[[RunStore], None]" = lambda store: None,
        clock: Callable[[], float] = time.time,
    ) -> "RunStore":
        """A new run, held for writing, which holds what `fill` puts there as soon as there is a file.

        Raises `StoreError` when the file exists or cannot be made.
        """
        settings = {"config": canonical_json(dict(config)), "created": repr(clock())}
        settings[run_log.SETTINGS_CRC] = run_log.settings_crc(settings)
        with system_errors(f"to make {path.parent}"):
            path.parent.mkdir(parents=True, exist_ok=True)
        lock = RunLock(path)
        try:
            if path.exists():
                raise StoreError(f"expected a new run, {path} exists; resume it or choose another name")
            connection = connect_new(path, settings, lambda made: fill(cls(path, made, None, clock)))
            return cls(path, connection, lock, clock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "RunStore":
        """A stored run. Raises `StoreError` when it is missing, damaged, newer or held by a process."""
        check_there(path)
        with ExitStack() as undone:
            lock = None if read_only else RunLock(path)
            if lock is not None:
                undone.callback(lock.release)
            connection = connect_existing(path, read_only=read_only)
            undone.callback(connection.close)
            opened = cls(path, connection, lock, time.time)
            undone.pop_all()
        return opened

    @property
    def writable(self) -> bool:
        """Whether this process may write it."""
        return self._lock is not None

    def hold(self) -> None:
        """From here on this process may write it. Raises `StoreError` where another one holds it."""
        if self._lock is None:
            self._lock = RunLock(self.path)
            self._connection.close()
            self._connection = connect_existing(self.path, read_only=False, whole=False)
            self._outcomes = outcome_blocks.OutcomeTable(self._connection)

    def close(self) -> None:
        """Ends the use of the file and lets another process write; closing twice is harmless."""
        with self._guard:
            self._connection.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def append(self, events: Iterable[Event]) -> None:
        """Adds events, all or none of them."""
        bodies = [(run_log.kind_of(type(event)), run_log.event_to_json(event)) for event in events]
        now = self._clock()
        rows = [(now, kind, body, run_log.event_crc(now, body)) for kind, body in bodies]
        with self._transaction():
            self._connection.executemany(
                "INSERT INTO event (unix_time, kind, body, crc) VALUES (?, ?, ?, ?)", rows
            )

    def put(self, name: keys.Artefact[T], value: T) -> None:
        """Stores an artefact under a name, in place of an older one."""
        form, sha256, body = pack_artefact(value)
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO artefact VALUES (?, ?, ?, ?)", (name, form, sha256, body)
            )

    def get(self, name: keys.Artefact[T]) -> T:
        """An artefact. Raises `StoreError` when there is none of this name or its content has changed."""
        found = self.find(name)
        if found is None:
            raise StoreError(f"expected an artefact {name!r} in {self.path}, there is none; run its stage")
        return found

    def find(self, name: keys.Artefact[T]) -> T | None:
        """An artefact; None when there is none of this name. Raises `StoreError` when its content has changed."""
        for form, sha256, body in self._rows("SELECT form, sha256, body FROM artefact WHERE name = ?", name):
            return cast(T, unpack(form, sha256, body, f"artefact {name!r} of {self.path}"))
        return None

    def kept(self, name: keys.Artefact[T], make: Callable[[], T]) -> T:
        """An artefact; where there is none what `make` gives, which is kept where this process may write."""
        found = self.find(name)
        if found is None:
            found = make()
            if self.writable:
                self.put(name, found)
        return found

    def names(self) -> tuple[str, ...]:
        """The names of all artefacts, in order."""
        return tuple(name for (name,) in self._rows("SELECT name FROM artefact ORDER BY name"))

    def take_over(self, earlier: "RunStore", names: Iterable[str]) -> None:
        """Copies another run's ablation outcomes, which are keyed by content, and the artefacts named.

        This run must hold no outcome yet; all is copied or nothing.
        """
        with self._guard, store_errors(self.path):
            self._connection.execute("ATTACH DATABASE ? AS earlier", (location(earlier.path, "ro"),))
        try:
            with self._transaction():
                for table in ("context", "example_set", "outcome"):
                    self._connection.execute(f"INSERT INTO main.{table} SELECT * FROM earlier.{table}")
                self._connection.executemany(
                    "INSERT INTO main.artefact SELECT * FROM earlier.artefact WHERE name = ?",
                    [(name,) for name in names],
                )
        finally:
            self._connection.execute("DETACH DATABASE earlier")

    def has(self, name: str) -> bool:
        """Whether an artefact of that name was put; it is not read."""
        return bool(self._rows("SELECT 1 FROM artefact WHERE name = ?", name))

    def put_outcomes(self, context: str, outcomes: Iterable[outcome_blocks.StoredAnswers]) -> None:
        """Stores what ablating several groups did in one transaction, all or none.

        `context` names all else that fixes it, such as the model.
        """
        blocks = list(outcomes)
        with self._transaction():
            for block in blocks:
                self._outcomes.put(context, block)

    def known_outcomes(
        self, context: str, group: str, example_ids: Sequence[int] | Int[np.ndarray, " example"]
    ) -> outcome_blocks.Known:
        """Stored outcomes of one group for these examples, merged over every earlier answer."""
        with self._guard, store_errors(self.path):
            return self._outcomes.known(context, group, example_ids)

    def put_certificate(self, certificate: Certificate) -> bool:
        """Stores a certificate; whether it was not there yet."""
        row = (certificate.sha256, certificate.to_json())
        with self._transaction():
            query = "INSERT OR IGNORE INTO certificate (sha256, body) VALUES (?, ?)"
            return bool(self._connection.execute(query, row).rowcount)

    def certificate(self, prefix: str) -> Certificate:
        """The certificate whose id starts so. Raises `ClaimNotSupported` when none or several do."""
        query = "SELECT sha256, body FROM certificate WHERE substr(sha256, 1, ?) = ?"
        found = self._rows(query, len(prefix), prefix) if prefix else []
        if len(found) != 1:
            raise ClaimNotSupported(
                f"expected one certificate {prefix!r} in this run, found {len(found)}; "
                f"`mecharule show {self.path.stem} --table certificates` lists them"
            )
        return self._certificate(*found[0])

    def certificates(self) -> tuple[Certificate, ...]:
        """Every certificate in the order written. Raises `ClaimNotSupported` when one has been changed."""
        rows = self._rows("SELECT sha256, body FROM certificate ORDER BY seq")
        return tuple(self._certificate(sha256, body) for sha256, body in rows)

    def _certificate(self, sha256: str, body: str) -> Certificate:
        try:
            json.loads(str(body))
        except ValueError:
            raise StoreError(
                f"expected certificate {sha256} of {self.path} as JSON: {run_log.RESTORE}"
            ) from None
        certificate = Certificate.from_json(body)
        if certificate.sha256 != sha256:
            raise StoreError(f"expected certificate {sha256} of {self.path} under its id: {run_log.RESTORE}")
        return certificate

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is stored inside is stored together, or none of it."""
        with self._guard, self._transaction():
            self._inside = True
            try:
                yield
            finally:
                self._inside = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._guard, store_errors(self.path):
            if self._inside:
                yield
                return
            if self._connection.in_transaction:  # Left by an interrupt before the block below was entered.
                self._connection.execute("ROLLBACK")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                if self._lock is not None:
                    self._lock.check()
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._outcomes.forget()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def pack_artefact(value: object) -> tuple[str, str, bytes]:
    """(`json`, `array` or `arrays`, the SHA-256 of that and the body, the body) as an artefact is stored.

    Arrays are an `.npz` file that any NumPy reads; its members bear no time, so equal content has equal bytes. Nothing
    is ever pickled. Raises `UsageError` on anything but a JSON value, an array or a mapping of arrays.
    """
    if isinstance(value, np.ndarray):
        form, body = "array", _npz({_SINGLE: value})
    elif isinstance(value, Mapping) and value and all(isinstance(v, np.ndarray) for v in value.values()):
        form, body = "arrays", _npz(value)
    else:
        form, body = "json", canonical_json(value).encode("ascii")
    return form, _hash(form, body), body


def unpack(form: str, sha256: str, body: bytes, named: str = "artefact") -> object:
    """The value: JSON (tuples come back as lists), an array, or a dict of arrays.

    Raises `StoreError` when the content is not what was hashed.
    """
    if not (isinstance(body, bytes) and isinstance(form, str)) or _hash(form, body) != sha256:
        raise StoreError(f"expected {named} as it was written, it is damaged; restore it from a copy")
    if form == "json":
        return json.loads(body)
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        arrays = dict(file)
    return arrays[_SINGLE] if form == "array" else arrays


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **dict(sorted(arrays.items())))
    return buffer.getvalue()


def _hash(form: str, body: bytes) -> str:
    return hashlib.sha256(form.encode() + body).hexdigest()
