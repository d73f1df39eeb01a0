"""Keys as a person reads them."""

from __future__ import annotations

_SAID = {
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "escape": "Esc",
    "space": "Space",
}


def key_said(key: str) -> str:
    """A key as a person reads it: `^R`, `F3`, `]`."""
    if key in _SAID:
        return _SAID[key]
    if key.startswith("ctrl+"):
        return f"^{key[5:].upper()}"
    if key.startswith("shift+"):
        return f"Shift+{key[6:].title()}"
    return (
        key.upper()
        if len(key) > 1 and key[0] == "f" and key[1:].isdigit()
        else key
        if len(key) == 1
        else key.title()
    )
