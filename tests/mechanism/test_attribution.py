"""EAP-IG against finite differences, exact patching, completeness, and its own symmetries."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_models import crossed, tiny_model
from torch import nn
from toy_behaviour import first_offset, hooked, toy

from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.shape import wiring_for
from mecharule_ops.mechanism.attribution import AttributionPair, eap_ig, integrate
from mecharule_ops.types import Basis, Candidates, Phase


def pair(clean: str, corrupt: str, completion: str, family: str = "llama") -> AttributionPair:
    _, tokenizer = tiny_model(family)
    clean_ids, corrupt_ids = (tuple(tokenizer(text)["input_ids"]) for text in (clean, corrupt))
    answer = tuple(tokenizer(completion, add_special_tokens=False)["input_ids"])
    return AttributionPair(clean=clean_ids, corrupt=corrupt_ids, completion=answer)


PAIRS = (
    pair("1 + 1 = 2\n12 + 30 =", "1 + 1 = 2\n47 + 58 =", " 42\n"),
    pair("1 + 1 = 2\n3 + 4 =", "1 + 1 = 2\n8 * 9 =", " 7\n"),
    pair("1 + 1 = 2\n15 + 2 =", "1 + 1 = 2\n15 - 2 =", " 17\n"),
)


def subject(family: str) -> Subject:
    return toy(family).copy().subject


class Naive:
    """The slow obvious version: one pair, the whole sequence, no cache, float64."""

    def __init__(
        self, hf: nn.Module, site: tuple[nn.Module, bool], one: AttributionPair, phase: Phase
    ) -> None:
        self.hf, self.site, self.pair = hf, site, one
        first = len(one.clean) - 1 + first_offset(phase, len(one.clean))
        self.touched = slice(first, len(one.clean) + len(one.completion) - 1)

    def embeddings(self, share: float) -> torch.Tensor:
        ends = [
            self.hf.get_input_embeddings()(torch.tensor([prompt + self.pair.completion[:-1]]))
            for prompt in (self.pair.clean, self.pair.corrupt)
        ]
        return (1 - share) * ends[0] + share * ends[1]

    def run(self, share: float, push: torch.Tensor | float = 0.0) -> tuple[float, torch.Tensor]:
        """(M, values at the site) at e(share) with `push` added at the touched positions of the site."""
        seen = []

        def change(tensor: torch.Tensor) -> torch.Tensor:
            seen.append(tensor.clone())
            tensor = tensor.clone()
            tensor[:, self.touched] += push
            return tensor

        with hooked(*self.site, change), torch.no_grad():
            logits = self.hf(inputs_embeds=self.embeddings(share), use_cache=False).logits[0]
        rows = logits[len(self.pair.clean) - 1 :]
        beside = {at: {*among} - {self.pair.completion[at]} for at, among in self.pair.choices.items()}
        chosen = [
            row[token] - (row[[*beside[at]]].logsumexp(0) if beside else row.mean())
            for at, (row, token) in enumerate(zip(rows, self.pair.completion, strict=True))
            if not beside or at in beside
        ]
        return float(sum(chosen) / len(chosen)), seen[0]

    def difference(self, unit: slice) -> torch.Tensor:
        whole = self.run(1.0)[1] - self.run(0.0)[1]
        only = torch.zeros_like(whole)
        only[..., unit] = whole[..., unit]
        return only[:, self.touched]

    def score(self, unit: slice, steps: int, wide: float = 0.02) -> float:
        """The unit's score with the gradient replaced by a finite difference along its change.

        Several families normalise in float32 whatever the weights are, so the step is wide and the stencil
        of fourth order.
        """
        along = self.difference(unit)

        def rise(share: float, step: float) -> float:
            return self.run(share, step * along)[0] - self.run(share, -step * along)[0]

        shares = (np.arange(steps) + 0.5) / steps
        return float(np.mean([(8 * rise(a, wide) - rise(a, 2 * wide)) / (12 * wide) for a in shares]))


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_scores_equal_finite_differences(family: str, basis: Basis) -> None:
    """Cache, padding, batching, hooks and autograd together give the definition's number, in every family."""
    model = subject(family)
    size, width = model.unit_size(basis), model.width(basis)
    hf = model.hf.double()
    sites = [model.wiring.site(block, basis) for block in model.wiring.blocks(hf)]
    total = integrate(hf, sites, PAIRS[:2], Phase.DECODE, steps=2, batch=2)
    for layer, unit in ((1, 1), (2, width - 1)):
        coordinates = slice(unit * size, (unit + 1) * size)
        naive = [Naive(hf, sites[layer], one, Phase.DECODE).score(coordinates, 2) for one in PAIRS[:2]]
        assert total[layer, coordinates].sum() == pytest.approx(np.mean(naive), rel=3e-4, abs=3e-6)
        assert abs(np.mean(naive)) > 5e-5


def test_targets_are_traced_against_foils_where_they_differ() -> None:
    """The difference to one foil, and to several together, at the tokens that are compared; no other token counts."""
    hf = subject("llama").hf.double()
    sites = [(block.mlp, False) for block in hf.model.layers]
    for choices in ({0: [PAIRS[0].completion[0], 7]}, {1: [3, PAIRS[0].completion[1], 9]}):
        one = replace(PAIRS[0], choices=choices)
        naive = Naive(hf, sites[1], one, Phase.LAST_PROMPT)
        whole, plain = (integrate(hf, sites, [p], Phase.LAST_PROMPT, steps=2)[1] for p in (one, PAIRS[0]))
        for unit in (1, 4):
            assert whole[unit] == pytest.approx(naive.score(slice(unit, unit + 1), 2, 0.16), rel=1e-3)
        assert not np.allclose(whole, plain, rtol=0.1)


