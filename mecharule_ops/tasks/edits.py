"""Small changes of a prompt's fields that a rule answers differently: where its clause switches.

An edit changes one digit of one number, or one text field to another value it may take. The smallest edits come
first: by the difference of the number, then in order of the fields; a changed text counts as larger than any
changed digit. Only rules over prompt columns can be judged before the model has answered. No model call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mecharule_ops.types import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One field with another value."""

    field: str
    value: Value

    def of(self, fields: Mapping[str, Value]) -> dict[str, Value]:
        """The edited fields."""
        return {**fields, self.field: self.value}


def single_edits(fields: Mapping[str, Value], choices: Mapping[str, Sequence[Value]]) -> tuple[Edit, ...]:
    """Every edit of one field, the smallest first; `choices` lists the values that a text field may take."""
    sized = [
        (size, Edit(field=name, value=value))
        for name, old in fields.items()
        for size, value in _changes(old, choices.get(name, ()))
    ]
    return tuple(edit for _, edit in sorted(sized, key=lambda pair: pair[0]))


def _changes(old: Value, allowed: Sequence[Value]) -> Iterator[tuple[float, Value]]:
    if isinstance(old, int) and not isinstance(old, bool):
        yield from ((abs(new - old), new) for new in _one_digit_changed(old))
    elif isinstance(old, str):
        yield from ((float("inf"), value) for value in allowed if value != old)


def _one_digit_changed(number: int) -> Iterator[int]:
    """Numbers with as many digits that differ in one of them."""
    digits, sign = str(abs(number)), -1 if number < 0 else 1
    for place, digit in enumerate(digits):
        leading = place == 0 and len(digits) > 1
        for other in "123456789" if leading else "0123456789":
            if other != digit:
                yield sign * int(digits[:place] + other + digits[place + 1 :])
