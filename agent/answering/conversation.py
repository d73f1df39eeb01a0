"""One question about a run, answered without a language model: parse, tools, their facts, three offers.

What few questions need, conditions and the words of the report, is imported where it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.answering.facts import facts_of
from agent.answering.following import picked
from agent.answering.offers import FIRST, MOST, Offers, offers_of
from agent.answering.questions import QUESTIONS
from agent.answering.referring import AskedTool, Topic, asked_for, kind_meant, remember, topic_of
from agent.answering.router import Route, Understood, known_words, understand, unknown_words
from agent.answering.understanding import MAY_STATE, PROPERTY_WORD
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import plural
from mecharule_ops.plain_text import plain
from mecharule_ops.questions.amounts import amounts_in
from mecharule_ops.questions.own_words import has_own_words, own_words, with_prompt_quoted
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, findings_of, opened
from mecharule_ops.saying.answer_text import ending, lines
from mecharule_ops.saying.fact import Fact, certificate_ids, fact
from mecharule_ops.types import Neuron, Regime
from tools.arguments import NARROWED
from tools.registry import Tell, ToolResult, call

OFFLINE = "LLM: none (offline)"
ALL = "?"
"""Asks for everything that can be asked."""
_LONGEST_WORD = 24
_READINGS = 3
"""Of a question that is not understood for sure, each with what it would be answered."""
_OF_READING, _LONGEST_READING = 2, 300
"""Sentences of a reading's answer, and characters of one."""
_ABLATE = frozenset({"ablate", "flip", "verify", "versus"})
"""Tools that may ablate at once: a reading of theirs is only named, and one of `tabulate` for a unit not found."""
_WHOLE = frozenset({"why", "strongest"})
"""Kinds whose answer has every part of a unit's explanation."""
_OTHER = re.compile(r"\bthe other (?:one|unit|head|neuron|channel)\b", re.IGNORECASE)
_MEANT = "It may mean one of these; answer with a number to have that one whole:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One part of a question and what its answer rests on."""

    kind: str
    facts: tuple[Fact, ...]
    units: tuple[str, ...] = ()
    tool: str = ""
    """The tool that was asked; empty when the report itself answers, or nothing does."""
    given: Mapping[str, object] = field(default_factory=dict)
    is_table: bool = False
    ok: bool = True
    """False when the answer is that there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleQuestion:
    """A question that may be meant."""

    question: str
    facts: tuple[Fact, ...]
    """The first of its answer; none where it would ablate."""

    def record(self) -> dict[str, str]:
        """As data."""
        return {"question": self.question, "answer": "\n".join(map(_cut, lines(self.facts)))}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talk:
    """A question's run, what was spoken of before it, and who answers."""

    findings: Findings
    path: str
    topic: Topic
    offers: Offers
    refused: Answered | None
    """The answer to any question about a unit that the model does not have."""
    tell: Tell

    def answer(self, route: Route, topic: Topic) -> Answered:
        """One part of the question, after what is spoken of by then."""
        return self.refused or answered_by(self.findings, self.path, route, topic, self.tell)

    def readings(
        self, likely: Sequence[Route], most: int, said: Collection[str] = ()
    ) -> list[PossibleQuestion]:
        """Questions that may be meant, likeliest first, with what is not `said` yet; no tool ablates for one."""
        told: list[PossibleQuestion] = []
        known = set(said)
        for route in likely:
            if len(told) == most:
                break
            if route.kind == "strongest" and (route.place not in (None, 1) or route.noun):
                continue
            part = answered_by(self.findings, self.path, route, self.topic, self.tell, is_reading=True)
            wording = worded(route, part, self.offers) if part.ok else ""
            facts = tuple(each for each in part.facts[:_OF_READING] if each.said not in known)
            if wording and (facts or not part.facts):
                told.append(PossibleQuestion(question=wording, facts=facts))
                known |= {each.said for each in facts}
        return told


