"""What a run would need and cost at most, from its config and the model's files; no weight is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from mecharule_ops.config import RunConfig
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.loading.model_names import on_this_machine
from mecharule_ops.loading.placement import place, this_machine
from mecharule_ops.loading.shape import ModelShape, read_shape, read_tokenizer
from mecharule_ops.run.planning import PredictionPrice, SearchKind, most_evaluations, search_settings
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Basis, Regime

PROMPTS = 256
"""Prompts of the task that are measured in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutlook:
    """The most that one search can ask for, its audit or exhaustive pass included."""

    basis: Basis
    regime: Regime
    units: int
    """Units of the basis, of which attribution keeps at most the config's cap."""
    evaluations: int
    """Group ablations."""
    example_forwards: int
    """Each on both slices, were they as large as the config allows."""
    prediction_forwards: int
    """What first order costs before a guided search, at most; 0 for another search."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """A run that was not started."""

    shape: ModelShape
    placed: str
    """Where the model would go and why, or why it cannot."""
    longest_prompt: int | None
    """Tokens; None where only the model's own tokenizer code can count them."""
    searches: tuple[SearchOutlook, ...]

    def weight_bytes(self, itemsize: int) -> int:
        """What the weights take in memory."""
        return itemsize * self.shape.parameters


def outlook(config: RunConfig) -> Outlook:
    """The run that a config describes. Cost: reads small files, makes some prompts.

    Raises `UsageError` for a task that does not exist or prompts that do not fit the model, `ModelUnavailable` for
    a model that is not here or cannot be used.
    """
    task = task_of(config)
    task.describe()
    shape = read_shape(on_this_machine(config.model))
    for basis in config.bases:
        shape.width(basis)
    searches = tuple(
        _search(config, shape, basis, Regime(label), task.max_new_tokens)
        for basis, label in product(config.bases, config.regimes)
    )
    return Outlook(
        shape=shape,
        placed=_placed(config, shape),
        longest_prompt=_longest_prompt(config, task, shape),
        searches=searches,
    )


def _placed(config: RunConfig, shape: ModelShape) -> str:
    """Raises `UsageError` for a device that is not here; a model without room is told, since nothing is loaded."""
    try:
        return place(shape, this_machine(), config.device, config.dtype).reason
    except ModelUnavailable as error:
        return str(error)


def _search(
    config: RunConfig, shape: ModelShape, basis: Basis, regime: Regime, new_tokens: int
) -> SearchOutlook:
    settings = search_settings(config, regime, config.slice_size, config.slice_size)
    evaluations = most_evaluations(config, min(shape.units(basis), config.cap), settings)
    if config.budget is not None:
        evaluations = min(evaluations, config.budget)
    return SearchOutlook(
        basis=basis,
        regime=regime,
        units=shape.units(basis),
        evaluations=evaluations,
        example_forwards=evaluations * settings.full_test,
        prediction_forwards=_prediction_forwards(config, shape.units(basis), settings.full_test, new_tokens),
    )


def _prediction_forwards(config: RunConfig, units: int, examples: int, new_tokens: int) -> int:
    if config.search != SearchKind.GUIDED or config.parity:
        return 0
    return PredictionPrice.of(examples, examples * (new_tokens - 1), units).example_forwards


def _longest_prompt(config: RunConfig, task: Task, shape: ModelShape) -> int | None:
    """Tokens of the longest of the task's first prompts. Raises `UsageError` where one does not fit."""
    tokenizer = read_tokenizer(shape.directory)
    if tokenizer is None:
        return None
    examples = task.examples(min(PROMPTS, config.records), np.random.default_rng(config.seed))
    longest = max((len(tokenizer.encode(example.prompt).ids) for example in examples), default=0)
    room = shape.positions
    if room is not None and longest + task.max_new_tokens > room:
        raise UsageError(
            f"expected prompts of at most {room - task.max_new_tokens} tokens for {config.model}, got {longest}; "
            "shorten the few-shot lines or the completion"
        )
    return longest
