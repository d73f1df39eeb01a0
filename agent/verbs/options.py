"""Options of each verb that is more than a tool: one frozen model a verb, as `tools.arguments` has for tools.

A function beside a field's type reads what a shell gives. Bases come in the help from the last to the first.
"""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agent.consent import PURSE
from mecharule_ops.bases import Basis
from mecharule_ops.errors import UsageError
from tools.arguments import Arguments, OfNamedRunArguments, OfRunArguments, RunName, ShowText
from tools.registry import Tell, ToolResult, typed


def key_value(text: str) -> tuple[str, Any]:
    """A setting and its value, JSON where it reads as that. Raises `ArgumentTypeError`."""
    from mecharule_ops.codec import parse_json

    key, sign, value = text.partition("=")
    if not sign:
        raise ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        return key, parse_json(value)
    except ValueError:
        return key, value


def _regimes(text: str) -> tuple[int, ...]:
    known = {"1": (1,), "0": (0,), "both": (1, 0)}
    if text not in known:
        raise ArgumentTypeError(f"expected 1, 0 or both, got {text!r}")
    return known[text]


Count = Annotated[int, Field(ge=1)]
Regimes = Annotated[tuple[int, ...], _regimes]
KeyValue = Annotated[list[tuple[str, Any]], key_value]
LlmBudget = Annotated[
    Count | None,
    Field(
        title="TOKENS",
        description="ask the language model nothing more once it has read and written TOKENS (default 1,000,000)",
    ),
]


class _Prompting(Arguments):
    few_shot: str | None = Field(None, title="FILE")
    """put the lines of this text file before every prompt"""
    prompt_template: str | None = Field(None, title="TEXT")
    """the prompt of a table's row, its columns in braces: "Q: {question}\\nA:" """
    chat_template: bool = False
    """put an instruct model's own template around each prompt, its thinking off"""
    system: str | None = Field(None, title="TEXT")
    """the same, with this text as the system's"""
    prompt: str | None = Field(None, title="COLUMN")
    """the column that the model reads (default: prompt, or as published sets name it)"""
    answer: str | None = Field(None, title="COLUMN")
    """the column of what is right; last:COLUMN: its last word"""
    target: str | None = Field(None, title="COLUMN")
    """the same beside a --foil; ">COLUMN": any larger number of as many digits (9 beside 12 is 09); token:COLUMN:
    tokens by number"""
    foil: str | None = Field(None, title="COLUMN")
    """the column of what is wrong"""
    score: Literal["logits"] | None = None
    """logits: right is where the model prefers its targets to its foils, whatever else it might write"""
    means: str | None = Field(None, title="VALUE=WORD,...")
    """what the answers' values stand for: "1=are|have,0=is|has"; the other values' words are foils"""
    drop: list[str] = Field([], title="COLUMN")
    """leave a column out (once for each)"""
    at: str | None = Field(None, alias="rows", title="NAME")
    """where a JSON object has its rows, such as data.samples"""
    skip_bad: bool = False
    """leave out rows without a prompt or answer"""
    where: str | None = Field(None, title="CONDITION")
    """use the rows where it holds alone, such as "continent == 'Africa'" """

    @property
    def reading(self) -> dict[str, Any]:
        """What was said of a table and its prompts."""
        return self.model_dump(include=set(_Prompting.model_fields))


SETTINGS_SHOWN = frozenset(
    {"task", "model", "bases", "regimes", "baseline", "tau", "records", "search", "budget", "seed"}
)
"""The settings that help and forms show; the others after `all`."""


class RunOptions(_Prompting):
    """search a model for the units that a task's answers depend on, and when; --from RUN: with other settings"""

    positional: ClassVar[tuple[str, ...]] = ("task",)
    task: str | None = None
    """a task's name, such as arithmetic, a table of prompts and answers, such as prompts.jsonl, or FILE.py:CLASS"""
    model: str | None = None
    """arith-tiny, smollm2-135m, a local directory or a hub id"""
    source: RunName | None = Field(None, alias="from", title="RUN")
    """search RUN again with other settings; no stored ablation is repeated"""
    bases: str | None = Field(None, alias="basis", description=f"{', '.join(Basis)}, or several with commas")
    phase: str | None = None
    """decode, last-prompt or whole (default: the task's)"""
    given: str | None = Field(None, title="UNITS")
    """search the model without these units, such as a20.h8,a3.h1: what takes over"""
    peel: Count | None = Field(None, title="N")
    """then search it N times more, each time without the units found before"""
    baseline: str | None = None
    """zero, mean, mean-positional, mean-donor, mean-donor-positional or slot0"""
    regimes: Regimes | None = Field(None, alias="regime")
    """1 (1→0), 0 (0→1) or both"""
    tau: float | None = None
    """strength threshold (default .2)"""
    records: int | None = Field(None, title="RECORDS")
    """examples to observe the behaviour on (default 2000)"""
    search: Literal["guided", "cha", "exhaustive"] | None = None
    """guided (default): what first order predicts first; cha: groups opened by halves; exhaustive: each unit"""
    layer: int | None = None
    """search this layer alone, of every basis"""
    exhaustive_up_to: int | None = None
    """also ablate each unit alone in a basis of at most N"""
    settings: KeyValue = Field([], alias="set", title="KEY=VALUE")
    """set any other setting"""
    file: str | None = Field(None, alias="config", title="FILE")
    """read settings from a JSON file; flags win"""
    device: str | None = None
    """auto (a CUDA device if there is one), cpu, cuda, cuda:N or mps"""
    dtype: str | None = None
    """auto (float32 if it fits, else bfloat16), float32, bfloat16 or float16"""
    yes: bool = False
    """accept the price without being asked"""
    dry_run: bool = False
    """print what would run and what it costs, then stop"""
    budget: int | None = None
    """stop after N group ablations; what was found is kept"""
    proposer: str | None = Field(None, alias="llm")
    """who proposes predicates: none (offline grammar), mock:FILE, local/FILE, anthropic/NAME or openai/NAME"""
    llm_budget: LlmBudget = None
    parity: bool = False
    """search by Algorithm 1 as printed, without later improvements"""
    published: bool = False
    """count as the paper's published code does, beside what the same counts are by chance"""
    seed: int | None = Field(None, title="SEED")
    again: Count | None = Field(None, title="N")
    """run RUN of --from N more times, with other draws, and count in how many each of its units is shown again"""

    @property
    def chosen(self) -> dict[str, Any]:
        """Return the settings given; no config keeps the other options. Raises `UsageError`."""
        if self.source is None and (self.again or None in (self.task, self.model)):
            wanted = "--from RUN beside --again" if self.again else "a task and --model NAME, or --from RUN"
            raise UsageError(f"expected {wanted}; see `mecharule run --help`")
        return self.model_dump(
            exclude={"yes", "dry_run", "llm_budget", "source", "again", "peel"}
            | _Prompting.model_fields.keys()
        ) | {"reading": self.reading}


