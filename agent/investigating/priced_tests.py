"""Every test that could be made now, with its price and with what it would tell, in bits, best per forward first.

What is stored costs nothing and comes first. A test of which nothing can be known yet (the first look at a unit's train
flips, the clean leads) is taken to tell `UNKNOWN` bits. Nothing here reads a held-out flip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from jaxtyping import Bool, Float

from agent.investigating.comparing import comparison_of, pairs_of
from agent.investigating.investigation import (
    AskedUnits,
    InvestigationState,
    Kind,
    Rival,
    Step,
    affordable,
    is_open,
    is_tested,
    kept,
)
from mecharule_ops.rules.rivals import bits
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import Part, drawn, fires, forwards_missing
from mecharule_ops.store.ledger import LEAST_CLASS
from mecharule_ops.types import Neuron, Regime
from tools._ablations import price_words

LOOK = 128
"""Train records of a first look."""
LEAST_LOOK = 32
"""Stored train records with which none is needed."""
SIZES = (64, 128, 256)
"""Held-out records of a test; all of them beyond."""
ENOUGH = 8.0
"""Bits from which a larger test is not bought."""
UNKNOWN = 1.0
LEAST_APART = 12
"""Held-out records on which two rivals part, below which they are not compared there; `LEAST_CLASS` on each side."""
LEAST_BITS = 0.05


def offers(run: Run, state: InvestigationState) -> list[Step]:
    """All tests that are left, those that tell most a forward first."""
    found = chain.from_iterable(_of(run, state, asked) for asked in state["asked"])
    done = [(step["kind"], step["units"], step["rivals"]) for step in state.get("steps", [])]
    told = [
        step
        for step in found
        if step["bits"] >= LEAST_BITS and (step["kind"], step["units"], step["rivals"]) not in done
    ]
    return sorted(
        told, key=lambda step: (step["forwards"] > 0, -step["bits"] / max(1, step["forwards"]), step["units"])
    )


def looked(state: InvestigationState, asked: AskedUnits) -> int:
    """Train records of the unit's draw that rivals may be made from."""
    looks = [
        step["n"]
        for step in state.get("steps", [])
        if step["kind"] == "look" and step["units"] == asked["units"]
    ]
    return max([asked["train"], *looks])


def of_unit(state: InvestigationState, asked: AskedUnits) -> list[Rival]:
    """The rivals of what was asked, best on train first."""
    unit = "+".join(asked["units"])
    return by_fit([rival for rival in state.get("rivals", []) if rival["unit"] == unit])


def by_fit(rivals: Sequence[Rival]) -> list[Rival]:
    """By falling MCC on train records, then as they were proposed."""
    return sorted(rivals, key=lambda rival: -rival["mcc"])


def has_leads(state: InvestigationState) -> bool:
    """Whether the clean leads may be read."""
    return state["leads"] or any(step["kind"] == "leads" for step in state.get("steps", []))


def predicted(
    rivals: Sequence[Rival], holds: Bool[np.ndarray, "rival record"]
) -> Float[np.ndarray, "rival record"]:
    """Each rival's flip probability on each record, from its train rates."""
    rates = [
        ((inside + 0.5) / (n + 1), (outside + 0.5) / (other + 1))
        for inside, n, outside, other in (rival["train"] for rival in rivals)
    ]
    return np.array([np.where(held, p, q) for held, (p, q) in zip(holds, rates, strict=True)])


def _of(run: Run, state: InvestigationState, asked: AskedUnits) -> Iterator[Step]:
    group, regime = tuple(map(Neuron.parse, asked["units"])), Regime(asked["regime"])
    rivals = of_unit(state, asked)
    if len(group) == 2:
        if any(map(is_open, rivals)):
            yield _pair(run, asked, rivals)
        return
    if not rivals and looked(state, asked) < LEAST_LOOK:
        yield step_of(run, "look", asked, [], drawn(run, regime, Part.TRAIN, LOOK), UNKNOWN)
        return
    alive = [rival for rival in rivals if is_open(rival)]
    if not alive:
        return
    leads = None
    if not has_leads(state) and not is_tested(state, asked["units"]):
        leads = step_of(run, "leads", asked, [], np.arange(len(run.observed.records)), UNKNOWN)
        yield leads
    if leads is None or not affordable(leads, state):
        # Rivals are all registered before any of them is decided.
        yield from _tests(run, state, asked, list(filter(kept, rivals)))


