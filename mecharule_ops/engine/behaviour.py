"""Run the unablated model over a task's examples: the behaviour B(x) to be explained (paper, §3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from mecharule_ops.errors import DegenerateBehaviour, ModelUnavailable, UsageError
from mecharule_ops.loading.generation import Progress
from mecharule_ops.loading.model import Subject
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Example, Regime, Tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Behaviour:
    """What the model did on every example; the three fields are aligned."""

    records: tuple[BehaviourRecord, ...]
    prompts: tuple[Tokens, ...]
    """Token ids of each prompt as the model read it."""
    representation: Float32[np.ndarray, "record channel"]
    """Final normalised hidden state at the last prompt token, before the gain."""
    left_out: Sequence[str] = ()
    """That examples could not be used, in a sentence."""

    @property
    def labels(self) -> Bool[np.ndarray, " record"]:
        """B(x) of each record."""
        return np.array([record.label for record in self.records], dtype=bool)

    def __add__(self, other: "Behaviour") -> "Behaviour":
        """That of both sets of examples."""
        return Behaviour(
            records=self.records + other.records,
            prompts=self.prompts + other.prompts,
            representation=np.concatenate([self.representation, other.representation]),
            left_out=(*self.left_out, *other.left_out),
        )


def observe(
    task: Task,
    subject: Subject,
    examples: Sequence[Example],
    *,
    regimes: Sequence[Regime] = tuple(Regime),
    on_progress: Progress = lambda done, total: None,
) -> Behaviour:
    """The labelled greedy completion of every example. Cost as `behaviour_on`.

    Raises `DegenerateBehaviour` when there are no examples, or none with the outcome that one of `regimes` starts from.
    """
    if not examples:
        raise DegenerateBehaviour(f"expected examples of {task.name}, got none; widen the task's settings")
    behaviour = behaviour_on(task, subject, examples, on_progress=on_progress)
    labels, words, records = behaviour.labels, task.words, behaviour.records
    if any(not regime.flipped(labels).all() for regime in regimes):
        return behaviour
    if labels.all():
        raise DegenerateBehaviour(
            f"expected {words.failure} completions to flip 0→1, got all {len(records)} {words.success}; give "
            f"{subject.name} a harder {task.name} task or more examples, or ask what breaks it: --regime 1"
        )
    first, meant = records[0], sorted(task.solution_columns & records[0].example.fields.keys())
    right = "".join(f" ({name}: {str(first.example.fields[name])[:40]})" for name in meant)
    example = "" if task.concealed else f", such as {first.completion!r}{right}"
    raise DegenerateBehaviour(
        f"expected {words.success} completions to flip 1→0, got all {len(records)} {words.failure}{example}; give "
        f"{subject.name} an easier {task.name} task or few-shot lines, or ask what mends it: --regime 0"
    )


def behaviour_on(
    task: Task,
    subject: Subject,
    examples: Sequence[Example],
    *,
    on_progress: Progress = lambda done, total: None,
) -> Behaviour:
    """The same, whether labels agree or not.

    Examples whose targets and foils the model's tokens do not tell apart are left out where the task does so.
    Cost: at most `task.max_new_tokens` forwards an example, in batches of 64. Raises `ModelUnavailable` where a
    logit is no number.
    """
    faults = {place: fault for place, one in enumerate(examples) if (fault := subject.untold(one))}
    left_out = task.sifted(faults, len(examples)) if faults else []
    examples = [example for place, example in enumerate(examples) if place not in faults]
    prompts = tuple(subject.encode([example.prompt for example in examples]))
    offers = subject.offers(examples)
    needed = max((len(begun) + 1 for offer in offers for begun in offer.steps), default=1)
    if needed > task.max_new_tokens:
        raise UsageError(
            f"expected {needed} tokens or more, where targets and foils differ; add --set task.max_new_tokens={needed}"
        )
    settings = {"on_progress": on_progress, "offers": offers}
    generation = subject.generate(prompts, task.max_new_tokens, subject.stop_ids(task.stop), **settings)
    for record in np.flatnonzero(np.isnan(generation.margins)).tolist():
        raise ModelUnavailable(
            f"expected logits of {subject.name} that are numbers, got others on example {examples[record].id}; "
            "copy the model again, or choose another --dtype"
        )
    records = tuple(
        BehaviourRecord(
            example=example,
            tokens=tokens,
            completion=(completion := subject.decode(tokens)),
            parsed=task.parse(example, completion),
            label=task.label(example, completion),
            margin=float(margin),
        )
        for example, tokens, margin in zip(examples, generation.tokens, generation.margins, strict=True)
    )
    return Behaviour(
        records=records, prompts=prompts, representation=generation.representation, left_out=left_out
    )
