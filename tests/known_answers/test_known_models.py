"""The known models: what they answer, what each planted unit does, and that the engine does the same."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from toy_behaviour import Toy

from mecharule_ops.config import make_config
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.facts.rules import when_forms
from mecharule_ops.known_answers.calibration import CASES as CASES_OF_A_RUN
from mecharule_ops.known_answers.calibration import finished
from mecharule_ops.known_answers.known_model import SUMS, SURE, KnownModel, changed_files, margins
from mecharule_ops.loading.model_names import KNOWN_DIRECTORY as MODELS
from mecharule_ops.loading.model_names import load
from mecharule_ops.rules.families import Family
from mecharule_ops.tasks import programs, task_names
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

COMBINATIONS = tuple(
    product(Basis, (Baseline.ZERO, Baseline.MEAN, Baseline.MEAN_POSITIONAL), (Phase.LAST_PROMPT, Phase.WHOLE))
)
CASES = [
    pytest.param(name, *combination, marks=[] if (place + turn) % 9 == 0 else [pytest.mark.slow])
    for turn, name in enumerate(programs.PROGRAMS)
    for place, combination in enumerate(COMBINATIONS)
]
"""The default suite takes two combinations of each model, so that all of them come up."""


@dataclass(frozen=True)
class Known(KnownModel):
    """A known model in the engine too, with what it says on all inputs."""

    @cached_property
    def bench(self) -> Toy:
        task, subject = programs.KnownProgram(program=self.name), load(str(self.folder / self.name))
        examples = sorted(task.examples(10**6, np.random.default_rng(0)), key=lambda example: example.id)
        return Toy(subject=subject, task=task, records=behaviour_on(task, subject, examples).records)

    @property
    def ends(self) -> list[tuple[str, str]]:
        """The first and the last token of each input."""
        return [(tokens[0], tokens[-1]) for tokens in self.program.inputs()]

    def changed(self, *units: Neuron, value: float | None = 0.0) -> np.ndarray:
        """Inputs whose answer changes when the units are at a value, or at their mean, at the last place."""
        mean = (Baseline.MEAN, Phase.LAST_PROMPT, range(len(self.ids)))
        held = {
            (unit.basis, unit.layer, unit.channel): self.replacement(unit, *mean)
            if value is None
            else np.asarray(value)
            for unit in units
        }
        return self.oracle.logits(self.ids, held).argmax(-1) != self.logits.argmax(-1)

    def mattering(self, basis: Basis, of: Callable[[Neuron], bool] = lambda unit: True) -> list[Neuron]:
        return [unit for unit in self.units(basis) if of(unit) and self.changed(unit).any()]


@cache
def known(name: str) -> Known:
    return Known(name)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_model_answers_as_its_program(name: str) -> None:
    """On all inputs that have an answer, by a clear margin; the model with a fault is wrong where it was planted."""
    case = known(name)
    inputs = case.program.inputs()
    defined = np.array([case.program.answer(tokens) is not None for tokens in inputs])
    assert [record.example.prompt.split() for record in case.bench.records] == [list(one) for one in inputs]
    assert [record.label for record in case.bench.records] == list(
        [int(first) % 2 != int(last) % 2 for first, last in case.ends] if name == "fault" else defined
    )
    assert margins(case.logits)[defined].min() > 1.9
    assert task_names.task_of(make_config(model=f"known/{name}", task="program")) == case.bench.task


@pytest.mark.parametrize(("name", "basis", "baseline", "phase"), CASES)
def test_every_unit_does_in_the_engine_what_it_does_in_the_oracle(
    name: str, basis: Basis, baseline: Baseline, phase: Phase
) -> None:
    """On every input: the token that is said without the unit, near ties apart."""
    case = known(name)
    table = case.bench.table(Intervention(basis=basis, baseline=baseline, phase=phase))
    place = {record.example.id: at for at, record in enumerate(case.bench.records)}
    measured = [place[identifier] for identifier in table.records]
    units = case.units(basis)
    found = case.bench.engine(table).completions([[unit] for unit in units], range(len(place)))
    for unit, tokens in zip(units, found.tokens, strict=True):
        held = case.replacement(unit, baseline, phase, measured)
        logits = case.oracle.logits(
            case.ids, {(basis, unit.layer, unit.channel): held}, whole=phase is Phase.WHOLE
        )
        sure = (margins(logits) > SURE) & (margins(case.logits) > SURE)
        assert ([token for (token,) in tokens] == logits.argmax(-1))[sure].all(), unit


def test_a_baseline_that_the_oracle_does_not_know_is_no_positional_mean() -> None:
    """It fell through to that."""
    case = known("hist")
    for baseline in set(Baseline) - {Baseline.ZERO, Baseline.MEAN, Baseline.MEAN_POSITIONAL}:
        with pytest.raises(AssertionError, match=baseline):
            case.replacement(case.units(Basis.MLP_OUT)[0], baseline, Phase.WHOLE, [0, 1])


def test_either_of_two_heads_suffices() -> None:
    case = known("backup")
    first, second = (Neuron(Basis.ATTN_HEAD, 0, channel) for channel in (0, 1))
    others = np.array([begin != "a" for begin, _ in case.ends])
    for value in (0.0, None):
        assert not case.changed(first, value=value).any()
        assert not case.changed(second, value=value).any()
        assert (case.changed(first, second, value=value) == others).all()


def test_two_neurons_cancel() -> None:
    case = known("cancelling")
    on = np.array([begin in "ab" for begin, _ in case.ends])
    pair = [unit for unit in case.mattering(Basis.MLP_HIDDEN) if (case.changed(unit) == on).all()]
    assert len(pair) == 2
    assert not case.changed(*pair).any()
    assert all(case.changed(unit, value=None).all() for unit in pair)
    assert not case.changed(*pair, value=None).any()


def test_a_saturated_head_moves_nothing_to_first_order_and_everything_when_ablated() -> None:
    case = known("saturated")
    head = Neuron(Basis.ATTN_HEAD, 0, 0)
    written = case.values[Basis.ATTN_HEAD, 0][:, -1, 0]
    nearly = case.oracle.logits(case.ids, {(Basis.ATTN_HEAD, 0, 0): 0.999 * written[:, None]})
    assert np.abs(nearly - case.logits).max() < 0.02
    assert (case.changed(head) == [begin != "a" for begin, _ in case.ends]).all()


def test_one_neuron_is_an_or_of_two_ands_which_act_only_through_it() -> None:
    case = known("either")
    (union,) = case.mattering(Basis.MLP_HIDDEN, lambda unit: unit.layer == 1)
    conjunctions = case.mattering(Basis.MLP_HIDDEN, lambda unit: unit.layer == 0)
    assert (case.changed(union) == [pair in (("a", "b"), ("c", "d")) for pair in case.ends]).all()
    assert sorted(int(case.changed(unit).sum()) for unit in conjunctions) == [16, 16]
    held = {(union.basis, 1, union.channel): case.values[union.basis, 1][:, -1, union.channel][:, None]}
    for unit in conjunctions:
        both = {**held, (unit.basis, 0, unit.channel): np.zeros(())}
        assert (case.oracle.logits(case.ids, both).argmax(-1) == case.logits.argmax(-1)).all()


def test_the_fault_is_mended_by_its_neuron_where_it_acts_and_nothing_is_broken() -> None:
    case = known("fault")
    wrong = np.array([not record.label for record in case.bench.records])
    (unit,) = case.mattering(Basis.MLP_HIDDEN, lambda unit: unit.layer == 1)
    assert (case.changed(unit) == wrong).all()
    said = case.oracle.logits(case.ids, {(unit.basis, 1, unit.channel): np.zeros(())}).argmax(-1)
    words = case.bench.subject.tokenizer.convert_ids_to_tokens(said.tolist())
    assert words == [f"={end}" for _, end in case.ends]


@pytest.mark.parametrize("name", ["mod4", "saturated", "hist"])
def test_when_a_compiled_unit_flips_is_told_exactly_or_called_open(name: str, tmp_path: Path) -> None:
    """Rule, halves and, where first order sees what wins, drop against lead are 1.00; of permuted flips nothing is."""
    case = next(case for case in CASES_OF_A_RUN if case.program == name)
    settings = {**case.settings, "accounts_for": 9, "chains_for": 0, "anchor_for": 0, "controls": 0}
    with finished(replace(case, settings=settings), tmp_path, KnownModel(name)) as (_, findings):
        accounts = [one for one in findings.searches[0].accounts if one.family(Family.INPUT).shown]
    for account in accounts:
        rule, score = account.family(Family.INPUT), account.compared
        assert (rule.interval and rule.interval.mcc, rule.agreement) == (pytest.approx(1), pytest.approx(1))
        said, exact = " ".join(when_forms(account).values()), score.right == score.records
        assert exact == (name == "mod4") == ("by arithmetic, since nothing lies above it" in said)
        assert exact or "First order is blind" in said or "tells too little of which" in said
    assert abs(np.mean([one.family(Family.INPUT).permuted for one in accounts])) < 0.1


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_the_models_of_the_repository_are_what_the_compiler_makes(name: str, tmp_path: Path) -> None:
    """To the byte."""
    assert find_spec("tracr"), "expected tracr-pypi; `make install` installs it"
    from compile_known import make

    make(name, tmp_path)
    for file in sorted((MODELS / name).iterdir()):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name


def test_the_digests_are_those_of_the_files(tmp_path: Path) -> None:
    """Each file has its line; one byte changed or a file gone is named."""
    assert changed_files() == ()
    copy = Path(shutil.copytree(MODELS, tmp_path / "models"))
    names = sorted(str(file.relative_to(copy)) for file in copy.rglob("*") if file.is_file())
    lines = (copy / SUMS).read_text(encoding="utf-8").splitlines()
    assert sorted(line.split("  ")[1] for line in lines) == [name for name in names if name != SUMS]
    (copy / "hist" / "config.json").unlink()
    (copy / "mod4" / "model.safetensors").write_bytes(b"")
    assert changed_files(copy) == ("hist/config.json", "mod4/model.safetensors")
