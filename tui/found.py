"""What stands beside map and tree: what a run has found so far, or the card of the node under the cursor.

Found are the units asked on answers kept aside, the surest first, those that wait for it, and the last flip. Only shown
units have a colour, and a bar is solid up to the bound of its share. Of a unit of a run that has ended the card is the
answer to "why?", in its own words.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, Literal

from rich import get_console
from rich.text import Text

from mecharule_ops import events, nodes, plain_text
from mecharule_ops.facts.answer_text import lines, proof
from mecharule_ops.facts.fact import Fact, said
from mecharule_ops.numbers import bounds_apart, percent, percent_at_least, percent_at_most, plural
from mecharule_ops.state.board import OPEN, REACHES, Board, Place
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import SearchView
from tui import text_panes, words
from tui.words import JUDGED, arrow, bar, basis_of, look_of, noun_of, time_ago

WIDE, MOST = 44, 8
"""Columns from which a unit's counts stand beside its bound; units of one half alone that have a line."""
BESIDE, _FEWEST = 90, 3
"""Columns from which a card has what happens beside how sure; answers that it names at least."""
_PARTS = ("when", "where", "finer", "breaks", "reads", "writes", "through", "claims")
_SURE = ("rank", "again", "selective", "resampled", "least")
"""Facts of a unit in its card, by their keys: those of the whole width, and those of how sure."""
Told = tuple[str, Sequence[Fact]] | None
"""The finding of a unit in a sentence, and all facts of it."""
Ages = Mapping[tuple[int, str], float]
"""Seconds since what some answers become was seen, by regime and unit."""


def judged_units(state: RunState, place: Place | None = None) -> list[events.UnitJudged]:
    """The units asked on answers kept aside, of one kind and direction or of all: the surest first, by their bound."""
    judged = [one for (regime, unit), one in state.judged.items() if place in (None, Place(regime, unit[0]))]
    return sorted(judged, key=lambda one: ([*JUDGED].index(one.certainty), -one.lower, one.neuron))


def shown_units(state: RunState, place: Place | None = None) -> list[events.UnitJudged]:
    """Those that were shown."""
    return [one for one in judged_units(state, place) if one.rank is not None]


def found_text(state: RunState, board: Board, place: Place, width: int, ages: Ages) -> Text:
    """The panel; `ages` are the seconds since what became of some answers was seen, by regime and unit."""
    text, judged, shown = Text(), judged_units(state, place), shown_units(state, place)
    tau, room = state.thresholds.tau, max(4, width - (37 if width >= WIDE else 27))
    for one in shown if state.finished else judged:
        look, counts = JUDGED[one.certainty], f" {one.flips} of {one.n}," if width >= WIDE else ""
        text.append(f"{look.glyph} {plain_text.plain(one.neuron):<9}", look.style or "dim").append_text(
            _sure_bar(one, room)
        )
        text.append(f"{counts} at least {percent_at_least(one.lower)}\n", "" if one in shown else "dim")
    layers = board.places.get(place, {}).values()
    reach, still_open = (sum(layer.fates.count(fate) for layer in layers) for fate in (REACHES, OPEN))
    undecided = max(0, reach - len(judged))
    for name, half in islice(_waiting(state, board, place), MOST):
        share = f"{bar(half.flips / half.n, room, '·')} {half.flips} of {half.n}\n"
        text.append(f"{words.REACHES.glyph} {name:<9}{share}", "dim")
    if undecided and not state.finished:
        at_tau = "┄" * max(0, int(tau * room) - 1)
        text.append(f"{' ' * 11}{at_tau}┊ {percent(tau)} is looked for\n", "dim")
    if undecided:
        more = f"{undecided - MOST:,} more, all " if undecided > MOST else ""
        text.append(f"{more}of one half; answers kept aside decide which are shown\n", "dim")
    many = Counter(one.certainty for one in judged if state.finished and one not in shown)
    rest = [f"{JUDGED[sure].glyph} {count} {JUDGED[sure].word}" for sure, count in many.items()]
    if not (undecided or judged) and any(view.tested for view in state.searches.values()):
        so_far = "" if state.finished else " so far"
        rest.append(f"{arrow(place.regime)}: no {noun_of(place.letter)} reaches {percent(tau)}{so_far}")
    rest += [f"{still_open:,} not ruled out"] if still_open else []
    text.append(" · ".join(rest) + "\n" * bool(rest), "dim")
    of_place = [key for key in state.seen if place == Place(key[0], key[1][0])]
    last = (place.regime, shown[0].neuron) if state.finished and shown else next(reversed(of_place), None)
    return text.append_text(flip_text(state, last, width, ages.get(last)) if last else Text())


