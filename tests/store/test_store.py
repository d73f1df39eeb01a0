"""The run file: what is put in comes out, and each way it can fail has one clear line."""

import dataclasses
import math
import os
import random
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from events_told import run_started

from mecharule_ops import codec, events, nodes, plain_text
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.store import keys, run_file, run_log
from mecharule_ops.store.outcome_blocks import StoredAnswers
from mecharule_ops.store.run_directory import find_run, list_runs, new_run_id, run_path, runs_directory
from mecharule_ops.store.run_store import RunStore, pack_artefact, unpack

_SAMPLES: dict[Any, list[Any]] = {
    str: ["", "op in [/,*] \x1b[31m\x00 — ✓ \ud800", "nan"],
    int: [0, -3, 2**70],
    float: [0.1, 1e-300, math.inf, -math.inf, 3.0],
    bool: [True, False],
    type(None): [None],
    nodes.FlipCount: [nodes.FlipCount(flips=0, n=0), nodes.FlipCount(flips=3, n=2**70)],
    nodes.Verdict: list(nodes.Verdict),
}


def _sample(hint: Any, chance: random.Random) -> Any:
    if hint in _SAMPLES:
        return chance.choice(_SAMPLES[hint])
    if get_origin(hint) is tuple:
        return tuple(_sample(get_args(hint)[0], chance) for _ in range(2))
    if dataclasses.is_dataclass(hint):
        return _random_event(hint, chance)  # type: ignore[arg-type]
    return _sample(chance.choice(get_args(hint)), chance)


def _random_event(cls: type[events.Event], chance: random.Random) -> events.Event:
    return cls(**{name: _sample(hint, chance) for name, hint in get_type_hints(cls).items()})


@pytest.fixture
def store(tmp_path: Path):
    ticks = iter(range(1, 10**6))
    with RunStore.create(tmp_path / "a.mecharule", {"tau": 0.2}, clock=lambda: float(next(ticks))) as made:
        yield made


@pytest.mark.parametrize("kind", sorted(run_log.EVENT_CLASSES))
def test_every_event_class_round_trips_exactly(kind: str) -> None:
    """Text, huge integers, infinities, lone surrogates and None come back equal and of the same type."""
    chance = random.Random(kind)
    for _ in range(8):
        event = _random_event(run_log.EVENT_CLASSES[kind], chance)
        again = run_log.event_from_json(run_log.event_to_json(event))
        assert again == event
        assert type(again) is type(event)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"notice","level":"info","text":"a","extra":1}',
        '{"kind":"notice","level":"info"}',
        '{"kind":"notice","level":1,"text":"a"}',
        '{"kind":"unheard_of"}',
        '{"text":"a"}',
        "[1]",
        "{",
    ],
)
def test_an_event_with_anything_unexpected_is_refused(text: str) -> None:
    """Unknown and missing fields, wrong types, unknown kinds and broken JSON are one named error."""
    with pytest.raises(UsageError):
        run_log.event_from_json(text)


def test_a_field_of_the_wrong_type_is_named_on_writing() -> None:
    """The message names class and field, so that the caller can find it."""
    wrong: Any = events.SearchStarted(search="s", units=3)
    object.__setattr__(wrong, "units", "three")
    with pytest.raises(UsageError, match=r"SearchStarted\.units: expected int, got 'three'"):
        run_log.event_to_json(wrong)
    assert codec.decode(events.Notice, {"text": "t"}) == events.Notice(text="t")


def test_events_come_back_in_order_with_number_and_time(store: RunStore) -> None:
    """Numbers rise by one, the time is the injected clock's, `after` skips, a page border loses nothing."""
    first = [events.Notice(text=str(i)) for i in range(1010)]
    for added in (first, [], [run_started()]):
        store.append(added)
    rows = list(store.events())
    assert [seq for seq, _, _ in rows] == list(range(1, 1012))
    assert [event for _, _, event in rows] == [*first, run_started()]
    assert rows[0][1] == 2.0
    assert [event for _, _, event in store.events(after=1009)] == [first[-1], run_started()]
    assert store.latest(events.Notice) == first[-1]
    assert store.latest(events.RunFinished) is None


