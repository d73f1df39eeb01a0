"""The no-op guard: proof, at the start of each search, that the intervention does what it says and nothing else.

For a probe group in every layer of the basis it shows on the path that searches use

1. that the hook fires: replacing the probe by a value far outside its range changes what the unembedding reads; where
   its two units write nothing, all of the layer are replaced, and where these write nothing either, that is said;
2. that untouched units are bit-equal at the site, and the probe holds exactly the value asked for;
3. that restoring works: replacing the probe by its own clean values gives the baseline completions back.

Cost: for each layer about three evaluations of one group on `RECORDS` records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops import errors, types
from mecharule_ops.loading import generation, model, products
from mecharule_ops.passes import ablated, forward
from mecharule_ops.passes.clean import CleanSpans, clean_spans
from mecharule_ops.passes.greedy import Unembedding
from mecharule_ops.passes.intervention import Edit, Units, editing, hooked
from mecharule_ops.passes.spans import Span, span_of
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task

RECORDS = 2
"""Records that the guard looks at."""
TIE = 1e-3
"""Logit margin below which float32 rounding may decide between two tokens."""


class GuardFailed(errors.MechaRuleError):
    """The intervention is not what it claims to be, so no ablation of this run means anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """What the guard showed."""

    basis: types.Basis
    layers: int
    records: int
    silent: int = 0
    """Layers none of whose units writes anything, so that no ablation in them can change an answer."""

    @property
    def sentence(self) -> str:
        """One line for a person."""
        where = f"in {self.layers - self.silent} of" if self.silent else "in all"
        nothing = f" (units of the other {self.silent} write nothing)" if self.silent else ""
        return (
            f"{where} {self.layers} layers the {self.basis} hook fires{nothing}, untouched units are bit-equal, "
            f"and restoring gives the baseline completions back ({self.records} records)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bench:
    """What the checks share."""

    subject: model.Subject
    blocks: forward.Blocks
    basis: types.Basis
    spans: Sequence[Span]
    clean: CleanSpans

    @property
    def probe(self) -> list[int]:
        """Two units, one in a layer of one."""
        return sorted({0, self.subject.width(self.basis) // 2})

    def units(
        self, values: Float[Tensor, "record position channel *head_dim"], *, every: bool = False
    ) -> Units:
        """The probe, or every unit, replaced by its part of a site's `values`."""
        channels = torch.tensor(list(range(values.shape[2]) if every else self.probe), device=values.device)
        return Units(channels=channels, values=values[:, :, channels])


def check_intervention(
    subject: model.Subject,
    task: Task,
    records: Sequence[types.BehaviourRecord],
    intervention: types.Intervention,
    replacement: ReplacementTable,
) -> GuardResult:
    """What was shown; the task and the replacement table take no part beyond belonging to the intervention.

    Raises `GuardFailed` naming the layer and the check, `UsageError` when no record has an intervened position.
    """
    assert replacement.intervention == intervention, (replacement.intervention, intervention)
    chosen, spans = _probed(subject, records, intervention)
    if not chosen:
        raise errors.UsageError(
            f"expected records of {task.name} with positions in the {intervention.phase} phase, got none; "
            "choose the last-prompt or whole phase"
        )
    with torch.inference_mode(), products.through_onednn(subject.hf):
        blocks = forward.Blocks(subject)
        shared = generation.SharedPrefix.of(subject.hf, [span.prefix for span in spans])
        clean = clean_spans(subject, blocks, spans, intervention.basis, shared)
        bench = _Bench(subject=subject, blocks=blocks, basis=intervention.basis, spans=spans, clean=clean)
        sites = [_site(bench, layer, None)[0] for layer in range(subject.n_layers)]
        far = [torch.full_like(site, 10.0 + 10.0 * float(site.abs().max())) for site in sites]
        for layer, value in enumerate(far):
            _check_site(bench, layer, bench.units(value))
        final = _final(bench, [{layer: bench.units(value)} for layer, value in enumerate(far)])
        still = [at for at in range(subject.n_layers) if not _moved(bench, final[:, at], clean.final)]
        silent = sum(_silent(bench, layer, far[layer]) for layer in still)
        own = [{layer: bench.units(site)} for layer, site in enumerate(sites)]
        _check_restored(bench, chosen, _final(bench, own))
    return GuardResult(basis=intervention.basis, layers=subject.n_layers, records=len(chosen), silent=silent)


def _probed(
    subject: model.Subject, records: Sequence[types.BehaviourRecord], intervention: types.Intervention
) -> tuple[list[types.BehaviourRecord], list[Span]]:
    """The first `RECORDS` records with intervened positions, and these."""
    pairs = zip(records, (subject.encode([record.example.prompt])[0] for record in records), strict=True)
    each = ((record, span_of(ids, record.tokens, intervention.phase)) for record, ids in pairs)
    found = list(islice(((record, span) for record, span in each if span.fed), RECORDS))
    return [record for record, _ in found], [span for _, span in found]


def _silent(bench: _Bench, layer: int, far: Tensor) -> bool:
    """Whether no unit of a layer whose probe changed nothing writes anything; False where another one does.

    That the block's own output stays bit-equal with all of them replaced is shown in a call of the block alone, whose
    edit `_check_site` looks at. Raises `GuardFailed` where it does not while the search's path gives the clean output.
    """
    every = bench.units(far, every=True)
    if _moved(bench, _final(bench, [{layer: every}])[:, 0], bench.clean.final):
        return False
    if _equal(bench, _site(bench, layer, every)[2], _site(bench, layer, None)[2]):
        return True
    raise GuardFailed(
        f"expected a replaced unit of layer {layer} to change the output, got the clean output: "
        f"the {bench.basis} hook does not fire; do not trust ablations of this model"
    )


def _site(bench: _Bench, layer: int, units: Units | None) -> tuple[Tensor, Tensor, Tensor]:
    """(what a layer's site holds, what it holds behind the edit, the block's output) in one call of the block.

    The first two as units, `record position channel(, head_dim)`.
    """
    block = bench.blocks.stack[layer]
    module, in_input = bench.subject.wiring.site(block, bench.basis)
    seen: list[Tensor] = []
    calls = bench.blocks.bind(bench.clean.batch, 1)
    edits = {bench.basis: [] if units is None else [Edit(units=units)]}
    reading = partial(hooked, module, in_input, lambda site: seen.append(site.clone()))
    # Hooks run in the order of registration, so the edit lies between the two readings.
    with reading(), editing(bench.subject, block, 1, edits), reading():
        output = calls(layer, bench.clean.inputs[layer])
    shape = bench.subject.unit_shape(bench.basis)
    return seen[0].unflatten(-1, shape), seen[1].unflatten(-1, shape), output


def _check_site(bench: _Bench, layer: int, units: Units) -> None:
    """Only the probe may change, and it must hold what was asked."""
    before, after, _ = _site(bench, layer, units)
    before[:, :, units.channels] = units.values
    if not _equal(bench, before, after):
        raise GuardFailed(
            f"expected {len(bench.probe)} units of layer {layer} replaced and all others bit-equal at the "
            f"site, got other values: the {bench.basis} hook writes elsewhere; do not trust ablations of "
            "this model"
        )


def _final(
    bench: _Bench, groups: Sequence[ablated.GroupUnits]
) -> Float[Tensor, "record group position channel"]:
    """What the unembedding reads under each group, by the path that searches use."""
    bind = partial(bench.blocks.bind, bench.clean.batch)
    return ablated.ablated_copies(bench.subject, bench.clean, bench.basis, groups, bind)


def _equal(bench: _Bench, one: Tensor, other: Tensor) -> bool:
    """Bit equality at every position that holds a token."""
    pairs = zip(bench.spans, one, other, strict=True)
    return all(torch.equal(a[: len(span.fed)], b[: len(span.fed)]) for span, a, b in pairs)


def _moved(bench: _Bench, one: Tensor, other: Tensor) -> bool:
    """A difference that float32 rounding in batches of another size cannot make, in every record."""
    scale = 1e-3 * float(other.abs().max())
    pairs = zip(bench.spans, one, other, strict=True)
    return all(float((a - b)[: len(span.fed)].abs().max()) > scale for span, a, b in pairs)


def _check_restored(bench: _Bench, records: Sequence[types.BehaviourRecord], final: Tensor) -> None:
    """Every layer's probe at its own clean values must predict the baseline completions."""
    _, head = bench.subject.wiring.head(bench.subject.hf)
    unembedding = Unembedding(head, None)
    for row, (record, span) in enumerate(zip(records, bench.spans, strict=True)):
        predicted = final[row, :, span.prompt_part : len(span.fed)]
        own, (offer,) = record.tokens, bench.subject.offers([record.example])
        offered = offer.along(own, span.first_predicted) * len(predicted)
        greedy = unembedding.greedy(predicted.flatten(0, 1), offered)
        wanted = torch.tensor(own[span.first_predicted :], device=final.device).repeat(len(predicted))
        differs = (greedy.tokens != wanted) & (greedy.margins > TIE)
        wrong = differs.view(len(predicted), -1).any(-1).nonzero()[:, 0].tolist()
        if wrong:
            raise GuardFailed(
                f"expected the baseline completion when layer {wrong[0]} is set to its own clean values, got "
                f"another one for example {record.example.id}: the {bench.basis} hook is not neutral; do not "
                "trust ablations of this model"
            )
