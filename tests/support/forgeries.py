"""Other values for every place of a JSON tree, as a forger would put them there."""

import copy
from collections.abc import Iterator
from typing import Any


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every value in a JSON tree, inner ones included."""
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from leaves(child, (*path, key))


def forgeries(value: Any) -> list[Any]:
    """Other values for one place: of the same type, and of another."""
    match value:
        case bool():
            return [not value, None]
        case int() | float():
            return [value + 1, str(value), float("nan"), 10**400]
        case str():
            return [value + " ", 3]
        case list():
            return [value[:-1], [*value, value[-1]]]
        case dict():
            return [{**value, "extra": 1}, dict(list(value.items())[1:])]
        case _:
            return ["something"]


def put(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(tree)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed
