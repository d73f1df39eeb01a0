"""Evidence that can be replayed: full completions before and after an ablation, as a certificate.

Cost: two completions an example, without early decision, since a certificate holds every token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mecharule_ops.certificates import (
    Certificate,
    CertifiedIntervention,
    CertifiedRule,
    Completion,
    ExampleRow,
    ModelIdentity,
)
from mecharule_ops.localise import Localised
from mecharule_ops.run import Run
from mecharule_ops.stored_engine import Group
from mecharule_ops.summing_up import versions
from mecharule_ops.types import Agonist, AnchoredRule, Basis, Intervention, Neuron, Regime
from mecharule_ops.verification import totals_of

HOOKS = {
    Basis.MLP_OUT: "blocks.{layer}.hook_mlp_out",
    Basis.MLP_HIDDEN: "blocks.{layer}.mlp.hook_post",
    Basis.ATTN_HEAD: "blocks.{layer}.attn.hook_z",
}
"""The places of the bases in TransformerLens' names."""


def certify_agonist(run: Run, found: Localised, agonist: Agonist, rule: AnchoredRule | None) -> Certificate:
    """The certificate of one localized unit on the compact slices."""
    estimate = agonist.estimate
    parts = [
        f"{part.flips}/{part.n} {name}"
        for name, part in (("associated", estimate.associated), ("unrelated", estimate.unrelated))
    ]
    slices = {"associated": found.slices.associated.tolist(), "unrelated": found.slices.unrelated.tolist()}
    return certify(
        run,
        (agonist.neuron,),
        slices,
        regime=agonist.regime,
        kind="ablate",
        claim=f"ablating {agonist.neuron} flips {' and '.join(parts)} examples ({agonist.regime.arrow})",
        rule=_certified_rule(rule),
    )


def certify(
    run: Run,
    units: Group,
    slices: Mapping[str, Sequence[int]],
    *,
    regime: Regime,
    kind: str,
    claim: str,
    rule: CertifiedRule | None = None,
) -> Certificate:
    """The certificate of ablating `units` together on named sets of record positions."""
    intervention = run.intervention(units[0].basis)
    rows = ablation_rows(run, intervention, units, slices)
    layers = sorted({unit.layer for unit in units})
    return Certificate(
        kind=kind,
        claim=claim,
        model=ModelIdentity(
            name=run.config.model,
            model_hash=run.subject.model_hash,
            tokenizer_hash=run.subject.tokenizer_hash,
        ),
        task=run.task.describe(),
        regime=regime.value,
        intervention=CertifiedIntervention(
            basis=intervention.basis.value,
            hook="+".join(HOOKS[intervention.basis].format(layer=layer) for layer in layers),
            baseline=intervention.baseline.value,
            baseline_hash=run.replacement(intervention).hash,
            phase=intervention.phase.value,
        ),
        units=tuple(map(str, units)),
        rows=rows,
        totals=totals_of(rows, run.config.alpha),
        alpha=run.config.alpha,
        seed=run.config.seed,
        dtype="float32",
        versions=versions(),
        rule=rule,
    )


def ablation_rows(
    run: Run,
    intervention: Intervention,
    units: Group,
    slices: Mapping[str, Sequence[int]],
    *,
    plain: bool = False,
) -> tuple[ExampleRow, ...]:
    """What each example's completion was and became; `plain` computes it on the reference path."""
    names = [name for name, positions in slices.items() for _ in positions]
    positions = [position for part in slices.values() for position in part]
    engine = run.completer(intervention, plain=plain)
    completions = engine.completions([(), units], positions)
    rows = []
    for column, (name, position) in enumerate(zip(names, positions, strict=True)):
        example = run.records[position].example
        before, after = (
            Completion(
                tokens=completions.tokens[group][column],
                text=run.subject.decode(completions.tokens[group][column]),
                label=run.task.label(example, run.subject.decode(completions.tokens[group][column])),
                margin=float(completions.margins[group, column]),
            )
            for group in (0, 1)
        )
        rows.append(
            ExampleRow(example=example.id, prompt=example.prompt, slice=name, before=before, after=after)
        )
    return tuple(rows)


def rerun(run: Run, certificate: Certificate) -> tuple[ExampleRow, ...]:
    """The rows of a certificate computed again on the reference path, for `verification.verify`."""
    position = {record.example.id: index for index, record in enumerate(run.records)}
    units = tuple(Neuron.parse(unit) for unit in certificate.units)
    slices: dict[str, list[int]] = {}
    for row in certificate.rows:
        slices.setdefault(row.slice, []).append(position[row.example])
    return ablation_rows(run, run.intervention(units[0].basis), units, slices, plain=True)


def _certified_rule(rule: AnchoredRule | None) -> CertifiedRule | None:
    if rule is None or rule.rule is None or rule.held_out is None:
        return None
    score = rule.held_out
    return CertifiedRule(
        text=rule.rule,
        scope="held-out",
        mcc=score.mcc,
        coverage=score.coverage,
        n=score.n,
        positives=score.positives,
    )