def _tests(run: Run, state: InvestigationState, asked: AskedUnits, tested: Sequence[Rival]) -> Iterator[Step]:
    """Of what is open: tables, the largest that can be paid last, and comparisons of the best on train.

    How many records a table reads follows from train records and the purse, and from no held-out flip: it is fixed
    before the unit's first comparison, which is offered where both can be paid.
    """
    places = drawn(run, Regime(asked["regime"]), Part.HELD_OUT)
    alive = list(filter(is_open, tested))
    told = _told(run, alive, places)
    enough = _enough(_told(run, tested, places))
    smaller = [size for size in reversed(SIZES) if size < enough]
    for size in _fixed(state, asked) or (enough, *smaller):
        table = step_of(run, "table", asked, alive, places[:size], float(told[:size].sum()))
        yield table
        if affordable(table, state):
            break
    for pair in pairs_of(alive):
        sides = comparison_of(run, *pair).sides[:, places]
        apart = np.flatnonzero(sides[0] != sides[1])
        read = np.union1d(apart, np.arange(table["n"]))
        both = step_of(run, "table", asked, alive, places[read], 0.0)
        least = min((sides[0] & ~sides[1]).sum(), (sides[1] & ~sides[0]).sum())
        if (
            len(apart) >= LEAST_APART
            and least >= LEAST_CLASS
            and affordable(both, state) >= affordable(table, state)
        ):
            tells = float(bits(predicted(pair, _holds(run, pair, places)))[apart].sum())
            duel = step_of(run, "duel", asked, pair, places[apart], tells)
            yield {**duel, "table": table["n"]}


def _fixed(state: InvestigationState, asked: AskedUnits) -> tuple[int, ...]:
    """Records of the unit's table, where one was fixed."""
    steps = state.get("steps", [])
    return tuple(
        step["table"] for step in steps if step["kind"] == "duel" and step["units"] == asked["units"]
    )[:1]


def _told(run: Run, rivals: Sequence[Rival], places: np.ndarray) -> Float[np.ndarray, " record"]:
    """What each record tells apart among the rivals and that none of them is so."""
    total = np.array(rivals[0]["train"]).reshape(2, 2).sum(0)
    never = np.full((1, len(places)), (total[0] + 0.5) / (total[1] + 1))
    return bits(np.concatenate([predicted(rivals, _holds(run, rivals, places)), never]))


def _enough(told: Float[np.ndarray, " record"]) -> int:
    return next((size for size in SIZES if told[:size].sum() >= ENOUGH and size < len(told)), len(told))


def _holds(run: Run, rivals: Sequence[Rival], places: np.ndarray) -> Bool[np.ndarray, "rival record"]:
    return np.array([fires(run, rival["condition"])[places] for rival in rivals])


def _pair(run: Run, asked: AskedUnits, rivals: Sequence[Rival]) -> Step:
    places = drawn(run, Regime(asked["regime"]), Part.HELD_OUT, SIZES[-1])
    return step_of(run, "together", asked, rivals, places, UNKNOWN)


def groups_of(kind: Kind, asked: Sequence[str]) -> list[tuple[Neuron, ...]]:
    """What a test ablates: the unit; of two their ablation together and each alone."""
    units = tuple(map(Neuron.parse, asked))
    return [units, (units[0],), (units[1],)] if kind == "together" else [units]


def step_of(
    run: Run, kind: Kind, asked: AskedUnits, rivals: Sequence[Rival], places: np.ndarray, tells: float
) -> Step:
    """A test on these records, priced: what is stored costs nothing."""
    missing = sum(forwards_missing(run, group, places) for group in groups_of(kind, asked["units"]))
    price = price_words(run, len(places) if kind == "leads" else missing)
    return Step(
        kind=kind,
        units=asked["units"],
        regime=asked["regime"],
        rivals=[rival["id"] for rival in rivals],
        n=len(places),
        bits=round(tells, 3),
        forwards=price.example_forwards,
        seconds=price.seconds,
        table=0,
    )
