"""Arguments of each tool: one frozen model a tool, for the command line, the agent and the screens alike.

A model's docstring is the tool's help, its fields are its options, under their aliases where they have one, and a
field's docstring is the option's help; `positional` names those that a shell gives without a flag. Nothing here
computes, so listing every tool loads no numerical package.
"""

import inspect
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

RunName = Annotated[str, Field(description="run id, unique prefix, file, or `last`")]
UNIT_MEANING = "a unit such as m4.1234, n4.1234 or a20.h8"
Unit = Annotated[str, Field(description=UNIT_MEANING)]
RegimeLabel = Annotated[
    Literal["1", "0"] | None,
    Field(description="1 for 1→0 flips, 0 for 0→1; default: where the unit was found, else the run's first"),
]
ShowText = Annotated[
    bool, Field(description="show prompts and completions of a task that conceals them, such as jailbreak")
]
BaselineName = Literal["zero", "mean", "mean-positional", "mean-donor", "mean-donor-positional", "slot0"]
BasisName = Literal["attn_head", "mlp_hidden", "mlp_out"]
_WhatItIs = Literal["accuracy", "task", "model", "settings", "splitter", "words", "next"]
_WhatItRestsOn = Literal["search", "cost", "missed", "layers", "controls", "rules", "limits"]
RunSection = Literal[_WhatItIs, _WhatItRestsOn]
"""What `show` tells of a run in sentences."""
ShownTable = Literal["units", "rules", "certificates", "claims", "tree", "candidates"]
"""What `show` prints as a table."""
Explained = Literal["drive", "comparison", "chain", "controls"]
"""What `explain` can be asked."""


class Arguments(BaseModel):
    """Root of the arguments; unknown names are refused. A validator is built when it is first asked."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, use_attribute_docstrings=True)
    positional: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def meaning(cls) -> str:
        """What it does, in a line."""
        return " ".join((cls.__doc__ or "").split())

    @classmethod
    def about(cls, run: str, given: Mapping[str, object]) -> dict[str, object]:
        """What is given, with this run where it names none."""
        return {"run": run, **given} if "run" in cls.model_fields else dict(given)


class OfRunArguments(Arguments):
    """About a run, the last one where none is named."""

    positional: ClassVar[tuple[str, ...]] = ("run",)
    run: RunName = "last"


class OfNamedRunArguments(Arguments):
    """About a run that must be named."""

    run: RunName


class OfUnitArguments(OfNamedRunArguments):
    """About a unit of a run."""

    positional: ClassVar[tuple[str, ...]] = ("run", "neuron")
    neuron: Unit


class OfRegimeArguments(Arguments):
    """In one direction of flips."""

    regime: RegimeLabel = None


class DirectedArguments(OfRegimeArguments, OfUnitArguments):
    """About a unit in one direction of flips."""


class PricedArguments(Arguments):
    """Something that costs ablated completions."""

    estimate: bool = False
    """say the price and stop"""
    yes: bool = False
    """accept a price above a minute"""


class TableArguments(OfRunArguments):
    """A table of one run."""

    limit: int = Field(40, ge=1)
    """rows shown; what is left out is always said"""
    csv: bool = False
    """comma-separated values"""


class WhyArguments(DirectedArguments):
    """explain a unit: what breaks, when, how and how sure, with examples and the proof"""

    show_text: ShowText = False
    full: bool = False
    """all that is stored: bounds, controls, rules, who flips the same examples"""
    recipe: bool = False
    """print code that ablates the unit in nnsight and in TransformerLens"""


class WhyNotArguments(PricedArguments, DirectedArguments):
    """say why a unit is not among the results, from the recorded search; --test ablates it exactly now"""

    test: bool = False
    """ablate it alone on both slices now"""


class FlipArguments(PricedArguments, OfUnitArguments):
    """ablate a unit on a prompt: before, after, and whether it works most there"""

    prompt: str = Field(
        description="a question of the task, such as 120-7=; of a table one of its prompts, words of one alone, or one "
        "of your own, which has no label"
    )
    show_text: ShowText = False


class AblateArguments(PricedArguments, OfRegimeArguments, OfNamedRunArguments):
    """ablate one unit, or several together, on both compact slices or where a condition holds, with a certificate"""

    positional: ClassVar[tuple[str, ...]] = ("run", "units")
    units: str
    """units of one basis with commas, ablated together"""
    where: str | None = None
    """a condition: on the train records where it holds, in place of the slices"""
    prompts: list[str] = []
    """on these prompts of the task or table, in place of the slices (on the command line once for each)"""
    baseline: BaselineName | None = None
    """what a unit is set to (default: as in the run)"""
    show_text: ShowText = False


class VerifyArguments(Arguments):
    """run certified ablations again on the reference path: match, k examples differ, or cannot"""

    positional: ClassVar[tuple[str, ...]] = ("what", "more")
    what: str = "last"
    """a certificate's id or file, an exported folder, or a run, `last` too: its last answer"""
    more: list[str] = []
    """ids of further certificates of the same run"""
    run: RunName | None = None
    all: bool = False
    """every certificate of the run"""
    estimate: bool = False
    """say how many completions it takes and stop"""
    model: str | None = None
    """where the model lies, if not under its recorded name"""
    device: str | None = None
    """auto, cpu, cuda, cuda:N or mps (default: as it was made)"""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    """of the weights (default: as it was made)"""


