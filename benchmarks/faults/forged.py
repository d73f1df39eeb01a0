"""Certificates forged: fields changed, alone or hashed again, and another certificate in the place of the one cited."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from forgeries import forgeries, leaves, put

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.codec import canonical_json, decode
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.second_run import bench_of_run, rerun
from mecharule_ops.store.run_store import RunStore

from .durable import Case

Change = tuple[tuple[Any, ...], Any]
"""A place in a JSON tree and its new value."""
ROWS = ("tokens", "label", "prompt", "example", "flips", "n", "lower", "upper")
RECOMPUTED = frozenset([*ROWS, "unit", "units", "regime"])
"""Fields that follow from the rows, or that a second run gives anew: a forger who hashes again is caught by these."""
DEEP = 3
"""Rows of one slice that are forged and hashed again; each costs a second run."""


def forged(finished: Path, folder: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """At most `count` forgeries of the two kinds that change a field, and every one of the others."""
    with RunStore.open(finished, read_only=True) as store:
        ours, other = store.certificates()[0], replace(store.certificates()[0], seed=99)
        document, bench = json.loads(ours.to_json()), bench_of_run(Run(store))
        for place, value in _some(_changes(document), chance, count):
            text = json.dumps(put(document, place, value))
            yield (
                "field of a certificate changed",
                _accepted(str(place), partial(Certificate.from_json, text)),
            )
        content = document["certificate"]
        for place, value in _some(filter(_is_recomputed, _changes(content)), chance, count):
            try:
                made = decode(Certificate, put(content, place, value))
                canonical_json(made.sha256)
            except UsageError:
                continue
            same = verify(made, partial(rerun, bench)).status is VerificationStatus.MATCH
            yield "field of a certificate changed and hashed again", [f"{place} was accepted"] * same
    for sha256 in (ours.sha256, other.sha256):
        at = Path(shutil.copy(finished, folder / "replaced.mecharule"))
        with closing(sqlite3.connect(at)) as connection, connection:
            change_row = "UPDATE certificate SET body = ?, sha256 = ? WHERE sha256 = ?"
            connection.execute(change_row, (other.to_json(), sha256, ours.sha256))
        yield (
            "another certificate in the place of the cited one",
            _accepted(sha256, partial(_cited, at, ours.id)),
        )


def _changes(document: Any) -> Iterator[Change]:
    for place in leaves(document):
        value = document
        for key in place:
            value = value[key]
        yield from ((place, other) for other in forgeries(value) if place)


def _is_recomputed(change: Change) -> bool:
    named = [part for part in change[0] if isinstance(part, str)]
    deep = any(isinstance(part, int) and part >= DEEP for part in change[0])
    return named[0] != "rule" and named[-1] in RECOMPUTED and not deep


def _some(every: Iterable[Change], chance: random.Random, count: int) -> list[Change]:
    made = list(every)
    return chance.sample(made, min(count, len(made)))


def _accepted(name: str, reading: Callable[[], object]) -> list[str]:
    """Nothing where a reading is refused by one line."""
    try:
        reading()
    except (ClaimNotSupported, StoreError) as error:
        return [f"{name}: a refusal of several lines"] * ("\n" in str(error))
    return [f"{name} was accepted"]


def _cited(path: Path, cited: str) -> Certificate:
    with RunStore.open(path, read_only=True) as store:
        return store.certificate(cited)
