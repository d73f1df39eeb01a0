"""The tools that a language model may call about one run, and what it may cite afterwards.

The run is filled in here, and so is nothing that only a person may decide: a model cannot accept a price, write
a file, fetch a model or look at another folder.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from agent.answering.sources import Evidence
from agent.llm.protocol import ToolSpec
from mecharule_ops.errors import UsageError
from tools._opening import findings_of, opened
from tools.registry import TOOLS, Tell, call
from tools.result import ToolResult

OFFERED = (
    *("why", "why-not", "flip", "ablate", "covers", "shared", "missed"),
    *("neurons", "rules", "tree", "evidence", "compare", "verify", "hypotheses"),
    *("score", "extract", "slices", "candidates", "localise", "anchor", "control", "path"),
)
"""Names of the tools offered, as in the registry."""
_RUN = {"compare": "first"}
"""The argument that names the run, where it is not `run`."""
_FOR_PEOPLE = frozenset({"yes", "csv", "md", "tex", "model", "all", "show_text", "svg"})


class RunToolbox:
    """The tools of one run. `path` is its file."""

    def __init__(self, path: str, tell: Tell = lambda line: None) -> None:
        self._path = path
        self._tell = tell
        self._specs = tuple(_spec(name) for name in OFFERED)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """As the model sees them."""
        return self._specs

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        """A tool's result. Raises `UsageError` on an argument that is not offered, and what the tool raises."""
        spec = next(spec for spec in self._specs if spec.name == name)
        allowed: Any = spec.schema["properties"]
        extra = sorted(set(arguments) - set(allowed))
        if extra:
            raise UsageError(
                f"expected arguments of {name} among {', '.join(allowed)}, got {', '.join(extra)}"
            )
        return call(name, {**arguments, _run_argument(name): self._path}, self._tell)

    def evidence(self) -> Evidence:
        """Certificates and findings of the run as they are now."""
        evidence = Evidence()
        with opened(self._path) as run:
            evidence.add_certificates(run.store.certificates())
            evidence.add_findings(findings_of(run))
        return evidence


def _spec(name: str) -> ToolSpec:
    tool = TOOLS[name]
    schema: dict[str, Any] = copy.deepcopy(tool.arguments.model_json_schema())
    hidden = _FOR_PEOPLE | {_run_argument(name)}
    schema["properties"] = {key: value for key, value in schema["properties"].items() if key not in hidden}
    schema["required"] = [key for key in schema.get("required", []) if key not in hidden]
    return ToolSpec(name=name, description=tool.help, schema=schema)


def _run_argument(name: str) -> str:
    return _RUN.get(name, "run")
