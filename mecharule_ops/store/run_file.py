"""The SQLite file of one run: its schema, who may open it, and what each failure is called.

One process writes a run. It holds an advisory `flock` on the file `RUN.lock`, which the kernel drops with the
process, so `kill -9` leaves no stale lock; the file only names the holder. The lock is not on the run file
itself: SQLite's own locks would be lost when a second descriptor of that file closes. Readers take no lock.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from mecharule_ops.errors import StoreError, system_errors

APPLICATION_ID = 0x4D524C45
"""Written in bytes 68–71 of the file: "MRLE"."""
SCHEMA_VERSION = 6
"""Of the tables and of what lies in them; a file of another one is refused."""
_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_LONGEST_REASON = 120
_BUSY = "expected {path} to be free, another program is writing to it; close that and try again"
_SAID = {
    "FULL": "expected room to write {path}, the disk is full; free some and resume: what was stored is kept",
    "IOERR": "expected to read and write {path}, the disk refused ({error}); check its space and limits, then resume: "
    "what was stored is kept",
    "CANTOPEN": "expected to open {path}, SQLite says: {error}; if its folder is for reading only, copy "
    "the file and its -wal to another",
    "READONLY": "expected to write {path}, it is open for reading only; open the run for writing",
    "BUSY": _BUSY,
    "LOCKED": _BUSY,
}
"""By the kind of SQLite's error."""
_LOCK_TRIES = 10
_LOCK_WAIT_SECONDS = 0.02


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turns SQLite's failures inside the block into a `StoreError` of one line."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_sentence(path, error)) from error
    except UnicodeDecodeError as error:  # What it says of a damaged schema quotes the schema.
        raise StoreError(_damaged(path, str(error))) from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    kind = (getattr(error, "sqlite_errorname", "") or "").split("_")[1:2]
    if kind in (["CORRUPT"], ["NOTADB"]) or "decode to UTF-8" in str(error):
        return _damaged(path, str(error))
    said = _SAID.get("".join(kind), "expected to use the run file {path}, SQLite says: {error}")
    return said.format(path=path, error=_one_line(str(error)))


def _damaged(path: Path, how: str) -> str:
    return f"expected a MechaRule run file, {path} is damaged ({_one_line(how)}); restore it from a copy"


def _one_line(text: str) -> str:
    """SQLite quotes what it could not read, with its line ends."""
    return " ".join(text.split())[:_LONGEST_REASON]


class RunLock:
    """The right to write one run; held until `release` or the end of the process.

    A child made by a bare `fork` shares it: such a child must not outlive the writer.
    """

    def __init__(self, path: Path) -> None:
        """Takes the lock. Raises `StoreError` naming the process that holds it."""
        self._files, self._seen = (path, _lock_path(path)), list[int]()
        with _beside(path):
            self._descriptor = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not self._acquired():
                holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise StoreError(
                    f"expected run {path} to be free, process {holder} holds it; stop that or wait for it"
                )
            with _beside(path):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, str(os.getpid()).encode("ascii"), 0)
        except StoreError:
            os.close(self._descriptor)
            raise

    def _acquired(self) -> bool:
        """Tries for a fifth of a second, since `is_held` takes the lock for an instant."""
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_WAIT_SECONDS)
            else:
                return True
        return False

    def check(self) -> None:
        """Raises `StoreError` where the run or its lock is no longer the file that it was at the first check."""
        now = [path.stat().st_ino if path.exists() else 0 for path in self._files]
        if 0 in now or now != (self._seen or now):
            raise StoreError(
                f"expected {self._files[0]} and its .lock where this run began to write, they were moved, removed or "
                "replaced: nothing more is kept"
            )
        self._seen = now

    def release(self) -> None:
        """Frees the run for other processes; the lock also ends with this one."""
        os.close(self._descriptor)


def is_held(path: Path) -> bool:
    """Whether a living process writes this run."""
    try:
        descriptor = os.open(_lock_path(path), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> int | None:
    """The process that writes this run; None where none does."""
    return int(_lock_path(path).read_text("ascii") or 0) or None if is_held(path) else None


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _beside(path: Path) -> AbstractContextManager[None]:
    return system_errors(f"to write beside {path}")


def connect_new(
    path: Path, settings: dict[str, str], fill: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    """A fresh run file with its schema, settings and what `fill` writes, which is there whole or not at all."""
    unfinished = path.with_name(path.name + ".new")
    remove(unfinished)
    try:
        with store_errors(path), closing(_connect(unfinished, "rwc")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            connection.executemany("INSERT INTO setting VALUES (?, ?)", settings.items())
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
            fill(connection)
            # The last change of mode and so the last rollback journal: one that a failed write left beside the finished
            # file would have to be rolled back before anybody could read it, which a reader may not do.
            connection.execute("PRAGMA journal_mode = WAL")
        with system_errors(f"to make {path}"):
            unfinished.rename(path)
    except BaseException:
        with suppress(StoreError):
            remove(unfinished)
        raise
    connection = _connect(path, "rw")
    with store_errors(path):
        _prepare(connection)
    return connection


def remove(path: Path) -> None:
    """Take a run file away that nobody has open, and what lies beside it. Raises `StoreError`."""
    with system_errors(f"to remove {path}"):
        for part in ("", "-journal", "-wal", "-shm", ".lock"):
            path.with_name(path.name + part).unlink(missing_ok=True)


def connect_existing(path: Path, *, read_only: bool, whole: bool = True) -> sqlite3.Connection:
    """A checked connection to a file of SQLite's. Raises `StoreError` on a foreign, damaged or newer one.

    `whole` has SQLite read the file through: a row that damage made vanish is missed by no checksum
    of rows.
    """
    connection = _connect(path, "ro" if read_only else "rw")
    try:
        with store_errors(path):
            _check_version(path, connection)
            # Whether every page is where it belongs, and every row in its indexes.
            if whole and (found := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
                raise StoreError(_damaged(path, found))
            if not read_only:
                _prepare(connection)
    except StoreError:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    with store_errors(path):
        return sqlite3.connect(
            location(path, mode), uri=True, isolation_level=None, check_same_thread=False, timeout=5.0
        )


def location(path: Path, mode: str) -> str:
    """What SQLite opens. It writes beside a file to read it, but for one on a disk for reading that nobody has open."""
    there = Path(os.path.realpath(path))
    fixed = there.exists() and os.statvfs(there).f_flag & os.ST_RDONLY and mode == "ro"
    alone = fixed and not there.with_name(f"{there.name}-wal").exists()
    return f"file:{quote(str(there))}?mode={mode}{'&immutable=1' * bool(alone)}"


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # NORMAL: a commit survives the death of the process, since the kernel holds the pages. A power cut may
    # lose the last commits, never the file; a resumed run repeats those ablations. FULL would wait for the
    # disk at every batch to save those seconds.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def check_there(path: Path) -> None:
    """Raises `StoreError` where there is no file."""
    if not path.exists():
        raise StoreError(f"expected a run file at {path}, there is none; list them with `mecharule runs`")


def _check_version(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise StoreError(_damaged(path, "it may be of another program"))
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"expected a run file of format {SCHEMA_VERSION}, {path} has format {version}; make the run again, or "
            "read it with the MechaRule that made it"
        )
