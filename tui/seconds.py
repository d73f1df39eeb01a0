"""Seconds as a person reads them."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """`3:07`, or `1:03:07` from an hour on."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
