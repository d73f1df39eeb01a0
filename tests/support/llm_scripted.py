"""A scripted model made from Python, which remembers every prompt it was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.llm.mock import MockModel
from agent.llm.protocol import OnText, Reply, Request, unheard
from agent.llm.retrying import Asker


class Recorder:
    """A mock model whose prompts can be read afterwards."""

    def __init__(self, folder: Path, *replies: dict[str, Any]) -> None:
        path = folder / "script.json"
        path.write_text(json.dumps({"replies": list(replies)}))
        self._model = MockModel(path)
        self.name = "mock:script"
        self.sent: list[str] = []
        self.requests: list[Request] = []

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        self.sent.append(request.transcript())
        self.requests.append(request)
        return self._model.complete(request, on_text)


def asker(model: Recorder, **limits: Any) -> Asker:
    """Patience without waiting."""
    return Asker(model=model, sleep=lambda seconds: None, **limits)
