"""What stands behind a run, a section a function: search, cost, what was missed, layers, controls, rules, limits."""

from collections.abc import Callable, Iterator

from mecharule_ops import codec, types
from mecharule_ops.facts import control_facts, flips, searches, shown_units
from mecharule_ops.facts.fact import SENTENCES, FactValue, Stated, stated
from mecharule_ops.facts.found import suggestions
from mecharule_ops.facts.rules import published_counts, shown_of_all
from mecharule_ops.findings.counts import dominance
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural, told_apart
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.keys import PROPOSALS

OfSearch = Callable[[Findings, SearchOutcome], Iterator[Stated]]


def each_search(*parts: OfSearch) -> Callable[[Run, Findings], Iterator[Stated]]:
    """What is told of each search, as a section of the run."""

    def section(run: Run, findings: Findings) -> Iterator[Stated]:
        for search in findings.searches:
            for of in parts:
                yield from of(findings, search)

    return section


def _at(search: SearchOutcome) -> str:
    """`search.mlp_out.1`: what the keys of a search begin with."""
    return f"search.{search.intervention.basis.value}.{search.regime.value}"


def _units(search: SearchOutcome) -> str:
    """`270 heads (1→0)`: what tells the searches of a run apart in a sentence."""
    return f"{plural(search.cost.candidates, search.intervention.basis.row.noun)} ({search.regime.arrow})"


def search(run: Run, findings: Findings) -> Iterator[Stated]:
    """The kind of search; units shown, at τ, not ruled out."""
    yield stated("search.kind", run.config.search, kind=run.config.search)
    yield from each_search(found_of)(run, findings)


def found_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """How many units are shown, how many reach τ beside them, which are not ruled out, of how many."""
    at, shown = _at(search), findings.shown_of(search)
    told = findings.units_of(search)
    names = [str(unit.neuron) for unit in told if unit.is_shown]
    value: FactValue = {"units": names, "n": len(shown), "of": search.cost.candidates}
    parts = {"many": len(shown) or "None", "are": "are" if len(shown) > 1 else "is", "units": _units(search)}
    yield stated(f"{at}.shown", value, "search.shown", named=_named(names), **parts)
    if others := len(search.tau_agonists) - len(shown):
        strong = [str(one.neuron) for one in told if one.is_tau_agonist and not one.is_shown]
        reached = shown_units.reached_words(findings, search, others, "more " if shown else "")
        why = shown_units.unshowable(findings, search) or shown_units.NOT_SHOWN
        value, named = {"units": strong, "n": others}, _named(strong)
        yield stated(f"{at}.at_tau", value, "search.at_tau", reached=reached, why=why, named=named)
    weak = {str(one.neuron): one.estimate.strength for one in told if not one.is_tau_agonist}
    rest, left = len(weak), search.cost.candidates - len(search.agonists)
    named = _named([f"{name} (strength {strength:.2f})" for name, strength in weak.items()])
    status = sorted({*search.status} - {types.SearchStatus.COMPLETE.value})
    if rest or status:
        of = "search.not_ruled_out.open" if status else "search.not_ruled_out"
        value, are = {"units": weak, "n": rest}, "is" if rest == 1 else "are"
        parts = {"rest": rest, "are": are, "named": named, "left": f"{left:,}", "status": "; ".join(status)}
        yield stated(f"{at}.not_ruled_out", value, of, **parts)


