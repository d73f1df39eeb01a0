"""What stands behind a run, a section a function: search, cost, what was missed, layers, controls, rules, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mecharule_ops.codec import encode
from mecharule_ops.confidence import Spending
from mecharule_ops.facts.control_facts import baseline_words, selective_words, split_words
from mecharule_ops.facts.fact import FactValue, Stated
from mecharule_ops.facts.flips import both_slices
from mecharule_ops.facts.searches import recall_sentence
from mecharule_ops.facts.shown_units import (
    NOT_SHOWN,
    evidence_words,
    measures,
    rank_words,
    reached_words,
    unshowable,
)
from mecharule_ops.facts.unit_rules import ANCHORED, learned_rules, shown_of_all, why_not_shown
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import k_of_n, percent, plural, told_apart
from mecharule_ops.run.live_run import Run
from mecharule_ops.state.search_id import OF_A_RUN, SearchId
from mecharule_ops.types import Basis, Regime, SearchStatus

_MOST = 6
"""Layers, groups and pairs that are told one by one."""
_RANKS = 12
"""Ranks that are told one by one."""
Section = Callable[[Run, Findings], Iterator[Stated]]


def each_search(of: Callable[[Findings, SearchOutcome], Iterator[Stated]]) -> Section:
    """What is told of each search, as a section of the run."""

    def section(run: Run, findings: Findings) -> Iterator[Stated]:
        for search in findings.searches:
            yield from of(findings, search)

    return section


def _at(search: SearchOutcome) -> str:
    """`search.mlp_out.1`: what the keys of a search begin with."""
    return f"search.{search.intervention.basis.value}.{search.regime.value}"


def _units(search: SearchOutcome) -> str:
    """`270 heads (1→0)`: what tells the searches of a run apart in a sentence."""
    return f"{plural(search.cost.candidates, search.intervention.basis.row.noun)} ({search.regime.arrow})"


def search(run: Run, findings: Findings) -> Iterator[Stated]:
    """The kind of search and what ordered it; units shown, at τ, not ruled out; the largest groups pruned."""
    kind = run.config.search
    yield "search.kind", kind, f"It was a {kind} search, the setting search={kind}"
    yield from each_search(found_of)(run, findings)
    yield from each_search(ranks_of)(run, findings)
    for basis in run.config.bases:
        for regime in run.regimes:
            yield _attributed(run, basis, regime)
    yield from _pruned(run, findings)


def ranks_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """Where first order ranked the τ-agonists of a guided search before any ablation; nothing for another search."""
    strong = {agonist.neuron for agonist in search.tau_agonists}
    if ranks := [unit.rank for unit in search.predicted if unit.neuron in strong]:
        told = ", ".join(f"{rank:,}" for rank in ranks)
        if len(ranks) > _RANKS:
            half = sorted(ranks)[(len(ranks) - 1) // 2]
            told = f"between {min(ranks):,} and {max(ranks):,}, half of them by {half:,}"
        yield (
            f"{_at(search)}.first_order_ranks",
            {str(unit.neuron): unit.rank for unit in search.predicted},
            f"Before any of {_units(search)} was ablated first order ranked the τ-agonists {told}",
        )


def _attributed(run: Run, basis: Basis, regime: Regime) -> Stated:
    key = f"search.{basis.value}.{regime.value}.attribution"
    if run.attribution(basis, regime) is None:
        of = f"{basis.value} {regime.arrow}"
        return key, None, f"Attribution (EAP-IG, {of}) was not asked: {ordered_by(run, basis, regime)}"
    scored = [
        (abs(float(score)), f"{basis.letter}{layer.layer}{basis.row.mark}{channel}")
        for layer in run.candidates(basis, regime).layers
        for channel, score in zip(layer.channels, layer.scored, strict=True)
        if score is not None
    ]
    best = [name for _, name in sorted(scored, reverse=True)[:5]]
    said = (
        f"By attribution (EAP-IG, {regime.arrow}) the top unit is {best[0]}, then {', '.join(best[1:])}; attribution "
        "orders tests and is no evidence of causation"
    )
    return key, best, said


def _pruned(run: Run, findings: Findings) -> Iterator[Stated]:
    nodes = [
        node
        for view in run.told.searches.values()
        if SearchId.parse(view.search).kind in OF_A_RUN
        for node in view.nodes.values()
        if "prune" in str(node.verdict)
    ]
    pruned = sorted((node for node in nodes if node.size > 1), key=lambda node: -node.size)
    alone = len(nodes) - len(pruned)
    counts = {"groups": len(pruned), "single_units": alone}
    said = "No unit was pruned: each that was asked was tested alone"
    if nodes:
        said = f"Pruned: {plural(len(pruned), 'group')} of units and {plural(alone, 'single unit')}"
    yield "search.pruned", counts, said
    for place, node in enumerate(pruned[:_MOST], 1):
        flips, asked = node.associated_flips + node.unrelated_flips, node.associated_n + node.unrelated_n
        yield (
            f"search.pruned.{place}",
            {"size": node.size, "units": node.units, "flips": flips, "n": asked, "ucb": node.ucb},
            f"Pruned: a group of {node.size} units ({node.units}), which together flip {flips} of {asked}; upper bound "
            f"{told_apart(node.ucb or 0, findings.tau)}, below τ = {findings.tau:g}",
        )


def found_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """How many units are shown, how many reach τ beside them, which are not ruled out, of how many."""
    shown, rest = findings.shown_of(search), len(search.agonists) - len(search.tau_agonists)
    ranked = () if search.suppressed else findings.units_of(search)
    names: list[str] = [] if search.suppressed else [str(unit.neuron) for unit in shown]
    yield (
        f"{_at(search)}.shown",
        {"units": names, "n": len(shown), "of": search.cost.candidates},
        f"{len(shown) or 'None'} of {_units(search)} {'are' if len(shown) > 1 else 'is'} shown"
        f"{': ' if names else ''}{', '.join(names)}",
    )
    if others := len(search.tau_agonists) - len(shown):
        why = unshowable(findings, search) or NOT_SHOWN
        strong = [str(one.neuron) for one in ranked if one.is_tau_agonist and not one.is_shown]
        said = f"{reached_words(findings, search, others, 'more ' if shown else '')}, {why}"
        yield (
            f"{_at(search)}.at_tau",
            {"units": strong, "n": others},
            f"{said}: {', '.join(strong) or 'hidden'}",
        )
    left = search.cost.candidates - len(search.agonists)
    weak = {str(one.neuron): one.estimate.strength for one in ranked if not one.is_tau_agonist}
    named = ", ".join(f"{name} (strength {strength:.2f})" for name, strength in weak.items())
    more = (
        f"{rest} more {'is' if rest == 1 else 'are'} not ruled out{f': {named}' if named else ''}; "
        if rest
        else ""
    )
    complete = set(search.status) <= {SearchStatus.COMPLETE.value}
    if rest or not complete:
        yield (
            f"{_at(search)}.not_ruled_out",
            {"units": weak, "n": rest},
            f"{more}the other {left:,} are"
            if complete
            else f"{more}of the other {left:,} not all were asked ({'; '.join(sorted(set(search.status)))}), so not "
            "each of them is ruled out",
        )


def ordered_by(run: Run, basis: Basis, regime: Regime) -> str:
    """What ordered a search that asked no attribution."""
    if not run.predictions(basis, regime):
        return "units were taken in the order of channels"
    views = [run.search_view(basis, regime, layer) for layer in range(run.sizes(basis, regime)[0])]
    layers = [layer for layer, view in enumerate(views) if view is not None and view.dropped]
    if not layers:
        return "first order ordered the search"
    named = ", ".join(map(str, layers))
    return (
        f"first order ordered the search, but it failed in {plural(len(layers), 'layer')} ({named}), where the units "
        "left were grouped in the order of channels"
    )


def cost_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What a search took, beside what testing every unit alone takes."""
    spent = search.cost
    yield (
        f"{_at(search)}.cost",
        {
            "group_ablations": spent.queries,
            "example_forwards": spent.all_forwards,
            "share_of_testing_every_unit": spent.share_of_exhaustive_forwards,
            "testing_every_unit": spent.exhaustive_example_forwards,
        },
        f"The search of {_units(search)} took {plural(spent.queries, 'group ablation')} "
        f"({percent(spent.share_of_n)} of N = {spent.candidates:,}, {percent(spent.share_of_2n_minus_1)} of 2N − 1) "
        f"and {spent.all_forwards:,} example-forwards, {percent(spent.share_of_exhaustive_forwards)} of the "
        f"{spent.exhaustive_example_forwards:,} that testing every unit alone takes",
    )


