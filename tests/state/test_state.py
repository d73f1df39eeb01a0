"""The fold over events: equal to a naive one, immutable, and the same live and replayed."""

import random
from pathlib import Path
from typing import Any

import pytest
from events_told import folded, run_started
from tui_story import found
from tui_story import tested as node_tested

from mecharule_ops import events as kinds
from mecharule_ops.nodes import Node, Verdict
from mecharule_ops.state import run_state, search_view
from mecharule_ops.store.run_store import RunStore

_VERDICTS = list(Verdict)


def _asked(search: str, node: int, size: int = 4) -> kinds.NodeAsked:
    return kinds.NodeAsked(search=search, node=Node(id=node, layer=4, channels=tuple(range(size))))


def _stream(seed: int, length: int) -> list[kinds.Event]:
    """A random story: searches start, restart and end, nodes come again, everything else mixes in."""
    chance = random.Random(seed)
    told: list[kinds.Event] = [run_started()]
    known: dict[str, list[int]] = {}
    for step in range(length):
        search = f"cha:1:m{chance.randrange(4)}"
        if search not in known or chance.random() < 0.01:
            known[search] = []
            told.append(kinds.SearchStarted(search=search, units=chance.randrange(50, 90)))
        told += [run_started()] * (chance.random() < 0.02)
        kind = chance.randrange(10)
        node = chance.randrange(60) if kind < 6 else 0
        number = chance.randrange(5)
        if kind < 3:
            told.append(_asked(search, node, chance.randrange(1, 9)))
        elif kind < 6:
            parent = chance.choice([None, *known[search]])
            parent = None if parent == node else parent
            channels, verdict = range(chance.randrange(1, 9)), chance.choice(_VERDICTS)
            told.append(node_tested(search, node, parent, channels, (step % 60, 1), verdict))
            known[search] = [*known[search], node]
        elif kind == 6:
            told.append(found(search, f"m4.{number}", 1, (step % 60, 1)))
        elif kind < 9:
            told.append(kinds.Notice(text=str(step)))
        else:
            told.append(_other(number, step, search))
    return told


def _other(number: int, step: int, search: str) -> kinds.Event:
    return [
        kinds.StageStarted(stage=f"s{step % 3}", total=None),
        kinds.StageProgress(stage=f"s{step % 3}", done=step, total=None if step % 2 else 1000),
        kinds.StageFinished(stage=f"s{step % 3}", summary=str(step), seconds=1.0),
        kinds.CostChanged(group_evaluations=step, example_forwards=2, reused=0),
        kinds.SearchFinished(search=search, status="done", queries=step, example_forwards=1, localized=0),
    ][number]


class _Naive:
    """The same fold on plain mutable dictionaries, every count taken by looking at all nodes."""

    def __init__(self) -> None:
        self.searches: dict[str, dict[str, Any]] = {}
        self.stages: dict[str, kinds.Event] = {}
        self.last: dict[type, kinds.Event] = {}
        self.tests, self.before = 0, 0

    def tell(self, event: kinds.Event) -> None:
        self.last[type(event)] = event
        match event:
            case kinds.RunStarted():
                self.before = self.tests
            case kinds.CostChanged():
                self.tests = self.before + event.group_evaluations
            case kinds.SearchStarted():
                self.searches[event.search] = {"asked": {}, "tested": {}}
            case kinds.NodeAsked():
                self.searches[event.search]["asked"][event.node.id] = event.node
            case kinds.NodeTested():
                self.searches[event.search]["tested"][event.node.id] = event.node
            case kinds.SearchFinished():
                self.searches[event.search]["end"] = event
            case kinds.StageFinished():
                self.stages[event.stage] = event


def _assert_same(state: run_state.RunState, naive: _Naive) -> None:
    assert list(state.searches) == list(naive.searches)
    for name, view in state.searches.items():
        search = naive.searches[name]
        assert dict(view.nodes) == search["asked"] | search["tested"]
        assert view.result == search.get("end")
        assert view.tested == len(search["tested"])
    assert dict(state.stages) == naive.stages
    assert (state.cost.group_evaluations if state.cost else 0) == naive.tests


@pytest.mark.parametrize("seed", range(6))
def test_the_fold_equals_a_naive_one(seed: int) -> None:
    """On random stories every part of the state is what plain dictionaries give, at several moments."""
    state, naive = run_state.RunState(), _Naive()
    for number, event in enumerate(_stream(seed, 400)):
        state = state.apply(event)
        naive.tell(event)
        if number % 100 == 99:
            _assert_same(state, naive)
    _assert_same(state, naive)


def test_old_snapshots_never_change() -> None:
    """A snapshot kept from any moment equals a fresh fold up to that moment, after all that followed."""
    stream = _stream(11, 400)
    snapshots, state = [], run_state.RunState()
    for event in stream:
        snapshots.append(state)
        state = state.apply(event)
    for moment in range(0, len(stream), 71):
        assert snapshots[moment] == folded(stream[:moment])


def test_a_replay_from_the_store_equals_the_live_run(tmp_path: Path) -> None:
    """What the run file gives back folds to the state that was on the screen."""
    stream = _stream(5, 120)
    with RunStore.create(tmp_path / "r.mecharule", {}) as store:
        store.append(stream)
        assert folded([event for _, _, event in store.events()]) == folded(stream)


def test_a_resumed_search_replaces_what_it_told_before() -> None:
    """Telling the same story twice gives the same tree and counts as once."""
    search, decided = "cha:1:m4", node_tested("cha:1:m4", 0, None, range(4), (28, 3), "kept")
    begun = kinds.SearchStarted(search=search, units=100)
    story = [begun, _asked(search, 0), decided, found(search, "m4.0", 1, (28, 3))]
    assert folded([run_started(), *story, run_started(), *story]) == folded([run_started(), *story])


def test_a_node_of_a_search_never_started_is_a_broken_invariant() -> None:
    """It raises and, states being immutable, changes nothing."""
    for event in (
        _asked("s", 0),
        kinds.SearchFinished(search="s", status="", queries=0, example_forwards=0, localized=0),
    ):
        with pytest.raises(AssertionError, match="never started"):
            run_state.RunState().apply(event)


def test_events_that_are_not_shown_leave_the_state_as_it_is() -> None:
    """An event of another kind gives the same object, so a display need not redraw."""
    state = folded([run_started()])
    assert state.apply(kinds.Event()) is state


def test_the_integer_map_equals_a_dictionary() -> None:
    """Random keys, small and huge, in random order: same items in order of key, older versions intact."""
    chance = random.Random(2)
    naive: dict[int, int] = {}
    versions: list[tuple[search_view.IntMap[int], dict[int, int]]] = []
    grown: search_view.IntMap[int] = search_view.IntMap()
    for _ in range(800):
        key = chance.choice([chance.randrange(50), chance.randrange(5000), chance.randrange(2**40)])
        grown, naive = grown.set(key, key ^ 5), {**naive, key: key ^ 5}
        versions.append((grown, naive))
    for mapped, plain in versions[::40]:
        assert list(mapped.items()) == sorted(plain.items())
        assert len(mapped) == len(plain)
    assert -1 not in grown
    assert "1" not in grown
    with pytest.raises(KeyError):
        grown[2**60]
