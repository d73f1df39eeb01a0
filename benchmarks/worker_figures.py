"""Figures of workers: what one costs over this process, what two gain."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from setting import DEFAULT, Case, Figure, setting

from mecharule_ops.config import make_config
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.group_questions import Answering, GroupQuestion, InTurn
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.replacement.table_files import arrays_of
from mecharule_ops.types import Basis, Intervention, Neuron
from mecharule_ops.workers.on_ray import started
from mecharule_ops.workers.replica import Assignment

HEADS = Intervention(basis=Basis.ATTN_HEAD)


def workers(case: Case = DEFAULT) -> Iterator[Figure]:
    """Every head of the model alone on 64 + 64 examples: here, by one Ray worker, by two; one thread each."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from _compared(case)
    finally:
        torch.set_num_threads(threads)


def _compared(case: Case) -> Iterator[Figure]:
    given = setting(case, True)
    subject, records = given.subject, given.behaviour.records
    table = replacement_table(subject, records, HEADS)
    heads = [
        (Neuron(Basis.ATTN_HEAD, layer, head),)
        for layer in range(subject.n_layers)
        for head in range(subject.n_heads)
    ]
    wave = [GroupQuestion(groups=tuple(heads), examples=tuple(given.examples))]
    first = [GroupQuestion(groups=tuple(heads[-16:]), examples=tuple(given.examples))]
    assignment = Assignment(
        settings=make_config(model=case.model).model_dump_json(),
        device=subject.device.type,
        cards=subject.cards,
        dtype=subject.dtype_name,
        model_hash=subject.model_hash,
        tokenizer_hash=subject.tokenizer_hash,
        records=tuple(records),
        intervention=HEADS,
        replacement=arrays_of(table),
        slope=None,
    )

    def timed(asked: Answering) -> float:
        """Seconds of the wave, once models are loaded and clean passes made."""
        list(asked.answers(first))
        began = time.perf_counter()
        list(asked.answers(wave))
        return time.perf_counter() - began

    def by(count: int) -> float:
        made = started(count, processors=count)
        try:
            return timed(made.assigned(assignment))
        finally:
            made.close()

    one, single = timed(InTurn(AblationEngine(subject, given.task, records, HEADS, table))), by(1)
    note = f"{len(heads)} heads × {len(given.examples)} examples, one thread each"
    yield Figure(
        "one Ray worker over this process",
        single / one,
        "×",
        case.goal("≤ 1.05 ×"),
        f"{one:.1f} s here; {note}",
    )
    if subject.device.type == "cpu" or torch.cuda.device_count() > 1:
        goal = case.goal("≥ 1.8 ×")
        yield Figure("two Ray workers over one", single / by(2), "×", goal, f"{single:.1f} s by one")
