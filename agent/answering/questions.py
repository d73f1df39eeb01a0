"""The questions that have an answer without a language model: a row a kind, and a line for each form it is asked in.

Of a form, `needs` are groups of meanings, one of each group; `may` are further meanings that change nothing. A form for
units takes a name, a place (`the second strongest`) or a pronoun. Of the forms that fit, the one with most needs is
meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.answering.understanding import ORDINALS, Reading

PLACES = frozenset({"strongest", *ORDINALS})
_COURTESY = frozenset({"unit", "it", "outcome"})
"""Meanings that every form about a unit can be worded with."""


def _groups(needs: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group.split("|")) for group in needs.split())


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question: who answers it, how it is offered, and what goes on from it."""

    kind: str
    tool: str
    """Its tool; empty where the report or the router itself answers."""
    wording: str = ""
    """How it is offered, filled with a run's own units; empty where it is not."""
    next: str = ""
    """Kinds that go on from one of this kind."""
    told_as: str = ""
    """The kind whose facts answer it; empty for its own."""


QUESTIONS: Mapping[str, Question] = {
    row.kind: row
    for row in (
        Question("why", "why", "why does {unit} flip?", "when through sure"),
        Question("strongest", "why", "which neuron is the strongest?", "verify when versus", told_as="why"),
        Question("summary", "", "what was found?", "why weakest missed"),
        Question("units", "neurons", "which units were found?", "why rules weakest"),
        Question("when", "why", "when does {unit} flip?", "responds covers flip"),
        Question("prediction", "why", "how well are the flips of {unit} predicted?", "responds flip why"),
        Question("responds", "why", "what does {unit} respond to?", "reads prediction flip"),
        Question("reads", "why", "what does {unit} read?", "through responds why"),
        Question("writes", "why", "what does {unit} write?", "through reads why"),
        Question("through", "why", "through which units does {unit} act?", "reads versus verify"),
        Question("sure", "why", "how sure is {unit}?", "mind weakest verify"),
        Question("covers", "covers", "what else does the rule of {unit} cover?", "disguise flip why"),
        Question(
            "disguise", "disguise", "is the rule of {unit} the splitter in disguise?", "covers controls why"
        ),
        Question("flip", "flip", 'would {unit} flip on "{prompt}"?', "verify when shared"),
        Question("versus", "versus", "is {unit} stronger than {second}?", "verify layer shared"),
        Question(
            "layer", "layer", "is layer {layer} as a whole worse than its best unit?", "why missed shared"
        ),
        Question("shared", "shared", "which neurons share the flips of {unit}?", "versus layer verify"),
        Question("controls", "why", "what do the controls of {unit} say?", "verify mind weakest"),
        Question("mind", "why", "what would change your mind about {unit}?", "controls weakest verify"),
        Question("how", "why-not", "how was {unit} found?", "why missed verify"),
        Question("why-not", "why-not", "why not {other}?", "missed how strongest"),
        Question("verify", "verify", "prove it", "mind weakest why"),
        Question("weakest", "weakest", "what is the weakest claim here?", "mind controls missed"),
        Question("missed", "missed", "what did the search miss?", "layer weakest strongest"),
        Question("rank", "versus", "is {unit} the strongest unit?", "versus why weakest"),
        Question("rule", "why", "what is the rule of {unit}?", "covers disguise flip"),
        Question("ablate", "ablate", "what happens if {unit} and {second} are ablated together?"),
        Question("rules", "rules", "which rules were found?", "covers disguise units"),
        Question("evidence", "evidence", "which certificates are there?"),
        Question("slices", "slices", "how large are the slices?"),
        Question("hypotheses", "hypotheses", "which hypotheses are in the ledger?"),
        Question("compare", "compare", "compare with run {run}"),
        Question("help", ""),
        Question("instead", ""),
    )
}
"""By kind, in the order in which `?` lists them."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to ask a kind of question."""

    kind: str
    needs: tuple[frozenset[str], ...]
    may: frozenset[str]
    least_units: int = 0
    most_units: int = 0
    """Units that it is about, by name, place or pronoun."""
    named: bool = False
    """At least one of them by its name."""
    prompt: bool = False
    layer: bool = False
    run: bool = False
    superlative: bool = False
    """`strongest` belongs to the question and stands for no unit."""
    bare: bool = False
    """Without any unit the last one spoken of is meant."""
    all: frozenset[str] = field(init=False)
    """Every meaning that it has a place for."""

    def __post_init__(self) -> None:
        places = PLACES if self.most_units and not self.superlative else frozenset()
        own = frozenset().union(*self.needs) | self.may | places
        object.__setattr__(self, "all", own | (_COURTESY if self.most_units else frozenset()))

    def fits(self, reading: Reading) -> bool:
        """Whether the form takes everything that a question holds."""
        held = reading.meanings
        return (
            all(held & group for group in self.needs)
            and held <= self.all
            and len(reading.prompts) == int(self.prompt)
            and len(reading.layers) == int(self.layer)
            and len(reading.runs) == int(self.run)
            and len(reading.regimes) <= int(self.most_units > 0 or self.layer)
            and (not self.named or bool(reading.units))
            and self._takes_units(reading)
        )

    def refers(self, reading: Reading) -> bool:
        """Whether a unit of the last answer is among those meant."""
        spoken = len(reading.units) + int(reading.place is not None and not self.superlative)
        missing = spoken < max(1, self.least_units)
        return bool(self.most_units) and missing and ("it" in reading.meanings or self.bare)

    def _takes_units(self, reading: Reading) -> bool:
        spoken = len(reading.units) + int(reading.place is not None and not self.superlative)
        return self.least_units <= spoken + int(self.refers(reading)) and spoken <= self.most_units


