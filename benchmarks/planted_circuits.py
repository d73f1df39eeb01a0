"""Circuits written by hand, each with the proof of what its units do; `compile_known.py` makes models of them.

All have tokens t with a direction `t:x` each and `one`, and positions `p:i`. An answer is read with logit 10 a unit of
its direction `=x`; the first one has 2 in any case. A neuron is written as its weights over directions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from craft_model import BEGIN, Craft

from mecharule_ops.tasks.programs import PROGRAMS, Program

Weights = Mapping[str, float]
_SURE = 40.0
"""Logit of a key that a head looks for; any other has 0, so it gets under 1e-16 of the attention."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head that reads the token at one position, and writes some directions for each token."""

    position: int
    writes: Mapping[str, Weights]


@dataclass(frozen=True, slots=True)
class HiddenNeuron:
    """relu of a weighted sum, written with weights."""

    reads: Weights
    writes: Weights


Layer = tuple[Sequence[Head], Sequence[HiddenNeuron]]


def built(program: Program, layers: Sequence[Layer], answers: Sequence[str]) -> Craft:
    """Matrices of the circuit."""
    tokens = [f"t:{token}" for token in program.alphabet]
    places = [f"p:{place}" for place in range(program.length)]
    written = [
        name
        for heads, neurons in layers
        for writes in (
            *(w for head in heads for w in head.writes.values()),
            *(each.writes for each in neurons),
        )
        for name in writes
    ]
    names = list(dict.fromkeys((*tokens, "one", *places, *answers, *written)))
    at = {name: place for place, name in enumerate(names)}

    def row(weights: Weights) -> np.ndarray:
        made = np.zeros(len(at))
        for name, weight in weights.items():
            made[at[name]] = weight
        return made

    def rows(several: Sequence[Weights]) -> np.ndarray:
        return np.array([row(each) for each in several]).reshape(-1, len(at))

    def matrices(head: Head) -> tuple[np.ndarray, ...]:
        query, key = row({"one": _SURE})[:, None], row({f"p:{head.position}": 1})[:, None]
        return (
            query,
            key,
            rows([{f"t:{token}": 1} for token in head.writes]).T,
            rows(list(head.writes.values())),
        )

    return Craft(
        rows([{"one": 1}, *({name: 1, "one": 1} for name in tokens)]),
        rows([{}, *({name: 1} for name in places), {}]),
        [
            (
                [matrices(head) for head in heads],
                (rows([each.reads for each in neurons]).T, rows([each.writes for each in neurons])),
            )
            for heads, neurons in layers
        ],
        np.array([at[name] for name in answers]),
        [BEGIN, *program.alphabet],
        answers,
    )


def _copies(writes: str, alphabet: str, weight: float = 1) -> Mapping[str, Weights]:
    return {token: {f"{writes}{token}": weight} for token in alphabet}


def backup() -> Craft:
    """Two heads write the first token to its answer, each with weight 1.

    Alone, either leaves logit 10 against 2: no input flips. Together they leave 2 at the first answer: every input
    whose first token is another flips. A mean over inputs in place of 0 adds nearly the same to all answers.
    """
    program = PROGRAMS["backup"]
    heads = [Head(0, _copies("=", program.alphabet))] * 2
    return built(program, [(heads, [])], _answers(program.alphabet))


def cancelling() -> Craft:
    """A neuron a token writes the last token to its answer. Two more, on where the first token is a or b, write
    4 (x − y) and 4 (y − x) to wrong answers x and y.

    Together they write nothing, so the pair flips nothing. Without one (0, or its mean over inputs, a half, instead)
    x or y is at 2 or more, logit 20 against 10: every input where they are on flips, under the mean every other too.
    """
    program = PROGRAMS["cancelling"]
    first = Head(0, _copies("f:", "ab"))
    own = [HiddenNeuron({f"t:{token}": 1}, {f"={token}": 1}) for token in program.alphabet]
    pair = [HiddenNeuron({"f:a": 1, "f:b": 1}, {"=x": 4 * sign, "=y": -4 * sign}) for sign in (1, -1)]
    return built(program, [([first], [*own, *pair])], _answers(program.alphabet + "xy"))


def saturated() -> Craft:
    """A head writes the first token, f = 1 at its direction; two neurons a token make relu(3f) − relu(3f − 1) of it.

    At f = 1 that is 1 with derivative 0: to first order the head moves nothing. At f = 0 it is 0: without the head
    every input flips whose first token is not the first answer's.
    """
    program = PROGRAMS["saturated"]
    neurons = [
        HiddenNeuron(reads, {f"={token}": sign})
        for token in program.alphabet
        for reads, sign in (({f"f:{token}": 3}, 1), ({f"f:{token}": 3, "one": -1}, -1))
    ]
    return built(program, [([Head(0, _copies("f:", program.alphabet))], neurons)], _answers(program.alphabet))


def either() -> Craft:
    """Layer 0 has a neuron for (a, b) and one for (c, d); one neuron of layer 1 adds them and writes the answer 1.

    It flips exactly these inputs; each neuron of layer 0 half of them, only through it, for nothing else reads them.
    """
    conjunctions = [
        HiddenNeuron({f"f:{first}": 1, f"t:{last}": 1, "one": -1}, {f"and:{first}{last}": 1})
        for first, last in ("ab", "cd")
    ]
    union = HiddenNeuron({"and:ab": 1, "and:cd": 1}, {"=1": 1})
    first = Head(0, _copies("f:", "abcd"))
    return built(PROGRAMS["either"], [([first], conjunctions), ([], [union])], _answers("01"))


def fault() -> Craft:
    """A neuron a token writes the last token to its answer. One of layer 1 fires where both tokens are even or both
    odd, which two of layer 0 tell it, and writes 2 to a wrong answer: logit 20 against 10.

    The model is wrong exactly there, and right everywhere where that neuron is 0 instead.
    """
    program = PROGRAMS["fault"]
    own = [HiddenNeuron({f"t:{token}": 1}, {f"={token}": 1}) for token in program.alphabet]
    alike = [
        HiddenNeuron(
            {**{f"f:{each}": 1 for each in tokens}, **{f"t:{each}": 1 for each in tokens}, "one": -1},
            {f"both:{tokens}": 1},
        )
        for tokens in ("02", "13")
    ]
    wrong = HiddenNeuron({"both:02": 1, "both:13": 1}, {"=x": 2})
    first = Head(0, _copies("f:", program.alphabet))
    return built(program, [([first], [*own, *alike]), ([], [wrong])], _answers(program.alphabet + "x"))


def _answers(names: str) -> list[str]:
    return [f"={name}" for name in names]


PLANTED: Mapping[str, Callable[[], Craft]] = {
    each.__name__: each for each in (backup, cancelling, saturated, either, fault)
}
