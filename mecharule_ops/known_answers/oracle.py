"""What a known model answers with units held, by numpy alone: a forward that shares nothing with the engine.

GPT-2's computation in float64 on every position of every input, read off the weights' file. Axes: input place width.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from mecharule_ops.types import Basis

UnitsHeld = Mapping[tuple[Basis, int, int], np.ndarray]
"""Values that units are set to, by basis, layer and channel: one for all inputs and places, or any that broadcast to
`input place` (and a head's size)."""
_LAST = slice(-1, None)


class Oracle:
    """A known model, from the directory that holds it."""

    def __init__(self, directory: Path) -> None:
        weights = load_file(str(directory / "model.safetensors"))
        self._weights = {
            name.removeprefix("transformer."): each.astype(np.float64) for name, each in weights.items()
        }
        self.heads: int = json.loads((directory / "config.json").read_text(encoding="utf-8"))["n_head"]
        self.layers = sum(name.endswith("attn.c_attn.weight") for name in weights)

    def logits(
        self,
        ids: np.ndarray,
        held: UnitsHeld,
        whole: bool = False,
        seen: dict[tuple[Basis, int], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Logits after the last place, `input token`, with units held there, or at every place if `whole`.

        `seen` is filled with what the units of each basis and layer are without being held: `input place unit`
        (and a head's size).
        """
        at = slice(None) if whole else _LAST
        stream = self._weights["wte.weight"][ids] + self._weights["wpe.weight"][: ids.shape[1]]
        for layer in range(self.layers):
            name = f"h.{layer}."

            def units(basis: Basis, values: np.ndarray, layer: int = layer) -> np.ndarray:
                if seen is not None:
                    seen[basis, layer] = values.copy()
                for (kind, where, channel), value in held.items():
                    if (kind, where) == (basis, layer):
                        values[:, at, channel] = value
                return values

            stream = stream + self._attention(self._norm(stream, f"{name}ln_1"), name, units)
            hidden = np.maximum(self._linear(self._norm(stream, f"{name}ln_2"), f"{name}mlp.c_fc"), 0)
            written = self._linear(units(Basis.MLP_HIDDEN, hidden), f"{name}mlp.c_proj")
            stream = stream + units(Basis.MLP_OUT, written)
        return self._norm(stream, "ln_f")[:, -1] @ self._weights["lm_head.weight"].T

    def _attention(
        self, normed: np.ndarray, name: str, units: Callable[[Basis, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        inputs, places, width = normed.shape
        query, key, value = (
            part.reshape(inputs, places, self.heads, -1).swapaxes(1, 2)
            for part in np.split(self._linear(normed, f"{name}attn.c_attn"), 3, axis=-1)
        )
        scores = query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1])
        scores = np.where(np.tril(np.ones((places, places), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        read = units(Basis.ATTN_HEAD, (weights @ value).swapaxes(1, 2))
        return self._linear(read.reshape(inputs, places, width), f"{name}attn.c_proj")

    def _linear(self, values: np.ndarray, name: str) -> np.ndarray:
        return values @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _norm(self, values: np.ndarray, name: str) -> np.ndarray:
        centred = values - values.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
