"""The searches of three small runs ask the same groups and decide them alike, and find the same.

A hash for every search's nodes and for every part of the findings, so that a change of code that should change neither
shows which it changed. Figures of logits are left out, other fractions are taken to three digits.
`MECHARULE_GOLDEN=write` keeps the hashes of today; say in the commit which parts changed and why.
"""

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from bundled_run import QUICK, made_once

from mecharule_ops import codec, events
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.store.run_log import RunLog

HASHES = Path(__file__).parent / "hashes.json"
GROUPED: Mapping[str, object] = {
    **QUICK,
    "search": "cha",
    "regimes": (1, 0),
    "bases": ("mlp_out",),
    "controls_for": 0,
}
"""Groups by attribution in both directions; the two shared runs are guided."""
ELSEWHERE = ("versions", "model_hash", "stages", "searches.tree")
"""Of the machine's packages and clock, as what certificates are called, or hashed with the nodes."""
OF_LOGITS = (
    *("chains", "close_completions"),
    *(f"searches.accounts.{part}" for part in ("points", "drop_error")),
)
"""Parts whose fractions are sums of products, which other processors round otherwise."""
Parts = dict[str, str]


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """(path without positions, value) of every number, text and None, in order."""
    if isinstance(value, Mapping):
        for name in sorted(value):
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one, path)
    else:
        yield ".".join(path), value


def part_of(path: str) -> str:
    """`tau`, `chains.reads`, `searches.accounts.families`: a field of the findings, of a search, of an account."""
    names = path.split(".")
    return ".".join(names[: 3 if names[:2] == ["searches", "accounts"] else 2])


def hashed(lines: Mapping[str, list[str]]) -> Parts:
    """The sha256 of each part's lines, its first half."""
    return {
        name: hashlib.sha256("\n".join(of).encode()).hexdigest()[:32] for name, of in sorted(lines.items())
    }


def parts_of(data: object) -> Parts:
    """The hash of each part of findings written as JSON."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for path, value in leaves(data):
        if path.startswith(ELSEWHERE) or "certificate" in path:
            continue
        if isinstance(value, float):
            if path.startswith(OF_LOGITS):
                continue
            value = f"{value:.3g}"
        lines[part_of(path)].append(f"{path} {codec.canonical_json(value)}")
    return hashed(lines)


def nodes_of(path: Path) -> Parts:
    """The hash of the nodes of each search, as they were decided one after the other.

    Of a guided search the units tested alone: which others share a group hangs on the last digits of logits.
    """
    lines: defaultdict[str, list[str]] = defaultdict(list)
    with RunLog.read(path) as log:
        for _, _, one in log.events():
            if isinstance(one, events.NodeTested) and not ("guided" in one.search and one.node.size > 1):
                bare = codec.encode(replace(one.node, ucb=round(one.node.ucb, 3)))
                bare |= {"id": 0, "parent": None} if "guided" in one.search else {}
                lines[one.search].append(codec.canonical_json(bare))
    return hashed(lines)


@pytest.fixture(scope="module")
def grouped_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of groups by attribution."""
    return made_once(tmp_path_factory, "c4a0.mecharule", GROUPED)


@pytest.mark.parametrize("made", ["finished_run", "quick_run", "grouped_run"])
def test_a_run_is_the_same_run(made: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Every search's nodes and every part of the findings; a copy is read, since reading settles what it finds."""
    path = Path(shutil.copy(request.getfixturevalue(made), tmp_path))
    with opened(str(path)) as run:
        now = {"nodes": nodes_of(path), "findings": parts_of(codec.encode(findings_of(run)))}
    known = json.loads(HASHES.read_text(encoding="utf-8")) if HASHES.exists() else {}
    if os.environ.get("MECHARULE_GOLDEN") == "write":
        HASHES.write_text(json.dumps({**known, made: now}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    assert now == known[made]


def test_another_count_is_seen() -> None:
    """In its part alone; the last digits of a fraction and what a logit came to are not."""
    data = {"searches": [{"agonists": [{"flips": 3, "ucb": 0.12345}]}], "chains": [{"measured": 0.5}]}
    other = json.loads(json.dumps(data).replace("0.12345", "0.12346").replace("0.5", "0.7"))
    assert parts_of(other) == parts_of(data)
    other = json.loads(json.dumps(data).replace('"flips": 3', '"flips": 4'))
    assert parts_of(other) != parts_of(data)
    assert parts_of({"searches": [{"accounts": [{"families": [1], "points": 2}]}], "tau": 1}).keys() == {
        "searches.accounts.families",
        "searches.accounts.points",
        "tau",
    }