@pytest.mark.parametrize("phase", list(Phase))
def test_only_the_phases_positions_are_summed(phase: Phase) -> None:
    """Each phase's score is that of its own positions, and the three differ."""
    hf = subject("llama").hf.double()
    sites = [wiring_for("llama").site(block, Basis.MLP_OUT) for block in hf.model.layers]
    total = integrate(hf, sites, PAIRS[:1], phase, steps=2, batch=1)
    naive = {other: Naive(hf, sites[1], PAIRS[0], other).score(slice(3, 4), 2) for other in Phase}
    assert total[1, 3] == pytest.approx(naive.pop(phase), rel=3e-4)
    assert all(abs(total[1, 3] - other) > 1e-4 for other in naive.values())


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_embedding_scores_sum_to_the_change_of_the_metric(family: str) -> None:
    """Completeness of integrated gradients; the error is large at one step and shrinks with more."""
    hf = subject(family).hf.double()
    first = wiring_for(family).blocks(hf)[0]
    naive = Naive(hf, (first, True), PAIRS[2], Phase.WHOLE)
    change = naive.run(1.0)[0] - naive.run(0.0)[0]
    errors = []
    for steps in (1, 8, 64):
        total = integrate(hf, [(first, True)], PAIRS[2:], Phase.WHOLE, steps=steps, batch=1)
        errors.append(abs(total.sum() - change) / abs(change))
    assert errors[2] < 1e-2
    assert errors[2] < errors[1] < errors[0]
    assert errors[0] > 0.05


def test_last_layer_scores_equal_exact_patching_when_the_path_is_linear() -> None:
    """Without the final norm M is linear in the last MLP."""
    model = subject("llama")
    hf = model.hf.double()
    hf.model.norm = nn.Identity()
    mlp = hf.model.layers[-1].mlp
    naive = Naive(hf, (mlp, False), PAIRS[0], Phase.LAST_PROMPT)
    before = naive.run(0.0)[0]
    exact = [naive.run(0.0, naive.difference(slice(j, j + 1)))[0] - before for j in range(model.d_model)]
    right = integrate(hf, [(mlp, False)], PAIRS[:1], Phase.LAST_PROMPT, steps=3, batch=1)
    assert np.allclose(right[0], exact, atol=1e-9)
    assert np.abs(exact).max() > 1e-3


def test_swapping_the_members_negates_the_scores_and_equal_ones_score_zero() -> None:
    """With the answer kept, the midpoints are the same set, so only the sign of the change differs; a pair without a
    contrast attributes nothing, to the last bit."""
    swapped = [replace(p, clean=p.corrupt, corrupt=p.clean) for p in PAIRS]
    forth, back = (
        eap_ig(subject("qwen2"), p, Basis.MLP_OUT, Phase.DECODE, steps=3) for p in (PAIRS, swapped)
    )
    assert np.allclose(forth, -back, atol=1e-5 * np.abs(forth).max())
    assert np.abs(forth).max() > 1e-2
    same = replace(PAIRS[0], corrupt=PAIRS[0].clean)
    assert not any(eap_ig(subject("llama"), [same], basis, Phase.WHOLE).any() for basis in Basis)


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_batching_and_the_shared_prefix_change_nothing(family: str) -> None:
    """One batch behind a shared prefix gives the mean of pairs run alone; so do pairs that share nothing."""
    model = subject(family)
    other = AttributionPair(clean=(5, 20, 6, 11), corrupt=(6, 20, 6, 12), completion=(3, 9))
    for pairs in (PAIRS, (*PAIRS, other)):
        together = eap_ig(model, pairs, Basis.MLP_HIDDEN, Phase.DECODE, steps=2, batch=3)
        alone = [eap_ig(model, [one], Basis.MLP_HIDDEN, Phase.DECODE, steps=2) for one in pairs]
        assert np.allclose(together, np.mean(alone, axis=0), atol=1e-4 * np.abs(together).max())


def test_one_generated_token_leaves_decode_nothing_to_score() -> None:
    """Decode-only intervention cannot reach an answer of one token; the last prompt position can."""
    one = replace(PAIRS[0], completion=PAIRS[0].completion[:1])
    model = subject("llama")
    assert not eap_ig(model, [one], Basis.MLP_OUT, Phase.DECODE).any()
    assert eap_ig(model, [one], Basis.MLP_OUT, Phase.LAST_PROMPT).any()


def test_the_cap_keeps_the_largest_magnitudes_across_layers() -> None:
    """By hand: |−3|, |2|, and of the tied ones the lower layer; channels ascend and signs survive."""
    scores = np.array([[0.0, 1.0, -3.0], [2.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    kept = Candidates.strongest(Basis.MLP_OUT, scores, cap=3)
    assert [layer.layer for layer in kept.layers] == [0, 1]
    assert [layer.channels.tolist() for layer in kept.layers] == [[1, 2], [0]]
    assert [layer.scores.tolist() for layer in kept.layers] == [[1.0, -3.0], [2.0]]
    assert Candidates.strongest(Basis.MLP_OUT, scores).total == 9
