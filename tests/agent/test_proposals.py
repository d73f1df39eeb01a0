"""A model that proposes predicates: canonical spelling, refusals with reasons, rounds that survive a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.chat_models import choose
from agent.proposals import ModelProposer, proposer_of
from mecharule_ops.events import Event, LlmMessage
from mecharule_ops.predicates.proposer import OfflineProposer, ProposalContext
from mecharule_ops.store.keys import PROPOSALS
from mecharule_ops.store.run_store import RunStore

SCHEMA = {"a": int, "b": int, "op": str}


def _context() -> ProposalContext:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 300, 400), generator.integers(0, 300, 400)
    op = generator.choice(["+", "-"], 400)
    labels = (a > b) ^ (generator.random(400) < 0.1)
    return ProposalContext(
        columns={"a": a, "b": b, "op": op},
        labels=labels,
        schema=SCHEMA,
        prompt_columns=frozenset(SCHEMA),
        known={},
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
    made = proposer_of(choose(f"mock:{script}", {}), task="sums", rounds=rounds, seed=0, store=store, **more)
    assert isinstance(made, ModelProposer)
    return made


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
    refused = {one["text"] for one in kept["refused"]}
    assert {"__import__('os')", "a > 1000"} <= refused
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
    proposer = _proposer(tmp_path, store, {"fault": "mock refused the key"})
    assert proposer.propose(_context()) == offline
    assert "refused the key" in store.get(PROPOSALS)["ended"]


def test_the_prompt_shows_train_records_and_refusals_as_data(tmp_path: Path, store: RunStore) -> None:
    """The second round reads why the first was refused; nothing of the request but its texts reaches the model."""
    first = _reply("nonsense(", unless=['"nonsense("'])
    second = _reply("a * 3 > b + 101", when=['"nonsense("', "wrong: ", "right: ", "a: int, from"])
    _proposer(tmp_path, store, first, second, rounds=2).propose(_context())
    assert store.get(PROPOSALS)["rounds"] == 2


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
