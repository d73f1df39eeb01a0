"""Headless runs: from a validated config to findings, with the price asked first and nothing lost on a stop."""

from __future__ import annotations

import json
import math
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agent.consent import says_yes
from mecharule_ops import codec, errors, events
from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.facts.examples import example_of
from mecharule_ops.facts.fact import said
from mecharule_ops.findings.records import Findings, to_json
from mecharule_ops.loading import model_names, placement
from mecharule_ops.loading.shape import read_shape
from mecharule_ops.numbers import k_of_n, plural, time_range
from mecharule_ops.pages import as_text, document
from mecharule_ops.run import forecast, live_run, opening, outlook, planning
from mecharule_ops.store import run_directory, run_store
from mecharule_ops.tasks import prompt_table, table_check, task_names, text
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import Basis, Regime, Share
from tools.result import WIDTH, ToolResult

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from agent.chat_models import Choice

Show = Callable[[events.Event], None]
CALIBRATED = 4 * 10**9
"""Bytes of the largest weights that a dry run loads to measure a pace."""
UNKNOWN = Share(count=0, n=0)
FORECASTS: dict[str, forecast.Forecast] = {}
"""What was said of runs before they began, by their settings."""
AGAIN = ("seed", "prefix", "template", "chat_before", "chat_behind")
"""In which settings, the task's too, another run may differ from the first: seed and prompts."""


def config_from(
    *,
    base: RunConfig | None = None,
    file: str | None = None,
    settings: Sequence[tuple[str, object]] = (),
    bases: str | None = None,
    reading: Mapping[str, Any] = MappingProxyType({}),
    **flags: object,
) -> RunConfig:
    """A config from another, a JSON file, KEY=VALUE settings and flags, the later winning. Raises `UsageError`.

    `reading` says how a table is read (`prompt_settings`).
    """
    chosen: dict[str, object] = base.model_dump(mode="json") if base else {}
    if base and flags.get("task") and task_names.findable(str(flags["task"])) != base.task:
        del chosen["task_settings"]
    chosen |= _read(file) if file else {}
    task_settings = chosen.pop("task_settings", {})
    model = flags.get("model") or chosen.get("model")
    for key, value in (*settings, *prompt_table.prompt_settings(**reading, model=model)):
        if key.startswith("task.") and isinstance(task_settings, Mapping):
            task_settings = {**task_settings, key.removeprefix("task."): value}
        else:
            chosen[key] = value
    chosen |= {key: value for key, value in flags.items() if value is not None and value is not False}
    if bases is not None:
        chosen["bases"] = tuple(bases.split(","))
    if "task" in chosen:
        chosen["task"] = task_names.findable(str(chosen["task"]))
    if chosen.get("proposer") == "none":
        chosen["proposer"] = "offline"
    return make_config(**{"task_settings": task_settings, **chosen})


