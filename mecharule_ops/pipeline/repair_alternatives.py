"""What else could be done about the answers, without any gate: solved examples in the prompt, and a second try."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.engine.behaviour import completed, labelled
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.repair import Control, ControlKind
from mecharule_ops.pipeline.repair_material import Material, RepairRequest
from mecharule_ops.pipeline.repair_testing import Tested, acted
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.subsets import some_places
from mecharule_ops.types import BehaviourRecord


def with_examples(found: Material, request: RepairRequest, lines: int) -> Control | None:
    """`lines` solved examples before every test prompt; fewer where the model's context holds no more, None at none.

    They are find records whose outcome is the wanted one, with what the model wrote. Cost: a completion a test record.
    """
    good = found.find[found.good[found.find]]
    drawn = some_places(found.records, good, lines, of="solved examples", seed=found.run.config.seed)
    prefix = str(found.run.task.describe().get("prefix", ""))
    solved = [_solved(record, prefix) for record in found.at(drawn)]
    tests = found.at(found.test)
    while solved:
        shown = prefix + "".join(solved)
        examples = [
            replace(record.example, prompt=shown + record.example.prompt.removeprefix(prefix))
            for record in tests
        ]
        try:
            records = completed(found.run.task, found.run.subject, examples)
        except UsageError:
            solved = solved[: len(solved) // 2]
            continue
        result = Paired.of(found.good[found.test], request.wanted_of(records), np.ones(len(tests), bool))
        return Control(kind=ControlKind.EXAMPLES, name=str(len(solved)), result=result)
    return None


def tried_again(found: Material, request: RepairRequest, tested: Tested) -> Control:
    """Where the gates act, an answer drawn from the model's own distribution instead. Cost: a completion there."""
    task, subject = found.run.task, found.run.subject
    places = np.flatnonzero(acted(tested.acts))
    after = tested.before.copy()
    if len(places):
        examples = [record.example for record in found.at(found.test[places])]
        prompts = subject.encode([example.prompt for example in examples])
        drawn = subject.sample(
            prompts, task.max_new_tokens, subject.stop_ids(task.stop), seed=found.run.config.seed
        )
        after[places] = request.wanted_of(labelled(task, subject, examples, drawn))
    result = Paired.of(tested.before, after, acted(tested.acts))
    return Control(kind=ControlKind.RETRY, name="", result=result)


def _solved(record: BehaviourRecord, prefix: str) -> str:
    """A record as a line of its own: its question, and what the model wrote."""
    return f"{record.example.prompt.removeprefix(prefix)}{record.completion.rstrip()}\n"