class TargetArguments(PricedArguments, OfRegimeArguments):
    """About success, or a unit's flips, on train records."""

    unit: str | None = None
    """the flips of this unit in place of success"""


class ScoreArguments(TargetArguments, OfNamedRunArguments):
    """score conditions against success, or a unit's flips, on the train records, or say why one is refused"""

    positional: ClassVar[tuple[str, ...]] = ("run", "predicates")
    predicates: str
    """predicates or rules with ; between them, such as 'a > b; carry(a, b)'"""


class ColumnArguments(OfNamedRunArguments):
    """make a column of your own, from an expression or labels, which every condition may name"""

    positional: ClassVar[tuple[str, ...]] = ("run", "name")
    name: str
    """in small letters, such as long_sum"""
    expression: str | None = None
    """a condition or arithmetic, such as a + b or carry(a, b)"""
    labels: str | None = None
    """JSON {"record id": label}, or a file of it"""
    made_by: str = "a person"
    """who made it"""


class TabulateArguments(PricedArguments, OfRegimeArguments, OfNamedRunArguments):
    """count a unit's flips where a condition holds and where not, by a column, or beside another unit's"""

    positional: ClassVar[tuple[str, ...]] = ("run", "units")
    units: str
    """a unit, or several with commas"""
    where: str | None = None
    """a condition such as carry(a, b) or op == '-': counts where it holds and where not"""
    by: str | None = None
    """a column: counts for each value, numbers by quartile"""
    among: str | None = None
    """a condition: only such records"""
    records: Literal["train", "held-out"] = "train"
    """train is free to look at; looks at held-out records are counted"""
    paired: bool = False
    """the units on the same records, with an exact paired test"""


class RecordsArguments(PricedArguments, OfRegimeArguments, TableArguments):
    """list train records: prompt, answer, answer without the unit, whether it flips, lead"""

    positional: ClassVar[tuple[str, ...]] = ("run", "unit")
    run: RunName
    unit: Unit
    where: str | None = None
    """a condition: only such records"""
    flips: Literal["yes", "no", "any"] = "any"
    """only those it flips, or does not"""
    limit: int = Field(20, ge=1)
    """rows shown; what is left out is always said"""


class RegisterArguments(DirectedArguments):
    """enter a claim in the ledger before its test: that a unit flips more often where a condition holds"""

    where: str
    """such as carry(a, b), the word carry, or a rule as it prints: digit(expected, 0) == 1"""
    threshold: float = Field(0.1, gt=0, le=1)
    """least difference of the two flip rates that supports it"""


class PairsArguments(PricedArguments, DirectedArguments):
    """ablate a unit on new pairs of prompts, one edit apart; a condition holds on one of each pair"""

    where: str
    """over the prompt: carry(a, b), the word carry, or a rule as it prints"""
    n: int = Field(64, ge=1, le=1000)
    """at most so many pairs"""
    keep: bool = False
    """keep the pairs in the run as a certificate"""
    show_text: ShowText = False


class DecideArguments(PricedArguments, OfNamedRunArguments):
    """decide registered claims of one unit once, on held-out records, corrected for their number"""

    positional: ClassVar[tuple[str, ...]] = ("run", "claims")
    claims: str
    """ids of claims with commas, as `register` printed them"""


class ExtractArguments(TargetArguments, TableArguments):
    """extract rules of success, or of a unit's flips, by RuleSHAP on train records: clauses, and the rule they make"""

    columns: str | None = None
    """use only predicates over these columns, with commas"""
    among: str | None = None
    """a condition: only such records, as 'not (RULE)'"""


class SlicesArguments(OfRegimeArguments, OfRunArguments):
    """show the compact slices D+ and D- that a search tests on: their rule, sizes and power"""

    size: int | None = Field(None, ge=1)
    """made anew by spectral compression, each of at most so many; the run stays as it is"""


class RunArguments(PricedArguments, OfRunArguments):
    """search the run again with other settings: a job, whose id comes at once; no ablation is repeated"""

    task: str | None = None
    """another task's name, or a table of prompts and answers"""
    basis: str | None = None
    """bases with commas"""
    regime: Literal["1", "0", "both"] | None = None
    """1 for 1→0 flips, 0 for 0→1"""
    baseline: BaselineName | None = None
    """what a unit is set to"""
    tau: float | None = Field(None, gt=0, lt=1)
    """strength threshold"""
    layer: int | None = Field(None, ge=0)
    """one layer alone"""
    search: Literal["guided", "cha", "exhaustive"] | None = None
    """what first order predicts first, groups opened by halves, or each unit"""
    attribution: Literal["read", "always"] | None = None
    """EAP-IG where something reads it, or always"""
    given: str | None = None
    """units with commas that the model is without: what takes over"""