def ask(run: str, question: str, tell: Tell = lambda line: None, *, who: str = OFFLINE) -> ToolResult:
    """The answer as text and data; what it cites is remembered for `verify last`, its topic for `it`.

    A question that is not wholly understood gets up to three that are near, each with the beginning of its answer; `?`
    gets all. `who` is the line that says who answers. Raises what opening the run raises.
    """
    with opened(run) as open_run:
        findings, path = findings_of(open_run), str(open_run.store.path)
        topic, offers = topic_of(open_run), offers_of(open_run, findings)
        chosen = picked(question, topic.offered) if topic.offered else ""
        question = chosen or question
        found, unread = _read(open_run, _other_named(question, topic, offers), topic)
        refused = _no_such(open_run, found)
    talk = _Talk(findings=findings, path=path, topic=topic, offers=offers, refused=refused, tell=tell)
    data: dict[str, object] = {
        "run": findings.run,
        "question": question,
        "llm": "none (offline)",
        "understood": True,
        "kinds": [],
        "tool": None,
        "arguments": {},
        "tools": [],
        "checked": "there is nothing to check",
        "certificates": [],
    }
    kinds = [route.kind for route in found.routes]
    localized = {str(agonist.neuron) for search in findings.searches for agonist in search.agonists}
    unit = next(iter((*(name for name in found.units if name in localized), *topic.units)), None)
    if question.strip() == ALL or "help" in kinds:
        all_of_them = offers.fill(QUESTIONS, unit)
        data["answer"] = "\n".join(["Without a language model I answer:", *_indented(all_of_them)])
        data["follow_ups"] = list(all_of_them)
        return ToolResult(data=data, text=f"{who}\n{data['answer']}")
    if not found.routes and refused:
        found = replace(found, routes=(Route(kind=refused.kind),))
    if not found.routes:
        return _asked_back(talk, found, data, unread, unit, who)
    found, answered, topic = _parts_of(found, topic, talk.answer)
    facts = tuple(each for part in answered for each in part.facts)
    others = [
        one for one in talk.readings(_left(found, answered), 1, {each.said for each in facts}) if one.facts
    ]
    sources = _sources(facts)
    data |= _rests_on(facts, sources)
    whole = found.whole or question
    remember(path, replace(topic, question=whole, certificates=certificate_ids(sources), offered=()), tell)
    asked = [part for part in answered if part.tool]
    said = [
        *([f"(asking “{chosen}”)"] if chosen else []),
        *_notes(found, answered, talk.topic, offers, unread),
        *(line for part in answered for line in lines(part.facts)),
        *(f"If you mean “{one.question}”: {_cut(' '.join(lines(one.facts)))}" for one in others),
    ]
    going_on = offers.after(topic.kind, next(iter(topic.units), None))
    data |= {
        "kinds": kinds,
        "tool": answered[0].tool or None,
        "arguments": answered[0].given,
        "tools": [{"tool": part.tool, "arguments": part.given, "ok": part.ok} for part in asked],
        "answer": "\n".join(
            [*said, *ending(said, [*facts, *(each for one in others for each in one.facts)])]
        ),
        "readings": [one.record() for one in others],
        "follow_ups": [other for other in going_on if other != question],
    }
    return ToolResult(data=data, text=laid_out(who, data), facts=facts)


def _asked_back(
    talk: _Talk,
    found: Understood,
    data: dict[str, object],
    unread: Sequence[str],
    unit: str | None,
    who: str,
) -> ToolResult:
    """What a question that is not understood may mean, each with the beginning of its answer."""
    question = str(data["question"])
    near = talk.readings(found.likely, _READINGS)
    facts, said = tuple(each for one in near for each in one.facts), _not_understood(question, near)
    if near and unread:
        said.insert(1, f"({'; '.join(_not_taken(unread))})")
    offered = tuple(one.question for one in near)
    data |= {
        "understood": False,
        "answer": "\n".join([*said, *ending(said, facts)]),
        "asks_back": bool(near),
        "readings": [one.record() for one in near],
        **_rests_on(facts, _sources(facts)),
        "follow_ups": list(offered or talk.offers.fill(FIRST, unit, MOST)),
    }
    if near or (talk.topic.offered and not question.strip().isdigit()):
        remember(talk.path, replace(talk.topic, offered=offered, certificates=()), talk.tell)
    return ToolResult(data=data, text=laid_out(who, data), facts=facts, exit_code=UsageError.exit_code)


def _sources(facts: Iterable[Fact]) -> list[str]:
    """Each once, in order."""
    return list(dict.fromkeys(source for each in facts for source in each.sources))


def _rests_on(facts: Sequence[Fact], sources: Sequence[str]) -> dict[str, object]:
    """How many facts an answer has and what it cites, as data."""
    counted = f"{plural(len(facts), 'fact')} put in from {plural(len(sources), 'source')}"
    return {"checked": counted, "certificates": list(certificate_ids(sources))}


def _other_named(question: str, topic: Topic, offers: Offers) -> str:
    """The question with `the other one` by its name, where one of the two strongest units was spoken of."""
    others = [unit for unit in offers.strongest if unit not in topic.units]
    is_clear = len(others) == len(topic.units) == 1 and not QUESTIONS[topic.kind].layer
    return _OTHER.sub(others[0], question) if is_clear else question


