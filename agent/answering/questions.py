"""The questions that have an answer without a language model: a row a kind, with a handful of wordings each.

In a wording `U` stands for a unit, `P` for a prompt, `L` for a layer, `R` for a run, `T` for a word of the glossary and
`C` for a property of a record such as a carry. What is asked is the row whose wordings lie nearest (`matching`); what
a row needs and what it has no place for rules it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.answering.wordings import WORDINGS


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question: who answers it, how it is offered, and what goes on from it."""

    kind: str
    tool: str
    """Its tool; empty where the report or the router itself answers."""
    wording: str = ""
    """How it is offered and said back, filled with a run's own units; empty where it is not."""
    next: str = ""
    """Kinds that go on from one of this kind."""
    told_as: str = ""
    """The kinds whose facts answer it, with spaces between them; empty for its own."""
    units: tuple[int, int] = (0, 0)
    """Fewest and most units that it is about, by name, place or pronoun."""
    prompt: bool = False
    layer: bool = False
    run: bool = False
    term: bool = False
    """Whether it is about a word of the glossary."""
    about: bool = False
    """Whether it is about a property of a record."""
    superlative: bool = False
    """`strongest` belongs to the question and stands for no unit."""
    passing: bool = False
    """Units may be named and do not matter: it is about the run."""
    last: bool = False
    """Without any unit the last answer is meant, not a unit."""
    general: str = ""
    """The kind that asks the same of the whole run."""
    lacks: str = ""
    """What no run holds, for a question that has no answer."""

    @property
    def topic(self) -> str:
        """What its tool is asked about, of a tool that has topics."""
        return {"about": self.kind, "unit": TOPICS_OF_A_UNIT.get(self.kind, self.kind)}.get(self.tool, "")

    @property
    def asked(self) -> tuple[str, ...]:
        """Wordings of it."""
        return WORDINGS[self.kind]


TOPICS_OF_A_UNIT: Mapping[str, str] = {
    "bounds": "strength",
    "unit-chance": "chance",
    "unit-selective": "selective",
    "unit-rules": "rules",
    "unit-baseline": "replacement",
}
"""The topics of `unit` whose kinds have another name."""
ABOUT_ALL_UNITS = frozenset({"cause", "limits", "corrected", "rules-shown"})
"""Topics of a run that may be asked about with a unit's name."""
ONE, TWO, MAYBE = (1, 1), (2, 2), (0, 1)


def _of_unit(kind: str, wording: str, next: str, told_as: str = "", **more: object) -> Question:
    """A part of a unit's explanation."""
    return Question(kind, "why", wording, next, told_as, ONE, **more)  # type: ignore[arg-type]


def _figures(kind: str, wording: str, next: str, general: str = "") -> Question:
    """A topic of `unit`."""
    return Question(kind, "unit", wording, next, units=ONE, general=general)


def _about(kind: str, wording: str, next: str = "limits chance summary") -> Question:
    """A topic of `about`."""
    return Question(kind, "about", wording, next, passing=kind in ABOUT_ALL_UNITS)


def _lacking(kind: str, lacks: str) -> Question:
    return Question(kind, "", units=(0, 2), prompt=False, lacks=lacks)


