"""How small a lead must be before products of the change could decide it wrongly: measured on the run's own records.

Where it pays an ablated pass multiplies in bfloat16 only what changed (`loading.products`). Its error in a lead
grows with how far the hidden state moved. Whole layers and single units of every layer are ablated on a few records
both ways, in batches of two sizes; the largest error a unit of movement, with a factor to spare, is the slope below
which an outcome is decided again in float32.
"""

from collections.abc import Sequence

import numpy as np
import torch

from mecharule_ops import subsets, types
from mecharule_ops.engine.ablation import AblationEngine, Group
from mecharule_ops.engine.speculation import GroupLeads
from mecharule_ops.loading import model, products
from mecharule_ops.passes.batches import parts
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task

RECORDS = 8
SIZES = (64, 5)
"""Groups a batch."""
WIDE = 768
"""Channels of the residual stream from which a processor gains; `benchmarks/precision.py` says how much."""
STILL = 1e-3
"""A movement below it counts as this: there float32 itself rounds."""
FACTOR = 2.0
"""The largest of some thousand errors is exceeded among millions, and by another processor."""


def multiplies_changes(subject: model.Subject) -> bool:
    """Whether products of the change pay: on a device with instructions for bfloat16, in weights of that type.

    A processor also gains from float32 weights, rounded as it multiplies, if `WIDE` and mostly of linear layers.
    """
    linear = sum(each.weight.numel() for each in subject.hf.modules() if type(each) is torch.nn.Linear)
    wide = subject.device.type == "cpu" and subject.d_model >= WIDE and 2 * linear > subject.parameters
    knows = subject.device.type == "cuda" or products.multiplies_bfloat16(subject.device)
    return knows and (wide or subject.dtype == torch.bfloat16)


def calibrate(
    subject: model.Subject, task: Task, records: Sequence[types.BehaviourRecord], table: ReplacementTable
) -> float:
    """The slope: a lead below it, times the movement of the hidden state, is decided again.

    Measured on a draw of `RECORDS` records; groups go through in batches of `SIZES`, so that what differs between
    batches counts too. Cost: three evaluations of two groups a layer on each.
    """
    groups = probes(subject, table)
    drawn = subsets.some_records(records, RECORDS, of="precision")
    engine = AblationEngine(subject, task, drawn, table.intervention, table)
    examples = range(len(drawn))

    def measured(size: int, of_change: bool) -> GroupLeads:
        asked = [[groups[index] for index in batch] for batch in parts(list(range(len(groups))), size)]
        return GroupLeads.joined([engine.leads(each, examples, of_change=of_change) for each in asked], 1)

    true = measured(SIZES[0], False)
    return FACTOR * max(largest_error(true, measured(size, True)) for size in SIZES)


def largest_error(true: GroupLeads, found: GroupLeads) -> float:
    """Of a lead, in logits, a unit of movement of the hidden state."""
    # Where another token leads, the true one's lead has fallen through 0.
    same = found.tokens == true.tokens
    error = np.where(same, np.abs(found.margins - true.margins), found.margins + true.margins)
    # A token that is all that may be written has an infinite lead.
    return float((error / np.maximum(true.moved, STILL)).max(initial=0.0, where=np.isfinite(true.margins)))


def probes(subject: model.Subject, table: ReplacementTable) -> list[Group]:
    """Of every layer all units together, and one alone."""
    basis = table.intervention.basis
    width, generator = subject.width(basis), np.random.default_rng(0)
    found: list[Group] = []
    for layer in range(subject.n_layers):
        found.append(tuple(types.Neuron(basis, layer, channel) for channel in range(width)))
        found.append((types.Neuron(basis, layer, int(generator.integers(width))),))
    return found
