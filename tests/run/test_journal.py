"""What happens is told at once and written soon: order, grouping, stages."""

from pathlib import Path

from table_engine import new_store

from mecharule_ops import events, nodes
from mecharule_ops.run.journal import BUFFERED, Journal
from mecharule_ops.store.run_store import RunStore


def asked(node: int) -> events.NodeAsked:
    return events.NodeAsked(search="cha:1:m0", node=nodes.Node(id=node, layer=0, channels=(node,)))


def on_file(store: RunStore) -> list[events.Event]:
    return [event for _, _, event in store.events()]


def test_events_are_shown_at_once_and_kept_in_order(tmp_path: Path) -> None:
    """Everything but progress is on file, in the order told."""
    shown: list[events.Event] = []
    with new_store(tmp_path / "a") as store:
        journal = Journal(store, shown.append, lambda: 0.0)
        told = [asked(0), events.StageProgress(stage="s", done=1), asked(1), events.Notice(text="n")]
        for number, event in enumerate(told):
            journal.emit(event)
            assert shown == told[: number + 1]
        assert on_file(store) == [told[0], told[2], told[3]]


def test_node_events_are_written_in_groups(tmp_path: Path) -> None:
    """Nothing of a group is on file before it is full, all of it afterwards; `flush` writes the rest."""
    with new_store(tmp_path / "a") as store:
        journal = Journal(store, lambda event: None, lambda: 0.0)
        for node in range(BUFFERED - 1):
            journal.emit(asked(node))
        assert on_file(store) == []
        journal.emit(asked(BUFFERED - 1))
        assert len(on_file(store)) == BUFFERED
        journal.emit(asked(BUFFERED))
        journal.flush()
        journal.flush()
        assert on_file(store) == [asked(node) for node in range(BUFFERED + 1)]


def test_a_stage_is_bracketed_and_timed(tmp_path: Path) -> None:
    """Started with its total, finished with its summary and the seconds between; kept for the cost table."""
    now, shown = [10.0], []
    with new_store(tmp_path / "a") as store:
        journal = Journal(store, shown.append, lambda: now[0])
        with journal.stage("attribution", 12, "pairs") as stage:
            stage.progress(3, 12)
            now[0] += 2.5
            stage.summary, stage.reused = "done", True
        finished = events.StageFinished(stage="attribution", summary="done", seconds=2.5, reused=True)
        assert shown == [
            events.StageStarted(stage="attribution", total=12, unit="pairs"),
            events.StageProgress(stage="attribution", done=3, total=12),
            finished,
        ]
        assert journal.stages == [finished]


def test_a_stage_that_counts_nothing_counts_passes(tmp_path: Path) -> None:
    """Once a second, until it tells how far it is; what is asked is answered."""
    now, shown = [0.0], []
    with new_store(tmp_path / "a") as store:
        journal = Journal(store, shown.append, lambda: now[0])
        ask = journal.counting(lambda: now[0] > 2)
        with journal.stage("controls") as stage:
            answers = []
            for now[0] in (0.5, 1.0, 1.5, 2.5):
                answers.append(ask())
            assert answers == [False, False, False, True]
            stage.progress(1, 9)
            now[0] = 5.0
            ask()
        assert [event.done for event in shown if isinstance(event, events.StageProgress)] == [2, 4, 1]
