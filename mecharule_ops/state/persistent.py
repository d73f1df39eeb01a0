"""An immutable map that shares structure: a new version costs a few small tuples, old ones never change.

`IntMap` is a trie over the bits of a key, 5 bits a level (Bagwell, 2001; as in Clojure's vectors), so a map
with keys up to k copies ⌈log₃₂ k⌉ tuples of 32 at a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_BITS = 5
_WIDTH = 1 << _BITS
_EMPTY: tuple[Any, ...] = (None,) * _WIDTH


class IntMap(Mapping[int, T], Generic[T]):
    """A map from integers ≥ 0 to values that are not None, in order of key."""

    __slots__ = ("_root", "_shift", "_size")

    def __init__(self) -> None:
        self._root = _EMPTY
        self._shift = 0
        self._size = 0

    def set(self, key: int, value: T) -> IntMap[T]:
        """A map that also holds `value` at `key`."""
        assert key >= 0, key
        assert value is not None
        changed: IntMap[T] = IntMap()
        root, shift = self._root, self._shift
        while key >> (shift + _BITS):
            root, shift = (root, *_EMPTY[1:]), shift + _BITS
        changed._root = _with(root, shift, key, value)
        changed._shift = shift
        changed._size = self._size + (key not in self)
        return changed

    def __getitem__(self, key: int) -> T:
        found = self._find(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self._find(key) is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return _keys(self._root, self._shift, 0)

    def _find(self, key: int) -> Any:
        if key < 0 or key >> (self._shift + _BITS):
            return None
        node: Any = self._root
        for shift in range(self._shift, -1, -_BITS):
            node = node[key >> shift & (_WIDTH - 1)]
            if node is None:
                return None
        return node


def _with(node: tuple[Any, ...], shift: int, key: int, value: Any) -> tuple[Any, ...]:
    index = key >> shift & (_WIDTH - 1)
    slots = list(node)
    slots[index] = value if shift == 0 else _with(slots[index] or _EMPTY, shift - _BITS, key, value)
    return tuple(slots)


def _keys(node: tuple[Any, ...], shift: int, prefix: int) -> Iterator[int]:
    for index, slot in enumerate(node):
        if slot is None:
            continue
        key = prefix << _BITS | index
        if shift == 0:
            yield key
        else:
            yield from _keys(slot, shift - _BITS, key)
