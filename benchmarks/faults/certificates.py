"""Certificates forged: every field changed, files swapped between bundles, an old one in the place of a new one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from forgeries import forgeries, leaves, put

from mecharule_ops.certificates.bundles import INDEX, read_bundle, write_bundle
from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.codec import canonical_json, decode
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.second_run import bench_of_run, rerun
from mecharule_ops.store.run_store import RunStore

from .finished import finished_file
from .result import Figure, Result, Setting

RECOMPUTED = (
    "tokens",
    "label",
    "prompt",
    "flips",
    "n",
    "lower",
    "upper",
    "unit",
    "units",
    "regime",
    "example",
)
"""Fields that follow from the rows, or that a second run gives anew: a forger who hashes again is caught by these."""


def certificates(setting: Setting) -> Result:
    """Every forgery and swap; each must be refused, or come out as differing when the ablation is run again."""
    whole = finished_file(setting.folder)
    old = finished_file(setting.folder, "0c1d", seed=5)
    ours, theirs = _of(whole), _of(old)
    tally, problems = Counter[str](), list[str]()

    def count(kind: str, missed: str | None) -> None:
        tally[kind] += 1
        if missed is not None:
            problems.append(f"{kind}: {missed} was accepted")

    for name, text in _changed(ours[0], setting.scale):
        count(
            "one field changed, the hash left alone",
            _accepted(name, partial(Certificate.from_json, text)),
        )
    for name, swap in _swaps(setting.folder, ours, theirs):
        count("files of a bundle changed, added, removed or swapped with another's", _accepted(name, swap))
    for name, swap in _in_the_store(setting.folder, whole, ours, theirs):
        count("an old certificate in a run file, in a new one's place", _accepted(name, swap))
    with RunStore.open(whole, read_only=True) as store:
        bench = bench_of_run(Run(store))
        for name, forged in _hashed_again(ours[0], setting.scale):
            checked = verify(forged, lambda one: rerun(bench, one))
            missed = name if checked.status is VerificationStatus.MATCH else None
            count("one field changed and hashed again: rows, counts, bounds, units", missed)
            if sum(tally.values()) % 20 == 0:
                setting.tell(f"certificates: {sum(tally.values())}, {len(problems)} accepted")
    return Result(
        tried=f"{sum(tally.values()):,} forgeries of the certificates of a run of the bundled model",
        cases=sum(tally.values()),
        figures=tuple(
            Figure(what=f"detected: {kind}", value=_share(kind, tally, problems)) for kind in tally
        ),
        problems=tuple(problems),
    )


def _share(kind: str, tally: Counter[str], problems: list[str]) -> str:
    missed = sum(problem.startswith(kind) for problem in problems)
    return f"{tally[kind] - missed:,} of {tally[kind]:,}"


def _of(path: Path) -> tuple[Certificate, ...]:
    with RunStore.open(path, read_only=True) as store:
        return store.certificates()


def _accepted(name: str, reading: Callable[[], object]) -> str | None:
    """The name of a forgery that was read without a refusal; None where it was refused by one line."""
    try:
        reading()
    except (ClaimNotSupported, StoreError) as error:
        return f"{name} ({error})" if "\n" in str(error) else None
    return name


def _places(document: Any, scale: float) -> list[tuple[Any, ...]]:
    """Every place at full scale, else the first of each field name."""
    places = [path for path in leaves(document) if path]
    if scale >= 1:
        return places
    first: dict[object, tuple[Any, ...]] = {}
    for path in places:
        first.setdefault(tuple(part for part in path if isinstance(part, str)), path)
    return list(first.values())


def _changed(certificate: Certificate, scale: float) -> Iterator[tuple[str, str]]:
    document = json.loads(certificate.to_json())
    for path in _places(document, scale):
        for forged in forgeries(_at(document, path)):
            yield ".".join(map(str, path)), json.dumps(put(document, path, forged))


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _hashed_again(certificate: Certificate, scale: float) -> Iterator[tuple[str, Certificate]]:
    """Forgeries that read as certificates with a hash of their own; one a field name, of those that are recomputed."""
    content = json.loads(certificate.to_json())["certificate"]
    for path in _places(content, 0.0 if scale < 1 else scale):
        named = [part for part in path if isinstance(part, str)]
        deep = [part for part in path if isinstance(part, int)]
        if named[0] == "rule" or named[-1] not in RECOMPUTED or any(place > 3 for place in deep):
            continue
        for forged in forgeries(_at(content, path)):
            try:
                made = decode(Certificate, put(content, path, forged))
                canonical_json(made.sha256)
            except UsageError:
                continue
            yield ".".join(map(str, path)), made


def _swaps(
    folder: Path, ours: tuple[Certificate, ...], theirs: tuple[Certificate, ...]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Bundles after somebody moved files between them; each reading must be refused."""
    one, two = folder / "bundle", folder / "other bundle"
    for made, certificates in ((one, ours), (two, theirs)):
        shutil.rmtree(made, ignore_errors=True)
        write_bundle(made, certificates)
    mine, other = one / f"{ours[0].id}.json", two / f"{theirs[0].id}.json"
    changes: dict[str, Callable[[Path], object]] = {
        "another's file under its own name": lambda at: shutil.copy(other, at / other.name),
        "another's file under our name": lambda at: shutil.copy(other, at / mine.name),
        "another's index": lambda at: shutil.copy(two / INDEX, at / INDEX),
        "no index": lambda at: (at / INDEX).unlink(),
        "a file missing": lambda at: (at / mine.name).unlink(),
        "our file renamed": lambda at: (at / mine.name).rename(at / other.name),
        "a byte more": lambda at: (at / mine.name).write_text(mine.read_text() + " "),
        "a file cut": lambda at: (at / mine.name).write_text(mine.read_text()[:-40]),
        "an empty file": lambda at: (at / mine.name).write_text(""),
        "not text": lambda at: (at / mine.name).write_bytes(b"\xff\xfe\x00"),
        "an index that is not text": lambda at: (at / INDEX).write_bytes(b"\xff\xfe\x00"),
        "a folder in a file's place": lambda at: _foldered(at / mine.name),
        "a hash that is none": lambda at: _reindexed(at, mine.stem, 5),
        "a name that leaves the folder": lambda at: _reindexed(at, "../../etc/hostname", "0" * 64),
    }
    for name, change in changes.items():
        at = folder / "swapped"
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(one, at)
        change(at)
        yield name, partial(read_bundle, at)


def _foldered(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _reindexed(at: Path, name: str, value: object) -> None:
    index = json.loads((at / INDEX).read_text())
    index["certificates"][name] = value
    (at / INDEX).write_text(json.dumps(index))


def _in_the_store(
    folder: Path, whole: Path, ours: tuple[Certificate, ...], theirs: tuple[Certificate, ...]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """The certificate that an answer cites, read from a run file in which another one stands in its place."""
    at, (mine, other) = folder / "replayed.mecharule", (ours[0], theirs[0])
    older = replace(mine, seed=mine.seed + 1)
    for name, shown in (("of another run", other), ("of an older seed", older)):
        for kept in ("under the cited id", "under its own id"):
            shutil.copy(whole, at)
            sha256 = mine.sha256 if kept == "under the cited id" else shown.sha256
            with closing(sqlite3.connect(at)) as connection, connection:
                connection.execute(
                    "UPDATE certificate SET body = ?, sha256 = ? WHERE sha256 = ?",
                    (shown.to_json(), sha256, mine.sha256),
                )
            yield f"{name}, {kept}", lambda: _read(at, mine.id)


def _read(path: Path, cited: str) -> Certificate:
    with RunStore.open(path, read_only=True) as store:
        return store.certificate(cited)
