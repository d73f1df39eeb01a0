"""A solver: trees that say what the right answer is, from columns alone; no unit of the model has a part in it.

It reads the columns that the gates may read, without the units' own, and decides what a repair shows: what it does as
well as the gates needs no units. It is learned from the find records' answers known to be right. Of few distinct
answers each is a class; else each character is, counted from the last, so that digits of one place stand together.
How sure it is of an answer is the product over characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Float32, Int

from mecharule_ops.findings.repair_outcome import ControlKind, RepairControl
from mecharule_ops.repair.gates import most_gained
from mecharule_ops.repair.material import Material
from mecharule_ops.repair.readings import predicates_of
from mecharule_ops.repair.testing import Tested, acted
from mecharule_ops.rules.boosting import parameters

FEW, LONGEST = 12, 12
"""Distinct answers that are classes as they are; characters of a longer answer are not learned."""
SURE = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""How sure it must be to answer; of 1.0 it never is."""
_OWN = {"objective": "multi:softprob", "eta": 0.3, "subsample": 0.8, "colsample_bynode": 0.3, "max_bin": 64}
"""What its trees have beyond all trees here."""
_DEPTH, _ROUNDS = 6, 60


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """Trees of each place of an answer, the last place first."""

    places: tuple[tuple[xgb.Booster | None, tuple[str, ...]], ...]
    """With what can stand there, empty before the answer's first character; no trees where that is one text."""

    def answers(
        self, features: Float32[np.ndarray, "record column"]
    ) -> tuple[list[str], Float[np.ndarray, " record"]]:
        """(the answer to each record, how sure it is)."""
        data = xgb.DMatrix(features, nthread=1)
        said, sure = np.full(len(features), "", object), np.ones(len(features))
        for booster, texts in self.places:
            likely = np.ones((len(features), 1)) if booster is None else booster.predict(data)
            said = np.array(texts, object)[likely.argmax(1)] + said
            sure = sure * likely.max(1)
        return said.tolist(), sure


def learned(
    features: Float32[np.ndarray, "record column"], answers: Sequence[str], seed: int
) -> Solver | None:
    """Trees of what the answers are; None of free texts, many and long.

    Cost: no model call.
    """
    few = len(set(answers)) <= FEW
    longest = 1 if few else max(map(len, answers))
    if longest > LONGEST:
        return None
    places = []
    for place in range(longest):
        here = [one if few else one[::-1][place : place + 1] for one in answers]
        texts, labels = np.unique(here, return_inverse=True)
        settings = {**parameters(_DEPTH, seed), **_OWN, "num_class": len(texts)}
        data = xgb.DMatrix(features, label=labels, nthread=1)
        booster = xgb.train(settings, data, _ROUNDS) if len(texts) > 1 else None
        places.append((booster, tuple(texts.tolist())))
    return Solver(tuple(places))


def sure_enough(
    sure: Float[np.ndarray, " record"],
    right: Bool[np.ndarray, " record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """Of `SURE` the least with which its answers fix most for what they break; the highest on a tie."""
    return most_gained(SURE, lambda least: np.where(sure >= least, right, before), before, harm)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadySolver:
    """A solver before the test records are opened."""

    found: Material
    """As it is without units."""
    solver: Solver
    texts: tuple[str, ...]
    """Predicates that it reads, beside the numbers; cut on the find records."""
    least: float
    """How sure it must be to answer; the choose records chose it."""

    def controls(self, tested: Tested) -> tuple[RepairControl, ...]:
        """Its answers where the gates act, and anywhere. Cost: no model call beyond the clean run's columns."""
        right, sure = self.outcomes(self.found.test)
        before = self.found.good[self.found.test]
        return tuple(
            tested.beside(kind, f"sure at {self.least:g}", np.where(where, right, before), where)
            for kind, where in (
                (ControlKind.SOLVER, (sure >= self.least) & acted(tested.acts)),
                (ControlKind.SOLVER_ALONE, sure >= self.least),
            )
        )

    def outcomes(
        self, positions: Int[np.ndarray, " some"]
    ) -> tuple[Bool[np.ndarray, " some"], Float[np.ndarray, " some"]]:
        """(the wanted outcome of each record under its answer, how sure it is)."""
        found = self.found
        said, sure = self.solver.answers(found.readings(positions).features(found.units[0], self.texts))
        return found.answered(found.at(positions), said), sure


def solver(given: Material) -> ReadySolver | None:
    """A solver from the find records; None where answers are free texts, or none of another record ever fits.

    Cost: no model call beyond the clean run's columns.
    """
    found = given.without_units
    readings, split = found.readings(found.learn), len(found.find)
    prompt = found.predicates(readings, found.learn)
    texts = predicates_of(readings, found.units[0], prompt, np.arange(split)).texts
    features = readings.features(found.units[0], texts)
    known = {place: answer for place, answer in enumerate(right_answers(found)) if answer is not None}
    made = learned(features[list(known)], list(known.values()), found.run.config.seed) if known else None
    if made is None:
        return None
    trial = ReadySolver(found=found, solver=made, texts=texts, least=0.0)
    right, sure = trial.outcomes(found.learn)
    good, harm = found.good[found.learn], found.request.learning.harm
    return replace(trial, least=sure_enough(sure[split:], right[split:], good[split:], harm))


def right_answers(found: Material) -> list[str | None]:
    """An answer of the wanted outcome to each find record: its own, else the commonest of others that fits it too."""
    records, good = found.at(found.find), found.good[found.find]
    said = [record.completion.strip() for record in records]
    common = [text for text, _ in Counter(np.array(said, object)[good].tolist()).most_common()]
    wanted, label = not found.request.regime.value, found.run.task.label

    def fits(place: int, text: str) -> bool:
        return label(records[place].example, text) == wanted

    return [
        next((text for text in ([said[place]] if good[place] else common) if fits(place, text)), None)
        for place in range(len(records))
    ]
