"""`mecharule repair`: the tool, with a language model that proposes gates where one is chosen."""

from __future__ import annotations

from dataclasses import replace

from agent.llm.choice import choose, make_model
from agent.llm.retrying import Asker
from agent.proposing.gate_proposer import LlmGateProposer
from mecharule_ops.events import Event
from mecharule_ops.repair.material import RepairRequest
from mecharule_ops.run.live_run import Run
from mecharule_ops.saying.repair_facts import mended_words
from mecharule_ops.tasks.meanings import meanings_of
from tools.arguments import RepairArguments
from tools.registry import Tell, ToolResult
from tools.repair import repair


def repair_run(given: RepairArguments, tell: Tell) -> ToolResult:
    """The tool's result, and what the model's words cost. Raises what choosing a model and the tool raise.

    The model's replies and their cost are kept in the run as events. A model that fails leaves the learned gates.
    """
    if given.what == "export":
        return repair(given, tell)
    choice = choose(given.llm, budget=given.llm_budget)
    model = make_model(choice)
    if model is None:
        return repair(given.model_copy(update={"llm": None}), tell)
    tell(str(choice))
    askers: list[Asker] = []

    def proposer(run: Run, request: RepairRequest) -> LlmGateProposer:
        def emit(event: Event) -> None:
            run.store.append([event])

        asker = Asker(model=model, price=choice.price, most_tokens=choice.most_tokens, emit=emit)
        askers.append(asker)
        return LlmGateProposer(
            asker=asker,
            seed=run.config.seed,
            wanted=mended_words(run.task.words, request.regime),
            meanings=meanings_of(run.task),
        )

    named = given.model_copy(update={"llm": choice.short})
    result = repair(named, tell, propose=proposer)
    if not askers:
        return result
    bill = f"{choice.short}: {askers[0].bill}"
    return replace(result, data={**result.data, "bill": bill}, text=f"{result.text}\n\n{bill}")
