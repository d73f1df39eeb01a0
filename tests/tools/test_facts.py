"""What tools state: each number of each fact is one of the tool's data, and each source is there to be checked."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from bundled_run import BUNDLED, QUICK, made_once
from stated_numbers import known_numbers, numbers_in, unborne

from mecharule_ops import errors, types
from mecharule_ops.codec import encode
from mecharule_ops.confidence import searched_alpha
from mecharule_ops.facts.fact import Fact, keyed
from mecharule_ops.findings.records import to_json
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.types import Neuron
from tools.registry import ToolResult, call

Given = dict[str, Any]


@dataclass(frozen=True)
class Facing:
    """A search of a run, and what a tool is told of it."""

    name: str
    basis: types.Basis
    regime: types.Regime
    settings: Mapping[str, object]
    prompt: str
    """One of the task's."""

    @property
    def predicate(self) -> str:
        """One over the task's columns."""
        return "a > 20" if self.prompt.endswith("=") else "t1 == t4"

    def __str__(self) -> str:
        return f"{self.name} {self.basis.value} {self.regime.arrow}"


TOOLS: dict[str, Callable[[str, str, Facing], Given]] = {
    "why": lambda unit, other, of: {"neuron": unit, "full": True},
    "why-not": lambda unit, other, of: {"neuron": other, "test": True},
    "flip": lambda unit, other, of: {"neuron": unit, "prompt": of.prompt},
    "ablate": lambda unit, other, of: {"units": f"{unit},{other}", "yes": True},
    "anchor": lambda unit, other, of: {"neuron": unit, "yes": True},
    "explain": lambda unit, other, of: {"neuron": unit, "parts": "controls", "yes": True},
    "compare units": lambda unit, other, of: {"first": unit, "second": other, "yes": True},
    "compare runs": lambda unit, other, of: {"first": "last"},
    "show": lambda unit, other, of: {"table": "units"},
    "tabulate": lambda unit, other, of: {"units": unit, "where": "contains(prompt, '1')", "yes": True},
    "pairs": lambda unit, other, of: {"neuron": unit, "where": of.predicate, "n": 4, "yes": True},
}
"""Every tool that states facts about a run, with what it is told of the strongest and the second unit."""
BOTH = {**QUICK, "bases": ("attn_head", "mlp_out"), "regimes": (1, 0), "accounts_for": 1, "chains_for": 1}
PROGRAM = {
    **{"task": "program", "tau": 0.05, "proposals": 0, "controls": 3},
    **{"controls_for": 1, "anchor_for": 2, "accounts_for": 1, "chains_for": 1},
}
REPEATS = {**PROGRAM, "model": "known/repeats", "bases": tuple(types.Basis), "regimes": (1,)}
FAULT = {
    **{**PROGRAM, "model": "known/fault", "bases": ("mlp_out", "mlp_hidden")},
    **{"regimes": (0,), "baseline": "zero", "tau": 0.2},
}
FACINGS = (
    Facing("b00d", types.Basis.MLP_OUT, types.Regime.BASELINE_POSITIVE, BUNDLED, "120 - 7 ="),
    *(Facing("b07a", types.Basis.ATTN_HEAD, regime, BOTH, "120 - 7 =") for regime in types.Regime),
    Facing("b07a", types.Basis.MLP_OUT, types.Regime.BASELINE_NEGATIVE, BOTH, "120 - 7 ="),
    *(Facing("4e9e", basis, types.Regime.BASELINE_POSITIVE, REPEATS, "a b a b c") for basis in types.Basis),
    Facing("fa01", types.Basis.MLP_OUT, types.Regime.BASELINE_NEGATIVE, FAULT, "1 2 3 1"),
    Facing("fa01", types.Basis.MLP_HIDDEN, types.Regime.BASELINE_NEGATIVE, FAULT, "1 2 3 1"),
)
"""Both kinds of task, all bases, both regimes."""


