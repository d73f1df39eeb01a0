"""The report of an investigation: the verdict first, one example, facts with sources, verdicts of rivals, what is left.

Nothing between the facts but connecting words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent.investigating.asking import not_read
from agent.investigating.board import counted
from agent.investigating.board_shown import BoardShown
from agent.investigating.investigation import QUESTION, InvestigationState, Rival, Step, affordable, kept
from agent.investigating.investigation_loop import Investigated
from agent.investigating.nodes import said_of
from agent.investigating.priced_tests import by_fit
from agent.investigating.proposed_rivals import CHANCE, STATED
from mecharule_ops.codec import encode
from mecharule_ops.numbers import plural
from mecharule_ops.rules.interval import fisher_p
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.saying.claims import figures_words
from mecharule_ops.saying.looks import looks_words
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.types import Regime
from tools._ablations import Quoted
from tools._accounts import asked_of, change_words
from tools.registry import ToolResult

MOST_TOLD = 2
"""Units up to which a verdict tells of each."""
MOST_SAID = 2
"""Sentences of what the run holds that answer alone."""
STRONG = 0.7
"""Held-out MCC from which a condition predicts well."""
RIVALS = "Rivals, those that fit train records best first (held-out records choose no order):"
LESSER = "not by as much as was predicted"
AGAINST = "Not as was predicted, if anything the other way round"
LESS = "refuted at the difference that was predicted, though its interval lies above 0"
SIGNS = {"weaker": "weaker than another rival", "open": "not decided"}


def reported(run: Run, found: Investigated, notes: tuple[str, ...] = ()) -> ToolResult:
    """The whole report; exit code 5 where a test was left because it could not be afforded and something is open."""
    state = found.state
    rivals = state.get("rivals", [])
    unpaid = _unpaid(state)
    is_open = any(rival["state"] == "open" for rival in rivals) or (bool(state["asked"]) and not rivals)
    answer = verdict(found)
    lines = [
        answer,
        *_example(run, found),
        "",
        *_known(found),
        "",
        *_left(run, found, unpaid),
        *notes,
    ]
    data: Mapping[str, object] = {
        "run": run.id,
        "verdict": answer,
        "by": found.by,
        "reused": found.reused,
        "not_affordable": unpaid,
        **{
            name: state.get(name)
            for name in ("question", "read_as", "rivals", "board", "steps", "purse", "ended", "refused")
        },
        "spent": {"forwards": state.get("forwards", 0), "seconds": state.get("seconds", 0.0)},
        "looks": _looks(run, found),
        "predictions": _predictions(run, found),
    }
    return ToolResult(data=data, text="\n".join(lines), exit_code=5 if unpaid and is_open else 0)


def shown(found: Investigated, report: str = "") -> BoardShown:
    """The same for a screen: what is known so far in the words of the report, or the `report` once there is one."""
    state, step = found.state, found.state.get("chosen")
    unpaid = _unpaid(state)
    price = _more(unpaid) if unpaid else None
    return BoardShown(
        question=state["question"],
        read_as=state["read_as"],
        text=report or "\n".join([*_known(found), "", *map(_not_affordable, unpaid)]),
        states={next(_verdict(rival)): rival["state"] for rival in filter(kept, state.get("rivals", []))},
        purse=_purse(state),
        doing=f"{said_of(step)}, {_seconds(step)}" if step else "",
        more=price.example_forwards if price else 0,
        price=f"price: at most {price.words}" if price else "",
        ended=bool(report),
    )


def answered(question: str, text: str) -> BoardShown:
    """An answer of tools that a language model called where nothing was investigated."""
    return BoardShown(question=question, read_as="", text=text, states={}, purse="", ended=True)


def _known(found: Investigated) -> Iterator[str]:
    """From what the question was read as to the last rival."""
    state, rivals = found.state, found.state.get("rivals", [])
    yield from (f"Read as: {state['read_as']}", "", "Known:")
    yield from (f"  {fact['id']} {fact['sentence']} [{fact['source']}]" for fact in state.get("board", []))
    if tested := list(filter(kept, rivals)):
        yield from ("", RIVALS, *(f"  {line}" for rival in tested for line in _verdict(rival)))
    if left := [rival["family"] for rival in rivals if rival["state"] == "dropped"]:
        yield f"  Not tested, since train records say less for them: {', '.join(left)}."
    yield from (f"Refused: {reason}" for reason in state.get("refused", []))


def _unpaid(state: InvestigationState) -> list[Step]:
    return [step for step in state.get("offered", []) if not affordable(step, state)]


def _dearest(unpaid: Sequence[Step]) -> list[Step]:
    """Of each unit the dearest test that could not be afforded: with these all is paid."""
    by_unit: dict[str, Step] = {}
    for step in sorted(unpaid, key=lambda step: step["forwards"]):
        by_unit["+".join(step["units"])] = step
    return list(by_unit.values())


def _more(unpaid: Sequence[Step]) -> Quoted:
    """The price of all that could not be afforded."""
    dearest = _dearest(unpaid)
    seconds = [step["seconds"] for step in dearest]
    known = [one for one in seconds if one is not None]
    return Quoted(
        example_forwards=sum(step["forwards"] for step in dearest),
        seconds=sum(known) if len(known) == len(seconds) else None,
    )


def _purse(state: InvestigationState) -> str:
    """What is left of what may be spent."""
    forwards, seconds = state["purse"]["forwards"], state["purse"]["seconds"]
    left = []
    if forwards is not None:
        left.append(f"{forwards - state.get('forwards', 0):,} of {forwards:,} example-forwards")
    if seconds is not None:
        left.append(f"{seconds - state.get('seconds', 0.0):.0f} s of {seconds:.0f} s")
    return f"{' and '.join(left)} left" if left else "no limit"


def verdict(found: Investigated) -> str:
    """One line in plain words, after whose reading of the question it answers, and what of it was not read."""
    by, unread = found.state["read_by"], found.state["unread"]
    before = f"As {by} read it: " if by else ""
    before += f"Of a part of the question only ({not_read(unread)}). " if unread else ""
    return f"{before}{_answer(found)}"


def _answer(found: Investigated) -> str:
    told = [f"{fact['sentence']}." for fact in found.state["told"][: found.state["answers"]]]
    if not found.state["asked"]:
        return " ".join(told[:MOST_SAID])
    named = any(rival["by"] == QUESTION for rival in found.state.get("rivals", []))
    return " ".join([_of_tests(found), *told[:1]] if named else [*told[:1], _of_tests(found)])


def _of_tests(found: Investigated) -> str:
    """What came of the tests."""
    rivals = by_fit(list(filter(kept, found.state.get("rivals", []))))
    named = [rival for rival in rivals if rival["by"] == QUESTION]
    if len(found.state["asked"]) > MOST_TOLD:
        return _of_every_unit(found, rivals, named)
    if named:
        return _of_question(rivals, named)
    shown = [rival for rival in rivals if rival["state"] == "supported"]
    if shown:
        return _capital(_of_shown(rivals, shown[0]))
    if rivals and all(rival["state"] == "refuted" for rival in rivals):
        return f"None of {plural(len(rivals), 'rival')} reaches on held-out records what was predicted of it."
    measured = found.state.get("board", [])[len(found.state["told"]) :]
    if not rivals and measured:
        return f"Undecided: {measured[-1]['sentence']}."
    return "Undecided: " + (
        "the tests that would tell cannot be afforded."
        if _unpaid(found.state)
        else f"none of {plural(len(rivals), 'rival')} could be shown."
    )


def _of_question(rivals: list[Rival], named: list[Rival]) -> str:
    """The verdict of all that the question names; where none is shown, what else is."""
    said = [_capital(_of_named(rival)) for rival in named]
    shown = [rival for rival in rivals if rival["state"] == "supported"]
    if shown and not any(rival in named for rival in shown):
        said.append(f"Of other conditions, {_of_shown(rivals, shown[0])}")
    return " ".join(said)


def _of_every_unit(found: Investigated, rivals: list[Rival], named: list[Rival]) -> str:
    """What is shown of which units, of what the question names, else the best of each; then how the others came out."""
    judged = named or rivals
    said, how = [], Counter[str]()
    for asked in found.state["asked"]:
        of_unit = [rival for rival in judged if rival["unit"] == "+".join(asked["units"])]
        shown = [rival for rival in of_unit if rival["state"] == "supported"]
        said += [_capital(_of_named(rival)) for rival in (shown if named else shown[:1])]
        if not shown:
            states = {rival["state"] for rival in of_unit}
            how["not tested" if states <= {"open"} else LESSER if states == {"refuted"} else "undecided"] += 1
    if how:
        others = ", ".join(f"{number} {state}" for state, number in how.items())
        said.append(f"Of the {'other ' if said else ''}{plural(how.total(), 'unit')}: {others}.")
    return " ".join(said)


def _is_less(rival: Rival) -> bool:
    """Whether only the amount is refuted: the unit does flip more often there."""
    return rival["state"] == "refuted" and "+" not in rival["unit"] and (rival["low"] or 0.0) > 0


def _capital(text: str) -> str:
    """With a capital, unless a unit's name comes first."""
    return text if any(sign.isdigit() for sign in text.split()[0]) else text[:1].upper() + text[1:]