def test_settings_and_artefacts_survive_reopening(store: RunStore) -> None:
    """Configuration, JSON, one array and several arrays are equal after a close, types included."""
    arrays = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.array(["x", "yé"])}
    store.put(keys.Artefact("one"), np.array([np.nan, -0.0, 1.5], dtype=np.float32))
    store.put(keys.Artefact("many"), arrays)
    store.put(keys.Artefact("json"), {"rules": ["op == '-'", None, 2]})
    store.close()
    with RunStore.open(store.path) as again:
        assert again.config == {"tau": 0.2}
        assert again.created == 1.0
        one: Any = again.get(keys.Artefact("one"))
        many: Any = again.get(keys.Artefact("many"))
        assert one.tobytes() == np.array([np.nan, -0.0, 1.5], dtype=np.float32).tobytes()
        assert all(
            (many[name] == arrays[name]).all() and many[name].dtype == arrays[name].dtype for name in arrays
        )
        assert again.get(keys.Artefact("json")) == {"rules": ["op == '-'", None, 2]}
        assert again.has("json")
        assert not again.has("absent")
        with pytest.raises(StoreError, match="absent"):
            again.get(keys.Artefact("absent"))


def test_equal_artefacts_have_equal_hashes_and_a_changed_one_is_refused() -> None:
    """The hash is of the content: type, shape and values; a byte that changed is found."""
    form, sha256, packed = pack_artefact(np.arange(4))
    assert sha256 == pack_artefact(np.arange(4))[1]
    others: list[object] = [np.arange(4).reshape(2, 2), np.arange(4, dtype=np.int32)]
    others += [np.arange(1, 5), {"array": np.arange(5)}]
    assert sha256 not in {pack_artefact(other)[1] for other in others}
    for place in range(len(packed)):
        body = bytearray(packed)
        body[place] ^= 1
        with pytest.raises(StoreError, match="damaged"):
            unpack(form, sha256, bytes(body))
    with pytest.raises(StoreError, match="damaged"):
        unpack("json", pack_artefact([1])[1], b"[2]")
    for refused in ({1, 2}, math.nan):
        with pytest.raises(UsageError):
            pack_artefact(refused)


def test_outcomes_match_a_dictionary_under_random_partial_answers(store: RunStore) -> None:
    """Overlapping, reordered, repeated blocks read back as a plain dictionary that was written last-wins."""
    generator = np.random.default_rng(3)
    naive: dict[tuple[str, str, int], tuple[bool, float]] = {}
    for turn in range(100):
        context, group = f"c{turn % 2}", "é" * int(generator.integers(3))
        ids = generator.permutation(30)[: generator.integers(0, 12)]
        labels, margins = generator.random(len(ids)) < 0.5, generator.random(len(ids)).astype(np.float32)
        store.put_outcomes(
            context, [StoredAnswers(group=group, example_ids=ids, labels=labels, margins=margins)]
        )
        naive |= {
            (context, group, int(i)): (bool(b), float(m))
            for i, b, m in zip(ids, labels, margins, strict=True)
        }
        asked = generator.permutation(40)[:20]
        known = store.known_outcomes(context, group, asked)
        expected = [naive.get((context, group, int(i))) for i in asked]
        assert [bool(k) for k in known.known] == [e is not None for e in expected]
        seen = zip(known.labels[known.known], known.margins[known.known], strict=True)
        assert [(bool(b), float(m)) for b, m in seen] == [e for e in expected if e is not None]
    assert len(naive) > 100


def test_a_transaction_that_an_interrupt_left_open_is_undone(store: RunStore) -> None:
    """As ^C between its beginning and its first write does; what comes after is written, and nothing of it."""
    store._connection.execute("BEGIN IMMEDIATE")
    store._connection.execute("DELETE FROM setting")
    before = dict(store.config)
    store.put(keys.Artefact("after"), "written")
    assert store.get(keys.Artefact("after")) == "written"
    with RunStore.open(store.path, read_only=True) as again:
        assert dict(again.config) == before


def test_a_failed_batch_of_outcomes_leaves_nothing(store: RunStore) -> None:
    """Many groups are stored together or not at all, and the store works on afterwards."""
    good = StoredAnswers(group="g", example_ids=[1, 2], labels=np.array([True, False]), margins=np.zeros(2))
    bad = StoredAnswers(group="h", example_ids=[2**63], labels=np.array([True]), margins=np.zeros(1))
    with pytest.raises(OverflowError):
        store.put_outcomes("c", [good, bad])
    assert not store.known_outcomes("c", "g", [1, 2]).known.any()
    store.put_outcomes("c", [good])
    assert store.known_outcomes("c", "g", [2, 9, 1]).labels.tolist() == [False, False, True]


