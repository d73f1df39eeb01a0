"""Reading a model's text into the shape that was asked for, or saying in one line why it does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from agent.llm.faults import ReplyUnusable, scrub
from mecharule_ops.errors import misfit


def parsed_as(schema: type[BaseModel] | None, text: str) -> BaseModel | None:
    """The object of a schema in a text; None when no schema was asked for. Raises `ReplyUnusable`."""
    if schema is None:
        return None
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        raise unusable(schema, error) from None


def unusable(schema: type[BaseModel] | None, error: ValidationError) -> ReplyUnusable:
    """The first thing that does not fit, without the text itself."""
    wanted = "JSON" if schema is None else schema.__name__
    return ReplyUnusable(f"expected a reply in the schema {wanted}, got {scrub(misfit(error, 'the reply'))}")


def arguments_of(name: str, value: object) -> Mapping[str, object]:
    """A tool call's arguments, from JSON or as they are. Raises `ReplyUnusable` when they are no JSON object."""
    try:
        arguments = json.loads(value or "{}") if isinstance(value, str) else value
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise ReplyUnusable(
            f"expected a JSON object as arguments of the tool {scrub(name)}, got something else"
        )
    return arguments