class CandidatesArguments(OfRegimeArguments, TableArguments):
    """list the units as attribution ranks them, where it was asked: that orders a search and proves nothing"""

    layer: int | None = Field(None, ge=0)
    """one layer only"""


class AnchorArguments(PricedArguments, DirectedArguments):
    """anchor a rule to a unit: learned on train flips, scored once on held-out ones"""


class ExplainArguments(PricedArguments, DirectedArguments):
    """measure what is missing of when and how a unit flips and its controls; --suffices: whether found units suffice"""

    neuron: Unit = ""
    """a unit; with --suffices several with commas (default: all that are shown)"""
    suffices: bool = False
    """keep the found units and ablate all others of their basis, beside random sets and none"""
    parts: str | None = None
    """of drive, comparison, chain, controls, with commas (default: all)"""
    hold: str | None = None
    """units to hold at unablated values, with commas (default: found ones above it)"""


class GatesArguments(PricedArguments, OfRunArguments):
    """learn when to switch units off so that more answers become right; test it once beside three controls"""

    positional: ClassVar[tuple[str, ...]] = ("run", "neuron")
    neuron: str | None = None
    """one unit (default: those that the run found, strongest first)"""
    regime: Literal["1", "0"] | None = None
    """0 mends what was 0, 1 what was 1 (default: 0, or 1 where success is harm)"""
    basis: BasisName | None = None
    """one of the run's bases (default: its first)"""
    records: int = Field(9000, ge=180, le=1000000)
    """fresh records, a third to each split"""
    export: str | None = Field(None, title="DIR")
    """write the gates there, for a plain transformers model"""
    again: bool = False
    """make them again even where the run has them"""


class RunsArguments(Arguments):
    """list the runs, newest first, and how far those under way are; --stop ends one"""

    limit: int = Field(20, ge=1)
    """runs shown"""
    stop: str | None = Field(None, title="ID")
    """stop this run; what it found is kept"""


class ShowArguments(TableArguments):
    """print what a run found: on one screen, as the whole report, one table or one section of it"""

    table: ShownTable | None = None
    """one table: units, rules, certificates, claims, tree, …"""
    section: RunSection | None = None
    """one section of what the run is and rests on: accuracy, settings, missed, words, …"""
    where: str | None = None
    """a condition: --section accuracy of such records"""
    term: str | None = None
    """one word of --section words, such as τ, MCC, localized"""
    layer: int | None = Field(None, ge=0)
    """one layer only, of tree and candidates"""
    full: bool = False
    """the whole report"""
    html: str | None = None
    """write one self-contained page to this file"""


class CompareArguments(PricedArguments, OfRegimeArguments, OfNamedRunArguments):
    """compare two units of a run on the same examples, or two runs: paired, with certificates"""

    positional: ClassVar[tuple[str, ...]] = ("run", "first", "second")
    first: str
    """a unit, or another run"""
    second: str | None = None
    """the other unit"""


Option = tuple[tuple[str, ...], dict[str, Any]]
"""The flags, or the name of a positional argument, and the keywords of `add_argument`."""
_SHORT = {"model": ("-m",), "n": ("-n",)}


def options_of(arguments: type[Arguments]) -> Iterator[Option]:
    """The positional arguments in order, then a flag for every other field."""
    fields = arguments.model_fields
    for name in dict.fromkeys((*arguments.positional, *fields)):
        field, value = fields[name], _value(fields[name])
        if name not in arguments.positional:
            flag = f"--{(field.alias or name).replace('_', '-')}"
            required = {"required": True} if field.is_required() else {}
            yield (*_SHORT.get(name, ()), flag), {**value, **required}
            continue
        several = value.pop("action", None) == "append"
        yield (name,), {**value, **({} if field.is_required() else {"nargs": "*" if several else "?"})}


def _value(field: FieldInfo) -> dict[str, Any]:
    """How one value is read; the type itself is checked by the model, so text passes.

    A function beside the type reads the text instead; a title is the name of the value in the help.
    """
    option: dict[str, Any] = {"help": (field.description or "").replace("%", "%%")}
    if field.annotation is bool:
        return {**option, "action": "store_true", "default": None}
    beside, of = list(field.metadata), field.annotation
    for member in get_args(of) if get_origin(of) in (Union, UnionType) else (of,):
        kind, *more = get_args(member) if get_origin(member) is Annotated else (member,)
        beside += more
        if get_origin(kind) is Literal:
            option["choices"] = get_args(kind)
        elif get_origin(kind) is list:
            option["action"] = "append"
        elif kind in (int, float):
            option["type"] = kind
            option |= {"metavar": "N"} if kind is int else {}
    read = next(filter(inspect.isfunction, beside), None)
    return option | ({"type": read} if read else {}) | ({"metavar": field.title} if field.title else {})
