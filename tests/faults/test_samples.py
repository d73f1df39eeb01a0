"""A sample of all that `make faults` tries; and each check finds what is broken on purpose."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from textual.app import ScreenStackError
from textual.events import Event

from benchmarks.faults.durable import RUN, Bench, Case, disks, kills, races
from benchmarks.faults.forged import forged
from benchmarks.faults.keys import Counted, keys
from mecharule_ops import codec, errors
from mecharule_ops.certificates.certificate import Certificate

pytestmark = pytest.mark.slow
UNSTORED = """
from mecharule_ops.store.run_store import RunStore
RunStore.put_outcomes = lambda self, context, outcomes: None
"""
"""What was ablated is not stored."""


@pytest.fixture(scope="module")
def bench(quick_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("bench"), quick_run) as made:
        yield made


def problems(cases: Iterable[Case], least: int) -> list[str]:
    tried = list(cases)
    assert len(tried) >= least
    return [problem for _, found in tried for problem in found]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("tried", "times"), [(kills, 10), (disks, 6), (races, 2)])
def test_struck_commands_go_on_to_what_they_find_when_left_alone(
    bench: Bench, tried: Callable[[Bench, random.Random, int], Iterator[Case]], times: int
) -> None:
    assert problems(tried(bench, random.Random(0), times), times) == []


def test_no_forged_certificate_is_read_and_no_key_ends_the_app(quick_run: Path, tmp_path: Path) -> None:
    """Forty forgeries of a field, twenty hashed again; a thousand keys, of which none is lost."""
    assert problems(forged(quick_run, tmp_path, random.Random(0), 40), 60) == []
    assert problems(keys(tmp_path, random.Random(0), 1000), 1000) == []


def test_ablations_that_are_not_stored_are_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.mecharule, "spoilt", UNSTORED)
    assert [text for text in bench.struck(RUN, []) if "ablations paid, 0 new ones stored" in text]


def test_a_forgery_that_is_read_is_found(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that looks at no hash."""

    def trusting(text: str) -> Certificate:
        try:
            return codec.decode(Certificate, json.loads(text)["certificate"])
        except errors.UsageError as error:
            raise errors.ClaimNotSupported(str(error)) from error

    monkeypatch.setattr(Certificate, "from_json", trusting)
    titles = {title for title, found in forged(quick_run, tmp_path, random.Random(0), 9) if found}
    assert "field of a certificate changed" in titles


@pytest.mark.parametrize("broken", ["raises", "swallows"])
def test_an_app_that_fails_at_a_key_is_found(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in a key's handler; keys that never come."""

    class Broken(Counted):
        async def on_event(self, event: Event) -> None:
            if self.sent > 30 and broken == "raises":
                raise ScreenStackError("broken")
            if self.sent <= 30 or broken == "raises":
                await super().on_event(event)

    monkeypatch.setattr("benchmarks.faults.keys.PATIENCE", 1.0)
    found = problems(keys(tmp_path, random.Random(0), 60, Broken), 1)
    assert found
    assert ("ScreenStackError: broken" if broken == "raises" else "did not reach the app") in found[0]
