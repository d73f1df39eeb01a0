"""Events as one JSON object each, tagged by kind: the form of the run file and of `--output jsonl`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mecharule_ops import events
from mecharule_ops.codec import canonical_json, decode, encode, parse_json
from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event


def kind_of(cls: type[Event]) -> str:
    """The kind of an event class: its name in snake case, such as `node_tested`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


EVENT_CLASSES: Mapping[str, type[Event]] = {
    kind_of(item): item
    for item in vars(events).values()
    if isinstance(item, type) and issubclass(item, Event) and item is not Event
}
"""Every event class of `mecharule_ops.events` by kind."""


def event_to_json(event: Event) -> str:
    """One line of JSON. Raises `UsageError` when a field does not hold what its class declares."""
    return canonical_json({"kind": kind_of(type(event)), **encode(event)})


def event_from_json(text: str) -> Event:
    """The event of one line of JSON.

    Raises `UsageError` on text that is no JSON object, an unknown kind or field, a missing field or a wrong
    type.
    """
    try:
        data = parse_json(text)
    except ValueError as error:
        raise UsageError(f"expected an event as a JSON object, got {text[:80]!r}") from error
    kind = data.pop("kind", None) if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in EVENT_CLASSES:
        raise UsageError(
            f"expected an event of a known kind, got {kind!r}; a newer version may have written it"
        )
    return decode(EVENT_CLASSES[kind], data)