def _of_named(rival: Rival) -> str:
    is_stated = rival["family"] == STATED or "+" in rival["unit"]
    word = "Undecided"
    if rival["state"] == "supported":
        word = "Yes" if is_stated else "Shown, it flips less there" if rival["less"] else "Shown"
        if _is_flat(rival):
            so = "that it flips less there" if rival["less"] else "so"
            word = f"Held-out records say {so}, the {_looked(rival):,} train records looked at do not"
    elif _is_less(rival):
        word = "More often, but by less than was predicted"
    elif rival["state"] == "refuted":
        against = (rival["value"] or 0.0) <= 0
        word = "No" if is_stated and against else AGAINST if against else LESSER.capitalize()
    telling = [each for each in rival["beside"] if each["kind"] in ("loses", "within")]
    telling.sort(key=lambda each: not each["told_apart"])
    more = f" {_capital(telling[0]['said'])}." if rival["held_out"] and telling else ""
    train = ""
    is_open = rival["state"] in ("undecided", "underpowered")
    if "+" not in rival["unit"] and (is_open or (rival["state"] == "supported" and _is_flat(rival))):
        flips, n, other, all_ = rival["train"]
        train = (
            f" Of {_looked(rival):,} train records {flips:,} of {n:,} flip where {rival['words']}, elsewhere "
            f"{other:,} of {all_:,}."
        )
    weak = _weak(rival) if rival["state"] == "supported" else ""
    return f"{word}: {_counts(rival, of_less=True)}{train}{weak}{more}"


