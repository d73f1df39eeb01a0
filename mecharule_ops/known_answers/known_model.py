"""A known model as numpy sees it: every input, what is answered, and which inputs a set of held units changes.

Nothing of the ablation engine, of torch or of a tokenizer is used: the oracle computes the forwards, the program says
what is right. Axes: input place unit.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.known_answers.oracle import Oracle, UnitsHeld
from mecharule_ops.loading.model_names import KNOWN_DIRECTORY
from mecharule_ops.tasks.programs import PROGRAMS, Program
from mecharule_ops.types import Baseline, Basis, Neuron, Phase

SUMS = "SHA256SUMS"
"""Beside the models: the digest of every file, as `sha256sum` prints it."""
SURE = 1e-2
"""A margin between the first two logits below which float64 and the model's float32 may say different tokens."""
_BEGIN = "<s>"


@dataclass(frozen=True, slots=True, eq=False)
class Flips:
    """Which inputs change their outcome."""

    flipped: Bool[np.ndarray, " input"]
    sure: Bool[np.ndarray, " input"]
    """False where two tokens are as good as tied, with the ablation or without."""

    def allow(self, count: int, places: Sequence[int]) -> bool:
        """Whether so many of these inputs may flip, near ties either way."""
        least = int((self.flipped & self.sure)[places].sum())
        return least <= count <= least + self.ties(places)

    def ties(self, places: Sequence[int]) -> int:
        """Inputs that are not sure."""
        return int((~self.sure)[places].sum())


@dataclass(frozen=True)
class KnownModel:
    """One of the known models, computed on all inputs of its program."""

    name: str
    folder: Path = KNOWN_DIRECTORY

    @property
    def program(self) -> Program:
        """What it computes."""
        return PROGRAMS[self.name]

    @cached_property
    def oracle(self) -> Oracle:
        """Its weights."""
        return Oracle(self.folder / self.name)

    @cached_property
    def ids(self) -> Int[np.ndarray, "input place"]:
        """Every input in the program's order, with the token that begins it."""
        inputs = self.program.inputs()
        return np.array([[self._ids[token] for token in (_BEGIN, *tokens)] for tokens in inputs])

    @cached_property
    def logits(self) -> Float[np.ndarray, "input token"]:
        """Of every input, with nothing held."""
        return self.oracle.logits(self.ids, {})

    @cached_property
    def right(self) -> Bool[np.ndarray, " input"]:
        """Where the model's answer is the program's."""
        return self._is_right(self.logits)

    @cached_property
    def clear(self) -> Bool[np.ndarray, " input"]:
        """Where its first two logits are apart."""
        return margins(self.logits) > SURE

    @cached_property
    def values(self) -> dict[tuple[Basis, int], Float[np.ndarray, "input place unit ..."]]:
        """What every unit is when nothing is held, by basis and layer; a head's has its size as a last axis."""
        values: dict[tuple[Basis, int], np.ndarray] = {}
        self.oracle.logits(self.ids, {}, seen=values)
        return values

    def units(self, basis: Basis) -> tuple[Neuron, ...]:
        """Every unit of a basis."""
        return tuple(
            Neuron(basis, layer, channel)
            for layer in range(self.oracle.layers)
            for channel in range(self.values[basis, layer].shape[2])
        )

    def replacement(
        self, unit: Neuron, baseline: Baseline, phase: Phase, measured: Sequence[int]
    ) -> np.ndarray:
        """What a unit is set to: zero, or its mean over the `measured` inputs, at each place if positional."""
        values = self.values[unit.basis, unit.layer][:, :, unit.channel]
        if baseline is Baseline.ZERO:
            return np.zeros_like(values[0, 0])
        assert baseline in (Baseline.MEAN, Baseline.MEAN_POSITIONAL), baseline
        if phase is Phase.LAST_PROMPT:
            return np.asarray(values[measured][:, -1].mean(0))
        return np.asarray(values[measured].mean((0, 1) if baseline is Baseline.MEAN else 0))

    def flips(self, held: UnitsHeld, kept: Iterable[Neuron] = (), *, whole: bool = False) -> Flips:
        """Inputs whose outcome, right or wrong, changes when units are held; those `kept` stay at what they were.

        Held are the last place or, if `whole`, all of them.
        """
        at = slice(None) if whole else slice(-1, None)
        stay = {
            (one.basis, one.layer, one.channel): self.values[one.basis, one.layer][:, at, one.channel]
            for one in kept
        }
        logits = self.oracle.logits(self.ids, {**held, **stay}, whole=whole)
        return Flips(self._is_right(logits) != self.right, (margins(logits) > SURE) & self.clear)

    @cached_property
    def _ids(self) -> dict[str, int]:
        text = (self.folder / self.name / "tokenizer.json").read_text(encoding="utf-8")
        return dict(json.loads(text)["model"]["vocab"])

    @cached_property
    def _wanted(self) -> Int[np.ndarray, " input"]:
        """The id of each input's answer, −1 where the program has none."""
        answers = map(self.program.answer, self.program.inputs())
        return np.array([-1 if answer is None else self._ids[f"={answer}"] for answer in answers])

    def _is_right(self, logits: Float[np.ndarray, "input token"]) -> Bool[np.ndarray, " input"]:
        return np.asarray(logits.argmax(-1) == self._wanted)


def changed_files(folder: Path = KNOWN_DIRECTORY) -> tuple[str, ...]:
    """Files of the known models that are not there or not what `SHA256SUMS` says, by name."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    kept = {name: digest for digest, name in (line.split("  ") for line in lines)}
    return tuple(name for name, digest in kept.items() if digest_of(folder / name) != digest)


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def margins(logits: Float[np.ndarray, "input token"]) -> Float[np.ndarray, " input"]:
    """Between the first two logits."""
    ordered = np.sort(logits, -1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])