def begins_text(state: RunState, width: int, activity: words.Activity) -> Text:
    """Before any search: what is computed, what the strongest layers flip as a whole so far, what was computed."""
    text = Text(f"{said('found.begins')}\n", "dim")
    if activity in words.GROWING and not state.finished and (how := words.status_line(state, activity, "")):
        text.append(f"▶ {how}\n", "not dim")
    for (regime, layer), share in sorted(state.whole.items(), key=lambda one: -one[1])[:MOST]:
        told = said("found.whole", layer=layer[1:], share=percent(share), arrow=arrow(regime))
        text.append(f"{bar(share, max(4, width - 36), '·')} {told}\n")
    return text.append("\n".join(f"✓ {words.stage_words(stage)}" for stage in state.stages))


def _sure_bar(one: events.UnitJudged, room: int) -> Text:
    """Solid up to the bound of a unit's share of answers kept aside, lighter up to the share itself."""
    sure, seen = round(one.lower * room), round(one.flips / one.n * room)
    text = Text("█" * sure, JUDGED[one.certainty].style or "dim")
    return text.append(f"{'▒' * (seen - sure)}{'·' * (room - seen)}", "not bold dim")


def _waiting(state: RunState, board: Board, place: Place) -> Iterator[tuple[str, nodes.FlipCount]]:
    """Units that reach τ and were not asked on answers kept aside so far, with the counts of their stronger half."""
    for layer in board.places.get(place, {}).values():
        unit = layer.fates.find(REACHES)
        while unit >= 0:
            node = board.node(layer.alone[unit])
            if (place.regime, name := node.printed(basis_of(place.letter))) not in state.judged:
                halves = node.estimate.associated, node.estimate.unrelated
                yield name, max(halves, key=lambda half: half.flips / max(half.n, 1))
            unit = layer.fates.find(REACHES, unit + 1)


def flip_text(state: RunState, unit: tuple[int, str], width: int, ago: float | None = None) -> Text:
    """What some answers became without a unit, and how long ago that was seen."""
    seen, text = state.seen.get(unit), Text()
    if seen is None or not seen.answers:
        return text
    text.append(f"─ a flip{time_ago(ago)} ".ljust(width, "─") + "\n", "dim")
    text.append(f"without {plain_text.plain(seen.neuron)} ({arrow(seen.regime)}):\n")
    for answer in seen.answers:
        text.append(" ").append_text(
            _answer_line(answer.prompt, answer.before, answer.flipped and answer.after)
        )
    return text


def _answer_line(prompt: str, before: str, after: str | Literal[False]) -> Text:
    """A question with its answer, and what that becomes, if anything."""
    text = Text(f"{plain_text.plain(prompt)} {plain_text.plain(before)}")
    if after is False:
        return text.append(f" {said('card.unharmed')}\n", "dim")
    return text.append(" → ").append(plain_text.plain(after), "bold").append("\n")