def _looked(rival: Rival) -> int:
    """Train records that its predicate was looked at on: a draw, where there are many."""
    return rival["train"][1] + rival["train"][3]


def _is_flat(rival: Rival) -> bool:
    """Whether train records say nothing for it, as they may where the question names it."""
    if "+" in rival["unit"]:
        return False
    flips, n, other, all_ = rival["train"]
    return fisher_p(flips, n, flips + other, n + all_) > CHANCE


def _weak(rival: Rival) -> str:
    """That what is shown does not predict well, where so."""
    mcc = rival["mcc_held_out"]
    return (
        ""
        if mcc is None or mcc >= STRONG
        else f" It does not predict its flips well (held-out MCC {mcc:.2f})."
    )


def _of_shown(rivals: list[Rival], best: Rival) -> str:
    if "+" in best["unit"]:
        return f"{best['unit'].replace('+', ' and ')} {best['condition']}: {_counts(best)}"
    alike = [
        rival["id"]
        for rival in rivals
        if any((each["kind"], each["rival"]) == ("near", best["id"]) for each in rival["beside"])
    ]
    also = f" Not told apart from {', '.join(alike)}." if alike else ""
    first, before = rivals[0], ""
    if first["state"] in ("undecided", "underpowered") and first["held_out"]:
        before = f"what fits train records best is {first['state']}: {_counts(first)} Shown is: "
    return f"{before}{_counts(best)}{_weak(best)}{also}"


def _counts(rival: Rival, *, of_less: bool = False) -> str:
    if rival["held_out"]:
        return f"{counted(rival, of_less=of_less)}."
    about = f"where {rival['words']}" if "+" not in rival["unit"] else rival["words"]
    return f"{rival['unit']}, {about}: {'; '.join(each['said'] for each in rival['beside']) or 'not tested'}."


