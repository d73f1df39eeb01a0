"""What a run would need and cost, as lines and as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from mecharule_ops.codec import encode
from mecharule_ops.events import Price
from mecharule_ops.loading.memory import free_memory
from mecharule_ops.run.outlook import Outlook, SearchOutlook
from mecharule_ops.types import Basis


def told(outlook: Outlook, paces: Mapping[Basis, float] = MappingProxyType({})) -> list[tuple[str, str]]:
    """(what, how much) line by line; `paces` are seconds an example-forward of the bases for which they are known."""
    shape, weights = outlook.shape, outlook.weight_bytes(4)
    size = f"{shape.n_layers} layers of width {shape.d_model:,}, {shape.n_heads} heads"
    prompt = "not measured" if outlook.longest_prompt is None else f"at most {outlook.longest_prompt} tokens"
    units = ", ".join(f"{basis.value} {shape.units(basis):,}" for basis in Basis)
    return [
        ("the model", f"{shape.model_type}, {size}, {count(shape.parameters)} parameters"),
        ("its files", f"{shape.stored_as} in {shape.directory}"),
        ("units", units),
        ("prompts", prompt),
        ("memory", f"{gigabytes(weights)} of weights in float32; {gigabytes(free_memory())} free"),
        ("placed", outlook.placed),
        *(
            (f"{search.basis.value} {search.regime.arrow}", _price(search, paces))
            for search in outlook.searches
        ),
    ]


def as_data(outlook: Outlook) -> dict[str, object]:
    """The same for a program."""
    shape = outlook.shape
    return {
        "model": {
            "directory": str(shape.directory),
            "model_type": shape.model_type,
            "layers": shape.n_layers,
            "d_model": shape.d_model,
            "parameters": shape.parameters,
            "stored_as": shape.stored_as,
            "units": {basis.value: shape.units(basis) for basis in Basis},
            "longest_prompt": outlook.longest_prompt,
        },
        "memory": {"weights": outlook.weight_bytes(4), "free": free_memory(), "placed": outlook.placed},
        "searches": [encode(search) for search in outlook.searches],
    }


def _price(search: SearchOutlook, paces: Mapping[Basis, float]) -> str:
    pace = paces.get(search.basis, math.nan)
    price = Price(
        evaluations=search.evaluations,
        example_forwards=search.example_forwards,
        seconds=search.example_forwards * pace,
        least_evaluations=search.least_evaluations,
        least_seconds=search.least_forwards * pace,
    )
    predictions = (
        f", first-order predictions before it at most {search.prediction_forwards:,} more"
        if search.prediction_forwards
        else ""
    )
    forwards = (
        f"{search.example_forwards:,}"
        if search.least_forwards == search.example_forwards
        else f"{search.least_forwards:,} to {search.example_forwards:,}"
    )
    said = f"{price.ablations} on {search.units:,} units, {price.time(duration)}"
    return f"{said}, {forwards} example-forwards{predictions}"


def duration(seconds: float) -> str:
    """Seconds in the unit that a person would take."""
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def count(parameters: int) -> str:
    """`135 M`, `1.5 B`."""
    return f"{parameters / 1e9:.1f} B" if parameters >= 1e9 else f"{parameters / 1e6:.3g} M"


def gigabytes(size: int) -> str:
    """`0.54 GB`."""
    return f"{size / 1e9:.2f} GB"
