"""The fast engine gives, token for token, what decoding under an ablation gives."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from text_models import text_model, text_tokenizer
from tiny_models import MAIN, crossed
from toy_behaviour import Choosing, Toy, ToyTask, naive_completion, toy

from mecharule_ops.engine import behaviour, speculation
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.guard import check_intervention
from mecharule_ops.engine.speculation import Speculation
from mecharule_ops.errors import AblationStopped, ModelUnavailable, UsageError
from mecharule_ops.loading import placement, products
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import linear, through_onednn
from mecharule_ops.passes import ablated, greedy
from mecharule_ops.passes.clean import clean_spans
from mecharule_ops.passes.spans import span_of
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

BASELINES = tuple(Baseline)
CASES = [
    (family, Intervention(basis=basis, baseline=BASELINES[(index + index // 4) % 4], phase=phase))
    for index, (family, basis, phase) in enumerate(product(MAIN, Basis, Phase))
]
HALVED = [
    pytest.param(*case, marks=[pytest.mark.slow] if turn % 2 else []) for turn, case in enumerate(CASES)
]
"""The default suite takes every second one, so that two architectures together have all of basis and phase."""
DECODE = Intervention(basis=Basis.MLP_OUT, baseline=Baseline.MEAN_POSITIONAL, phase=Phase.DECODE)


def name(case: object) -> str:
    return "-".join((case.basis, case.baseline, case.phase)) if isinstance(case, Intervention) else str(case)


def agrees_with_naive(bench: Toy, engine: AblationEngine, table: Any, groups: Any, examples: Any) -> bool:
    """In tokens and in labels."""
    records = [bench.records[example] for example in examples]
    wanted = tuple(tuple(naive_completion(bench, table, group, one) for one in records) for group in groups)
    labels = [
        bench.task.label(one.example, bench.subject.decode(said))
        for row in wanted
        for one, said in zip(records, row, strict=True)
    ]
    decided = engine.evaluate(groups, examples).labels.ravel().tolist()
    return engine.completions(groups, examples).tokens == wanted and decided == labels


@pytest.mark.parametrize(("family", "intervention"), HALVED, ids=name)
def test_completions_equal_decoding_by_full_forwards_a_token(family: str, intervention: Intervention) -> None:
    """On random groups, one spanning layers, against plain Hugging Face without cache, batch or padding."""
    bench = toy(family)
    table = bench.table(intervention)
    groups = bench.groups(intervention.basis, 3, seed=CASES.index((family, intervention)))
    assert agrees_with_naive(bench, bench.engine(table), table, groups, [7, 0, 4])


@pytest.mark.parametrize("family", MAIN)
def test_what_is_chosen_of_offered_texts_is_the_same_on_every_path(family: str) -> None:
    """Against plain Hugging Face and against TransformerLens, in every basis; margins to float32 rounding."""
    bench = toy(family, 10, Choosing)
    for seed, basis in enumerate(Basis):
        intervention = Intervention(basis=basis, baseline=BASELINES[seed + 1], phase=tuple(Phase)[seed])
        table = bench.table(intervention)
        plain = bench.reference(table, rows=4)
        groups, examples = bench.groups(basis, 2, seed), [9, 0, 5, 2]
        fast, slow = bench.engine(table).completions(groups, examples), plain.completions(groups, examples)
        assert fast.tokens == slow.tokens
        np.testing.assert_array_equal(fast.labels, slow.labels)
        np.testing.assert_allclose(fast.margins, slow.margins, atol=1e-4)
        assert agrees_with_naive(bench, bench.engine(table), table, groups, examples)
        check_intervention(bench.subject, bench.task, bench.records, intervention, table)


@pytest.mark.parametrize("phase", Phase)
def test_deciding_early_gives_the_labels_of_whole_completions(phase: Phase) -> None:
    """A row is dropped when its label is decided; the margin is at most that of the completion it would have had."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=phase))
    engine, groups = bench.engine(table), bench.groups(Basis.ATTN_HEAD, 4, seed=5)
    outcomes = engine.evaluate(groups, range(10))
    whole = engine.completions(groups, range(10))
    np.testing.assert_array_equal(outcomes.labels, whole.labels)
    assert outcomes.example_forwards < whole.example_forwards
    assert (whole.margins <= outcomes.margins + 1e-5).all()
    assert 0 < (outcomes.labels != [record.label for record in bench.records]).mean() < 1


