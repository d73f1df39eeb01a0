"""The twenty questions' command: a recording made through its folder and replayed, and the one that is kept."""

import json
import re
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from recorded_model import RecordedModel, _of_now

from benchmarks.researchers import RECORDED, Golden, page, questions, unheld, with_model, without_model

CALLS = {"calls": [{"name": "why", "arguments": {"neuron": "m1.14"}}]}
FOLLOWS = {"calls": [{"name": "Verdicts", "arguments": {"verdicts": []}}]}


def _id(asked: str, piece: re.Match[str]) -> str:
    """The id of the first fact that holds a piece."""
    found = re.search(rf"\[(f\d+)\] (?:(?!\[f\d).)*?{re.escape(piece[1])}", asked)
    assert found is not None
    return found[1]


def _replying(folder: Path, replies: Sequence[dict[str, Any]]) -> threading.Thread:
    """A thread that lays each reply beside its request once that is there."""

    def work() -> None:
        for place, said in enumerate(replies, start=1):
            request = folder / f"{place:03}.request.json"
            while not request.exists():
                time.sleep(0.05)
            time.sleep(0.2)
            text = re.sub(r"\{(.+?)\}", partial(_id, request.read_text("utf-8")), said.get("text", ""))
            (folder / f"{place:03}.reply.json").write_text(json.dumps({**said, "text": text}))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_what_was_recorded_through_the_folder_is_replayed(tmp_path: Path) -> None:
    """A call, an answer with a lie, its repair, and a second look at it: the same score from the file alone."""
    (why,) = [one for one in questions() if one.ask == "why does m1.14 flip?"]
    lie = {"text": "m1.14 flips 63 of 64 [{Switch channel}]."}
    truth = {"text": "m1.14 breaks 14 of 64 [{Switch channel}]. Its effect is direct [{Nothing lies above}]."}
    folder, kept = tmp_path / "asked", tmp_path / "kept.json"
    thread = _replying(folder, [CALLS, lie, truth, FOLLOWS])
    golden = Golden(tmp_path)
    (told,) = with_model(golden, [why], RecordedModel(kept=kept, folder=folder, seconds=60))
    thread.join(10)
    assert (told.verdict, told.marked, told.false, told.requests) == ("right", 0, (), 4)
    assert told.cached is not None
    assert told.cached > 0.9
    assert list(with_model(golden, [why], RecordedModel(kept=kept))) == [told]
    other = [one for one in questions() if one is not why][:1]
    assert [one.verdict for one in with_model(golden, other, RecordedModel(kept=kept))] == ["not recorded"]


def test_the_kept_recording_is_replayed_and_no_question_gets_anothers_answer(tmp_path: Path) -> None:
    golden, model = Golden(tmp_path), RecordedModel(kept=RECORDED)
    asked = [one for one in questions() if one.ask in {pair["question"] for pair in model.pairs}]
    told = list(with_model(golden, asked, model))
    assert told
    assert not [
        one for one in told if one.verdict in ("wrong", "not recorded", "fault") or one.false or one.marked
    ]
    alone = list(without_model(golden, questions()))
    assert len(alone) == 20
    assert not [one for one in alone if one.verdict == "another question's answer"]
    assert "20 researchers' questions" in page(alone, told, ())


def test_a_reply_cites_the_fact_that_reads_most_alike() -> None:
    """Facts have other numbers once a tool states more of them."""
    then = [{"role": "user", "content": "[f1] m1.14 flips 12 of 64\n[f2] Nothing lies above it"}]
    now = [{"role": "user", "content": "[f1] A word\n[f2] m1.14 flips 12 of 64\n[f3] Nothing lies above"}]
    said = _of_now({"request": then, "reply": {"text": "So it is [f1, f2]."}}, {"messages": now})
    assert said["text"] == "So it is [f2, f3]."


def test_a_figure_that_no_fact_states_is_seen_by_another_reading() -> None:
    """The judge of the check is not the check."""
    facts = ["m1.14 flips 12 of 64 answers"]
    assert list(unheld("It flips 12 of 64, 19 % [f1]. Or 13 [f1].", [], facts, "")) == ["13"]
    assert list(unheld("It flips 13 of 64 [f1].", ["It flips 13 of 64 [f1]. 13 is not"], facts, "")) == []