def clock(findings: Findings) -> Stated:
    """The wall clock and the longest stage."""
    seconds = sum(stage.seconds for stage in findings.stages)
    longest = max(findings.stages, key=lambda stage: stage.seconds, default=None)
    said = f"The wall clock is {seconds:,.1f} s in {plural(len(findings.stages), 'stage')}"
    if longest is not None and longest.seconds:
        said += f"; the longest is {longest.stage}, {longest.seconds:,.1f} s"
    return "run.seconds", {stage.stage: stage.seconds for stage in findings.stages}, said


def cost(run: Run, findings: Findings) -> Iterator[Stated]:
    """What the searches took, and the wall clock."""
    yield from each_search(cost_of)(run, findings)
    yield clock(findings)


def missed_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What a search left untested or missed, what bounds it, and what groups hid."""
    said, audit = recall_sentence(findings, search), search.audit
    known: dict[str, FactValue] = {"candidates": search.cost.candidates, "found": len(search.tau_agonists)}
    if search.exhaustive is not None:
        lost = [str(unit.neuron) for unit in search.missed(findings.tau)]
        known |= {"untested": 0, "missed": lost}
        said += f"; not {', '.join(lost)}" if lost else ""
    elif audit is not None:
        known |= {
            "untested": audit.untested,
            "missed_at_most": audit.missed_at_most,
            "confidence": audit.confidence,
        }
    else:
        known |= {"untested": (untested := max(0, search.cost.candidates - search.singletons_tested))}
        said += ". Testing every unit alone (--exhaustive-up-to) would settle it" if untested else ""
    yield f"{_at(search)}.missed", known, f"{_units(search)}: {said}"
    for row in search.recall:
        if row.whole and row.criterion == "ucb" and row.found is not None:
            yield (
                f"{_at(search)}.recall_by_upper_bound",
                encode(row.found),
                "Of the units whose upper bound reaches τ when each is tested alone the search localized "
                f"{k_of_n(row.found)}",
            )
    if search.dominance:
        over = sum(one.ratio > 1 for one in search.dominance)
        yield (
            f"{_at(search)}.stronger_than_its_group",
            {"count": over, "n": len(search.dominance)},
            f"In {over} of {plural(len(search.dominance), 'opened group')} a unit measured stronger than its group "
            "(Dom above 1), where pruning is not safe",
        )


missed = each_search(missed_of)


def layers_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What each layer flips as a whole, where the units are, how far these flip the same records."""
    best, at = search.strongest_layer, _at(search)
    if best is None:
        yield f"{at}.layers", None, f"Of {_units(search)} no layer was ablated as a whole"
    else:
        strong = search.tau_agonists
        here = sum(one.neuron.layer == best.layer for one in strong)
        yield (
            f"{at}.layer.{best.layer}.whole",
            encode(best.estimate),
            f"Of {_units(search)} those of layer {best.layer} matter most: ablated together they flip "
            f"{both_slices(best.estimate)}; {here} of {plural(len(strong), 'τ-agonist')} "
            f"{'lies' if here == 1 else 'lie'} in it",
        )
    for layer in search.layer_union:
        start = findings.words.of(bool(search.regime.value))
        yield (
            f"{at}.layer.{layer.layer}.flipped_by_any",
            encode(layer.flipped),
            f"{k_of_n(layer.flipped)} of all answers that are {start} are flipped by at least one localized unit "
            f"of layer {layer.layer}",
        )
    others = [other for other in search.whole_layers if best is not None and other.layer != best.layer]
    for other in sorted(others, key=lambda other: -other.least):
        said = f"Layer {other.layer} as a whole flips {both_slices(other.estimate)}"
        yield f"{at}.layer.{other.layer}.whole", encode(other.estimate), said
    for pair in search.overlaps[:_MOST]:
        yield (
            f"{at}.pair.{pair.first}.{pair.second}.shared",
            encode(pair.shared),
            f"Of every record observed, {pair.first} and {pair.second} both flip {pair.shared.count} of the "
            f"{pair.shared.n} that either flips (Jaccard {pair.shared.rate:.2f})",
        )
    if left := len(search.overlaps[_MOST:]):
        yield (
            f"{at}.pairs_left_out",
            left,
            f"{plural(left, 'further pair')} of units stand in the whole report",
        )
    if search.union is not None:
        drawn = search.drawn_union
        beside = f", {k_of_n(drawn)} by at least one of as many random units" if drawn else ""
        yield (
            f"{at}.flipped_by_any",
            {"found": encode(search.union), "random": encode(drawn) if drawn else None},
            f"{k_of_n(search.union)} of the records outside the slices are flipped by at least one localized unit "
            f"of the {_units(search)}{beside}",
        )


