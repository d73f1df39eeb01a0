"""A model that proposes predicates: canonical spelling, refusals with reasons, rounds that survive a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent import proposals
from agent.choice import choose
from agent.proposals import ModelProposer, power, proposer_of
from mecharule_ops.events import Event, LlmMessage
from mecharule_ops.predicates.proposer import MockProposer, OfflineProposer, ProposalContext
from mecharule_ops.predicates.table import build_table
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
    assert len(told) == 2, "a loop that ended is not asked again"


@pytest.mark.parametrize(
    "unreadable", ["a > 50 and (b", "a > 50 and", "a > 50 & b < 30", "a > 50 and nowhere < 3", ""]
)
def test_compound_predicates_are_spelt_canonically_and_an_unreadable_one_is_refused_alone(
    tmp_path: Path, store: RunStore, unreadable: str
) -> None:
    compound = {
        "(a>50) and (b<30)": "holds(a > 50 and b < 30)",
        "not(a>b or(op=='-' and b<30))": "holds(not (a > b or (op == '-' and b < 30)))",
    }
    proposer = _proposer(tmp_path, store, _reply(unreadable, *compound), rounds=1)
    assert set(compound.values()) <= set(proposer.propose(_context()))
    kept = store.get(PROPOSALS)
    assert kept["accepted"] == [*compound.values()]
    assert [one["text"] for one in kept["refused"]] == [unreadable]


def test_the_grammar_proposes_beside_it_and_a_fault_loses_nothing(tmp_path: Path, store: RunStore) -> None:
    offline = OfflineProposer().propose(_context())
    proposer = _proposer(tmp_path, store, {"fault": "key"})
    assert proposer.propose(_context()) == offline
    assert "refused the key" in store.get(PROPOSALS)["ended"]


def test_the_prompt_shows_train_records_and_refusals_as_data(tmp_path: Path, store: RunStore) -> None:
    """The second round reads why the first was refused; nothing of the request but its texts reaches the model."""
    first = _reply("nonsense(", unless=['"nonsense("'])
    second = _reply("a > b", when=['"nonsense("', "wrong: ", "right: ", "a: int, from"])
    _proposer(tmp_path, store, first, second, rounds=2).propose(_context())
    assert store.get(PROPOSALS)["accepted"] == ["a > b"] or "a > b" in OfflineProposer().propose(_context())


class Killed(BaseException):
    """What ends a process."""


def test_killed_between_ask_and_judge_it_goes_on_without_asking_again(
    tmp_path: Path, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Event] = []
    proposer = _proposer(tmp_path, store, _reply("a * 3 > b + 101"), rounds=1, emit=told.append)
    judge = ModelProposer._judge

    def broken(self: ModelProposer, state: Any, data: Any) -> Any:
        raise Killed

    monkeypatch.setattr(ModelProposer, "_judge", broken)
    with pytest.raises(Killed):
        proposer.propose(_context())
    monkeypatch.setattr(ModelProposer, "_judge", judge)
    proposer.propose(_context())
    assert len(told) == 1
    assert store.get(PROPOSALS)["rounds"] == 1


def test_a_script_of_rounds_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "rounds.json"
    path.write_text('[["a > b"]]')
    assert isinstance(proposer_of(choose(f"mock:{path}", {})), MockProposer)
    assert proposer_of(choose("none", {})) is None


def test_power_is_the_auc_on_records_held_back() -> None:
    labels = np.array([True, False] * 50)
    back = np.zeros(100, bool)
    back[60:] = True
    assert power(labels[:, None], labels, back) == 1.0
    assert power(np.zeros((100, 0), bool), labels, back) == 0.5


def test_a_table_is_built_once_a_round(
    tmp_path: Path, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a round judged is what the next one shows: one table for what is known, one to begin, one a round."""
    built: list[int] = []

    def counted(*given: Any, **more: Any) -> Any:
        built.append(1)
        return build_table(*given, **more)

    monkeypatch.setattr(proposals, "build_table", counted)
    first = _reply("a > b", "__import__('os')", unless=["'os'"])
    _proposer(tmp_path, store, first, _reply()).propose(_context())
    assert len(built) == 3
