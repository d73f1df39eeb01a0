"""Ablation outcomes are computed once: what the store knows is never asked of the engine again."""

from pathlib import Path

import numpy as np
import pytest
from table_engine import TableEngine, new_store, stored

from mecharule_ops.store.stored_engine import StoredEngine, context_key, group_key
from mecharule_ops.types import Basis, Neuron

UNITS, RECORDS = 12, 40


def unit(channel: int, layer: int = 0) -> Neuron:
    return Neuron(Basis.MLP_OUT, layer, channel)


def planted(seed: int = 0) -> TableEngine:
    return TableEngine(flips=np.random.default_rng(seed).random((UNITS, RECORDS)) < 0.2)


def truth(engine: TableEngine, groups: list, examples: list[int]) -> np.ndarray:
    """The oracle: each cell looked up by itself."""
    return np.array(
        [[not any(engine.flips[u.channel, e] for u in group) for e in examples] for group in groups], bool
    )


def random_questions(rng: np.random.Generator) -> tuple[list, list[int]]:
    return [
        tuple(unit(int(c)) for c in rng.choice(UNITS, size=int(rng.integers(1, 4)), replace=False))
        for _ in range(int(rng.integers(1, 6)))
    ], rng.choice(RECORDS, size=int(rng.integers(1, 25)), replace=False).tolist()


def ask_at_random(wrapped: StoredEngine, engine: TableEngine, seed: int, turns: int = 60) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(turns):
        groups, examples = random_questions(rng)
        assert (wrapped.labels(groups, examples) == truth(engine, groups, examples)).all()


def test_no_group_and_example_is_ever_evaluated_twice(tmp_path: Path) -> None:
    """Over random overlapping questions every answer is right and no cell reaches the engine again."""
    engine = planted()
    with new_store(tmp_path / "a") as store:
        wrapped = stored(store, engine)
        ask_at_random(wrapped, engine, 1)
        assert max(engine.asked.values()) == 1
        assert wrapped.cost.example_forwards == len(engine.asked)


def test_another_process_finds_what_was_stored(tmp_path: Path) -> None:
    """After closing and opening the file the same questions need no engine at all."""
    engine = planted()
    groups, examples = [(unit(1), unit(2)), (unit(3),)], list(range(20))
    with new_store(tmp_path / "a") as store:
        before = stored(store, engine).labels(groups, examples)

    def unavailable() -> TableEngine:
        raise AssertionError("the engine was made")

    with new_store(tmp_path / "a2") as empty, pytest.raises(AssertionError, match="was made"):
        stored(empty, engine, make=unavailable).labels(groups, examples)
    from mecharule_ops.store.run_store import RunStore

    with RunStore.open(tmp_path / "a") as store:
        again = stored(store, engine, make=unavailable)
        assert (again.labels(groups, examples) == before).all()
        assert (again.cost.group_evaluations, again.cost.example_forwards, again.cost.reused) == (0, 0, 2)


def test_partial_knowledge_is_completed(tmp_path: Path) -> None:
    """A range that overlaps a known one evaluates the rest only, also when groups know different parts."""
    engine = planted()
    with new_store(tmp_path / "a") as store:
        wrapped = stored(store, engine)
        wrapped.labels([(unit(1),)], list(range(10)))
        wrapped.labels([(unit(2),)], list(range(5)))
        engine.calls.clear()
        groups = [(unit(1),), (unit(2),), (unit(3),)]
        assert (wrapped.labels(groups, list(range(15))) == truth(engine, groups, list(range(15)))).all()
        assert sorted(engine.calls) == [(1, 5), (1, 10), (1, 15)]
        assert max(engine.asked.values()) == 1


def test_the_order_of_units_is_irrelevant_and_a_group_named_twice_costs_once(tmp_path: Path) -> None:
    """(a, b) and (b, a) are one group, in one call and in two."""
    engine = planted()
    one, other = (unit(1), unit(2)), (unit(2), unit(1))
    assert group_key(one) == group_key(other) != group_key((unit(1),))
    with new_store(tmp_path / "a") as store:
        wrapped = stored(store, engine)
        labels = wrapped.labels([one, (unit(5),), other], [0, 1, 2])
        assert (labels == truth(engine, [one, (unit(5),), other], [0, 1, 2])).all()
        wrapped.labels([other], [2, 1])
    assert max(engine.asked.values()) == 1
    assert (wrapped.cost.group_evaluations, wrapped.cost.reused) == (2, 2)


def test_answers_follow_the_order_of_the_question(tmp_path: Path) -> None:
    """Columns are those of the positions asked, in their order, from the engine and from the store."""
    engine = planted()
    groups, examples = [(unit(4),), (unit(0), unit(7))], [9, 2, 30, 5]
    with new_store(tmp_path / "a") as store:
        wrapped = stored(store, engine)
        first = wrapped.labels(groups, examples)
        backwards = wrapped.labels(groups[::-1], examples[::-1])
    assert (first == truth(engine, groups, examples)).all()
    assert (backwards == first[::-1, ::-1]).all()


def test_contexts_do_not_mix(tmp_path: Path) -> None:
    """The same group and examples under another intervention have other outcomes, kept apart."""
    zero, mean = planted(0), planted(1)
    groups, examples = [(unit(c),) for c in range(UNITS)], list(range(RECORDS))
    with new_store(tmp_path / "a") as store:
        first = stored(store, zero, "zero").labels(groups, examples)
        second = stored(store, mean, "mean").labels(groups, examples)
        assert (stored(store, zero, "zero").labels(groups, examples) == first).all()
    assert (second == ~mean.flips).all()
    assert (first != second).any()


def test_a_context_key_changes_with_every_part_of_it() -> None:
    """Model, tokenizer, task, intervention and replacement each fix an outcome; their order in the call not."""
    parts = {"model": "m", "tokenizer": "t", "task": {"low": 0}, "intervention": "i", "replacement": "r"}
    keys = {context_key(**parts), context_key(**{**parts, "task": {"low": 1}})}
    keys |= {context_key(**{**parts, name: "x"}) for name in parts}
    assert len(keys) == 7
    assert context_key(**parts) == context_key(**dict(reversed(parts.items())))


def test_an_interrupted_engine_leaves_what_was_stored(tmp_path: Path) -> None:
    """A call that fails half-way stores nothing of itself, and earlier answers stay."""
    engine = planted()

    class Failing(TableEngine):
        def evaluate(self, groups: list, examples: list[int]) -> None:
            raise KeyboardInterrupt

    with new_store(tmp_path / "a") as store:
        stored(store, engine).labels([(unit(1),)], [0, 1])
        broken = stored(store, Failing(flips=engine.flips))
        with pytest.raises(KeyboardInterrupt):
            broken.labels([(unit(1),)], [0, 1, 2])
        assert broken.cost.group_evaluations == 0
        stored(store, engine).labels([(unit(1),)], [0, 1, 2])
    assert max(engine.asked.values()) == 1
