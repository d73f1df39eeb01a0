"""What a run would need and cost at most, as lines and as data."""

from __future__ import annotations

from mecharule_ops.codec import encode
from mecharule_ops.loading.memory import free_memory
from mecharule_ops.run.outlook import Outlook, SearchOutlook
from mecharule_ops.types import Basis


def told(outlook: Outlook) -> list[tuple[str, str]]:
    """(what, how much) line by line."""
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
        *((f"{search.basis.value} {search.regime.arrow}", _at_most(search)) for search in outlook.searches),
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


def _at_most(search: SearchOutlook) -> str:
    predictions = (
        f", first-order predictions before it at most {search.prediction_forwards:,} more"
        if search.prediction_forwards
        else ""
    )
    return (
        f"at most {search.evaluations:,} group ablations on {search.units:,} units, "
        f"{search.example_forwards:,} example-forwards{predictions}"
    )


def count(parameters: int) -> str:
    """`135 M`, `1.5 B`."""
    return f"{parameters / 1e9:.1f} B" if parameters >= 1e9 else f"{parameters / 1e6:.3g} M"


def gigabytes(size: int) -> str:
    """`0.54 GB`."""
    return f"{size / 1e9:.2f} GB"
