"""What could be done about the answers without the gates' units: the runner-up written there, and a solver.

The solver is trees that say what the right answer is, from the columns that gates read. It is learned from the find
records' answers known to be right: of few distinct answers each is a class; else each character is, counted from the
last, so that digits of one place stand together. How sure it is of an answer is the product over characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Float32, Int

from mecharule_ops.gates.choosing import gained
from mecharule_ops.gates.material import Material
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.boosting import parameters

FEW, LONGEST = 12, 12
"""Distinct answers that are classes as they are; characters of a longer answer are not learned."""
SURE = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""How sure it must be to answer; of 1.0 it never is."""
_OWN = {"objective": "multi:softprob", "eta": 0.3, "subsample": 0.8, "colsample_bynode": 0.3, "max_bin": 64}
"""What its trees have beyond all trees here."""
_DEPTH, _ROUNDS = 6, 60


def runner_up(found: Material, positions: Int[np.ndarray, " some"]) -> Bool[np.ndarray, " some"]:
    """The wanted outcome where the second-best token is written once, at the position of least lead in reach.

    From there the model goes on greedily; a record without a position in reach stays as it is.
    Cost: the clean run's leads, and a completion a record.
    """
    run, task, subject = found.run, found.run.task, found.run.subject
    records, labels = found.at(positions), found.good[positions]
    if not records:
        return labels
    table = run.replacement(run.intervention(found.asked.basis))
    leads = effects(subject, records, table, found.units[:1], effect=Effect.DIRECT).leads
    least = np.where(np.isfinite(leads.lead[:, :, 0]), leads.lead[:, :, 0], np.inf)
    at = np.where(np.isfinite(least).any(1), least.argmin(1), -1)
    prompts, stop = subject.encode([record.example.prompt for record in records]), subject.stop_ids(task.stop)
    for place in np.unique(at[at >= 0]).tolist():
        rows = np.flatnonzero(at == place)
        written = [(*records[row].tokens[:place], int(leads.token[row, place, 0])) for row in rows]
        going_on = [one for one, tokens in enumerate(written) if tokens[-1] not in stop]
        if place + 1 < task.max_new_tokens:
            begun = [prompts[rows[one]] + written[one] for one in going_on]
            more = subject.generate(begun, task.max_new_tokens - place - 1, stop).tokens
            for one, rest in zip(going_on, more, strict=True):
                written[one] += rest
        labels[rows] = found.answered(positions[rows], list(map(subject.decode, written)))
    return labels


class Solver:
    """Trees of each place of an answer, the last place first."""

    def __init__(
        self, features: Float32[np.ndarray, "record column"], answers: Sequence[str], seed: int
    ) -> None:
        """Learn what the answers are. Raises `ValueError` for free texts, many and long."""
        few = len(set(answers)) <= FEW
        longest = 1 if few else max(map(len, answers))
        if longest > LONGEST:
            raise ValueError("free texts")
        self._places: list[tuple[xgb.Booster | None, np.ndarray]] = []
        for place in range(longest):
            here = [one if few else one[::-1][place : place + 1] for one in answers]
            texts, labels = np.unique(here, return_inverse=True)
            settings = {**parameters(_DEPTH, seed), **_OWN, "num_class": len(texts)}
            data = xgb.DMatrix(features, label=labels, nthread=1)
            self._places.append((xgb.train(settings, data, _ROUNDS) if len(texts) > 1 else None, texts))

    def answers(
        self, features: Float32[np.ndarray, "record column"]
    ) -> tuple[list[str], Float[np.ndarray, " record"]]:
        """(the answer to each record, how sure it is)."""
        data = xgb.DMatrix(features, nthread=1)
        said, sure = np.full(len(features), "", object), np.ones(len(features))
        for booster, texts in self._places:
            likely = np.ones((len(features), 1)) if booster is None else booster.predict(data)
            said = texts.astype(object)[likely.argmax(1)] + said
            sure = sure * likely.max(1)
        return said.tolist(), sure


def sure_enough(
    sure: Float[np.ndarray, " record"],
    right: Bool[np.ndarray, " record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """Of `SURE` the level from which on its answers gain most; the highest on a tie."""
    return max(SURE, key=lambda least: (gained(np.where(sure >= least, right, before), before, harm), least))


def solved(found: Material) -> tuple[Bool[np.ndarray, " test"], Bool[np.ndarray, " test"]]:
    """(the wanted outcome of each test record with a solver's answers, where it answered). Cost: no model call.

    It learns on the find records, and the choose records say how sure it must be. Where answers are free texts, or
    none of another record ever fits, it answers nowhere.
    """
    texts, before = found.texts, found.good[found.test]

    def features(positions: Int[np.ndarray, " some"]) -> Float32[np.ndarray, "some column"]:
        columns = found.columns(positions)
        numbers = [column for column in columns.values() if column.dtype.kind in "if"]
        return np.column_stack([evaluated(texts, columns).matrix, *numbers]).astype(np.float32)

    known = {place: answer for place, answer in enumerate(right_answers(found)) if answer is not None}
    try:
        solver = Solver(features(found.find)[list(known)], list(known.values()), found.run.config.seed)
    except ValueError:
        return before, np.zeros(len(before), bool)
    said, sure = solver.answers(features(found.choose))
    right = found.answered(found.choose, said)
    least = sure_enough(sure, right, found.good[found.choose], found.settings.harm)
    said, sure = solver.answers(features(found.test))
    return np.where(sure >= least, found.answered(found.test, said), before), sure >= least


def right_answers(found: Material) -> list[str | None]:
    """An answer of the wanted outcome to each find record: its own, else the commonest of others that fits it too."""
    records, good = found.at(found.find), found.good[found.find]
    said = [record.completion.strip() for record in records]
    common = [text for text, _ in Counter(np.array(said, object)[good].tolist()).most_common()]
    wanted, label = not found.asked.regime.value, found.run.task.label

    def fits(place: int, text: str) -> bool:
        return label(records[place].example, text) == wanted

    return [
        next((text for text in ([said[place]] if good[place] else common) if fits(place, text)), None)
        for place in range(len(records))
    ]
