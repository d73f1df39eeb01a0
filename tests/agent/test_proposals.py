"""A model that proposes predicates: canonical spelling, refusals with reasons, rounds that survive a kill."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_server import choice_of, model_of, served
from pytest_httpserver import HTTPServer
from werkzeug import Response

from agent import chat_models, prose, talk
from agent.proposals import ModelProposer
from mecharule_ops.events import Event, LlmMessage
from mecharule_ops.predicates.proposer import OfflineProposer, ProposalContext
from mecharule_ops.store.keys import PROPOSALS
from mecharule_ops.store.run_store import RunStore

_NOTHING = '{"nothing": 1}'
_TEXT = {"type": "output_text", "text": _NOTHING, "annotations": []}
_MESSAGE = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [_TEXT]}
_BODIES: dict[str, dict[str, Any]] = {
    "chat": {
        "object": "chat.completion",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": _NOTHING}}
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    },
    "responses": {
        "object": "response",
        "output": [_MESSAGE],
        "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18},
    },
}
UNREADABLE = {
    wire: Response(
        json.dumps({"id": "r", "created_at": 0, "created": 0, "model": "test", **body}),
        mimetype="application/json",
    )
    for wire, body in _BODIES.items()
}
SCHEMA = {"a": int, "b": int, "op": str}


def _context() -> ProposalContext:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 300, 400), generator.integers(0, 300, 400)
    op = generator.choice(["+", "-"], 400)
    labels = (a > b) ^ (generator.random(400) < 0.1)
    return ProposalContext(
        columns={"a": a, "b": b, "op": op}, labels=labels, prompt_columns=frozenset(SCHEMA), known={}
    )


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with RunStore.create(tmp_path / "r.mecharule", {"run": "r", "settings": {}}) as made:
        yield made


def _proposer(
    folder: Path, store: RunStore, *replies: dict[str, Any], rounds: int = 3, **more: Any
) -> ModelProposer:
    script = folder / "script.json"
    script.write_text(json.dumps({"replies": list(replies)}))
    choice = chat_models.choose(f"mock:{script}", {})
    model = chat_models.chat_model(choice)
    return ModelProposer(model=model, choice=choice, task="sums", rounds=rounds, seed=0, store=store, **more)


def _reply(*texts: str, **when: Any) -> dict[str, Any]:
    return {**when, "json": {"predicates": list(texts)}}


def test_what_a_model_proposes_is_spelt_canonically_judged_and_kept(tmp_path: Path, store: RunStore) -> None:
    told: list[Event] = []
    first = _reply("a>b", "a   >   b", "__import__('os')", "a > 1000", unless=["'os'"])
    proposer = _proposer(tmp_path, store, first, _reply(), emit=told.append)
    texts = proposer.propose(_context())
    kept = store.get(PROPOSALS)
    assert "a > b" in texts
    assert "a>b" not in texts
    assert {"__import__('os')", "a > 1000"} <= {one["text"] for one in kept["refused"]}
    assert all(one["reason"] for one in kept["refused"])
    assert kept["ended"] == "the model had nothing new to propose"
    assert [event.ok for event in told if isinstance(event, LlmMessage)] == [True, True]
    assert proposer.propose(_context()) == texts
    assert len(told) == 3, "a loop that ended is not asked again"


@pytest.mark.parametrize(
    "unreadable", ["a > 50 and (b", "a > 50 and", "a > 50 & b < 30", "a > 50 and nowhere < 3", ""]
)
def test_compound_predicates_are_spelt_canonically_and_an_unreadable_one_is_refused_alone(
    tmp_path: Path, store: RunStore, unreadable: str
) -> None:
    compound = {
        "(a>50) and (b<30)": "holds(a > 50 and b < 30)",
        "not(a>100 or(op=='-' and b<80))": "holds(not (a > 100 or (op == '-' and b < 80)))",
    }
    proposer = _proposer(tmp_path, store, _reply(unreadable, *compound), rounds=1)
    assert set(compound.values()) <= set(proposer.propose(_context()))
    kept = store.get(PROPOSALS)
    assert kept["accepted"] == [*compound.values()]
    assert [one["text"] for one in kept["refused"]] == [unreadable]


def test_the_grammar_proposes_beside_it_and_a_fault_loses_nothing(tmp_path: Path, store: RunStore) -> None:
    offline = OfflineProposer().propose(_context())
    assert _proposer(tmp_path, store, {"fault": "mock refused the key"}).propose(_context()) == offline
    assert "refused the key" in store.get(PROPOSALS)["ended"]


def test_the_prompt_shows_train_records_and_refusals_as_data(tmp_path: Path, store: RunStore) -> None:
    """The second round reads why the first was refused; nothing of the request but its texts reaches the model."""
    first = _reply("nonsense(", unless=['"nonsense("'])
    second = _reply("a * 3 > b + 101", when=['"nonsense("', "wrong: ", "right: ", "a: int, from"])
    _proposer(tmp_path, store, first, second, rounds=2).propose(_context())
    assert store.get(PROPOSALS)["rounds"] == 2


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_reply_that_the_sdk_cannot_read_is_billed(
    httpserver: HTTPServer, wire: str, tmp_path: Path, store: RunStore
) -> None:
    """What the provider says that it took is told, kept and priced; in a second look too."""
    served(httpserver, wire, UNREADABLE[wire])
    told: list[Event] = []
    proposer = ModelProposer(
        model=model_of(httpserver, wire),
        choice=choice_of(httpserver, wire, price=(1.0, 1.0)),
        task="sums",
        rounds=2,
        seed=0,
        store=store,
        emit=told.append,
    )
    assert proposer.propose(_context()) == OfflineProposer().propose(_context())
    kept = store.get(PROPOSALS)
    assert (kept["input_tokens"], kept["output_tokens"], kept["dollars"]) == (11, 7, 18e-6)
    (message,) = [one for one in told if isinstance(one, LlmMessage)]
    assert (message.ok, message.input_tokens, message.output_tokens) == (False, 11, 7)
    said = prose.Checked(text="It flips.", cites=("f1",))
    facts = {"f1": prose.Cited(id="f1", sentence="It flips.")}
    looked, used = asyncio.run(talk.second_look(proposer.model, [said], facts))
    assert (looked, used) == ((said,), {"input_tokens": 11, "output_tokens": 7})


@pytest.mark.parametrize(
    "said", ["<think>a list, {or so}?</think>\n{}", "```json\n{}\n```", "{}<|im_end|>\n<|im_start|>user"]
)
def test_json_is_read_behind_what_servers_write_around_it(
    httpserver: HTTPServer, said: str, tmp_path: Path, store: RunStore
) -> None:
    content = json.dumps(said.replace("{}", '{"predicates": ["a > 150"]}'))
    body = UNREADABLE["chat"].get_data(as_text=True).replace(json.dumps(_NOTHING), content)
    served(httpserver, "chat", Response(body, mimetype="application/json"))
    replace(_proposer(tmp_path, store, rounds=1), model=model_of(httpserver, "chat")).propose(_context())
    assert store.get(PROPOSALS)["ended"] == "the rounds are spent"


class Killed(BaseException):
    """What ends a process."""


def test_killed_in_its_second_round_it_goes_on_without_asking_for_the_first_again(
    tmp_path: Path, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Event] = []
    first = _reply("a * 3 > b + 101", "nonsense(", unless=['"nonsense("'])
    proposer = _proposer(tmp_path, store, first, _reply("b * 3 > a + 7"), rounds=2, emit=told.append)
    request = ModelProposer._request

    def broken(self: ModelProposer, state: Any, *given: Any) -> Any:
        if state["rounds"]:
            raise Killed
        return request(self, state, *given)

    monkeypatch.setattr(ModelProposer, "_request", broken)
    with pytest.raises(Killed):
        proposer.propose(_context())
    monkeypatch.setattr(ModelProposer, "_request", request)
    proposer.propose(_context())
    assert sum(isinstance(event, LlmMessage) for event in told) == 2
    assert store.get(PROPOSALS)["rounds"] == 2