HIDDEN = (
    RunOptions.model_fields.keys()
    - _Prompting.model_fields.keys()
    - {"source", "settings", "file", "yes", "dry_run", "proposer", *SETTINGS_SHOWN}
)
"""Options of `run` that its short help leaves out."""


class ResumeOptions(OfRunArguments):
    """continue a run that was stopped or killed; no stored ablation is repeated"""

    llm_budget: LlmBudget = None
    device: str | None = None
    """continue there: auto, cpu, cuda, cuda:N or mps (default: as it began)"""


class DemoOptions(Arguments):
    """search the bundled model, explain its strongest unit and verify that; offline, under a minute"""


class InvestigateOptions(OfNamedRunArguments):
    """turn a question into claims of when a unit flips, and decide them on held-out records"""

    positional: ClassVar[tuple[str, ...]] = ("run", "question")
    question: str
    """for example "when does m1.37 flip?" or "does m1.37 flip more where carry(a, b)?" """
    seconds: float = Field(PURSE, ge=0, title="S")
    """spend at most S seconds on ablations"""
    llm: str | None = None
    """who forms the claims: none (the run's own predicates), mock:FILE, local/FILE, anthropic/NAME or openai/NAME"""


class AskOptions(OfNamedRunArguments):
    """answer a question about a finished run, each number with its source"""

    positional: ClassVar[tuple[str, ...]] = ("run", "question")
    question: str
    """for example "why does the strongest neuron flip?" """
    llm: str | None = None
    """who answers: none, mock:FILE, local/FILE, anthropic/NAME or openai/NAME"""
    seconds: float = Field(PURSE, ge=0, title="S")
    """seconds of ablations that the model may spend unasked (default 60)"""
    new: bool = False
    """begin a new conversation, without what was asked before"""


class SpecOptions(Arguments):
    """print every verb: its arguments as JSON schema, whether it runs the model, exit codes"""


class McpOptions(Arguments):
    """serve the tools to another agent by the Model Context Protocol, on stdin and stdout"""


class ExportOptions(OfRunArguments):
    """write a folder that verifies on another machine: certificates, replacement values, report, config"""

    positional: ClassVar[tuple[str, ...]] = ("run", "folder")
    folder: str | None = None
    """a new or empty folder; default: ./RUN-export"""
    show_text: ShowText = False


class ModelsOptions(Arguments):
    """list the models, or fetch one"""

    positional: ClassVar[tuple[str, ...]] = ("action", "name")
    action: Literal["list", "fetch"] = "list"
    """list or fetch"""
    name: str | None = None
    """the model to fetch"""


class TasksOptions(_Prompting):
    """list the tasks; `check FILE` says how a table of yours is understood"""

    positional: ClassVar[tuple[str, ...]] = ("action", "table")
    action: Literal["list", "check"] = "list"
    """list or check"""
    table: str | None = None
    """a table of prompts and answers: CSV, TSV, JSONL, Parquet or an example set"""
    model: str | None = None
    """try this model on 50 rows"""


class DoctorOptions(Arguments):
    """check versions, device, models and keys; prove on a model that an ablation is exact, and time it"""

    model: str | None = None
    """the model to prove it on (default: the bundled one)"""
    device: str = "auto"
    """auto, cpu, cuda, cuda:N or mps"""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """of the weights"""


class SelftestOptions(Arguments):
    """run the whole product on six small models of known circuit, and compare every figure"""

    positional: ClassVar[tuple[str, ...]] = ("case",)
    case: str | None = None
    """one of the six alone"""


VERBS: Mapping[str, type[Arguments]] = {
    options.__name__.removesuffix("Options").lower(): options
    for options in (
        *(RunOptions, ResumeOptions, DemoOptions, InvestigateOptions, AskOptions, SpecOptions, McpOptions),
        *(ExportOptions, TasksOptions, ModelsOptions, DoctorOptions, SelftestOptions),
    )
}
"""Every verb that is more than a tool, in the order of the help."""
WORKING = frozenset({"run", "resume", "demo", "investigate", "ask"})
"""Of these verbs the ones that show their work under way; the others are functions of their name in such a module."""


def called(name: str, given: Mapping[str, object], tell: Tell = lambda line: None) -> ToolResult:
    """What a plain verb gives. Raises `UsageError` for arguments that do not fit, and what the verb raises."""
    verb = import_module(f"agent.verbs.{name}")
    result: ToolResult = getattr(verb, name)(typed(name, VERBS[name], given), tell)
    return result
