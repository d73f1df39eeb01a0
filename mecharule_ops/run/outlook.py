"""What a run needs, keeps and costs, by its config and the model's files; the pace alone loads a weight."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops import codec, errors, types
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.config import RunConfig
from mecharule_ops.loading import model_names, placement
from mecharule_ops.loading.shape import ModelShape, read_shape, read_tokenizer
from mecharule_ops.run import live_run, planning
from mecharule_ops.run.forecast import UNKNOWN, Forecast
from mecharule_ops.store import keys
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.tasks import base, prompt_table, task_names

if TYPE_CHECKING:
    from mecharule_ops.loading.model import Subject

PROMPTS = 256
"""Prompts of the task that are measured in tokens."""
RECORDS = 32
"""Examples that are observed, then ablated, to measure a pace."""
LAYERS, UNITS = 6, 4
"""Layers, evenly over the model, and units of each that are ablated; the first ablation warms up and is not timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutlook:
    """What one search asks for, on slices as large as they may be."""

    basis: types.Basis
    regime: types.Regime
    units: int
    """Units of the basis, or of the one layer, of which attribution keeps at most the config's cap."""
    least: planning.Rehearsed
    """If nothing flips."""
    most: planning.Rehearsed
    prediction_forwards: int
    """What first order costs before a guided search, at most; 0 for another search."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlook:
    """A run that was not started."""

    shape: ModelShape
    placed: str
    """Where the model would go and why, or why it cannot."""
    longest_prompt: int
    """Tokens."""
    searches: tuple[SearchOutlook, ...]


def outlook(config: RunConfig) -> Outlook:
    """The run that a config describes. Cost: reads small files, makes some prompts.

    Raises `UsageError` for a task that does not exist or prompts that do not fit the model, `ModelUnavailable` for
    a model that is not here or cannot be used.
    """
    task = task_names.task_of(config)
    task.describe()
    shape = read_shape(model_names.resolve(config.model, offline=True))
    check_layer(config, shape)
    searches = tuple(
        _search(config, shape, basis, types.Regime(label), task.max_new_tokens)
        for basis, label in product(config.bases, config.regimes)
    )
    try:
        placed = placement.place(shape, placement.this_machine(), config.device, config.dtype).reason
    except errors.ModelUnavailable as error:  # Nothing is loaded.
        placed = str(error)
    longest = _longest_prompt(config, task, shape)
    return Outlook(shape=shape, placed=placed, longest_prompt=longest, searches=searches)


def _search(
    config: RunConfig, shape: ModelShape, basis: types.Basis, regime: types.Regime, new_tokens: int
) -> SearchOutlook:
    settings = planning.search_settings(config, regime, config.slice_size, config.slice_size)
    # Which units attribution would keep is not known: so many of each layer alike.
    alike = np.tile(np.arange(shape.width(basis), 0.0, -1.0), (shape.n_layers, 1))
    candidates = types.Candidates.strongest(basis, alike, cap=config.cap, layer=config.layer)
    examples, units = settings.full_test, candidates.total
    # How many tokens are in reach is not known before the model wrote them: first order may be asked, or may not.
    dearest, cheapest = (
        planning.PredictionPrice.of(examples, examples * tokens, units) for tokens in (new_tokens - 1, 0)
    )
    asked = {planning.asks_first_order(config) and each.competitors > 0 for each in (cheapest, dearest)}
    none = [np.zeros(len(layer.channels)) for layer in candidates.layers]
    silent = [LayerPrediction(associated=rates, unrelated=rates, scores=rates) for rates in none]
    bounds = [
        planning.least_and_most(config, candidates, planning.plan_of(config, settings, silent if one else ()))
        for one in asked
    ]
    forwards = dearest.example_forwards or int(planning.STILL_ASKED * units * examples)
    return SearchOutlook(
        basis=basis,
        regime=regime,
        units=shape.units(basis) if config.layer is None else shape.width(basis),
        least=bounds[0][0].picked(min, bounds[-1][0]),
        most=bounds[0][1].picked(max, bounds[-1][1]),
        prediction_forwards=forwards if any(asked) else 0,
    )


def check_layer(config: RunConfig, shape: "ModelShape | Subject") -> None:
    """Raises `UsageError` for a layer or a unit given that the model does not have."""
    for unit in map(types.Neuron.parse, config.given):
        if unit.layer >= shape.n_layers or unit.channel >= shape.width(unit.basis):
            sizes = f"{shape.n_layers} layers of {shape.width(unit.basis)} {unit.basis} units"
            raise errors.UsageError(f"expected given units of {sizes}, which count from 0, got {unit}")
    if config.layer is not None and config.layer >= shape.n_layers:
        raise errors.UsageError(
            f"expected one of {shape.n_layers} layers, which count from 0, got layer {config.layer}"
        )


def _longest_prompt(config: RunConfig, task: base.Task, shape: ModelShape) -> int:
    """Tokens of the longest of the task's first prompts. Raises `UsageError` where one does not fit."""
    tokenizer = read_tokenizer(shape.directory).backend_tokenizer
    examples = task.examples(min(PROMPTS, config.records), np.random.default_rng(config.seed))
    longest = max((len(tokenizer.encode(example.prompt).ids) for example in examples), default=0)
    room = shape.positions
    if room is not None and longest + task.max_new_tokens > room:
        raise errors.UsageError(
            f"expected prompts of at most {max(0, room - task.max_new_tokens)} tokens for {config.model}, got "
            f"{longest}; shorten the few-shot lines or the completion: {task.max_new_tokens} tokens are generated"
        )
    return longest