layers = each_search(layers_of)


def controls(run: Run, findings: Findings) -> Iterator[Stated]:
    """Each τ-agonist beside random units, its split, replacement and a second one; which claim has least support."""
    found = [unit for unit in findings.units() if unit.is_tau_agonist and not unit.search.suppressed]
    if not found:
        yield "controls.units", 0, "No unit reaches τ, so nothing has to be told from chance"
    for unit in found:
        key, ran = f"unit.{unit.neuron}.{unit.search.regime.value}", unit.controls
        beside = "" if ran is None else f"; it stands {rank_words(unit)} units, {selective_words(ran)}"
        under = "" if unit.counts_show_it else f", below τ = {findings.tau:g}"
        strength, lower = (told_apart(each, findings.tau) for each in (unit.estimate.strength, unit.lower))
        yield (
            f"{key}.chance",
            {"strength": unit.estimate.strength, "lower": unit.lower, "shown": unit.is_shown},
            f"{evidence_words(findings, unit)}{beside}; its strength {strength} on a half has a lower bound of {lower} "
            f"over all {unit.search.cost.candidates:,} units{under}",
        )
        if ran is None:
            continue
        if ran.split is not None:
            value = {"verdict": ran.selective.value, "p": ran.selective_p, "split": encode(ran.split)}
            yield f"{key}.selective", value, f"{unit.neuron}: {ran.selective.value}: {split_words(ran)}"
        if ran.out_of_range is not None:
            yield (
                f"{key}.out_of_range",
                encode(ran.out_of_range),
                f"{k_of_n(ran.out_of_range)} of the replaced values of {unit.neuron} are out of the range that it "
                "takes at that position in the data",
            )
        if ran.second is not None and ran.second_baseline is not None:
            yield (
                f"{key}.second_baseline",
                {
                    "baseline": ran.second_baseline.value,
                    **encode(ran.second),
                    "reaches": ran.second.reaches(findings.tau),
                },
                f"{unit.neuron}: {baseline_words(ran, unit.estimate, findings.tau)}",
            )
    claims = findings.by_support()
    for unit in claims:
        if unit.weak_points:
            yield (
                f"unit.{unit.neuron}.{unit.search.regime.value}.weak_points",
                list(unit.weak_points),
                f"That {unit.neuron} reaches τ ({unit.search.regime.arrow}) has weak points: "
                f"{'; '.join(unit.weak_points)}",
            )
    if claims:
        sound = sum(not unit.weak_points for unit in claims)
        said = (
            f"Of the claims about {plural(len(claims), 'τ-agonist')} {sound or 'none'} without a weak point"
        )
        yield "controls.without_weak_points", {"count": sound, "n": len(claims)}, said


