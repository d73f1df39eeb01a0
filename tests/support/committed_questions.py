"""The committed list of questions, and a scripted model that answers one of them by repeating a tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llm_scripted import Recorder, asker

from agent.answering.chat import answer
from agent.answering.questions import QUESTIONS as KINDS
from agent.answering.router import route
from agent.answering.toolbox import RunToolbox
from agent.llm.choice import Choice
from mecharule_ops.findings.records import Findings
from tools.registry import ToolResult

UNKNOWN = (
    "Xyzzy frobnicates purple quuxes over gnarled brambles! Zyzzyvas besmirch velvet ocarinas under nineteen umbrellas "
    "while jackdaws juggle vexing quartz. Ghastly tuxedos waltz beneath lacquered pumpkins; foghorns yodel at drowsy "
    "yaks. Marzipan buccaneers whittle soggy bassoons, and pudgy llamas quaff buttermilk beside a rusty gazebo."
)
"""Words that no wording of any row holds."""
MOST = 12
"""Facts of one result that a model is shown."""
QUESTIONS = tuple((Path(__file__).parent / "questions.txt").read_text(encoding="utf-8").splitlines())
"""With `{unit}` for a unit that was found, `{layer}` for its layer and `{other}` for one that was not."""


def worded(question: str, unit: str, other: str) -> str:
    """The question about a run's own units."""
    return question.format(unit=unit, other=other, layer=unit[1:].split(".")[0])


def sensible_call(question: str, unit: str) -> tuple[str, dict[str, object]]:
    """The tool that the question asks for, and its arguments."""
    found = route(question)
    assert found is not None, question
    if found.kind == "summary":
        return "neurons", {"limit": 3}
    tool = KINDS[found.kind].tool
    named = found.units[0] if found.units else unit
    if tool in ("missed", "compare", "weakest", "neurons"):
        return tool, dict(found.given)
    if tool == "layer":
        return tool, {"layer": found.given["layer"]}
    if tool == "verify":
        return "evidence", {}
    if tool == "versus":
        return tool, {"first": found.units[0], "second": found.units[1]}
    given = {"prompt": found.given["prompt"], "neighbours": 3, "edits": 1} if tool == "flip" else {}
    return tool, {"neuron": named, **given}


def asked_of_a_model(path: Path, folder: Path, question: str, unit: str) -> tuple[list[str], ToolResult]:
    """(what its tool states, the answer of a model that only names those facts).

    Many words that the router does not know send the question to the model.
    """
    tool, arguments = sensible_call(question, unit)
    toolbox = RunToolbox(str(path), path.stem)
    facts = toolbox.facts(tool, toolbox.call(tool, arguments))[:MOST]
    said = " ".join(f"⟦f{number}⟧" for number in range(1, len(facts) + 1))
    call: dict[str, Any] = {"unless": ["[tool]"], "calls": [{"name": tool, "arguments": arguments}]}
    model = Recorder(folder, call, {"text": said})
    choice = Choice(spec="mock:script", why="chosen by --llm")
    asked = f"{question} {UNKNOWN}"
    return [fact.sentence for fact in facts], answer(
        str(path), asked, asker(model), choice, lambda line: None
    )


def units_of(findings: Findings) -> tuple[str, str]:
    """The strongest unit that was found, and a tested one of the same basis that was not."""
    search = findings.searches[0]
    found = {agonist.neuron for agonist in search.agonists}
    strongest = search.agonists[0].neuron
    other = next(
        candidate
        for layer in range(strongest.layer + 1)
        if (candidate := type(strongest)(strongest.basis, layer, 0)) not in found
    )
    return str(strongest), str(other)