def measured_forecast(
    config: RunConfig, found: Outlook, clock: Callable[[], float]
) -> tuple[Forecast, dict[types.Basis, float], types.Share]:
    """How long a run takes, seconds an example-forward of each basis, right answers; measured now, none is kept.

    Cost: loads the model, completes `RECORDS` prompts, 25 ablations of each basis. Raises what a run raises.
    """
    from mecharule_ops.engine.behaviour import behaviour_on

    settings = {"run": "pace", "settings": config.model_dump(mode="json", exclude={"records"})}
    with TemporaryDirectory() as folder, RunStore.create(Path(folder) / "pace.mecharule", settings) as store:
        run = live_run.Run(store)
        examples = run.task.examples(RECORDS, np.random.default_rng(config.seed))
        subject, began = run.loaded, clock()
        behaviour = behaviour_on(run.task, subject, examples)
        answer = (clock() - began) / len(examples)
        store.put(keys.RECORDS, [codec.encode(record) for record in behaviour.records])
        store.put(keys.TRAIN, np.ones(len(behaviour.records), bool))
        right = types.Share(count=int(run.labels.sum()), n=len(run.records))
        paces = dict[types.Basis, float]()
        for basis in config.bases:
            layers = np.unique(np.linspace(0, run.subject.n_layers - 1, LAYERS).astype(int)).tolist()
            some = product(range(min(UNITS, run.subject.width(basis))), layers)
            units = [(types.Neuron(basis, layer, unit),) for unit, layer in some]
            engine, everything = run.completer(run.intervention(basis)), range(len(run.records))
            engine.evaluate(units[:1], everything)
            began = clock()
            forwards = engine.evaluate(units, everything).example_forwards
            paces[basis] = (clock() - began) / max(1, forwards)
        share, made = right.count / right.n, Forecast([UNKNOWN] * (1 + 3 * len(found.searches)))
        made.accounts = config.accounts_for
        starting = [config.records * abs(1 - one.regime.value - share) for one in found.searches]
        more = planning.more_wanted(config, min(starting), config.records)
        made.parts[0] = answer * config.records, answer * (config.records + more)
        for number, one in enumerate(found.searches):
            dearest, pace = one.most.example_forwards + one.prediction_forwards, paces[one.basis]
            made.parts[1 + 2 * number] = one.least.example_forwards * pace, dearest * pace
            made.know(number, starting[number], pace)
        return made, paces, right


def settled(config: RunConfig) -> RunConfig:
    """The config with what a run over a table keeps in its task settings, unless they say so already.

    That is how many tokens an answer takes and the hash of the rows; of another task it is the config itself.

    Raises `UsageError` for a table that does not read or whose prompts and answers do not fit the model, and
    `ModelUnavailable` for a model without a tokenizer here.
    """
    task = task_names.task_of(config)
    if not isinstance(task, prompt_table.PromptTable):
        return config
    chosen = {**task_names.settings_for(config.task, config.model), **config.task_settings}
    told: dict[str, types.Value] = {"content": str(task.describe()["content"])}
    if "max_new_tokens" not in chosen:
        write = writing(task, config.model)
        told["max_new_tokens"] = task.tokens_for(lambda answer: max(count for count, _ in write(answer)))
    whole = config.model_copy(update={"task_settings": {**told, **config.task_settings}})
    shape = read_shape(model_names.resolve(config.model, offline=True))
    _longest_prompt(whole, task_names.task_of(whole), shape)
    return whole


def writing(task: prompt_table.PromptTable, model: str) -> prompt_table.Write:
    """How a model's tokenizer writes answers of a table.

    A word behind a prompt that ends without a space has one before it, as a model writes it; any other answer is
    tried with and without. Raises as `settled`.
    """
    tokenizer = read_tokenizer(model_names.resolve(model, offline=True)).backend_tokenizer
    spaced = not any(prompt[-1:].isspace() for prompt in task.questions)

    def write(answer: str) -> list[tuple[int, str]]:
        word = answer.strip()
        texts = (f" {word}",) if spaced and word[0].isalpha() else (word, f" {word}")
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        return [(len(each), tokenizer.decode(each)) for each in ids]

    return write