def rules(run: Run, findings: Findings) -> Iterator[Stated]:
    """How many rules were learned, how many are shown, why each other is not; which tests and corrections decide."""
    yield rule_count(findings)
    learned = [(search, rule) for search in findings.searches for rule in learned_rules(search)]
    for search, rule in learned:
        if not rule.shown:
            kind = "rule over the output" if rule.family == ANCHORED else f"{rule.family} rule"
            score, why = (
                "" if rule.held_out is None else f" (held-out MCC {rule.held_out})",
                why_not_shown(rule),
            )
            yield (
                f"unit.{rule.neuron}.{search.regime.value}.rule.{rule.family}.not_shown",
                why,
                f"Not shown: the {kind} of {rule.neuron}: {why}{score}",
            )
    yield rule_test(findings)


def rule_count(findings: Findings) -> Stated:
    """How many rules were learned and how many of them are shown."""
    learned = [rule for search in findings.searches for rule in learned_rules(search)]
    shown = sum(rule.shown for rule in learned)
    return "rules", {"shown": shown, "learned": len(learned)}, shown_of_all(findings) or "No rule was learned"


def rule_test(findings: Findings) -> Stated:
    """What decides that a learned rule is shown."""
    learned = sum(len(learned_rules(search)) for search in findings.searches)
    said = (
        "A learned rule is shown, which says that it predicts held-out flips, where Fisher's exact test on held-out "
        f"records, one-sided and corrected over all {plural(learned, 'learned rule')} (Holm), has p ≤ α, and where the "
        f"interval of its MCC, a parametric bootstrap, lies above 0; α = {findings.alpha:g}"
    )
    return "rules.test", findings.alpha, said