@pytest.fixture
def faced(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a finished run that a test may write to."""
    name, settings = request.param.name, request.param.settings
    made = made_once(tmp_path_factory, f"{name}.mecharule", settings)
    return Path(shutil.copy(made, tmp_path / made.name))


def _told(path: Path, tool: str, of: Facing = FACINGS[0]) -> tuple[ToolResult, set[float]]:
    """(what a tool states, the numbers of its data, of the certificates that it cites and of the run's findings).

    A claim that is refused states why.
    """
    with opened(str(path)) as run:
        findings = findings_of(run)
        (search,) = (
            one for one in findings.searches if (one.intervention.basis, one.regime) == (of.basis, of.regime)
        )
        first, second, *_ = search.agonists
    try:
        result = call(
            tool.split()[0], {"run": str(path), **TOOLS[tool](str(first.neuron), str(second.neuron), of)}
        )
    except errors.ClaimNotSupported as refusal:
        result = ToolResult(data={}, text="", facts=(Fact(sentence=str(refusal), sources=()),))
    with opened(str(path)) as run:
        certificates = {f"c:{certificate.id}": certificate for certificate in run.store.certificates()}
    cited = {source for fact in result.facts for source in fact.sources}
    assert cited <= {f"run:{findings.run}", *certificates}
    searched = [searched_alpha(findings.alpha, each.cost.candidates) / 2 for each in findings.searches]
    levels = (findings.alpha, findings.alpha / 2, *searched)
    data = [
        {**result.data, **keyed(result.facts)},
        json.loads(to_json(findings)),
        *({**encode(certificates[id]), "rows": None, "versions": None} for id in cited & certificates.keys()),
    ]
    return result, known_numbers(data, *levels) | {1 - findings.alpha}


@pytest.mark.parametrize(("faced", "of"), [(one, one) for one in FACINGS], indirect=["faced"], ids=str)
@pytest.mark.parametrize("tool", TOOLS)
def test_each_number_of_each_fact_is_one_of_the_tools_data(
    faced: Path, of: Facing, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the numbers of the data and of what it cites, with no sentence of either."""
    monkeypatch.setenv("MECHARULE_RUNS", str(faced.parent))
    result, known = _told(faced, tool, of)
    assert result.facts
    for fact in result.facts:
        assert unborne(fact.sentence, known) == [], fact.sentence


@pytest.mark.parametrize(("faced", "of"), [(one, one) for one in FACINGS], indirect=["faced"], ids=str)
def test_why_not_ends_where_the_search_of_its_basis_and_direction_settled_the_unit(
    faced: Path, of: Facing
) -> None:
    """The units of the largest and of the smallest group that settled any."""
    settled: dict[str, tuple[str, int]] = {}
    with opened(str(faced)) as run:
        for view in run.told.searches.values():
            if (view.at.basis, view.at.regime) == (of.basis, of.regime.value):
                for node in view.nodes.values():
                    if node.verdict in ("pruned", "kept", "dropped"):
                        units = [str(Neuron(of.basis, node.layer, channel)) for channel in node.channels]
                        settled |= dict.fromkeys(units, (str(node.verdict), node.size))
    for unit in {pick(settled, key=lambda unit: settled[unit][1]) for pick in (max, min)}:
        given = {"run": str(faced), "neuron": unit, "regime": str(of.regime.value)}
        last: Any = call("why-not", given).as_json[f"unit.{unit}.why_not.tests"]
        assert (last[-1]["verdict"], last[-1]["size"]) == settled[unit], unit


def test_a_forged_number_is_noticed(copied_run: Path) -> None:
    """The check can fail: a count raised by one, and one of another unit."""
    result, known = _told(copied_run, "compare units")
    fact = result.facts[0]
    forged = replace(fact, sentence=fact.sentence.replace(numbers_in(fact.sentence)[0], "7777", 1))
    assert unborne(fact.sentence, known) == []
    assert unborne(forged.sentence, known) == ["7777"]