def _read(run: Run, question: str, topic: Topic) -> tuple[Understood, list[str]]:
    """What a question asks, the conditions that it states put into it, and what no answer speaks of."""
    is_table = has_own_words(run.task)
    question = with_prompt_quoted(run, question) if is_table else question
    own = own_words(run, question, known_words()) if is_table else amounts_in(question, run.task)
    spoken_of, last = len(topic.units), topic.kind if topic.question else ""
    found = understand(question, spoken_of=spoken_of, earlier=topic.question, last=last, own=own)
    is_unread = bool(found.units) and not found.routes
    may_be_narrowed = any(route.kind in NARROWED for route in found.routes)
    if own or is_unread or may_be_narrowed or MAY_STATE.search(question):
        from agent.answering.conditions import with_condition

        found, unread = with_condition(run, question, found, own)
    else:
        unread = []
    kinds = {route.kind for route in found.routes if route.bare or route.kind == "strongest"}
    if "property" in kinds or ("strongest" in kinds and PROPERTY_WORD.search(question.lower())):
        from agent.answering.conditions import of_each_unit

        found, more = of_each_unit(findings_of(run), question, found)
        unread = [*unread, *more]
    return found, unread


def _parts_of(
    found: Understood, topic: Topic, answer: Callable[[Route, Topic], Answered]
) -> tuple[Understood, list[Answered], Topic]:
    """(what was understood, its parts answered, what is spoken of since), without a part that says nothing new.

    Where two readings have one answer nothing is to be said of how the question was taken; both are of what was spoken
    of before. Where one thing is counted of each of several units all are spoken of since, and how it was counted is
    said of the last.
    """
    answered, routes, said, before = list[Answered](), list[Route](), set[str](), topic
    is_each = {each.kind for each in found.routes} == {"property"}
    for route in found.routes:
        part = answer(route, before if route.taken else topic)
        facts = tuple(each for each in part.facts if each.said not in said)
        if is_each and route is not found.routes[-1]:
            facts = tuple(each for each in facts if "counted" not in each.kinds)
        if answered and not facts:
            routes = [replace(each, taken=False) for each in routes]
            continue
        answered.append(replace(part, facts=facts))
        routes.append(route)
        said |= {each.said for each in facts}
        earlier = topic.units if is_each and len(answered) > 1 else ()
        topic = _next_topic(topic, answered[-1])
        topic = replace(topic, units=tuple(dict.fromkeys([*earlier, *topic.units])))
    return replace(found, routes=tuple(routes)), answered, topic


def laid_out(who: str, data: Mapping[str, object], *more: str) -> str:
    """An answer's text: who answers, the answer, how it came about with `more` lines, and what may be asked next.

    That no language model does is said where one might understand what was not.
    """
    said = [who] if not who.startswith(OFFLINE) else []
    more = more if said or data.get("understood") else (*more, f"({who})")
    offers = data["follow_ups"]
    assert isinstance(offers, list)
    if data.get("asks_back"):
        return "\n".join([*said, str(data["answer"]), *more])
    asked = ["", "You may ask (? lists all):", *_indented(offers)] if offers else []
    checked = [f"({data['checked']})"] if data["llm"] != "none (offline)" else []
    return "\n".join([*said, str(data["answer"]), *checked, *more, *asked])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _next_topic(topic: Topic, answered: Answered) -> Topic:
    """What `it` means from now on: the units asked about, else the first that the answer names."""
    named = tuple(dict.fromkeys(each.unit for each in answered.facts if each.unit))
    units = (answered.units or named[:1]) if answered.ok else ()
    return replace(topic, units=units or topic.units, kind=answered.kind)


def answered_by(
    findings: Findings, path: str, route: Route, topic: Topic, tell: Tell, *, is_reading: bool = False
) -> Answered:
    """The answer of the route's tool; a unit that cannot be explained is asked about with `why-not`.

    Of one reading of several what would ablate is not asked, and has no facts.
    """
    route = replace(route, kind=kind_meant(route, topic))
    try:
        asked = asked_for(findings, path, route, topic)
        if not asked.tool:
            return Answered(kind=asked.kind, facts=tuple(_summed(findings)))
        if is_reading and _may_ablate(findings, asked):
            return Answered(kind=asked.kind, facts=(), units=asked.units, given=asked.given)
        try:
            result = call(asked.tool, asked.given, tell)
        except ClaimNotSupported:
            if asked.tool != "why":
                raise
            route = Route(kind="why-not", units=asked.units, regime=route.regime)
            asked = asked_for(findings, path, route, topic)
            result = call(asked.tool, asked.given, tell)
    except (ClaimNotSupported, UsageError) as refused:
        said = f"There is no answer to that: {str(refused).removesuffix('.')}"
        return Answered(kind=route.kind, facts=(fact(said, f"run:{findings.run}"),), ok=False)
    return Answered(
        kind=asked.kind,
        facts=facts_of(result, findings.run, asked.told_as),
        units=asked.units,
        tool=asked.tool,
        given=asked.given,
        is_table="rows" in result.data,
    )


