"""What tools state: each number of each fact is one of the tool's data, and each source is there to be checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stated_numbers import known_numbers, numbers_in, unborne

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.confidence import searched_alpha
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.run.opening import findings_of, opened
from tools.registry import call
from tools.result import ToolResult

Given = dict[str, Any]
TOOLS: dict[str, Callable[[str, str], Given]] = {
    "why": lambda unit, other: {"neuron": unit},
    "why-not": lambda unit, other: {"neuron": other, "test": True},
    "flip": lambda unit, other: {"neuron": unit, "prompt": "120 - 7 =", "neighbours": 5},
    "ablate": lambda unit, other: {"units": f"{unit},{other}", "yes": True},
    "anchor": lambda unit, other: {"neuron": unit, "yes": True},
    "control": lambda unit, other: {"neuron": unit, "yes": True},
    "covers": lambda unit, other: {"neuron": unit},
    "shared": lambda unit, other: {"neuron": unit},
    "versus": lambda unit, other: {"first": unit, "second": other, "yes": True},
    "layer": lambda unit, other: {"layer": int(unit[1:].split(".")[0])},
    "disguise": lambda unit, other: {"neuron": unit},
    "weakest": lambda unit, other: {"limit": 3},
    "missed": lambda unit, other: {},
    "compare": lambda unit, other: {"second": "last"},
    "neurons": lambda unit, other: {},
    "rules": lambda unit, other: {},
    "evidence": lambda unit, other: {},
}
"""Every tool that states facts about a run, with what it is told of the strongest and the second unit."""


def _told(path: Path, tool: str) -> tuple[ToolResult, set[float]]:
    """(what a tool states, the numbers of its data, of the certificates that it cites and of the run's findings)."""
    with opened(str(path)) as run:
        findings = findings_of(run)
        first, second, *_ = findings.searches[0].agonists
    name = "first" if tool == "compare" else "run"
    result = call(tool, {name: str(path), **TOOLS[tool](str(first.neuron), str(second.neuron))})
    with opened(str(path)) as run:
        certificates = {f"c:{certificate.id}": certificate for certificate in run.store.certificates()}
    cited = {source for fact in result.facts for source in fact.sources}
    assert cited <= {f"run:{findings.run}", *certificates}
    units = findings.searches[0].cost.candidates
    levels = (findings.alpha, findings.alpha / 2, searched_alpha(findings.alpha, units) / 2)
    data = [
        result.data,
        json.loads(to_json(findings)),
        *(_certified(certificates[source]) for source in cited & certificates.keys()),
    ]
    return result, known_numbers(data, *levels) | {1 - findings.alpha}


def _certified(certificate: Certificate) -> dict[str, Any]:
    body: dict[str, Any] = encode(certificate)
    return {name: body[name] for name in ("totals", "rule", "example_ids", "units") if name in body}


@pytest.mark.parametrize("tool", TOOLS)
def test_each_number_of_each_fact_is_one_of_the_tools_data(
    copied_run: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the numbers of the data and of what it cites, with no sentence of either."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    result, known = _told(copied_run, tool)
    assert result.facts
    for fact in result.facts:
        assert unborne(fact.sentence, known) == [], fact.sentence


def test_a_forged_number_is_noticed(copied_run: Path) -> None:
    """The check can fail: a count raised by one, and one of another unit."""
    result, known = _told(copied_run, "versus")
    fact = result.facts[0]
    number = numbers_in(fact.sentence)[0]
    forged = replace(fact, sentence=fact.sentence.replace(number, "7777", 1))
    assert unborne(fact.sentence, known) == []
    assert unborne(forged.sentence, known) == ["7777"]


def test_numbers_are_read_as_they_are_printed() -> None:
    """By hand: names of units, directions and commands hold none."""
    text = "m4.12 (1→0) flips 1,840 of 2,000 (92 %), MCC -.25 [.1, .3]; `mecharule why 0c1f m4.12`"
    assert numbers_in(text) == ["1,840", "2,000", "92 %", "-.25", ".1", ".3"]
    known = known_numbers({"flips": {"flips": 1840, "n": 2000}, "mcc": -0.251, "interval": [0.1, 0.3]})
    assert unborne(text, known) == []
    assert unborne("It flips 1,841", known) == ["1,841"]