def _read(file: str) -> Mapping[str, object]:
    try:
        content = codec.parse_json(Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise errors.UsageError(f"expected a JSON file of settings, got {file}: {error}") from error
    if not isinstance(content, dict):
        raise errors.UsageError(f"expected a JSON object of settings in {file}, got {type(content).__name__}")
    return content


# --- what a run would do -----------------------------------------------------------------------------------


def plan(config: RunConfig, runs: int = 1) -> ToolResult:
    """What would run and what it costs (`--dry-run`); a weight is loaded for the pace alone. Raises as `outlook`."""
    config = outlook.settled(config)
    found, task = outlook.outlook(config), task_names.task_of(config)
    if isinstance(task, text.TextTask):
        table_check.rehearse(task)
    rows = getattr(task, "questions", range(config.records))
    asked = config.model_copy(update={"records": min(config.records, len(rows))})
    ahead, paces, right, measured = _forecast(asked, found)
    FORECASTS[config.model_dump_json()] = ahead
    warnings = list(dict.fromkeys(_warnings(asked, task, right)))
    settings = config.model_dump(mode="json") | {"task_settings": dict(task.describe())}
    shape, weights, free = found.shape, 4 * found.shape.parameters, placement.free_memory()
    units = {basis.value: shape.units(basis) for basis in Basis}
    told = {
        f"{one.basis.value} {one.regime.arrow}": _priced(asked, one, paces, right) for one in found.searches
    }
    told |= {
        "the model": f"{shape.hf.config.model_type}, {shape.n_layers} layers of width {shape.d_model:,}, "
        f"{shape.n_heads} heads, {shape.parameters / 1e6:,.3g} M parameters, in {shape.directory}",
        "units": ", ".join(f"{basis} {count:,}" for basis, count in units.items()),
        "prompts": f"at most {found.longest_prompt} tokens",
        "memory": f"{weights / 1e9:.2f} GB of weights in float32; {free / 1e9:.2f} GB free; {found.placed}",
    }
    if config.budget:
        told["budget"] = f"{config.budget:,} group ablations for all searches together, one after the other"
    lines = [_total(asked, found, ahead, runs), *[f"could go wrong: {warning}" for warning in warnings], ""]
    lines += [f"{name:18} {line}" for name, line in told.items()]
    lines += ["", measured, "Nothing was searched; a yes begins it (--yes agrees beforehand)."]
    planned: dict[str, object] = {"dry_run": True, "settings": settings, "warnings": warnings}
    planned["model"] = {"directory": str(shape.directory), "parameters": shape.parameters, "units": units}
    planned["memory"] = {"weights": weights, "free": free, "placed": found.placed}
    planned["searches"] = [codec.encode(search) for search in found.searches]
    planned["seconds_a_forward"] = dict(paces)
    return ToolResult(data=planned, text="\n".join(lines))


def _total(config: RunConfig, found: outlook.Outlook, ahead: forecast.Forecast, runs: int) -> str:
    """How long all takes together."""
    if (left := ahead.left()) is None:
        most = sum(search.most.example_forwards for search in found.searches)
        return said("price.unknown", most=runs * most)
    what = plural(runs, "run") if runs > 1 else "both directions" if config.regimes[1:] else "the run"
    return said("price.total", time=time_range(runs * left.least, runs * left.most), what=what)


def _forecast(
    config: RunConfig, found: outlook.Outlook
) -> tuple[forecast.Forecast, Mapping[Basis, float], Share, str]:
    """How long a run takes, its paces and right answers, measured now unless that is long; and a sentence."""
    unknown = forecast.Forecast([forecast.UNKNOWN] * (1 + 3 * len(found.searches)))
    if (weights := 4 * found.shape.parameters) > CALIBRATED:
        return unknown, {}, UNKNOWN, said("price.unmeasured", size=weights / 1e9)
    try:
        return *outlook.measured_forecast(config, found, time.monotonic), said("price.measured")
    except errors.MechaRuleError as error:
        return unknown, {}, UNKNOWN, said("price.failed", error=error)


def _warnings(config: RunConfig, task: Task, right: Share) -> Iterator[str]:
    """What the settings, a table and the answers that were tried say of a run that can show little."""
    if config.records < table_check.FEW:
        yield table_check.too_few(f"{config.records} records", 0)
    if config.slice_size < (least := config.least_slice):
        yield f"a half of {config.slice_size} answers can rule no unit out, which takes --set slice_size={least}"
    if isinstance(task, prompt_table.PromptTable):
        write = outlook.writing(task, config.model)
        yield from (*table_check.warnings_of(task, write), *prompt_table.unused(task, config.model))
    needed = config.least_slice * (config.search != "exhaustive")
    for regime in map(Regime, config.regimes):
        start, word = _starting(right, regime), task.words.of(bool(regime.value))
        yield from table_check.expected_few(start, config.records, regime, word, needed)


def _starting(right: Share, regime: Regime) -> Share:
    """Of the answers tried those that a direction starts from."""
    return right if regime.value else Share(count=right.n - right.count, n=right.n)


def _priced(
    config: RunConfig, search: outlook.SearchOutlook, paces: Mapping[Basis, float], right: Share
) -> str:
    """What a search asks, by the pace and the right answers that are known.

    Of so few answers that no half could rule a unit out nothing is asked.
    """
    price = planning.price_of(search.least, search.most, paces.get(search.basis, math.nan))
    said = f"{price.ablations} on {search.units:,} units, {price.time}, at most "
    said += f"{search.most.example_forwards:,} example-forwards"
    if search.prediction_forwards:
        said += f", first-order predictions before it at most {search.prediction_forwards:,} more"
    start = _starting(right, search.regime).count
    expected = config.records * (1 - config.test_share) * start / max(1, right.n)
    if right.n and config.search != "exhaustive" and expected < 2 * config.least_slice:
        return f"probably nothing, since {start} of {right.n} answers tried start there; else {said}"
    return said


# --- who says yes ------------------------------------------------------------------------------------------


def priced(config: RunConfig, runs: int = 1) -> str:
    """What could go wrong and what a run of all its searches costs, as a dry run says it."""
    return plan(config, runs).text.partition("\nNothing was searched")[0]


def ask_price(config: RunConfig, runs: int = 1) -> None:
    """Ask the person at the terminal for a yes, before anything is ablated. Raises `UsageError` where there is none.

    How long it takes and what could go wrong stand there; `--dry-run` says the rest.
    """
    if not sys.stdin.isatty():
        raise errors.UsageError(
            "expected --yes, or --budget N to cap the price, since nobody is there to be asked; --dry-run tells it"
        )
    brief = priced(config, runs).partition("\n\n")[0]
    if not says_yes(f"{brief}\n{said('price.keys')} · --dry-run says more"):
        raise errors.UsageError("expected a yes to the price; add --yes, or --budget N to cap it")


# --- a run to its end --------------------------------------------------------------------------------------


def start(
    config: RunConfig,
    show: Show,
    should_stop: Callable[[], bool] = lambda: False,
    llm_budget: int | None = None,
    source: str | None = None,
    granted: bool = True,
    again_of: str | None = None,
    name: str | None = None,
) -> ToolResult:
    """A new run in the runs directory, to its end, its id `name` if one is given.

    A task or model that does not exist leaves no run behind.

    Its price is asked for unless it was `granted`. Of the run `again_of`, if one is named, it is another with other
    draws, which hears what it shows.
    `llm_budget` bounds the tokens of the language model that proposes predicates.
    What the run `source` observed and ablated is taken over, where the settings leave it as it is.
    """
    task_names.task_of(config).describe()
    shape = read_shape(model_names.resolve(config.model))
    outlook.check_layer(config, shape)
    placement.place(shape, placement.this_machine(), config.device, config.dtype)
    config = outlook.settled(config)
    _asked(config)
    if not granted:
        ask_price(config)
    with ExitStack() as closing:
        earlier = None
        if source is not None:
            path = run_directory.find_run(source, run_directory.runs_directory())
            earlier = closing.enter_context(run_store.RunStore.open(path, read_only=True))
            if other := opening.observed_otherwise(live_run.Run(earlier).config, config):
                said = f"run {path.stem} had another {', '.join(other)}: all is observed and asked anew"
                show(events.Notice(text=said))
                earlier = None
        store = closing.enter_context(opening.begun(config, earlier, again_of, name))
        return _finish(live_run.Run(store, should_stop), show, llm_budget)


def run_again(
    first: str, config: RunConfig, runs: int, show: Show, *, granted: bool, llm_budget: int | None
) -> ToolResult:
    """More runs like the first with other draws, one after the other, and what that one found, counted over them.

    Each has the next seed; `config` may have other prompts too. Raises `UsageError` where it differs in more.
    """
    path = run_directory.find_run(first, run_directory.runs_directory())
    with opening.opened(str(path)) as known:
        made, base = opening.findings_of(known).again, known.config
    asked, had = ({**dict(one), **one.task_settings, "task_settings": None} for one in (config, base))
    if differ := [name for name in asked | had if name not in AGAIN and asked.get(name) != had.get(name)]:
        raise errors.UsageError(
            f"expected run {path.stem}'s settings but seed and prompts, got another {', '.join(differ)}; drop --again"
        )
    seed = max(config.seed, base.seed + 1, *(one.seed + 1 for one in made))
    if not granted:
        ask_price(config, runs)
    for nth in range(runs):
        start(config.model_copy(update={"seed": seed + nth}), show, again_of=path.stem, llm_budget=llm_budget)
    with opening.opened(str(path)) as known:
        return report_of(known.findings, example_of(known))


def run_peeled(
    rounds: int, config: RunConfig, show: Show, *, source: str | None, granted: bool, llm_budget: int | None
) -> ToolResult:
    """A run, then up to `rounds` more, each without the units that those before it found; a table of all.

    Found are the shown units of the first direction, where none can be shown the strongest τ-agonist; without any it
    ends. Later runs are named after the first and take over what the whole model did.
    """
    if not granted:
        ask_price(config, rounds + 1)
    first = run_directory.new_run_id(run_directory.runs_directory(), secrets.token_hex)
    told, rows, gone, under = list[ToolResult](), list[tuple[str, ...]](), config.given, ""
    for name in (first, *(f"{first}{turn}" for turn in range(1, rounds + 1))):
        changed = make_config(**{**config.model_dump(mode="json"), "given": gone})
        try:
            told.append(start(changed, show, llm_budget=llm_budget, source=source, name=name))
        except errors.DegenerateBehaviour as error:
            if not told:
                raise
            under = f"Without {', '.join(changed.given)}: {error}"
            break
        with opening.opened(name) as run:
            findings = run.findings
        units = [unit for unit in findings.by_evidence(Regime(config.regimes[0])) if unit.is_tau_agonist]
        strongest = sorted(units, key=lambda unit: -unit.estimate.strength)[:1]
        found = [str(unit.neuron) for unit in [unit for unit in units if unit.is_shown] or strongest]
        said = ", ".join(found) + " (the strongest; none is shown)" * (bool(units) and not units[0].is_shown)
        rows.append((name, ", ".join(changed.given) or "none", k_of_n(findings.task_score), said or "none"))
        if not found:
            break
        source, gone = name, (*gone, *found)
    header = ("run", "units gone", findings.words.success, "units found")
    table = as_text.block_lines(document.Table(header=header, rows=tuple(rows), align="llrl"), WIDTH)
    data = {**told[0].data, "rounds": [dict(zip(header, row, strict=True)) for row in rows]}
    return replace(told[0], data=data, text="\n".join([told[0].text, "", *table, *filter(None, [under])]))


def resume(
    run: str,
    show: Show,
    should_stop: Callable[[], bool] = lambda: False,
    llm_budget: int | None = None,
    device: str | None = None,
) -> ToolResult:
    """An earlier run, from where it was. `device` is where it goes on; one that is finished stays as it is.

    Raises `UsageError` for a device that is not here.
    """
    path = run_directory.find_run(run, run_directory.runs_directory(), to_resume=True)
    with run_store.RunStore.open(path, read_only=True) as store:
        known = live_run.Run(store)
        config = known.config
        if device is not None:
            placement.place(
                read_shape(model_names.resolve(config.model)), placement.this_machine(), device, known.dtype
            )
        if known.finished and not known.findings.cut_short:
            told = f"`mecharule show {path.stem}` tells what it found"
            said = f"run {path.stem} is finished, nothing is left to do; {told}"
            return ToolResult(data={"run": path.stem, "finished": True}, text=said)
    with run_store.RunStore.open(path) as store:
        return _finish(live_run.Run(store, should_stop, device), show, llm_budget)


def config_of(run: str) -> RunConfig:
    """The settings of a stored run."""
    with opening.opened(run) as known:
        return known.config


def _asked(config: RunConfig, budget: int | None = None) -> tuple[Choice, BaseChatModel] | None:
    """The language model that the config names; None for the offline grammar. Raises what making it raises."""
    if config.proposer == "offline":
        return None
    from agent.chat_models import chat_model, choose

    return (choice := choose(config.proposer, budget=budget)), chat_model(choice)


def _finish(run: live_run.Run, show: Show, llm_budget: int | None) -> ToolResult:
    from mecharule_ops.run.analyse import analyse_run

    def emit(event: events.Event) -> None:
        run.store.append([event])
        show(event)

    proposer = None
    if (asked := _asked(run.config, llm_budget)) is not None:
        from agent.proposals import ModelProposer

        meanings = {name: words.noun for name, words in run.task.wording.items()}
        of_run: dict[str, Any] = {"task": run.config.task, "seed": run.config.seed, "store": run.store}
        of_run |= {"rounds": max(1, run.config.proposals), "meanings": meanings, "emit": emit}
        proposer = ModelProposer(model=asked[1], choice=asked[0], **of_run)
    told = FORECASTS.pop(run.config.model_dump_json(), None)
    findings = analyse_run(run, show, clock=time.monotonic, proposer=proposer, forecast=told)
    return report_of(findings, example_of(run))


def report_of(findings: Findings, example: str = "") -> ToolResult:
    """What a run found as a tool's result, its text one screen.

    Exit code 5 when it was cut short, 1 when nothing was searched.
    """
    from mecharule_ops.pages.screen import screen

    nothing = all(search.nothing_searched for search in findings.searches)
    return ToolResult(
        data=json.loads(to_json(findings)),
        text=screen(findings, example),
        exit_code=errors.BudgetSpent.exit_code if findings.cut_short else int(nothing),
    )
