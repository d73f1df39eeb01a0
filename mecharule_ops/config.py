"""Everything that a run can be told, in one frozen place; text enters the project here.

Defaults are the paper's (§5, "Pipeline instantiation") unless the field says otherwise.
"""

from collections.abc import Iterable
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mecharule_ops.confidence import Testing, flipless_size
from mecharule_ops.errors import UsageError, did_you_mean
from mecharule_ops.thresholds import ALPHA, EPSILON, RANDOM_UNITS, SLICE, TAU, reaches
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase, Value


class RunConfig(BaseModel):
    """Settings of one run; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    task: str = "arithmetic"
    """A task's name, a table of prompts and answers such as prompts.jsonl, or FILE.py:CLASS."""
    task_settings: dict[str, Value | list[str]] = Field(default_factory=dict)
    """Settings of the task that differ from the preset for the model."""
    model: str
    """A bundled, fetched or preset name, a local Hugging Face directory, or a hub id."""
    bases: tuple[Basis, ...] = (Basis.MLP_OUT,)
    """Intervention bases to search, one after the other, over the same behaviour, rule and slices."""
    baseline: Baseline = Baseline.MEAN_POSITIONAL
    """What a replaced unit is set to."""
    phase: Phase | None = None
    """Where units are replaced; by default the task's own."""
    given: tuple[str, ...] = ()
    """Units that the model is without: the whole run is about it with these replaced, by the same baseline."""
    regimes: tuple[int, ...] = (1, 0)
    """Baseline labels to analyse, each apart: 1 is 1→0, 0 is 0→1."""
    tau: float = Field(TAU, gt=0, lt=1)
    """Strength threshold τ."""
    epsilon: float = Field(EPSILON, gt=0, lt=1)
    """Selectivity threshold ε, for reporting only."""
    alpha: float = Field(ALPHA, gt=0, lt=0.5)
    """Confidence parameter of a node, spent anew at every node, as in the paper's runs."""
    testing: Testing = Testing.SEQUENTIAL
    """When a node's counts are looked at; `fixed` is the paper's."""
    search: Literal["guided", "cha", "exhaustive"] = "guided"
    """`guided` tests first what first order predicts, `cha` groups by attribution, `exhaustive` every unit alone."""
    parity: bool = False
    """True searches by Algorithm 1 as printed, whatever `testing` and `largest` say; a run begun
    with it has k-center slices."""
    published: bool = False
    """True counts as the paper's published code does, beside the same counts with flips permuted and ours; a run
    begun with it has `parity` and `slot0`."""
    largest: int | None = Field(None, ge=1)
    """Units of the largest group asked: smaller hides less and costs more; by default 512, where first order
    is too dear 1, in `cha` 8 in 1→0 and 4 in 0→1."""
    rest: Literal["grouped", "audited"] = "grouped"
    """What first order does not promise in a guided search: asked in groups, or left to the audit, which alone bounds
    it, widely where the basis is large and few are drawn."""
    audit: int | None = Field(None, ge=0)
    """Pruned units drawn at random and tested alone, to bound what was missed; by default all of a basis of up to 300
    units, which counts it, else an eighth, at most 256."""
    exhaustive_up_to: int = Field(0, ge=0)
    """Bases with at most this many units are ablated exhaustively too, which measures CHA's recall."""
    records: int = Field(2000, ge=50, le=1_000_000)
    """Examples on which the behaviour is observed."""
    test_share: float = Field(0.3, gt=0, lt=1)
    """Share of the records held out for HQ-T."""
    slice_size: int = Field(SLICE, ge=1, le=4096)
    """Examples a compact slice."""
    max_pairs: int = Field(128, ge=1, le=4096)
    """Matched pairs for EAP-IG."""
    layer: int | None = Field(None, ge=0)
    """Search this layer alone, of every basis."""
    cap: int = Field(100_000, ge=1)
    """Units kept by attribution, M."""
    attribution: Literal["read", "always"] = "read"
    """EAP-IG is asked where something reads it: `cap` leaves units out, or groups are formed by it; or `always`."""
    condition: Literal["rule-spectral", "spectral-split", "rule-random", "fake-rule"] = "rule-random"
    """How slices are split and drawn: `rule-random` bounds rates on all of D⁺ and D⁻; the paper's `rule-spectral`,
    which `parity` takes, covers them by k-center; the others are those of experiment E1."""
    proposer: str = "offline"
    """`offline`, or a language model such as `anthropic/NAME` or `openai/NAME`."""
    proposals: int = Field(2, ge=0, le=20)
    """Rounds of predicate proposals."""
    refinements: int = Field(40, ge=0, le=1000)
    """Predicates proposed from each unit's own train flips before its rule is learned; 0 is the paper's fixed Φ."""
    controls: int = Field(RANDOM_UNITS, ge=0, le=100_000)
    """Units drawn from the whole basis beside which found ones are shown (60 or more of a large one), and ranked."""
    controls_for: int = Field(12, ge=0, le=10_000)
    """How many τ-agonists a regime are ranked among random units and get a certificate, the shown first."""
    anchor_for: int = Field(64, ge=0, le=100_000)
    """How many localized units a regime are anchored, the shown first."""
    accounts_for: int = Field(8, ge=0, le=10_000)
    """How many shown units a regime get an account of when and why they flip."""
    chains_for: int = Field(1, ge=0, le=1000)
    """Of how many shown units a regime it is measured how their flips come about."""
    further: int | None = Field(None, ge=0, le=1_000_000)
    """Examples observed for the accounts beyond `records`, where there are more; by default as many as bring the
    held-out ones of each direction to 300, and at most as many again."""
    engine: Literal["fast", "plain"] = "fast"
    """`plain` is the slow reference path on TransformerLens."""
    rows: int | None = Field(None, ge=1)
    """Rows a batch; by default as free memory allows."""
    budget: int | None = Field(None, ge=1)
    """Group ablations after which searches and audits stop, with what they have; each `resume` grants as many again."""
    device: str = Field("auto", pattern=r"^(auto|cpu|mps|cuda(:\d{1,3})?)$")
    """Where the model goes: `auto` takes a GPU if there is one; else `cpu`, `cuda`, `cuda:N` or `mps`."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of the weights: `auto` is float32 if they fit, else bfloat16. Outcomes are those of float32 on these weights."""
    seed: int = 0
    """Of every random choice."""

    @model_validator(mode="before")
    @classmethod
    def _slices_of_the_paper(cls, settings: dict[str, object]) -> dict[str, object]:
        if str(settings.get("published")).lower() == "true":
            settings = {"parity": True, "baseline": Baseline.SLOT0, **settings}
        if str(settings.get("parity")).lower() == "true":
            settings = {"condition": "rule-spectral", **settings}
        return settings

    @field_validator("given", mode="before")
    @classmethod
    def _units(cls, given: object) -> tuple[str, ...]:
        if isinstance(given, str) or not isinstance(given, Iterable):
            given = str(given or "").split(",")
        return tuple(map(str, sorted({Neuron.parse(str(name)) for name in given if name})))

    @field_validator("audit")
    @classmethod
    def _bounds_the_rest(cls, audit: int | None, info: ValidationInfo) -> int | None:
        if audit == 0 and info.data.get("rest") == "audited":
            raise ValueError(
                "expected 1 or more, since rest=audited leaves it what was not asked; or rest=grouped"
            )
        return audit

    @field_validator("regimes", "bases")
    @classmethod
    def _distinct(cls, each: tuple[object, ...], info: ValidationInfo) -> tuple[object, ...]:
        regimes = info.field_name == "regimes"
        if not each or len(set(each)) != len(each) or (regimes and set(each) - {0, 1}):
            raise ValueError("expected 1, 0 or both" if regimes else "expected one or more distinct bases")
        return each

    @property
    def slice_alpha(self) -> float:
        """The level of one slice's upper bound: α, or half of it as Algorithm 1 has it."""
        return self.alpha / (1 + self.parity)

    @property
    def least_slice(self) -> int:
        """Examples that a slice needs before anything can be pruned."""
        return flipless_size(self.slice_alpha, self.tau)

    def reaches(self, rate: float) -> bool:
        """Whether a flip rate or a bound of one is at least τ."""
        return reaches(rate, self.tau)

    def intervention(self, basis: Basis, default_phase: Phase) -> Intervention:
        """How `do(A)` acts on one basis of this run."""
        return Intervention(basis=basis, baseline=self.baseline, phase=self.phase or default_phase)


def given_text(said: str, given: Iterable[str]) -> str:
    """What is said, of a model that is without some units."""
    gone = ", ".join(given)
    return f"{said} given {gone} ablated" if gone else said


def make_config(**settings: object) -> RunConfig:
    """A validated config. Raises `UsageError` with one line naming the first wrong field."""
    try:
        return RunConfig(**settings)  # type: ignore[arg-type]
    except ValidationError as error:
        if unknown := sorted(settings.keys() - RunConfig.model_fields):
            meant = did_you_mean(unknown[0], RunConfig.model_fields)
            raise UsageError(
                f"expected a setting, got {unknown[0]!r}{meant}; --dry-run prints them all"
            ) from None
        first = error.errors(include_url=False)[0]
        name = ".".join(part for part in map(str, first["loc"]) if not part.isdigit()) or "the settings"
        wanted, _, _ = first["msg"].removeprefix("Value error, ").partition(", got ")
        said = wanted.replace("Input should", f"expected {name} to")
        raise UsageError(f"{'' if said != wanted else f'{name}: '}{said}, got {first['input']!r}") from None
