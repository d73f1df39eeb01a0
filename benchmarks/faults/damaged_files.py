"""Run files damaged in eleven ways: read back as they were written, or refused by one line; never another number."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.keys import Artefact
from mecharule_ops.store.run_file import SCHEMA_VERSION
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.store.stored_engine import group_key
from mecharule_ops.types import Basis, Neuron

from .finished import finished_file
from .result import Figure, Result, Setting

FULL = 2000
Damage = Callable[[bytearray, random.Random, int], object]


def _flip_bit(body: bytearray, chance: random.Random, page: int) -> None:
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)


def _flip_header_bit(body: bytearray, chance: random.Random, page: int) -> None:
    """In the first bytes of a page, where SQLite says what is in it."""
    body[page * chance.randrange(len(body) // page) + chance.randrange(16)] ^= 1 << chance.randrange(8)


def _overwrite(body: bytearray, chance: random.Random, page: int) -> None:
    start = chance.randrange(len(body))
    size = min(chance.choice((1, 4, 60, 600)), len(body) - start)
    body[start : start + size] = chance.randbytes(size)


def _truncate(body: bytearray, chance: random.Random, page: int) -> None:
    del body[chance.randrange(len(body)) :]


def _truncate_pages(body: bytearray, chance: random.Random, page: int) -> None:
    del body[page * chance.randrange(len(body) // page) :]


def _lengthen(body: bytearray, chance: random.Random, page: int) -> None:
    body += chance.randbytes(chance.choice((1, page, 3 * page)))


def _two_pages(body: bytearray, chance: random.Random, page: int) -> tuple[slice, slice]:
    one, other = chance.sample(range(len(body) // page), 2)
    return slice(page * one, page * one + page), slice(page * other, page * other + page)


def _swap_pages(body: bytearray, chance: random.Random, page: int) -> None:
    one, other = _two_pages(body, chance, page)
    body[one], body[other] = body[other], body[one]


def _copy_page(body: bytearray, chance: random.Random, page: int) -> None:
    one, other = _two_pages(body, chance, page)
    body[one] = body[other]


def _zero_page(body: bytearray, chance: random.Random, page: int) -> None:
    one, _ = _two_pages(body, chance, page)
    body[one] = bytes(page)


DAMAGES: Mapping[str, Damage] = {
    "a bit flipped": _flip_bit,
    "a bit flipped in a page's head": _flip_header_bit,
    "bytes overwritten": _overwrite,
    "cut anywhere": _truncate,
    "cut between pages": _truncate_pages,
    "lengthened": _lengthen,
    "two pages swapped": _swap_pages,
    "a page copied over another": _copy_page,
    "a page zeroed": _zero_page,
}


def damaged_files(setting: Setting) -> Result:
    """Random damages of a finished run, a page of an earlier state among its pages, and files of other versions."""
    whole = finished_file(setting.folder)
    content, chance = whole.read_bytes(), random.Random(setting.seed)
    with closing(sqlite3.connect(whole)) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    groups = groups_of(whole)
    expected = reading(whole, groups)
    path, came_to = setting.folder / "damaged.mecharule", Counter[str]()
    problems: list[str] = []
    kinds = [*DAMAGES, "an older or newer version"]
    for case in range(setting.count(FULL)):
        kind = kinds[case % len(kinds)]
        body = bytearray(content)
        if kind in DAMAGES:
            DAMAGES[kind](body, chance, page)
            path.write_bytes(body)
        else:
            path.write_bytes(content)
            of_version(
                path, chance.choice([*range(SCHEMA_VERSION), *range(SCHEMA_VERSION + 1, SCHEMA_VERSION + 9)])
            )
        what = outcome(path, groups, expected)
        came_to[what if what in ("as written", "refused") else "wrong"] += 1
        if what not in ("as written", "refused"):
            problems.append(f"{kind}, case {case}: {what}")
        if case % 200 == 199:
            setting.tell(f"damaged files: {case + 1}, {len(problems)} wrong")
    return Result(
        tried=f"{setting.count(FULL):,} copies of a finished run, each damaged once ({', '.join(kinds)}) "
        "and read whole: settings, events, artefacts, findings, certificates, every stored ablation",
        cases=setting.count(FULL),
        figures=(
            Figure(what="refused by one line", value=f"{came_to['refused']:,}"),
            Figure(
                what="read as written (the damage met free room, or what is derived)",
                value=f"{came_to['as written']:,}",
            ),
            Figure(what="another number, or another error", value=f"{came_to['wrong']:,}"),
        ),
        problems=tuple(problems),
    )


def of_version(path: Path, version: int) -> None:
    """Say that a file is of another version."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")


Group = tuple[str, str, tuple[int, ...]]
"""Context, units joined as the store names them, example ids."""


def groups_of(path: Path) -> tuple[Group, ...]:
    """Every stored block; a group is found again by the hash that names it."""
    query = (
        "SELECT context.name, outcome.unit_group, example_set.ids FROM outcome"
        " JOIN context ON context.id = outcome.context JOIN example_set ON example_set.id = outcome.example_set"
    )
    heads = [
        Neuron(layer=layer, channel=head, basis=Basis.ATTN_HEAD) for layer in range(2) for head in range(4)
    ]
    subsets = (group for size in range(1, len(heads) + 1) for group in combinations(heads, size))
    named = {hashlib.sha256(group_key(group).encode()).digest()[:16]: group_key(group) for group in subsets}
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(query).fetchall()
    return tuple(
        (name, named[digest], tuple(np.frombuffer(ids, "<i8").tolist())) for name, digest, ids in rows
    )


def outcome(path: Path, groups: tuple[Group, ...], expected: Mapping[str, Any]) -> str:
    """`as written`, `refused`, or what is wrong."""
    try:
        found = reading(path, groups)
    except MechaRuleError as error:
        return "refused" if "\n" not in str(error) else f"a refusal of several lines: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    places = [name for name in found if not _same(name, found[name], expected[name])]
    return f"other {', '.join(places)}" if places else "as written"


def _same(name: str, found: Any, expected: Any) -> bool:
    """Equal; of the ablations some may be unknown, which are then asked of the model again."""
    if name != "ablations":
        return bool(found == expected)
    return all(value in (None, was) for value, was in zip(found, expected, strict=True))


def reading(path: Path, groups: tuple[Group, ...]) -> dict[str, Any]:
    """All that a file says, as comparable values."""
    with RunStore.open(path, read_only=True) as store:
        run = Run(store)
        return {
            "settings": repr((store.config, store.created)),
            "events": [repr(event) for event in store.events()],
            "artefacts": {name: _plain(store.get(Artefact(name))) for name in store.names()},
            "findings": to_json(run.findings),
            "certificates": [certificate.to_json() for certificate in store.certificates()],
            "ablations": [cell for group in groups for cell in _cells(store, *group)],
        }


def _cells(store: RunStore, context: str, group: str, ids: tuple[int, ...]) -> list[tuple[bool, str] | None]:
    """Label and margin of each example; None where the store knows none."""
    known = store.known_outcomes(context, group, ids)
    values = zip(known.known.tolist(), known.labels.tolist(), known.margins.tolist(), strict=True)
    return [(label, repr(margin)) if is_known else None for is_known, label, margin in values]


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return repr(value)