def test_changed_bytes_of_events_and_outcomes_are_found(store: RunStore) -> None:
    """SQLite accepts any blob; a label or a number changed behind its back is still refused."""
    store.append([events.Notice(text="28/64")])
    outcomes = StoredAnswers(
        group="g", example_ids=[1, 2], labels=np.array([True, False]), margins=np.zeros(2)
    )
    store.put_outcomes("c", [outcomes])
    assert list(store.events())
    store._connection.execute("UPDATE event SET body = replace(body, '28', '29')")
    store._connection.execute("UPDATE outcome SET labels = x'C0'")
    with pytest.raises(StoreError, match=r"event 1 .*damaged"):
        list(store.events())
    with pytest.raises(StoreError, match="damaged"):
        store.known_outcomes("c", "g", [1])


def test_a_full_disk_is_a_clear_error_and_loses_nothing(store: RunStore) -> None:
    """The batch that did not fit is undone, what was there before stays, and with room it goes on."""
    store.append([events.Notice(text="before")])
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match="disk is full"):
        store.append([events.Notice(text="x" * 1000) for _ in range(100)])
    with pytest.raises(StoreError, match="disk is full"):
        store.put(keys.Artefact("big"), np.random.default_rng(0).random(10_000))
    assert [event for _, _, event in store.events()] == [events.Notice(text="before")]
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.append([events.Notice(text="after")])
    assert len(list(store.events())) == 2


@pytest.mark.parametrize("part", ["", ".lock"])
def test_a_run_that_is_taken_away_from_its_writer_is_no_longer_written(store: RunStore, part: str) -> None:
    """Shown to fail: it went on in the file that nobody could open any more, or beside a second writer."""
    store.append([events.Notice(text="before")])
    gone = store.path.with_name(store.path.name + part)
    gone.unlink()
    with pytest.raises(StoreError, match="moved, removed or replaced"):
        store.append([events.Notice(text="after")])
    gone.touch()
    with pytest.raises(StoreError, match="moved, removed or replaced"):
        store.append([events.Notice(text="beside another")])


def test_a_run_in_a_folder_for_reading_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is written beside it, as SQLite does elsewhere; where it was left open its log is read."""
    _filled(path := tmp_path / "a.mecharule")
    path.with_name(f"{path.name}.lock").unlink()
    monkeypatch.setattr(os, "statvfs", lambda asked: SimpleNamespace(f_flag=os.ST_RDONLY))
    with RunStore.open(path, read_only=True) as store:
        assert len(list(store.events())) == 150
        assert [*tmp_path.iterdir()] == [path]
    with RunStore.open(path) as writer:
        writer.append([events.Notice(text="in the log")])
        with RunStore.open(path, read_only=True) as store:
            assert len(list(store.events())) == 151


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room the old one stays alone; a run is never written over."""
    page = plain_text.write_file(tmp_path / "page.html", "old")
    with pytest.raises(UsageError, match="is a run's"):
        plain_text.write_file(tmp_path / "a.mecharule", "new")
    monkeypatch.setattr(Path, "replace", lambda *asked: (tmp_path / "none").stat())
    with pytest.raises(StoreError, match="to write"):
        plain_text.write_file(page, "new")
    assert [(page.read_text(), *tmp_path.iterdir())] == [("old", page)]
    monkeypatch.undo()
    page.chmod(0o600)
    link, run = tmp_path / "link.html", tmp_path / "a.mecharule"
    link.symlink_to(run)
    with pytest.raises(UsageError, match="is a run's"):
        plain_text.write_file(link, "new")
    assert (plain_text.write_file(page, "new").read_text(), page.stat().st_mode & 0o777) == ("new", 0o600)


def _filled(path: Path) -> None:
    with RunStore.create(path, {}) as store:
        store.append([events.Notice(text=str(i) * 50) for i in range(150)])
        store.put(keys.Artefact("a"), np.arange(5000))