def _named(names: list[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def cost_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What a search took, beside what testing every unit alone takes."""
    spent = search.cost
    shares = (spent.share_of_n, spent.share_of_2n_minus_1, spent.share_of_exhaustive_forwards)
    value = {
        "group_ablations": spent.queries,
        "example_forwards": spent.all_forwards,
        "share_of_testing_every_unit": spent.share_of_exhaustive_forwards,
        "testing_every_unit": spent.exhaustive_example_forwards,
    }
    parts = dict(zip(("of_n", "of_2n", "of_forwards"), map(percent, shares), strict=True))
    parts |= {"units": _units(search), "ablations": plural(spent.queries, "group ablation")}
    yield stated(f"{_at(search)}.cost", value, "search.cost", s=search, **parts)


def took(findings: Findings) -> Stated:
    """The wall clock and the longest stage."""
    spent = dict(findings.stages)
    longest = max(spent, key=lambda stage: spent[stage], default="none")
    parts = {"all": sum(spent.values()), "stages": plural(len(spent), "stage"), "longest": longest}
    return stated("run.seconds", spent, seconds=spent.get(longest, 0.0), **parts)


def cost(run: Run, findings: Findings) -> Iterator[Stated]:
    """What the searches took, and the wall clock."""
    yield from each_search(cost_of)(run, findings)
    yield took(findings)


def missed_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What a search left untested or missed, what bounds it, and what groups hid."""
    at, said, audit = _at(search), searches.missed_words(findings, search), search.audit
    known: dict[str, FactValue] = {"candidates": search.cost.candidates, "found": len(search.tau_agonists)}
    if search.exhaustive:
        lost = [str(unit.neuron) for unit in search.missed(findings.tau)]
        known |= {"untested": 0, "missed": lost}
        said += f"; not {', '.join(lost)}" if lost else ""
    elif audit is not None:
        known |= {name: getattr(audit, name) for name in ("untested", "missed_at_most", "confidence")}
        said = searches.audit_sentence(search, audit)
    else:
        known |= {"untested": search.untested}
    yield stated(f"{at}.missed", known, "search.missed", units=_units(search), said=said)
    if (found := search.recall) is not None:
        yield stated(f"{at}.recall_by_upper_bound", codec.encode(found), "search.recall", found=k_of_n(found))
    if opened := dominance(search.tree):
        over, of = sum(one.single > one.group.estimate.strength for one in opened), len(opened)
        parts = {"over": over, "groups": plural(of, "opened group")}
        yield stated(f"{at}.stronger_than_its_group", {"count": over, "n": of}, "search.dominance", **parts)


missed = each_search(missed_of)


def _layers_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """What each layer flips as a whole, the strongest first, and what its units flip."""
    at, units, strong = _at(search), _units(search), search.tau_agonists
    best, start = search.strongest_layer, findings.words.of(bool(search.regime.value))
    if best is None:
        yield stated(f"{at}.layers", None, "search.layers.none", units=units)
    for whole in sorted(search.whole_layers, key=lambda whole: (whole != best, -whole.least)):
        here = sum(one.neuron.layer == whole.layer for one in strong)
        of = "search.layer.best" if whole == best else "search.layer.whole"
        key, lie = f"{at}.layer.{whole.layer}.whole", "lies" if here == 1 else "lie"
        parts = {"here": f"{here} of {plural(len(strong), 'τ-agonist')}", "lie": lie, "units": units}
        parts |= {"flips": flips.both_slices(whole.estimate), "layer": str(whole.layer)}
        yield stated(key, codec.encode(whole.estimate), of, **parts)
    for layer in search.layer_union:
        key, share = f"{at}.layer.{layer.layer}.flipped_by_any", k_of_n(layer.flipped)
        parts = {"share": share, "start": start, "layer": str(layer.layer)}
        yield stated(key, codec.encode(layer.flipped), "search.layer.flipped", **parts)


def union_of(findings: Findings, search: SearchOutcome) -> Iterator[Stated]:
    """The records that any anchored unit flips, beside those that as many random units do."""
    if search.union is not None:
        drawn, parts = search.drawn_union, {"share": k_of_n(search.union), "units": _units(search)}
        parts["anchored"] = f"{len(search.anchored):,}"
        beside = f", {k_of_n(drawn)} by one of as many drawn in their layers, found ones too" if drawn else ""
        value = {"found": codec.encode(search.union), "random": codec.encode(drawn) if drawn else None}
        yield stated(f"{_at(search)}.flipped_by_any", value, "search.flipped", beside=beside, **parts)


layers = each_search(_layers_of, union_of)


def controls(run: Run, findings: Findings) -> Iterator[Stated]:
    """Each τ-agonist beside random units, whether it follows the split, and the weak points of the claim."""
    claims = findings.by_support()
    if not claims:
        yield stated("controls.units", 0, "controls.none")
        return
    for unit in claims:
        yield from _controls_of(findings, unit)
    sound = sum(not unit.weak_points for unit in claims)
    value: FactValue = {"count": sound, "n": len(claims)}
    parts = {"agonists": plural(len(claims), "τ-agonist"), "sound": sound or "none"}
    yield stated("controls.without_weak_points", value, "controls.sound", **parts)


def _controls_of(findings: Findings, unit: Unit) -> Iterator[Stated]:
    name, tau, ran = unit.neuron, findings.tau, unit.controls
    key = f"unit.{name}.{unit.search.regime.value}"
    selective = "" if ran is None else control_facts.selective_words(ran)
    parts = {
        "evidence": shown_units.evidence_words(findings, unit),
        "beside": selective and f"; it stands {shown_units.rank_words(unit)} units, {selective}",
        "strength": told_apart(unit.estimate.strength, tau),
        "lower": told_apart(unit.lower, tau, -1),
        "under": "" if unit.counts_show_it else f", below τ = {tau:g}",
    }
    value = {"strength": unit.estimate.strength, "lower": unit.lower, "shown": unit.is_shown}
    yield stated(f"{key}.chance", value, "controls.chance", s=unit.search, **parts)
    if ran is not None and ran.split is not None:
        tested = {"verdict": ran.selective.value, "p": ran.selective_p, "split": codec.encode(ran.split)}
        words = {"verdict": ran.selective.value, "split": control_facts.split_words(ran)}
        yield stated(f"{key}.selective", tested, "controls.selective", unit=name, **words)
    if points := unit.weak_points:
        weak = {"unit": name, "s": unit.search, "points": "; ".join(points)}
        yield stated(f"{key}.weak_points", [*points], "controls.weak_points", **weak)


def rules(run: Run, findings: Findings) -> Iterator[Stated]:
    """How many rules were learned and are shown; which test decides; what became of a language model's predicates."""
    yield from rule_counts(findings)
    kept = run.store.find(PROPOSALS) or {"accepted": [], "refused": []}
    refused = {one["text"]: one["reason"] for one in (*kept["refused"], *run.vocabulary["refusals"])}
    for nth, text in enumerate((*kept["accepted"], *(one["text"] for one in kept["refused"])), 1):
        learned = (rule for search in findings.searches for rule in search.rules)
        users = sorted({str(rule.neuron) for rule in learned if rule.rule and text in rule.rule.predicates})
        splits = run.splitter.rule is not None and text in run.splitter.rule.predicates
        rules_of = [*["the splitter rule"] * splits, *[f"rules of {', '.join(users)}"] * bool(users)]
        fate = f"accepted, in {' and '.join(rules_of)}" if rules_of else "accepted, in no rule"
        if reason := refused.get(text):
            fate = f"refused ({reason})"
        value = {"predicate": text, "refused": reason, "rules_of": users, "in_splitter": splits}
        said = {"text": repr(text), "by": kept["model"], "fate": fate}
        yield stated(f"rules.proposed.{nth}", value, "rules.proposed", **said)


def rule_counts(findings: Findings) -> Iterator[Stated]:
    """The same of findings alone."""
    learned = [rule for search in findings.searches for rule in search.rules]
    value = {"shown": sum(rule.shown for rule in learned), "learned": len(learned)}
    yield "rules", value, shown_of_all(findings) or "No rule was learned"
    if counts := published_counts(findings):
        yield stated("rules.published", counts, **counts, floor=findings.mcc_floor)
    yield stated("rules.test", findings.alpha, f=findings, rules=plural(len(learned), "learned rule"))


def rounding(findings: Findings) -> Stated:
    """How many completions rounding may decide."""
    close = findings.close_completions
    if close is None or not close.lead:
        return stated("model.rounding", None, "model.rounding.none")
    return stated("model.rounding", codec.encode(close.close), share=k_of_n(close.close), lead=close.lead)


def limits(findings: Findings) -> Iterator[Stated]:
    """What the run cannot show; which bounds and tests stand behind what it claims."""
    if (numbers := findings.numbers) is not None:
        yield stated("limits.numbers", dict(numbers), **numbers)
    if findings.close_completions is not None:
        yield rounding(findings)
    sizes = dict.fromkeys(search.cost.candidates for search in findings.searches)
    drawn = "at_random" if all(search.at_random for search in findings.searches) else "covers"
    values: dict[str, FactValue] = {
        **dict.fromkeys(("cause", "elsewhere", "strengths")),
        "bounds": {"alpha": findings.alpha, "units": [*sizes]},
        **{"pruning": None, "shown": findings.alpha, "unions": None},
        **({"clusters": findings.clusters} if findings.clusters else {}),
        **{"range": None, "pairs": None},
    }
    words = {"over": SENTENCES["limits.bounds.per_node"], "drawn": SENTENCES[f"limits.bounds.{drawn}"]}
    words["candidates"] = " or ".join(f"{units:,}" for units in sizes)
    words["more"] = "".join(f", {one.seed}" for one in findings.again)
    for name, value in values.items():
        yield stated(f"limits.{name}", value, f=findings, **words)


def limits_of_run(run: Run, findings: Findings) -> Iterator[Stated]:
    """The same, and how anybody checks what it claims."""
    yield from limits(findings)
    stored = len(run.store.certificates())
    yield stated("limits.certificates", stored, f=findings, stored=stored)


def next_steps(run: Run | None, findings: Findings) -> Iterator[Stated]:
    """What would settle what is open, or what to change where nothing was found, most telling first."""
    found = [each for each in findings.searches if each.tau_agonists]
    reasons = [shown_units.unshowable_by(findings, each) for each in found]
    if "few_drawn" in reasons:
        yield stated("next.controls", shown_units.measures(findings), how=shown_units.measures(findings))
    if not (findings.again or all(reasons) or findings.cut_short):
        command = f"mecharule run --from {findings.run} --again 3"
        yield stated("next.run", command, command=command)
    searched = {each.intervention.basis for each in findings.searches}
    told = [one for each in found or findings.searches for one in suggestions(findings, each, searched)]
    for place, advice in enumerate(dict.fromkeys(told)):
        yield f"next.{place}", advice, advice.removesuffix(".")
