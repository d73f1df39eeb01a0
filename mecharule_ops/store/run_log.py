"""What the file of a run tells at once: its settings and its events. Loads no numerical package.

Every failure of the file is a `StoreError`.
"""

import json
import re
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self, TypeVar

from mecharule_ops import codec, events
from mecharule_ops.errors import StoreError, UsageError
from mecharule_ops.events import Event
from mecharule_ops.store.run_file import check_there, connect_existing, store_errors

E = TypeVar("E", bound=Event)
_PAGE = 1000
RESTORE = "the file is damaged; restore it from a copy"
SETTINGS_CRC = "crc"
"""A setting of its own: the checksum of the others."""


class RunLog:
    """Settings and events of a run, for reading; a context manager. Make one with `read`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._guard = threading.RLock()
        rows = dict(self._rows("SELECT name, value FROM setting"))
        try:
            if rows.pop(SETTINGS_CRC) != settings_crc(rows):
                raise ValueError("their checksum differs")
            self.config: Mapping[str, object] = json.loads(rows["config"])
            self.created = float(rows["created"])
        except (KeyError, ValueError, TypeError) as error:
            raise StoreError(f"expected settings in {path}, they are damaged; restore a copy") from error

    @classmethod
    def read(cls, path: Path) -> "RunLog":
        """That of a stored run. Raises `StoreError` when it is missing, damaged or newer.

        The file is not read through, and only what is asked of it is checked.
        """
        check_there(path)
        connection = connect_existing(path, read_only=True, whole=False)
        try:
            return RunLog(path, connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Ends the use of the file; closing twice is harmless."""
        with self._guard:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def events(self, after: int = 0) -> Iterator[tuple[int, float, Event]]:
        """(number, unix time, event) of every event numbered above `after`, also of those added meanwhile."""
        query = "SELECT seq, unix_time, body, crc FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
        while page := self._rows(query, after, _PAGE):
            for seq, moment, body, crc in page:
                if seq != after + 1:
                    raise StoreError(f"expected event {after + 1} of {self.path}, it is lost: {RESTORE}")
                yield seq, moment, self._event(seq, moment, body, crc)
                after = seq

    def latest(self, cls: type[E]) -> E | None:
        """The last event of a class, None when there is none."""
        found = self.latest_with_time(cls)
        return None if found is None else found[1]

    def latest_with_time(self, cls: type[E]) -> tuple[float, E] | None:
        """(unix time, the last event of a class), None when there is none."""
        return next(self.every(cls, "DESC LIMIT 1"), None)

    def every(self, cls: type[E], order: str = "ASC") -> Iterator[tuple[float, E]]:
        """(unix time, event) of each event of a class."""
        query = f"SELECT seq, unix_time, body, crc FROM event WHERE kind = ? ORDER BY seq {order}"
        for seq, moment, body, crc in self._rows(query, kind_of(cls)):
            event = self._event(seq, moment, body, crc)
            if not isinstance(event, cls):
                raise StoreError(f"expected event {seq} of {self.path} under its own kind: {RESTORE}")
            yield moment, event

    @property
    def written(self) -> float:
        """Unix time of the last event, of a run without any that of its creation."""
        return float(self._rows("SELECT MAX(unix_time) FROM event")[0][0] or self.created)

    def _event(self, seq: int, moment: float, body: str, crc: int) -> Event:
        if not isinstance(body, str) or crc != event_crc(moment, body):
            raise StoreError(f"expected event {seq} of {self.path} as it was written: {RESTORE}")
        try:
            return event_from_json(body)
        except UsageError as error:
            raise StoreError(f"event {seq} of {self.path}: {error}") from error

    def _rows(self, query: str, *arguments: object) -> list[tuple]:
        with self._guard, store_errors(self.path):
            return self._connection.execute(query, arguments).fetchall()


def settings_crc(settings: Mapping[str, str]) -> str:
    """The checksum of the settings."""
    return str(zlib.crc32(codec.canonical_json(dict(settings)).encode("ascii")))


def event_crc(moment: float, body: str) -> int:
    """The checksum of an event and when it was told."""
    return zlib.crc32(f"{moment!r}{body}".encode())


def kind_of(cls: type[Event]) -> str:
    """The kind of an event class: its name in snake case, such as `node_tested`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


EVENT_CLASSES: Mapping[str, type[Event]] = {
    kind_of(item): item
    for item in vars(events).values()
    if isinstance(item, type) and issubclass(item, Event) and not item.__subclasses__()
}
"""Every event class of `mecharule_ops.events` by kind."""


def event_to_json(event: Event) -> str:
    """One line of JSON. Raises `UsageError` when a field does not hold what its class declares."""
    return codec.canonical_json({"kind": kind_of(type(event)), **codec.encode(event)})


def event_from_json(text: str) -> Event:
    """The event of one line of JSON.

    Raises `UsageError` on text that is no JSON object, an unknown kind or field, a missing field or a wrong
    type.
    """
    try:
        data = codec.parse_json(text)
    except ValueError as error:
        raise UsageError(f"expected an event as a JSON object, got {text[:80]!r}") from error
    kind = data.pop("kind", None) if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in EVENT_CLASSES:
        raise UsageError(f"expected an event of a known kind, got {kind!r}; a newer version may write it")
    return codec.decode(EVENT_CLASSES[kind], data)
