"""Rivals of one unit: what its flips on train records suggest, each with the threshold that will decide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from agent.investigating.asking import LEAD
from agent.investigating.investigation import QUESTION, AskedUnits, Rival
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.rules.interval import fisher_p
from mecharule_ops.rules.matthews import mcc
from mecharule_ops.rules.rivals import Fit, best_fit
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import LEAST_LEAD, Part, columns_of, drawn, fires
from mecharule_ops.tasks.rival_families import RivalFamily, families_of
from mecharule_ops.types import Columns, FlipsWhere, Neuron, Regime

MOST, BESIDE = 6, 2
"""Rivals that are registered of one unit, and beside those that the question names."""
CHANCE = 0.05
"""Fisher's p on train records above which a template is dropped unless the question names it."""
LEADS_CUT = np.arange(1, 10) / 10
OFFLINE = "offline"
STATED = "as the question states it"


def proposed(
    run: Run, asked: AskedUnits, n: int, *, leads: bool, extra: Sequence[str] = (), by: str = OFFLINE
) -> list[Rival]:
    """Rivals of the asked unit without their ids, the best on train first; dropped ones last.

    A family's best predicate speaks for it. Only the first `n` train records of the draw are read. Cost: none, where
    their flips are stored. Raises `UsageError` on an `extra` predicate that does not read.
    """
    regime, unit = Regime(asked["regime"]), Neuron.parse(asked["units"][0])
    train = drawn(run, regime, Part.TRAIN, n)
    flips = run.flips([(unit,)], train, regime)[0]
    columns = {name: column[train] for name, column in columns_of(run).items()}
    make = partial(_rival, run, asked, flips)
    found = [
        make(family.name, fit, OFFLINE)
        for family in _families(run, columns, leads=leads)
        if (fit := best_fit(family.predicates, _fires(family.predicates, columns), flips)) is not None
    ]
    stated = [(text, QUESTION) for text in asked["claims"]] + [(text, by) for text in extra]
    found += [
        make(_family_of(author), _as_stated(run, text, train, flips), author) for text, author in stated
    ]
    return _kept(_distinct(found), asked)


def _families(run: Run, columns: Columns, *, leads: bool) -> Iterator[RivalFamily]:
    yield from families_of(run.task, run.columns)
    if leads:
        cuts = np.unique(np.nanquantile(columns[LEAST_LEAD], LEADS_CUT).round(3))
        texts = tuple(f"{LEAST_LEAD} < {cut}" for cut in cuts.tolist())
        yield RivalFamily(name=LEAD, words=(), predicates=texts)


def _fires(texts: Sequence[str], columns: Columns) -> np.ndarray:
    schema = schema_of(columns)
    return np.array([evaluate(parse_predicate(text, schema), columns) for text in texts])


def _as_stated(run: Run, text: str, train: np.ndarray, flips: np.ndarray) -> Fit:
    """A predicate as it was put, whichever way its train flips lie."""
    holds = fires(run, text)[train]
    return Fit(condition=str(Rule.parse(text)), mcc=mcc(holds, flips), where=FlipsWhere.of(holds, flips))


def _family_of(author: str) -> str:
    return STATED if author == QUESTION else f"proposed by {author}"


def _rival(run: Run, asked: AskedUnits, flips: np.ndarray, family: str, fit: Fit, by: str) -> Rival:
    inside, outside = fit.where.holds, fit.where.elsewhere
    p = fisher_p(inside.flips, inside.n, int(flips.sum()), len(flips))
    named = family in asked["families"] or by == QUESTION
    words = asked["claims"].get(fit.condition) or rule_in_words(fit.condition, run.task)
    made = _undecided(asked["units"][0], asked["regime"], family, fit.condition, words, fit.threshold)
    return {
        **made,
        "less": "" if by == QUESTION else _contrary(fit.condition, run.task),
        "by": QUESTION if named else by,
        "train": [inside.flips, inside.n, outside.flips, outside.n],
        "mcc": round(fit.mcc, 4),
        "state": "open" if named or p <= CHANCE else "dropped",
    }


def _contrary(condition: str, task: object) -> str:
    """The words of the predicate whose contrary the condition is; empty for any other."""
    clauses = Rule.parse(condition).clauses
    first = clauses[0].conditions[0]
    alone = len(clauses) == len(clauses[0].conditions) == 1
    return "" if first.value or not alone else rule_in_words(first.predicate, task)


def _undecided(unit: str, regime: int, family: str, condition: str, words: str, threshold: float) -> Rival:
    """A rival before anything is known of it."""
    return Rival(
        id="",
        unit=unit,
        regime=regime,
        family=family,
        condition=condition,
        words=words,
        less="",
        by=OFFLINE,
        train=[],
        mcc=0.0,
        threshold=threshold,
        hypothesis="",
        state="open",
        held_out=[],
        value=None,
        low=None,
        high=None,
        p=None,
        mcc_held_out=None,
        beside=[],
    )


def _distinct(found: Sequence[Rival]) -> list[Rival]:
    """One a condition; that which the question named stays."""
    kept: dict[str, Rival] = {}
    for rival in sorted(found, key=lambda rival: (rival["by"] != QUESTION, -rival["mcc"])):
        kept.setdefault(rival["condition"], rival)
    return list(kept.values())


def _kept(found: Sequence[Rival], asked: AskedUnits) -> list[Rival]:
    """The named ones and the best beside them, best first; then what is dropped."""
    ranked = sorted(found, key=lambda rival: -rival["mcc"])
    named = [rival for rival in ranked if rival["by"] == QUESTION]
    others = [rival for rival in ranked if rival["by"] != QUESTION and rival["state"] == "open"]
    room = BESIDE if named else MOST
    kept = sorted([*named, *others[:room]], key=lambda rival: -rival["mcc"])
    left = [{**rival, "state": "dropped"} for rival in ranked if rival not in kept]
    return [*kept, *left]  # type: ignore[list-item]


def of_pair(unit: str, regime: int, condition: str, threshold: float) -> Rival:
    """A rival about two units ablated together: no train records are looked at for it."""
    return _undecided(unit, regime, "two units together", condition, condition, threshold)