QUESTIONS: Mapping[str, Question] = {
    row.kind: row
    for row in (
        _of_unit("why", "why does {unit} flip?", "when through sure"),
        Question(
            "strongest",
            "why",
            "which unit is the strongest?",
            "verify when versus",
            told_as="why",
            superlative=True,
        ),
        Question("summary", "", "what was found?", "why weakest missed"),
        Question("units", "neurons", "which units were found?", "why rules weakest"),
        _of_unit("when", "when does {unit} flip?", "responds covers flip"),
        _figures("strength", "how many records does {unit} flip?", "sure when why"),
        _of_unit("examples", "show an example that {unit} flips", "breaks when flip", "flipped"),
        _of_unit("breaks", "what breaks without {unit}?", "examples when through"),
        _of_unit("prediction", "how well are the flips of {unit} predicted?", "responds flip why"),
        _of_unit("responds", "what does {unit} respond to?", "reads prediction flip"),
        _of_unit("reads", "what does {unit} read?", "through responds why"),
        _of_unit("writes", "what does {unit} write?", "through reads why"),
        _of_unit("through", "through which units does {unit} act?", "reads versus verify"),
        _of_unit("sure", "how sure is {unit}?", "mind weakest verify", "sure strength"),
        _figures("bounds", "what is the interval of {unit}?", "mind weakest verify", "weakest"),
        _figures("unit-chance", "could the flips of {unit} be chance?", "mind weakest verify", "chance"),
        _figures("held-out", "how many held-out records does {unit} flip?", "controls sure why"),
        _figures("unit-selective", "is {unit} selective?", "controls when sure", "selective"),
        _figures("unit-rules", "how good are the rules of {unit}?", "covers disguise when"),
        _figures(
            "unit-baseline", "does {unit} flip with another baseline?", "controls sure why", "other-baseline"
        ),
        Question(
            "property",
            "tabulate",
            "does {unit} flip records with {property} more?",
            "when rule why",
            units=ONE,
            about=True,
        ),
        Question(
            "covers", "covers", "what else does the rule of {unit} cover?", "disguise flip why", units=ONE
        ),
        Question(
            "disguise",
            "disguise",
            "is the rule of {unit} the splitter in disguise?",
            "covers controls why",
            units=ONE,
        ),
        Question(
            "flip",
            "flip",
            'would {unit} flip on "{prompt}"?',
            "verify when shared",
            units=ONE,
            prompt=True,
        ),
        Question(
            "versus",
            "versus",
            "is {unit} stronger than {second}?",
            "verify layer shared",
            units=TWO,
            superlative=True,
        ),
        Question(
            "layer",
            "layer",
            "is layer {layer} as a whole worse than its best unit?",
            "why missed shared",
            units=MAYBE,
            layer=True,
            superlative=True,
        ),
        Question(
            "shared",
            "shared",
            "which units share the flips of {unit}?",
            "versus layer verify",
            units=ONE,
            general="overlap",
        ),
        _of_unit("controls", "what do the controls of {unit} say?", "verify mind weakest"),
        _of_unit("mind", "what would change your mind about {unit}?", "controls weakest verify"),
        Question("how", "why-not", "how was {unit} found?", "why missed verify", units=ONE),
        Question("why-not", "why-not", "why not {other}?", "missed how strongest", units=ONE),
        Question("verify", "verify", "prove it", "mind weakest why", units=MAYBE, last=True),
        Question("weakest", "weakest", "what is the weakest claim here?", "mind controls missed"),
        Question("missed", "missed", "what did the search miss?", "layer weakest strongest"),
        Question(
            "rank",
            "versus",
            "is {unit} the strongest unit?",
            "versus why weakest",
            units=ONE,
            superlative=True,
        ),
        _of_unit("rule", "what is the rule of {unit}?", "covers disguise flip", "rule when"),
        Question(
            "ablate",
            "ablate",
            "what happens if {unit} and {second} are ablated together?",
            "versus shared why",
            units=(2, 8),
        ),
        Question("rules", "rules", "which rules were found?", "covers disguise units"),
        Question("evidence", "evidence", "which certificates are there?", passing=True),
        Question("slices", "slices", "how large are the slices?"),
        Question("hypotheses", "hypotheses", "which hypotheses are in the ledger?"),
        Question("compare", "compare", "compare with run {run}", run=True),
        Question("define", "define", "what does {term} mean?", "thresholds limits summary", term=True),
        _about("model", "which model is it?"),
        _about("task", "what is the task?", "accuracy failures prompt"),
        _about("accuracy", "how accurate is the model?", "failures records task"),
        _about("failures", "which records does the model fail on by itself?", "accuracy task why"),
        _about("records", "how many records are there?", "accuracy slices task"),
        _about("range", "which range of numbers is asked?", "operators task accuracy"),
        _about("operators", "which operators are asked?", "accuracy range task"),
        _about("prompt", "what does a prompt look like?", "task failures accuracy"),
        _about("basis", "what kind of unit is tested?", "model units summary"),
        _about("baseline", "what is a unit replaced with?", "in-range other-baseline phase"),
        _about("other-baseline", "does it hold with another baseline?", "baseline in-range limits"),
        _about("in-range", "are the replaced values out of range?", "baseline other-baseline limits"),
        _about("phase", "where are units ablated?", "baseline basis limits"),
        _about("seed", "what is the seed?", "check limits thresholds"),
        _about("thresholds", "which thresholds were set?", "baseline seed corrected"),
        _about("splitter", "what is the splitter rule?", "slices disguise rules"),
        _about("proposer", "was a language model involved?", "rules-shown rules limits"),
        _about("directions", "which direction of flips was searched?", "units missed limits"),
        _about("generation", "how does the model write its answers?", "prompt phase task"),
        _about("origin", "which run is it?", "model task seed"),
        _about("rounding", "could rounding change the results?", "check limits versions"),
        _about("choices", "where does the run differ from the paper?", "limits search-kind thresholds"),
        _about("recall", "what is the recall of the search?", "missed cost groups"),
        _about("successes", "which records does the model get right?", "failures accuracy task"),
        _about("versions", "which versions was it made with?", "check seed time"),
        _about("number-of-units", "how many units matter?", "units not-ruled-out missed"),
        _about("not-ruled-out", "which units are not ruled out?", "units missed weakest"),
        _about("layers", "which layer matters most?", "layer units why"),
        _about("groups", "which groups were pruned?", "missed cost search-kind"),
        _about("attribution", "which units rank highest by attribution?", "units search-kind cost"),
        _about("search-kind", "which kind of search was it?", "cost groups missed"),
        _about("cost", "what did the search cost?", "time groups missed"),
        _about("time", "how long did it take?", "cost versions summary"),
        _about("chance", "could the results be chance?", "corrected weakest limits"),
        _about("corrected", "was it corrected for multiple comparisons?", "chance rules-shown limits"),
        _about("tests", "which statistical tests are used?", "corrected thresholds chance"),
        _about("rules-shown", "how many rules are shown, and why not the others?", "rules corrected limits"),
        _about("selective", "which units are selective?", "units chance limits"),
        _about("overlap", "do the units flip the same records?", "units rules summary"),
        _about("limits", "what are the limits?", "weakest missed next-steps"),
        _about("cause", "does this prove that a unit causes the answer?", "limits chance check"),
        _about("check", "how can I reproduce this?", "verify limits seed"),
        _about("next-steps", "what should be done next?", "limits weakest missed"),
        _lacking("training", "what the model was trained on, or how it changes with more training"),
        _lacking("elsewhere", "any other model"),
        _lacking("other-tasks", "any other task or behaviour"),
        _lacking("people", "people, or how they calculate"),
        _lacking("makers", "who made it, or under which licence"),
        _lacking("money", "money, power or emissions"),
        Question("help", ""),
        Question("instead", "", units=ONE),
    )
}
"""By kind, in the order in which `?` lists them."""
