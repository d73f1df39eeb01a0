"""The whole story on the bundled model in under a minute: a search, a rule, a question, its certificate verified."""

from collections.abc import Callable

from agent import chat, consent
from agent.verbs.runner import Show, config_from, start
from mecharule_ops.events import Notice
from tools.registry import ToolResult, call

QUESTION = "why does the strongest neuron flip?"
_FEW = {"controls_for": 4, "anchor_for": 6, "accounts_for": 1, "proposals": 1}
SETTINGS = {"regimes": [1], "records": 600, "slice_size": 48, **_FEW}
"""Small enough for a minute on two cores; every other setting is the default."""


def demo(show: Show, should_stop: Callable[[], bool] = lambda: False) -> ToolResult:
    """Report, answer and verification, one after the other; the exit code is the worst of the three.

    Nothing is downloaded and no key is read. The run stays in the runs directory.
    """

    def tell(line: str) -> None:
        show(Notice(text=line))

    config = config_from(task="arithmetic", model="arith-tiny", settings=tuple(SETTINGS.items()))
    report = start(config, show, should_stop)
    run = str(report.data["findings"]["run"])  # type: ignore[index]
    tell(f"asking: {QUESTION}")
    answer = chat.ask(run, QUESTION, consent.Listener(tell=tell), llm="none")
    verification = call("verify", {"what": "last", "run": run}, tell)
    asked = f"$ mecharule ask {run} {QUESTION!r}\n{answer.text}"
    return ToolResult(
        data={"report": report.data, "answer": answer.data, "verification": verification.as_json},
        text="\n\n".join([report.text.rstrip(), asked, f"$ mecharule verify last\n{verification.text}"]),
        exit_code=max(part.exit_code for part in (report, answer, verification)),
    )
