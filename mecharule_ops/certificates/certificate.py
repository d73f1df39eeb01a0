"""A claim and everything needed to repeat it: which model, which examples, which units, and what came out.

The id is a hash of the content. It shows that a certificate is the one that was cited, and that a copy was
not damaged, nor edited by someone who left the id alone. It cannot show that the content is true: whoever
edits a certificate can hash it again. `verification.inconsistencies` catches counts and bounds that do not
follow from the rows; invented rows are caught only by running the ablation again, which is what proves a
claim.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from mecharule_ops.codec import canonical_json, decode, encode, parse_json
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.types import Baseline, Basis, Intervention, Phase, RuleScore

KINDS = ("ablate", "why", "flip", "mediation", "pairs", "repair", "suffices")
_ID_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """The model that a claim is about."""

    name: str
    model_hash: str
    tokenizer_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedIntervention:
    """How the units were ablated, with what a second machine needs to do the same."""

    basis: str
    hook: str
    """Name of the place in the model."""
    baseline: str
    baseline_hash: str
    """SHA-256 of the table of replacement values."""
    phase: str

    @property
    def intervention(self) -> Intervention:
        """As a run has it."""
        basis, baseline, phase = Basis(self.basis), Baseline(self.baseline), Phase(self.phase)
        return Intervention(basis=basis, baseline=baseline, phase=phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What the model generated for one prompt."""

    tokens: tuple[int, ...]
    text: str
    label: bool
    """B of the completion."""
    margin: float
    """Smallest lead of the chosen token over the next, in logits; below 1e-3 counts as a near tie."""


def ablated(units: tuple[str, ...], unit: str | None) -> tuple[str, ...]:
    """The units that a row's `unit` names, of a certificate of these; of kind `suffices` those that are kept."""
    return units if unit is None else tuple(filter(None, unit.split("+")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRow:
    """One example before and after the ablation."""

    example: int
    prompt: str
    slice: str
    """`associated`, `unrelated`, or another name for a set of examples."""
    unit: str | None = None
    """The unit ablated in this row, or several joined by `+`; None for all units of the certificate together. Of kind
    `suffices` the units kept, while all others of the basis are ablated; empty for none."""
    before: Completion
    after: Completion
    held: str | None = None
    """What is held at its clean values meanwhile, as a hold prints: `a21.h2+m3.7`, `m20`, `above`."""

    @property
    def flipped(self) -> bool:
        """Whether the task's label of the completion changed; another wording of the same label is no flip."""
        return self.before.label != self.after.label


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTotal:
    """Flips of one slice, of one unit where units were ablated alone."""

    slice: str
    unit: str | None = None
    flips: int
    n: int
    lower: float
    upper: float
    """One-sided Clopper–Pearson bounds of the flip rate, each at α/2."""
    held: str | None = None
    """As in the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedScore(RuleScore):
    """The score of the rule that a claim rests on, which is not recomputable from the rows."""

    text: str
    """The rule as it prints."""
    scope: str
    """Where it was scored: `train`, `held-out` (HQ-T) or `full` (HQ-F)."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """One claim with the examples that show it."""

    kind: str
    """One of `KINDS`."""
    claim: str
    """The sentence that it supports."""
    model: ModelIdentity
    task: Mapping[str, int | float | str | bool]
    """The task's own description: every setting that changes an example or a label."""
    regime: int
    """1 or 0: the label of every example before the ablation."""
    intervention: CertifiedIntervention
    units: tuple[str, ...]
    """Printed units, such as `m4.1234`."""
    rows: tuple[ExampleRow, ...]
    totals: tuple[SliceTotal, ...]
    alpha: float
    seed: int
    dtype: str
    """Of the weights; all sums are in float32."""
    versions: Mapping[str, str]
    """Package versions that computed the rows."""
    rule: CertifiedScore | None = None
    device: str = "cpu"
    """`cpu`, `cuda` or `mps`."""
    given: Mapping[str, CertifiedIntervention] = field(default_factory=dict)
    """Units that the model is without, before the ablation too, by what they are replaced."""

    @cached_property
    def content(self) -> dict[str, Any]:
        """What is hashed: of one that was read what stands there, since earlier versions said less.

        A model with all its units is not said to be without any. Not to be changed: it is shared.
        """
        return {name: value for name, value in encode(self).items() if name != "given" or value}

    @property
    def numbers(self) -> str:
        """`float32 on cpu`."""
        return f"{self.dtype} on {self.device}"

    @cached_property
    def sha256(self) -> str:
        """The hash of all content: equal content, equal hash, on every machine; earlier versions wrote less."""
        return hashlib.sha256(canonical_json(self.content).encode("ascii")).hexdigest()

    @property
    def id(self) -> str:
        """The first 12 digits of the hash."""
        return self.sha256[:_ID_DIGITS]

    @property
    def example_ids(self) -> tuple[int, ...]:
        """Distinct examples in order of appearance."""
        return tuple(dict.fromkeys(row.example for row in self.rows))

    def to_json(self) -> str:
        """The certificate with its hash, readable, ending in a newline."""
        document = {"certificate": self.content, "sha256": self.sha256}
        return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @property
    def plain_claim(self) -> str:
        """The claim with the halves of the split named as everywhere else; its own words are hashed."""
        return self.claim.replace(" associated", " of D+").replace(" unrelated", " of D-")

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """The certificate of a text. Raises `ClaimNotSupported` when malformed or not what was hashed."""
        return _read(text)


@lru_cache(maxsize=64)
def _read(text: str) -> Certificate:
    """The last texts are kept: an answer reads all certificates of its run several times."""
    try:
        document = parse_json(text)
        if not isinstance(document, dict) or document.keys() != {"certificate", "sha256"}:
            raise ClaimNotSupported("expected a certificate with its sha256 and nothing else")
        certificate = decode(Certificate, document["certificate"])
        vars(certificate)["content"] = document["certificate"]
        if certificate.sha256 != document["sha256"]:
            told = f"expected hash {document['sha256']}, got {certificate.sha256}"
            raise ClaimNotSupported(f"{told}: it was changed")
    except (UsageError, ValueError) as error:
        raise ClaimNotSupported(f"expected a certificate, its text does not read as one: {error}") from error
    return certificate


def hidden(text: str) -> str:
    """What stands for a text: its length, and how to see it."""
    return f"[{len(text)} characters, --show-text shows them]"


def shown_rows(certificate: Certificate, show_text: bool) -> tuple[ExampleRow, ...]:
    """The rows as a person or a language model may see them: without texts where the task conceals them.

    The stored certificate keeps every token, since running it again needs them; only `show_text` lifts it.
    """
    if show_text or not certificate.task.get("concealed"):
        return certificate.rows
    return tuple(
        replace(row, prompt=hidden(row.prompt), before=_hidden(row.before), after=_hidden(row.after))
        for row in certificate.rows
    )


def _hidden(completion: Completion) -> Completion:
    return replace(completion, text=hidden(completion.text))
