"""A writer that is killed at any moment loses nothing that it was told is stored."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mecharule_ops import errors, events
from mecharule_ops.store.run_store import RunStore

_WRITER = """
import sys
from pathlib import Path
import numpy as np
from mecharule_ops.events import Notice
from mecharule_ops.store.outcome_blocks import StoredAnswers
from mecharule_ops.store.run_store import RunStore
store = RunStore.open(Path(sys.argv[1]))
turn = store.latest(Notice)
turn = int(turn.text) + 1 if turn else 0
while True:
    store.put_outcomes("c", [StoredAnswers(group=f"{turn}.{k}", example_ids=np.arange(16),
        labels=np.arange(16) % 3 == turn % 3, margins=np.full(16, float(turn))) for k in range(5)])
    store.append([Notice(text=str(turn)), Notice(text=str(turn))])
    sys.stdout.write(f"{turn}\\n")
    sys.stdout.flush()
    turn += 1
"""


def _acknowledged_before_kill(path: Path, chance: random.Random) -> int:
    """The last turn that a writer reported before SIGKILL."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for _ in range(chance.randrange(1, 40)):
        last = writer.stdout.readline()
    time.sleep(chance.random() * 0.01)
    writer.kill()
    rest = [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    writer.stdout.close()
    writer.wait()
    return int((rest or [last])[-1])


def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """After each of many kills at random moments all that was reported is there and the file is whole."""
    path, chance = tmp_path / "run.mecharule", random.Random(7)
    RunStore.create(path, {}).close()
    for _ in range(6):
        turn = _acknowledged_before_kill(path, chance)
        with RunStore.open(path) as store:
            texts = [event.text for _, _, event in store.events() if isinstance(event, events.Notice)]
            assert texts == [str(i // 2) for i in range(len(texts))]
            assert len(texts) % 2 == 0
            assert len(texts) >= 2 * (turn + 1)
            for known_turn in (0, turn // 2, turn):
                known = store.known_outcomes("c", f"{known_turn}.4", np.arange(16))
                assert known.known.all()
                assert (known.labels == (np.arange(16) % 3 == known_turn % 3)).all()
                assert (known.margins == known_turn).all()


def test_a_reader_sees_a_killed_writers_commits(tmp_path: Path) -> None:
    """A read-only open recovers the log that a killed writer left behind."""
    path = tmp_path / "run.mecharule"
    RunStore.create(path, {}).close()
    turn = _acknowledged_before_kill(path, random.Random(1))
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    with RunStore.open(path, read_only=True) as store:
        assert len(list(store.events())) >= 2 * (turn + 1)


def test_a_second_process_is_refused_and_told_who_holds_the_run(tmp_path: Path) -> None:
    """While one process writes, another gets one line with its pid, and readers are let in."""
    path = tmp_path / "run.mecharule"
    RunStore.create(path, {}).close()
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        with pytest.raises(errors.StoreError, match=f"process {writer.pid} holds it") as caught:
            RunStore.open(path)
        assert "\n" not in str(caught.value)
        with RunStore.open(path, read_only=True) as reader:
            assert next(reader.events())[2] == events.Notice(text="0")
    finally:
        writer.kill()
        writer.stdout.close()
        writer.wait()
    RunStore.open(path).close()