@pytest.mark.parametrize("phase", Phase)
def test_a_task_that_decides_nothing_early_gets_whole_long_completions(phase: Phase) -> None:
    """Labels of completions of 24 tokens, known at their end only, equal those of the naive loop."""
    plain, task = toy("llama"), Choosing(max_new_tokens=24, stop=("3",))
    examples = [record.example for record in plain.records]
    bench = replace(plain, task=task, records=behaviour.observe(task, plain.subject, examples).records)
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=phase))
    engine, groups, examples = bench.engine(table), bench.groups(Basis.ATTN_HEAD, 2, seed=5), [0, 3, 6]
    assert agrees_with_naive(bench, engine, table, groups, examples)
    assert max(len(tokens) for row in engine.completions(groups, examples).tokens for tokens in row) > 6


@pytest.mark.parametrize("phase", Phase)
def test_of_tokens_that_tie_exactly_every_path_takes_the_first(phase: Phase) -> None:
    """A head that writes nothing is ablated in a model most of whose tokens have a logit of exactly 0."""
    model = deepcopy(text_model(("y", "n", " ", "\n")))
    model.model.layers[0].self_attn.o_proj.weight.data[:, :8] = 0.0
    subject = Subject(name="ties", directory=Path(), hf=model, tokenizer=text_tokenizer())
    task = ToyTask()
    examples = task.examples(40, np.random.default_rng(0))
    bench = Toy(subject=subject, task=task, records=behaviour.behaviour_on(task, subject, examples).records)
    assert sum(record.margin == 0 for record in bench.records) > 4
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=phase))
    for engine in (bench.engine(table), bench.reference(table)):
        found = engine.completions([(Neuron(Basis.ATTN_HEAD, 0, 0),)], range(40))
        assert found.tokens[0] == tuple(record.tokens for record in bench.records)


@pytest.mark.parametrize("rows", [1, 9])
def test_results_do_not_depend_on_batch_size_or_order(rows: int) -> None:
    """Groups and examples in any order, in batches of any size, give the same tokens."""
    bench = toy("qwen2")
    table = bench.table(DECODE)
    groups, examples = bench.groups(Basis.MLP_OUT, 3, seed=2), list(range(10))
    whole = bench.engine(table).completions(groups, examples)
    generator = np.random.default_rng(rows)
    rank, place = generator.permutation(3), generator.permutation(10)
    shuffled = bench.engine(table, rows=rows).completions([groups[i] for i in rank], place.tolist())
    for row, group in enumerate(rank):
        assert shuffled.tokens[row] == tuple(whole.tokens[group][column] for column in place)
    np.testing.assert_allclose(shuffled.margins, whole.margins[np.ix_(rank, place)], atol=1e-4)


def test_one_evaluation_a_group_and_example_when_nothing_changes() -> None:
    """The verifying forward is the only one for groups that keep every completion; others cost more."""
    bench = toy("gpt2")
    table = bench.table(Intervention(basis=Basis.MLP_HIDDEN, baseline=Baseline.MEAN_POSITIONAL))
    engine, examples = bench.engine(table), range(10)
    groups = [(Neuron(Basis.MLP_HIDDEN, 2, channel),) for channel in range(12)]
    baseline = tuple(record.tokens for record in bench.records)
    found = engine.completions(groups, examples)
    quiet = [group for group, tokens in zip(groups, found.tokens, strict=True) if tokens == baseline]
    assert 0 < len(quiet) < 12
    in_reach = sum(len(tokens) > 1 for tokens in baseline)
    assert engine.completions(quiet, examples).example_forwards == in_reach * len(quiet)
    assert found.example_forwards > in_reach * 12


def test_a_hook_that_skips_higher_layers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that edits only where a group joins differs from the naive loop, so the oracle can fail."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.SLOT0))
    groups, examples = bench.groups(Basis.MLP_OUT, 2, seed=0)[-1:], [7, 0, 4, 2]
    assert agrees_with_naive(bench, bench.engine(table), table, groups, examples)
    monkeypatch.setattr(ablated, "editing", lambda *arguments: nullcontext())
    assert not agrees_with_naive(bench, bench.engine(table), table, groups, examples)