def _verdict(rival: Rival) -> Iterator[str]:
    by = "" if rival["by"] == "offline" else f", by {rival['by']}"
    state = LESS if _is_less(rival) else SIGNS.get(rival["state"], rival["state"])
    yield f"{rival['id']} {rival['family']}{by}: {rival['words']}: {state}{_figures(rival)}"
    yield from (f"   {each['said']}" for each in rival["beside"])


def _figures(rival: Rival) -> str:
    if rival["value"] is None or rival["low"] is None or rival["high"] is None:
        return ""
    of = "share" if "+" in rival["unit"] else "difference"
    figures = figures_words(of, rival["value"], rival["low"], rival["high"], rival["threshold"], rival["p"])
    return f", {figures}"


def _example(run: Run, found: Investigated) -> Iterator[str]:
    """One flipped prompt before and after, from a certificate of the unit where there is one.

    Of the condition that the verdict is about one where it holds, if the certificate has such a flip.
    """
    units = [unit for one in found.state["asked"][:1] for unit in one["units"]]
    rows = [
        (certificate.id, row, words)
        for certificate in (run.store.certificates(*units) if units else ())
        if certificate.kind in ("ablate", "why")
        for row, words in asked_of(certificate, False).items()
        if row.flipped
    ]
    there = _prompts_where(run, found)
    for identifier, row, words in sorted(rows, key=lambda one: one[1].prompt not in there)[:1]:
        yield f"For example: {words} {change_words(row)} [c:{identifier}]"


def _prompts_where(run: Run, found: Investigated) -> set[str]:
    """The prompts on which the condition of the verdict holds: what the question names, else what is shown."""
    rivals = by_fit([rival for rival in found.state.get("rivals", []) if "+" not in rival["unit"]])
    told = [rival for rival in rivals if rival["by"] == QUESTION] or [
        rival for rival in rivals if rival["state"] == "supported"
    ]
    if not told:
        return set()
    prompts = (record.example.prompt for record in run.observed.records)
    return {prompt for prompt, holds in zip(prompts, fires(run, told[0]["condition"]), strict=True) if holds}


def _predictions(run: Run, found: Investigated) -> list[dict[str, object]]:
    """The ledger's entries about what was asked, those of earlier investigations too."""
    units = {"+".join(one["units"]) for one in found.state["asked"]}
    return [
        {"id": entry.id, "state": entry.state, **encode(entry.prediction)}
        for entry in Ledger(run.store).entries()
        if entry.prediction.subject in units
    ]


def _looks(run: Run, found: Investigated) -> list[str]:
    """Of each unit that was asked about, what its held-out flips were read for so far."""
    return [looks_words(run, "+".join(one["units"]), Regime(one["regime"])) for one in found.state["asked"]]


def _left(run: Run, found: Investigated, unpaid: list[Step]) -> Iterator[str]:
    state = found.state
    spent = (
        f"{state.get('forwards', 0):,} example-forwards, {state.get('seconds', 0.0):.0f} s at the run's pace"
    )
    yield f"Ended: {state.get('ended', 'it was stopped')}. Spent: {spent}."
    yield from (f"{line}." for line in _looks(run, found))
    open_ = [
        rival["id"]
        for rival in state.get("rivals", [])
        if rival["state"] in ("open", "undecided", "underpowered")
    ]
    if open_:
        yield f"Open: {', '.join(open_)}."
    yield from map(_not_affordable, unpaid)
    if unpaid:
        yield f"Next: the same with --forwards {_more(unpaid).example_forwards} --yes."
    elif state["asked"]:
        unit = state["asked"][0]["units"][0]
        found_units = {str(each.neuron) for each in run.findings.units()}
        verb = "why" if unit in found_units else "why-not"
        yield f"Next: `mecharule {verb} {run.id} {unit}`."


def _not_affordable(step: Step) -> str:
    what = f"{step['kind']} of {'+'.join(step['units'])}"
    return f"Not affordable: {what}, {step['forwards']:,} example-forwards, {_seconds(step)}."


def _seconds(step: Step) -> str:
    return "seconds not known" if step["seconds"] is None else f"about {step['seconds']:.0f} s"