def card(
    state: RunState, view: SearchView, node: nodes.Node, size: tuple[int, int], told: Told = None
) -> Text:
    """The card of one node, of `size` columns and rows; `told` is what is known of a unit of a run that has ended."""
    name, at, tau, width = node.printed(view.at.basis), view.at, view.thresholds.tau, size[0]
    judged = state.judged.get((at.regime, name))
    look = look_of(node, view.thresholds, judged)
    text = Text().append(f"{look.glyph} {look.word}", look.style)
    text.append(f"  {name}  {arrow(at.regime)}", "bold")
    text.append(f"  {plural(node.size, at.basis.row.noun)} of layer {at.layer}\n", "dim")
    if node.verdict is None:
        return text.append("under test")
    if told is not None:
        return text.append_text(_answer(told, judged, size))
    room = max(6, min(20, width - 40))
    if judged is not None:
        least = f"answers kept aside, at least {percent_at_least(judged.lower)}"
        text.append_text(_sure_bar(judged, room)).append(f" {judged.flips} of {judged.n} {least}\n")
    else:
        text.append(f"at most {percent_at_most(node.ucb)} of a half; {percent(tau)} is looked for\n", "dim")
    for half, seen in (("A", node.estimate.associated), ("B", node.estimate.unrelated)):
        share = f"{bar(seen.flips / seen.n, room, '·')} {seen.flips} of {seen.n}" if seen.n else "no answer"
        text.append(f"{share} of half {half} of the answers\n")
    return text.append_text(flip_text(state, (at.regime, name), width))


def _answer(
    told: tuple[str, Sequence[Fact]], judged: events.UnitJudged | None, size: tuple[int, int]
) -> Text:
    """What is known of a unit: its main count, what happens beside how sure, when, what breaks, how, what proves it.

    As many answers are named as there is room for.
    """
    (headline, of_unit), (width, height) = told, size
    facts = {one.key.rpartition(f"{one.unit}.")[2]: one for one in of_unit}
    half = width // 2 - 1 if width >= BESIDE else width
    style = JUDGED[judged.certainty].style if judged else ""
    sure, below = _how_sure(facts, judged, min(20, half - 33)), Text()
    for part in lines(facts[name] for name in _PARTS if name in facts):
        below.append_text(text_panes.with_parts(part)).append("\n")
        counts: Any = (facts.get("where") or facts["when"]).value
        if below.plain == f"{part}\n" and isinstance(counts, Mapping):
            pairs = [(counts[where]["flips"], counts[where]["n"]) for where in ("holds", "elsewhere")]
            below.append_text(words.where_bars(pairs, style, counts.get("of", "flip")))
    below.append(proof(facts[name] for name in ("flipped", *_PARTS, *_SURE) if name in facts), "dim")
    text = Text().append(f"{plain_text.plain(headline)}\n\n", "bold")
    used = sum(len(one.wrap(get_console(), width)) for one in (text, below)) + 4
    happens = _happens(facts, max(_FEWEST, height - used) if half < width else _FEWEST)
    if half == width:
        return text.append_text(happens).append("\n\n").append_text(sure).append("\n\n").append_text(below)
    both = ([*one.wrap(get_console(), half - 1)] for one in (happens, sure))
    for left, right in zip_longest(*both, fillvalue=Text()):
        side = left.copy()
        side.align("left", half)
        text.append_text(side).append("│ ", "dim").append_text(right).append("\n")
    return text.append("\n").append_text(below)


def _happens(facts: Mapping[str, Fact], most: int) -> Text:
    """Up to `most` answers that flip, and one that stays; without certificate what makes one."""
    text = Text().append(f"{said('card.happens')}\n", "bold")
    seen: Any = facts["flipped"].value if "flipped" in facts else None
    if seen is None:
        return text.append(f"{facts['certificate'].sentence}.\n" if "certificate" in facts else "")
    for row in (*seen["rows"][:most], *filter(None, [seen["unharmed"]])):
        text.append_text(_answer_line(row["prompt"], row["before"], row["flipped"] and row["after"]))
    text.rstrip()
    return text


def _how_sure(facts: Mapping[str, Fact], judged: events.UnitJudged | None, room: int) -> Text:
    """The bound of what it flips of answers kept aside above that of random units; then what else is known of it."""
    text = Text().append("How sure\n", "bold")
    if judged is not None:
        random: Any = facts["evidence"].value if "evidence" in facts else None
        rate = (random or {}).get("random_rate_at_most") or 0.0
        least, most = bounds_apart(judged.lower, rate)
        text.append_text(_sure_bar(judged, room)).append(f" at least {least}\n")
        if rate:
            text.append(bar(rate, room, "·"), "dim").append(f" {said('card.random', rate=most)}\n")
    return text.append("\n".join(f"{facts[name].sentence}." for name in _SURE if name in facts))