def test_damaged_and_foreign_files_are_one_line_errors(tmp_path: Path) -> None:
    """Empty, random, truncated, foreign and future files are refused by one sentence, however opened."""
    whole = tmp_path / "whole.mecharule"
    _filled(whole)
    content = whole.read_bytes()
    cases = {
        "empty": b"",
        "random": os.urandom(5000),
        "short": content[:60],
        "cut": content[: len(content) // 2],
    }
    for name, body in cases.items():
        (tmp_path / name).write_bytes(body)
    for name, pragma in {"foreign": "application_id = 1", "future": "user_version = 99"}.items():
        (tmp_path / name).write_bytes(content)
        connection = sqlite3.connect(tmp_path / name)
        connection.execute(f"PRAGMA {pragma}")
        connection.close()
    for name in [*cases, "foreign", "future", "missing"]:
        for read_only in (False, True):
            with pytest.raises(StoreError) as caught:
                RunStore.open(tmp_path / name, read_only=read_only)
            assert "\n" not in str(caught.value)
            assert name in str(caught.value)
            assert ("format 99; make the run again" in str(caught.value)) == (name == "future")
    assert not (tmp_path / "missing").exists()
    assert not (tmp_path / "missing.lock").exists()


def test_one_writer_many_readers_in_one_process(store: RunStore) -> None:
    """A second writer is refused with the holder's pid, readers see new commits and cannot write."""
    with pytest.raises(StoreError, match=f"process {os.getpid()} holds it"):
        RunStore.open(store.path)
    with pytest.raises(StoreError, match="holds it"):
        RunStore.create(store.path, {})
    with RunStore.open(store.path, read_only=True) as reader:
        assert run_file.is_held(store.path)
        store.append([events.Notice(text="new")])
        assert [event for _, _, event in reader.events()] == [events.Notice(text="new")]
        with pytest.raises(StoreError, match="reading only"):
            reader.append([events.Notice(text="no")])
    store.close()
    store.close()
    assert not run_file.is_held(store.path)
    with pytest.raises(StoreError, match="exists"):
        RunStore.create(store.path, {})
    with pytest.raises(StoreError, match="closed"):
        store.append([events.Notice(text="late")])


def test_run_ids_are_new_and_grow_when_short_ones_are_taken(tmp_path: Path) -> None:
    """An id in use is never given again; when every try of a length is taken, a longer one comes."""
    run_path("0000", tmp_path).touch()
    assert new_run_id(tmp_path, lambda size: "0" * 2 * size) == "000000"
    tokens = iter(["0000", "0c1f"])
    assert new_run_id(tmp_path, lambda size: next(tokens)) == "0c1f"


def test_a_run_is_found_by_id_prefix_path_and_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unique prefixes work, ambiguous and unknown ones are refused with what there is."""
    for age, run in enumerate(["0c1f", "0c2a", "ffff"]):
        RunStore.create(run_path(run, tmp_path), {}).close()
        os.utime(run_path(run, tmp_path), (1000 + age, 1000 + age))
    assert find_run("last", tmp_path) == run_path("ffff", tmp_path)
    assert find_run("0c1f", tmp_path) == find_run("0c1", tmp_path) == run_path("0c1f", tmp_path)
    assert find_run(str(run_path("0c2a", tmp_path)), tmp_path) == run_path("0c2a", tmp_path)
    for wrong in ("0c", "e", "", "../x"):
        with pytest.raises(UsageError, match="0c1f"):
            find_run(wrong, tmp_path)
    with pytest.raises(UsageError, match="got '0c'; several runs begin so: 0c2a, 0c1f; write more of one"):
        find_run("0c", tmp_path)
    with pytest.raises(UsageError, match=r"no run lies in .* yet; `mecharule demo`"):
        find_run("last", tmp_path / "nowhere")
    monkeypatch.setenv("MECHARULE_RUNS", str(run_path("ffff", tmp_path)))
    with pytest.raises(UsageError, match=r"got the file .*ffff.mecharule; name its folder"):
        runs_directory()


def test_the_list_of_runs_tells_their_state_and_survives_a_corrupt_one(tmp_path: Path) -> None:
    """Finished, interrupted, running and damaged runs each say so; none stops the list."""
    with RunStore.create(run_path("aaaa", tmp_path), {}, clock=lambda: 5.0) as store:
        store.append([run_started("aaaa"), events.RunFinished(run="aaaa", status="complete")])
    with RunStore.create(run_path("bbbb", tmp_path), {}) as store:
        store.append([run_started("bbbb")])
    run_path("cccc", tmp_path).write_bytes(b"rubbish")
    with (
        RunStore.create(run_path("dddd", tmp_path), {}),
        RunStore.open(run_path("aaaa", tmp_path), read_only=False),
    ):
        runs = {summary.id: summary for summary in list_runs(tmp_path)}
    assert [runs[run].status for run in ("aaaa", "bbbb", "dddd")] == ["complete", "interrupted", "running"]
    assert runs["cccc"].status.startswith("unreadable: expected a MechaRule run file")
    assert (runs["aaaa"].task, runs["aaaa"].model, runs["aaaa"].when) == ("arithmetic", "arith-tiny", 5.0)


def test_an_unknown_certificate_is_a_claim_without_evidence(store: RunStore) -> None:
    """No certificate and an empty prefix are both refused by name."""
    for prefix in ("7f3a", ""):
        with pytest.raises(ClaimNotSupported, match="found 0"):
            store.certificate(prefix)