def _may_ablate(findings: Findings, asked: AskedTool) -> bool:
    found = (str(unit.neuron) for unit in findings.units() if unit.is_tau_agonist)
    return asked.tool in _ABLATE or (asked.tool == "tabulate" and not {*asked.units} <= {*found})


def _summed(findings: Findings) -> list[Fact]:
    """What the end of a run says first: what was found, when, how sure; then how often the model is right."""
    from mecharule_ops.report.summary import found_line, not_found, sure_line, unablated, when_line

    said = [found_line(findings), when_line(findings), sure_line(findings), *not_found(findings)]
    said += [unablated(findings), *findings.notes]
    return [fact(sentence.rstrip("."), f"run:{findings.run}") for sentence in said if sentence]


def _notes(
    found: Understood, answered: Sequence[Answered], before: Topic, offers: Offers, unread: Sequence[str]
) -> list[str]:
    """How the question was read, where that was not plain: words, units that it does not name, what it asks."""
    parts = list(zip(found.routes, answered, strict=True))
    notes = [f"“{plain(written)}” read as “{read_as}”" for written, read_as in found.corrected]
    notes += [f"it: {part.units[0]}" for route, part in parts if route.refers and part.units]
    for route, part in parts:
        if (route.bare or route.every) and part.units:
            which = "found here" if route.every else "spoken of last" if before.units else "the strongest"
            notes.append(f"taking {' and '.join(part.units)} as meant, {which}")
    taken = [worded(route, part, offers) for route, part in parts if route.taken]
    notes += _not_taken(unread)
    asked = [f"“{wording}”" for wording in taken if wording]
    if asked:
        notes.append(f"taking the question as {' and as '.join(dict.fromkeys(asked))}")
    return [f"({'; '.join(dict.fromkeys(notes))})"] if notes else []


def _not_taken(unread: Iterable[str]) -> list[str]:
    return [f"not taken into account: “{plain(words)}”" for words in unread]


def worded(route: Route, answered: Answered, offers: Offers) -> str:
    """The question as its row words it, about what it names; empty where the row is never worded."""
    units = answered.units or route.units
    named = {
        **({"unit": units[0], "other": units[0]} if units else {}),
        **({"second": units[1]} if len(units) > 1 else {}),
        **{name: str(value) for name, value in route.given.items() if name in ("layer", "prompt", "term")},
        **({"property": f"“{asked}”"} if (asked := route.given.get("predicate")) else {}),
    }
    said = next(iter(offers.fill([answered.kind], named=named)), "")
    if said and route.regime and offers.both_ways:
        return f"{said.removesuffix('?')} ({Regime(int(route.regime)).arrow})?"
    return said


def _no_such(run: Run, found: Understood) -> Answered | None:
    """The refusal of a question about a unit that the model does not have; None for any other."""
    try:
        for unit in found.units:
            check_unit(run, Neuron.parse(unit))
    except UsageError as refused:
        said = f"There is no answer to that: {str(refused).removesuffix('.')}"
        return Answered(
            kind=found.routes[0].kind if found.routes else "why",
            facts=(fact(said, f"run:{run.id}"),),
            ok=False,
        )
    return None


def _left(found: Understood, answered: Sequence[Answered]) -> tuple[Route, ...]:
    """What else a question may mean that was not plain; nothing where it was, or where conditions were read in it."""
    if (
        len(found.routes) != 1
        or not found.routes[0].taken
        or {"where", "predicate"} & set(found.routes[0].given)
    ):
        return ()
    kinds = {found.routes[0].kind, *(part.kind for part in answered)}
    whole = "why" if kinds & _WHOLE else ""
    return tuple(
        each for each in found.likely if each.kind not in kinds and QUESTIONS[each.kind].tool != whole
    )[:1]


def _not_understood(question: str, near: Sequence[PossibleQuestion]) -> list[str]:
    """A refusal that names the words nobody understood, and what may be meant with the beginning of its answer."""
    stray = [f"“{plain(word)[:_LONGEST_WORD]}”" for word in unknown_words(question) if word.isalpha()]
    what = f"I did not understand {', '.join(stray[:MOST])} in that" if stray else "I did not understand that"
    if not near:
        return [
            f"{what}; it lies near no question that I can answer without a language model, so I claim nothing."
        ]
    numbered = [
        "\n".join([f"  {place}  {one.question}", *(f"     {_cut(line)}" for line in lines(one.facts))])
        for place, one in enumerate(near, 1)
    ]
    return [f"{what} for sure. {_MEANT}", *numbered]


def _cut(line: str) -> str:
    """A line that is too long for one reading of several, up to a word."""
    return line if len(line) <= _LONGEST_READING else f"{line[:_LONGEST_READING].rsplit(' ', 1)[0]} …"
