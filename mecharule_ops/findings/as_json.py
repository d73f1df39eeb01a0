"""Findings as JSON text and back, strictly; the text names its format, its shape is the dataclasses' own."""

from __future__ import annotations

import json

from mecharule_ops.codec import decode, encode, parse_json
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings

FORMAT = "mecharule-findings/3"
"""Named in the text, so that an older reader refuses a newer shape in one line."""


def to_json(findings: Findings) -> str:
    """JSON text, keys sorted, two-space indent: equal findings give equal text.

    Raises `UsageError` naming a field whose value is not of its type.
    """
    document = {"format": FORMAT, "findings": encode(findings)}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Findings:
    """The findings that `to_json` wrote. Raises `UsageError` naming the field that does not fit."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise UsageError(f"expected findings as JSON, got text that does not parse: {error}") from error
    if not isinstance(document, dict) or set(document) != {"format", "findings"}:
        raise UsageError("expected an object with the keys format and findings; export the run again")
    if document["format"] != FORMAT:
        raise UsageError(f"expected format {FORMAT}, got {document['format']!r}; export the run again")
    return decode(Findings, document["findings"])