def rounding(findings: Findings) -> Stated:
    """How many completions rounding may decide."""
    close = findings.close_completions
    if close is None or not close.lead:
        said = "was not measured in this run" if close is None else "is nothing where it was measured"
        return "model.rounding", None, f"How far rounding moves the leads {said}"
    said = (
        f"{k_of_n(close.close)} of the completions have a lead below {close.lead:.2g} logits, so that another "
        "processor may write another token there"
    )
    return "model.rounding", encode(close.close), said


def limits(findings: Findings) -> Iterator[Stated]:
    """What the run cannot show; which bounds and tests stand behind what it claims."""
    if (numbers := findings.numbers) is not None:
        said = "every product was computed in float32"
        if numbers.again is not None:
            said = (
                f"{numbers.again.count:,} of {numbers.again.n:,} outcomes had a lead below the calibrated one and were "
                "decided again in float32; certificates are in float32 throughout"
            )
        where = f"The model's weights were in {numbers.dtype} on {numbers.device}"
        yield "limits.numbers", encode(numbers), f"{where}: {said}"
    if findings.close_completions is not None:
        yield rounding(findings)
    yield (
        "limits.cause",
        None,
        "Ablation shows that a unit is needed for the behaviour under this replacement; it does not show that the unit "
        "suffices, is unique, or computes what a rule says",
    )
    yield (
        "limits.elsewhere",
        None,
        f"Everything holds for this task ({findings.task}), this model ({findings.model}), these settings and seed "
        f"{findings.seed}; no other was tested, so nothing is known of whether it generalises",
    )
    yield (
        "limits.strengths",
        None,
        "Strengths are measured on the records that chose the units, so the largest are biased upwards",
    )
    candidates = max((search.cost.candidates for search in findings.searches), default=0)
    anew = findings.alpha_policy == Spending.PER_NODE
    over = "each node, so that some bound fails more often" if anew else "the looks of a layer"
    drawn = (
        "they hold for D+ and D- of the train split, from which the slices were drawn at random"
        if all(search.at_random for search in findings.searches)
        else "slices that cover what is rare speak of their own examples alone"
    )
    yield (
        "limits.bounds",
        {"alpha": findings.alpha, "units": candidates},
        "Bounds on a flip rate are one-sided and exact (Clopper–Pearson): the lower one of a unit holds over all "
        f"{candidates:,} units searched and both slices (Bonferroni), also of those never asked; the upper ones only "
        f"prune and spend α = {findings.alpha:g} over {over}; {drawn}",
    )
    yield (
        "limits.pruning",
        None,
        "Pruning is safe only where a group is at least as strong as its strongest member, which nothing guarantees: "
        "what bounds the units missed is testing every unit alone, or the audit. Attribution only chose and grouped "
        "the units to test; no claim rests on its scores",
    )
    yield (
        "limits.shown",
        findings.alpha,
        "A unit is shown where it flips more of the held-out records than 95 % of all units do: by a bound from random "
        "units, and an exact binomial test, Holm over the units that its search found; selectivity is tested on "
        "held-out records by all permutations of the split, corrected over the units (Holm); that a unit is not "
        "selective is said by Newcombe's interval, which holds its level nearly",
    )
    yield (
        "limits.unions",
        None,
        "The records that any one of many units flips grow with the number of units by chance alone: compare those of "
        "as many units drawn from the same layers, both outside the slices",
    )
    if findings.clusters:
        yield (
            "limits.clusters",
            findings.clusters,
            f"Records with the same {findings.clusters} are alike, yet they are tested one by one: p's and intervals "
            f"speak of further records with the same values of {findings.clusters}, not of other ones",
        )
    yield (
        "limits.range",
        None,
        "A replacement outside the range that the unit takes in the data tests an input that the model never meets; "
        "its flips may say more about the replacement than about the unit",
    )
    yield (
        "limits.pairs",
        None,
        "Two units are compared by an exact paired test on the records that only one of them flips",
    )


