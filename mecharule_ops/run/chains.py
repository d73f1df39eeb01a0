"""The chain of a unit on a run: which units it may go through, what is measured of it, and its price.

Everything runs on the regime's compact slices, which lie in the train split. Certificates are made here and kept by
whoever asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, ExampleRow
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.findings.chain import Chain, mediation_in, pairs_in
from mecharule_ops.findings.records import Findings
from mecharule_ops.mechanism import links, mediation
from mecharule_ops.mechanism.holds import Above, HeldLayer, Hold, Together, is_above, layers_above
from mecharule_ops.run import certify, opening
from mecharule_ops.run.live_run import Run
from mecharule_ops.store import keys
from mecharule_ops.types import Basis, BehaviourRecord, Neuron, Regime

MOST = 3
"""Found units that are held, and that are paired, at most: each costs a completion or two an example."""
NO_FLIP = "the unit flips no example of the slices, so no way can be traced"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan:
    """What will be run for a chain."""

    unit: Neuron
    regime: Regime
    holds: tuple[Hold, ...]
    partners: tuple[Neuron, ...]
    placed: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    strength: float
    """Flip rate that the run found, 0 for a unit that it did not localize."""

    @property
    def example_forwards(self) -> int:
        """Ablated completions, and a forward an example each for writes, reads and direct share.

        A completion that changes is fed again from the first block, and goes on from there.
        """
        pairs = 2 * len(self.partners) + 1 if self.partners else 0
        completions = (len(self.holds) + 1 + pairs) * len(self.placed)
        return round(completions * (1 + 2 * self.strength)) + 3 * len(self.placed)


def chain_plan(
    run: Run,
    findings: Findings,
    unit: Neuron,
    regime: Regime,
    *,
    layers: bool = True,
    held: Sequence[Neuron] | None = None,
) -> ChainPlan:
    """Found units above the unit, one by one and together; heads, MLPs and everything above; with `layers` each MLP.

    Found are the τ-agonists of every basis in this regime, the shown first, `MOST` of them, then localized units while
    there is room; `held` stand in their place, however many. The model is not loaded.
    """
    found, most = (found_units(findings, unit, regime), MOST) if held is None else (held, None)
    known = findings.unit(unit, regime)
    higher = [other for other in found if is_above(unit, other)][:most]
    holds: list[Hold] = [*higher]
    if len(higher) > 1:
        holds.append(Together(tuple(higher)))
    notes = [] if higher else [f"no found unit lies above {unit}, so none can carry its effect"]
    sizes = opening.sizes_of(run, unit)
    depth = run.subject.n_layers if sizes is None else sizes[0]
    heads, mlps = (layers_above(unit, kind, depth) for kind in (Basis.ATTN_HEAD, Basis.MLP_OUT))
    if mlps or heads:
        holds += [Above.HEADS] * bool(heads) + [Above.MLPS] * bool(mlps) + [Above.EVERYTHING]
        holds += [HeldLayer(Basis.MLP_OUT, layer) for layer in mlps] if layers else []
    else:
        notes.append(f"nothing lies above {unit}: its whole effect is direct")
    partners = tuple(other for other in found if other.basis is unit.basis)[:most]
    if not partners:
        notes.append("no other unit of its basis was found, so it has no pairs")
    return ChainPlan(
        unit=unit,
        regime=regime,
        holds=tuple(dict.fromkeys(holds)),
        partners=partners,
        placed=tuple(certify.placed_in(run.slices(regime).named)),
        notes=tuple(notes),
        strength=known.estimate.strength if known else 0.0,
    )


def found_units(findings: Findings, unit: Neuron, regime: Regime) -> list[Neuron]:
    """Units that the run localized in this regime besides this one: the shown first, then the other τ-agonists."""
    found = [each for each in findings.by_evidence(regime) if each.neuron != unit]
    return [each.neuron for each in sorted(found, key=lambda each: not each.is_tau_agonist)]


def kept_chain(run: Run, asked: ChainPlan, keep: Callable[[Certificate], Certificate]) -> Chain:
    """The chain, measured and put into the run, which is open for writing; `keep` stores a certificate.

    Writes, reads and direct share are measured on the records of its certificates, those of mediation and of pairs.
    """
    unit, regime, partners = asked.unit, asked.regime, asked.partners
    mediated = keep(certify.certify_mediation(run, unit, regime, asked.holds, asked.placed))
    paired = keep(certify.certify_pairs(run, unit, partners, regime, asked.placed)) if partners else None
    records = [run.records[place] for _, place in asked.placed]
    alone = [row for row in mediated.rows if row.held is None]
    flipped = np.array([row.flipped for row in alone], bool)
    written, read, direct = _described(run, unit, records, flipped)
    chain = Chain(
        unit=unit,
        regime=regime,
        breaks=breaks_of(run, records, alone),
        writes=written,
        reads=read,
        direct=direct,
        mediation=mediation_in(mediated.rows, mediated.alpha),
        mediation_certificate=mediated.id,
        pairs=() if paired is None else pairs_in(paired.rows, str(unit), paired.alpha),
        pairs_certificate=None if paired is None else paired.id,
        notes=asked.notes if flipped.any() else (*asked.notes, NO_FLIP),
    )
    run.keep_of_unit(keys.of_unit(keys.CHAIN, unit, regime), chain)
    return chain


def breaks_of(run: Run, records: Sequence[BehaviourRecord], rows: Sequence[ExampleRow]) -> links.Breaks:
    """Where the flipped answers of some rows break; token texts are left out where the task conceals them."""
    from mecharule_ops.mechanism.token_sources import token_name, token_sources

    found = []
    for record, row in zip(records, rows, strict=True):
        at = mediation.first_change(row.before.tokens, row.after.tokens)
        if not row.flipped or at is None:
            continue
        names = token_sources(run.subject, run.task, record)[-len(record.tokens) :]
        texts = [
            token_name(run.subject, tokens[at]) if at < len(tokens) else links.END
            for tokens in (row.before.tokens, row.after.tokens)
        ]
        place = names[at] if at < len(names) else links.END
        before, after = ("concealed", "concealed") if run.task.concealed else texts
        found.append(links.FirstChange(place=place, before=before, after=after))
    return links.breaks(found)


def _described(
    run: Run, unit: Neuron, records: Sequence[BehaviourRecord], flipped: np.ndarray
) -> tuple[links.Writes, links.Reads, tuple[links.DirectShare, ...]]:
    """What the unit writes and reads; by group its mean direct push and drop of the lead over the runner-up."""
    from mecharule_ops.mechanism.effects import Effect
    from mecharule_ops.mechanism.first_order import effects_of_kinds
    from mecharule_ops.mechanism.reads import reads
    from mecharule_ops.mechanism.token_sources import token_sources
    from mecharule_ops.mechanism.writes import writes

    records = until_settled(run.subject, run.task, records)
    how, kinds = run.intervention(unit.basis), (Effect.DIRECT, Effect.FIRST_ORDER)
    table = run.replacement(how)
    sources = [token_sources(run.subject, run.task, record) for record in records]
    with run.clean_kept(how):
        written = writes(run.subject, records, table, unit, flipped)
        read = reads(run.subject, records, table, unit, flipped, sources)
        measured = effects_of_kinds(run.subject, records, table, [unit], kinds, competitors=1)
    pushes, drops = (measured[kind].effect[:, :, 0, 0] for kind in kinds)
    shares = []
    for name, some in links.groups(flipped).items():
        if positions := int((~np.isnan(drops[some])).sum()):
            push, drop = (float(np.nanmean(each[some])) for each in (pushes, drops))
            shares.append(links.DirectShare(group=name, positions=positions, push=push, drop=drop))
    return written, read, tuple(shares)