def _form(kind: str, needs: str, may: str = "", units: tuple[int, int] = (0, 0), **more: bool) -> Form:
    return Form(kind, _groups(needs), frozenset(may.split()), *units, **more)


ONE = (1, 1)
FORMS: tuple[Form, ...] = (
    _form("why", "why", "flip agonist what single would how strong claim", ONE),
    _form("why", "why", "flip", ONE, bare=True),
    _form("why", "flip", "what how strong single many", ONE, named=True),
    _form("why", "strong", "what how flip single", ONE),
    _form("why", "agonist", "what", ONE, named=True),
    _form("when", "when", "flip what rule would how", ONE),
    _form("when", "ceiling", "what rule flip", ONE),
    _form("prediction", "prediction", "how what flip when strong many would", ONE),
    _form("responds", "responds", "what how when flip", ONE),
    _form("reads", "reads", "what how flip when", ONE),
    _form("writes", "writes", "what how flip when", ONE),
    _form("through", "through|act", "what how flip act else unit", ONE),
    _form("sure", "supported", "how claim flip what strong", ONE),
    _form("rule", "rule", "what", ONE),
    _form("controls", "control", "what claim flip than more fewer else list strong", ONE),
    _form("why-not", "why not", "flip agonist found search single rule list found", ONE),
    _form("why-not", "not agonist|found", "flip search single", ONE, named=True),
    _form("why-not", "why missed", "search flip", ONE),
    _form("how", "how found|agonist", "search agonist found", ONE),
    _form("flip", "would|flip", "would flip what prompt happen ablate how", ONE, prompt=True),
    _form("covers", "rule cover|else", "what else cover when", ONE),
    _form("shared", "share flip", "what else single how many", ONE),
    _form("shared", "else flip", "what list many", ONE),
    _form("mind", "refute", "what would how claim flip prove rule agonist", ONE),
    _form("ablate", "ablate", "what would happen together flip how many them list", (1, 8), named=True),
    _form(
        "versus",
        "more|fewer|compare|than|share",
        "what flip than how many strong compare them together",
        (2, 2),
    ),
    _form("versus", "strongest|more", "what flip than", (2, 2), superlative=True),
    _form("rank", "strongest", "flip agonist", ONE, named=True, superlative=True),
    _form("disguise", "rule splitter", "disguise share compare more than how what", ONE),
    _form("verify", "prove", "claim again last certificate would how flip it what", (0, 1), bare=True),
    _form(
        "layer",
        "more|fewer|compare|whole|strongest|flip|ablate|strong",
        "more than fewer compare whole together single flip ablate would what how happen strong unit it strongest "
        "outcome many agonist",
        (0, 1),
        layer=True,
        superlative=True,
    ),
    _form("weakest", "weakest claim", "what search supported found unit agonist"),
    _form(
        "strongest",
        "strongest unit|agonist|it",
        "what flip found agonist it second third fourth fifth unit",
        superlative=True,
    ),
    _form("missed", "missed", "what search how many unit agonist found would"),
    _form("missed", "what not found", "search unit agonist"),
    _form("compare", "compare", "search last", run=True),
    _form("summary", "summary", "search what found claim it"),
    _form("summary", "what found|claim", "search found claim it"),
    _form("summary", "claim", "search list"),
    _form("units", "what|many|list unit|agonist", "found search flip list many agonist unit what outcome"),
    _form("rules", "rule what|list|many", "cover found search unit list"),
    _form("evidence", "certificate", "what list many it search claim"),
    _form("slices", "slice", "what many how list search strong"),
    _form("hypotheses", "hypothesis", "what list many search it"),
    _form("help", "ask", "what list would it"),
    _form("instead", "instead", "", ONE),
)