def limits_of_run(run: Run, findings: Findings) -> Iterator[Stated]:
    """The same, and how anybody checks what it claims."""
    yield from limits(findings)
    stored = len(run.store.certificates())
    yield (
        "limits.certificates",
        stored,
        "Every claim has a certificate that anybody can run again: `mecharule verify CERTIFICATE` does it on a second, "
        f"slower path; `mecharule verify --run {findings.run} --all` does all {stored}; "
        f"`mecharule export {findings.run} FOLDER` writes a folder that verifies on another machine",
    )


def next_steps(run: Run, findings: Findings) -> Iterator[Stated]:
    """What would settle what is open, each with its command."""
    found = [unit for unit in findings.units() if unit.is_tau_agonist and not unit.search.suppressed]
    id = findings.run
    if any(unit.lower < findings.tau for unit in found):
        rows = getattr(run.task, "questions", None)
        is_spent = rows is not None and len(rows) <= run.config.records
        more = (
            "the same run on a table of more rows" if is_spent else "the same run with a larger `--records`"
        )
        yield "next.records", more, f"More records would narrow the bounds: {more}"
    if any(unshowable(findings, search) for search in findings.searches if search.tau_agonists):
        said = measures(findings)
        yield "next.controls", said, f"Whether a unit flips more than random units: {said}"
    if any(search.exhaustive is None for search in findings.searches):
        command = f"mecharule run --from {id} --tau {findings.tau / 2:g}"
        said = f"Weaker units would be looked for at a lower τ, here {findings.tau:g}: `{command}`"
        yield "next.tau", command, said
    mended = Regime(int(findings.words.success_is_harm))
    if basis := next((unit.neuron.basis for unit in found if unit.search.regime is mended), None):
        command = f"mecharule gates {id}" + ("" if basis is run.config.bases[0] else f" --basis {basis}")
        yield "next.gates", command, f"Whether gates on these units mend answers can be tried: `{command}`"
    said = "Other seeds, tasks and models would show whether it generalises: start another `mecharule run`"
    yield "next.run", "mecharule run", said