def test_a_guess_is_never_taken_for_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continued rows end in the same tokens whatever was guessed, and an engine that trusts guesses is caught."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO))
    groups, examples = bench.groups(Basis.ATTN_HEAD, 3, seed=1), [1, 3, 5]
    opened = Speculation._opened

    def badly_guessing(*arguments: Any) -> speculation.OpenRow:
        return replace(opened(*arguments), guess=(9,) * 4)

    monkeypatch.setattr(Speculation, "_opened", badly_guessing)
    assert agrees_with_naive(bench, bench.engine(table), table, groups, examples)

    def trusting(judge: Any, row: Any, tokens: Any, margins: Any, early: bool) -> Any:
        return replace(row, accepted=(*row.accepted, *row.guess, tokens[-1]), guess=())

    monkeypatch.setattr(speculation, "advanced", trusting)
    assert not agrees_with_naive(bench, bench.engine(table), table, groups, examples)


def test_running_out_of_memory_halves_the_batch_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups first, then examples are split, to what fits; a row that does not fit, or another error, ends it."""
    bench = toy("qwen2")
    table, groups = bench.table(DECODE), bench.groups(Basis.MLP_OUT, 5, seed=4)
    wanted = bench.engine(table).evaluate(groups, range(10))
    verify, sizes = Speculation.verify, []

    def small_memory(most: int, error: Exception) -> None:
        def limited(self: Speculation, chunk: Any, some: Any, *rest: Any) -> Any:
            sizes.append(chunk.targets.size * len(some))
            if sizes[-1] > most:
                raise error
            return verify(self, chunk, some, *rest)

        monkeypatch.setattr(Speculation, "verify", limited)

    small_memory(12, RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"))
    np.testing.assert_array_equal(bench.engine(table).evaluate(groups, range(10)).labels, wanted.labels)
    assert max(sizes) > 12 >= sizes[-1]
    for most, error in ((12, RuntimeError("shapes do not match")), (0, MemoryError())):
        small_memory(most, error)
        with pytest.raises(type(error)):
            bench.engine(table).evaluate(groups, range(10))
    assert placement.is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert placement.free_bytes(torch.device("cpu")) > 1 << 20


def test_a_stop_is_answered_before_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """`should_stop` is asked once a batch; the batch that it forbids is not run."""
    bench, calls, verify = toy("qwen2"), list[int](), Speculation.verify
    monkeypatch.setattr(Speculation, "verify", lambda *arguments: calls.append(1) or verify(*arguments))
    engine = bench.engine(bench.table(DECODE), rows=1, should_stop=lambda: len(calls) == 3)
    with pytest.raises(AblationStopped, match="stopped"):
        engine.evaluate(bench.groups(Basis.MLP_OUT, 3, seed=0), range(10))
    assert len(calls) == 3


def test_a_unit_that_the_model_does_not_have_is_refused() -> None:
    """Wrong basis, layer or channel."""
    engine = (bench := toy("qwen2")).engine(bench.table(DECODE))
    for wrong in (Neuron(Basis.ATTN_HEAD, 0, 0), Neuron(Basis.MLP_OUT, 3, 0), Neuron(Basis.MLP_OUT, 0, 32)):
        with pytest.raises(UsageError, match="expected mlp_out units of 3 layers of 32"):
            engine.evaluate([(wrong,)], [0])


@pytest.mark.parametrize(("family", "basis"), crossed(Basis, MAIN, whole=["llama"]))
def test_records_put_together_anew_need_no_forward_and_give_the_same(
    monkeypatch: pytest.MonkeyPatch, family: str, basis: Basis
) -> None:
    """Any mixture of records of earlier chunks, against an engine that meets them for the first time; an engine over
    more records keeps them, also where spans were fed back, another completion of a prompt is passed anew; without
    memory, all are."""
    bench = toy(family)
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=Phase.LAST_PROMPT))
    groups, rng = bench.groups(basis, 4, 0), np.random.default_rng(3)
    mixtures = [rng.permutation(9)[:6].tolist() for _ in range(4)]
    fresh = [bench.engine(table).evaluate(groups, mixture) for mixture in mixtures]
    passed: list[int] = []

    def counted(subject: Any, blocks: Any, spans: Any, *rest: Any) -> Any:
        passed.append(len(spans))
        return clean_spans(subject, blocks, spans, *rest)

    monkeypatch.setattr("mecharule_ops.engine.chunks.clean_spans", counted)
    engine = bench.engine(table, clean=(pool := dict[Any, Any]()))
    engine.evaluate(groups, [0, 2, 4, 6, 8])
    for mixture, expected in zip(mixtures, fresh, strict=True):
        again = engine.evaluate(groups, mixture)
        assert np.array_equal(again.labels, expected.labels)
        np.testing.assert_allclose(again.margins, expected.margins, atol=1e-4)
    assert sum(passed) == 9
    first, *others = bench.records[0].tokens
    twin = replace(bench.records[0], tokens=(first ^ 1, *others))
    engine = replace(bench, records=(*bench.records, twin)).engine(table, clean=pool)
    engine.evaluate(groups, [3, 9, 0])
    assert sum(passed) == 10
    (prompt,) = bench.subject.encode([twin.example.prompt])
    engine.clean([span_of(prompt, twin.tokens, Phase.LAST_PROMPT)])
    assert not any(chunks._kept for chunks in pool.values())
    engine.evaluate(groups, [3, 0])
    assert sum(passed) == 11
    monkeypatch.setattr("mecharule_ops.loading.placement.free_bytes", lambda device: 4)
    forgetful = bench.engine(table, rows=12)
    for _ in range(2):
        forgetful.evaluate(groups, range(9))
    assert sum(passed) == 29


@pytest.mark.parametrize(("screens", "bias"), [(True, True), (True, False), (False, True)])
def test_the_bounded_argmax_is_that_of_the_whole_vocabulary(
    monkeypatch: pytest.MonkeyPatch, screens: bool, bias: bool
) -> None:
    """Near and far from the clean rows, with and without the bfloat16 bound. A bound that is too low is caught."""
    torch.manual_seed(0)
    head = torch.nn.Linear(24, 3000, bias=bias)
    clean = torch.randn(40, 24) + head.weight[torch.randint(3000, (40,))].detach() * 8
    whole = greedy.Unembedding(head, None)
    whole.screens = screens
    near = greedy.NearClean(whole, clean, greedy.Likeliest.of(whole, clean, 4), ())
    multiplied, full = list[int](), greedy.Unembedding.greedy
    counted = lambda self, rows, among: multiplied.append(len(rows)) or full(self, rows, among)  # noqa: E731
    monkeypatch.setattr(greedy.Unembedding, "greedy", counted)
    for scale in (0.0, 0.01, 0.3, 3.0):
        multiplied.clear()
        rows = torch.arange(40).repeat_interleave(5)
        hidden = clean[rows] + scale * torch.randn(200, 24)
        found = near.greedy(hidden, rows)
        wanted = torch.nn.functional.linear(hidden, head.weight, head.bias).detach().topk(2)
        assert torch.equal(found.tokens, wanted.indices[:, 0])
        torch.testing.assert_close(found.margins, wanted.values[:, 0] - wanted.values[:, 1])
        assert sum(multiplied) < 100 if scale == 0.0 else sum(multiplied) <= 200
    near._norm = torch.tensor(-1e9)
    assert not torch.equal(near.greedy(hidden, rows).tokens, wanted.indices[:, 0])


def test_products_keep_float32_precision_and_leave_the_model_as_it_was() -> None:
    """Closer to float64 than any lower precision could be; gradients flow again afterwards."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(500, 300)
    hidden = torch.randn(70, 500)
    exact = hidden.double() @ layer.weight.double().T + layer.bias.double()
    with torch.inference_mode():
        assert (linear(hidden, layer.weight, layer.bias) - exact).abs().max() < 2e-5
        with through_onednn(layer):
            inside = layer(hidden)
    assert (inside - exact).abs().max() < 2e-5
    assert "forward" not in vars(layer)
    layer(hidden).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("bias", [True, False])
