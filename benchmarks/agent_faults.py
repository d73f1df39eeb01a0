"""What a question comes to when the provider fails: a row of `agent_bench`."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from llm_faults import FAULTS, failing
from llm_wire import CANARY

from agent.answering import conversation
from agent.answering.chat import answer
from agent.answering.referring import Topic
from agent.llm.choice import Choice
from agent.llm.retrying import Asker
from mecharule_ops.store.keys import TOPIC
from mecharule_ops.store.run_store import RunStore

QUESTIONS = ("what did the search miss?", "xyzzy what did the search miss?")
"""One that the router understands, and one that goes to the model."""


def forget(path: Path) -> None:
    """No earlier answer stands before a question."""
    with RunStore.open(path) as store:
        store.put(TOPIC, Topic().record())


def faults_row(path: Path) -> tuple[str, str, str]:
    """Faults of a provider that both questions survive with the answer that they have without a model."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    alone = [str(conversation.ask(str(path), question).data["answer"]) for question in QUESTIONS]
    survived = 0
    for name, (_, most) in FAULTS.items():
        kept = [survives(path, name, most, *one) for one in zip(QUESTIONS, alone, strict=True)]
        survived += all(kept)
        if not all(kept):
            print(f"fault not survived: {name}: {kept}", file=sys.stderr)
    what = "provider faults: one line, bounded retries, the offline answer, run kept, no key shown"
    return f"{what} ({len(FAULTS)} on the loopback)", "all", f"{survived} of {len(FAULTS)}"


def survives(path: Path, name: str, most: int, question: str, wanted: str) -> bool:
    """Whether a question to a server with this fault is answered as `wanted`, with `most` requests and one line."""
    told: list[str] = []
    forget(path)
    with failing(name) as server:
        asker = Asker(model=server.model, sleep=lambda seconds: None)
        choice = Choice(spec=server.model.name, why="chosen by --llm")
        result = answer(str(path), question, asker, choice, told.append)
        asked = len(server.requests)
    forget(path)
    shown = "".join([*told, result.text, json.dumps(result.data)])
    return (
        str(result.data["answer"]) == wanted
        and sum(line.endswith("answered without it") for line in told) <= 1
        and "\n" not in "".join(told)
        and 1 <= asked <= most
        and CANARY not in shown
    )