def test_the_derivatives_of_a_product_are_those_that_torch_gives(bias: bool) -> None:
    """By the input, through two layers and a non-linearity, weights getting none inside where oneDNN is used."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(24, 40, bias=bias), torch.nn.SiLU(), torch.nn.Linear(40, 1))
    hidden = torch.randn(3, 5, 24, requires_grad=True)
    (expected,) = torch.autograd.grad(model(hidden).sum(), hidden)
    with through_onednn(model):
        (ours,) = torch.autograd.grad(model(hidden).sum(), hidden)
        model(hidden).sum().backward()
    assert (model[0].weight.grad is None) == products._ONEDNN
    torch.testing.assert_close(ours, expected)


def test_single_token_completions_are_out_of_reach_while_decoding() -> None:
    """A record whose first token ends it keeps its label at no cost and with an infinite margin."""
    bench = toy("llama")
    stopped = replace(bench.records[0], tokens=(2,), completion="", label=False)
    engine = replace(bench, records=(stopped, *bench.records[1:])).engine(bench.table(DECODE))
    outcomes = engine.evaluate([(Neuron(Basis.MLP_OUT, 0, 0),)], [0])
    assert outcomes.labels.tolist() == [[False]]
    assert outcomes.margins.tolist() == [[np.inf]]
    assert outcomes.example_forwards == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("basis", Basis)
def test_smollm2_completions_equal_the_plain_path(basis: Basis) -> None:
    """On the real model, groups of a layer and one that spans several, both labels."""
    from mecharule_ops.loading.model_names import load
    from mecharule_ops.tasks.arithmetic import Arithmetic

    task = Arithmetic(prefix="1 + 1 = 2\n3 + 4 = 7\n12 + 5 = 17\n30 + 41 = 71\n")
    subject, examples = load("smollm2-135m"), task.examples(12, np.random.default_rng(0))
    bench = Toy(subject=subject, task=task, records=behaviour.observe(task, subject, examples).records)
    for baseline in (Baseline.ZERO, Baseline.MEAN_POSITIONAL):
        table = bench.table(Intervention(basis=basis, baseline=baseline))
        engine, groups = bench.engine(table), bench.groups(basis, 4, seed=1)
        fast = engine.completions(groups, range(12))
        slow = bench.reference(table).completions(groups, range(12))
        ties = np.minimum(fast.margins, slow.margins) < 1e-3
        pairs = zip(sum(fast.tokens, ()), sum(slow.tokens, ()), strict=True)
        assert (np.array([one == other for one, other in pairs]) | ties.ravel()).all()
        assert ties.mean() < 0.05
        assert (engine.evaluate(groups, range(12)).labels == fast.labels).all()


@pytest.mark.parametrize("offset", [0, 1, 4])
@pytest.mark.parametrize("slope", [None, 0.05])
def test_logits_that_are_no_numbers_under_an_ablation_are_no_flip(offset: int, slope: float | None) -> None:
    """One line with unit, layer and record: on the clean completion, and behind a first new token.

    Two replacements that are numbers sum to an infinite residual, which no normalisation turns into one.
    """
    bench = toy("llama")
    table = bench.table(replace(DECODE, phase=Phase.LAST_PROMPT))
    values = [one.clone() for one in table.values]
    for layer in (1, 2):
        values[layer][table.offsets >= offset, 3] = 3e38
    ill = replace(table, values=tuple(values))
    fine = [Neuron(Basis.MLP_OUT, 1, channel) for channel in (0, 1, 2)]
    together = [Neuron(Basis.MLP_OUT, layer, 3) for layer in (1, 2)]
    for engine in (bench.engine(ill, slope=slope), bench.reference(ill)):
        engine.completions([fine, together[:1], together[1:]], range(10))
        for group in (together, [*fine, *together]):
            said = (
                rf"numbers with {group[0]} and {len(group) - 1} more ablated, from layer 1 on, got others on "
            )
            with pytest.raises(ModelUnavailable, match=rf"{said}example \d+; choose another"):
                engine.completions([fine, group], range(10))
