"""The table of `bench.py` on a CUDA device, its matrix peaks in both types, and a whole run of a large model.

    python benchmarks/gpu.py [--model NAME] [--json FILE] [--only SECTION …]
    python benchmarks/gpu.py --device cpu --quick       the same code at small size, where there is no card

Without --quick it writes `benchmarks/gpu.json`, anew after every section. Goals are those of the table on a processor.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from bench import Section, machine, told, write
from engine_figures import decided, evaluation, matrix_peak
from loading_figures import KINDS, loading
from precision import precision
from search_figures import exhaustive_tiny, search, wall_clock
from setting import SMOLLM2, Case, Figure

from mecharule_ops.errors import MechaRuleError, ModelUnavailable, UsageError
from mecharule_ops.loading.model_names import BUNDLED
from mecharule_ops.loading.placement import this_machine
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.run_directory import list_runs
from mecharule_ops.store.run_store import RunStore

WRITTEN = Path(__file__).with_name("gpu.json")
WHOLE = ("--basis", "attn_head,mlp_out", "--exhaustive-up-to", "1000", "--set", "anchor_for=16")
"""Options of a whole run: those of `make run`."""
FEW = (
    *("--records", "160", "--set", "slice_size=16", "--set", "proposals=0", "--set", "refinements=0"),
    *("--set", "controls=1", "--set", "controls_for=1", "--set", "anchor_for=1", "--set", "accounts_for=0"),
    *("--set", "chains_for=0"),
)
"""Options of a run at small size."""


def sections(table: Case, large: Case, quick: bool) -> dict[str, Section]:
    """The whole run of the large model first, while nothing else is on the card, then the table."""
    whole = ["--basis", "mlp_out", *FEW] if quick else WHOLE
    groups, kinds = (6, KINDS[1:2]) if quick else (60, KINDS)
    low = replace(table, dtype="bfloat16")
    found: dict[str, Section] = {
        "run": partial(a_run, large, whole),
        "evaluation": partial(evaluation, table),
        "decided": partial(decided, table),
        "matrix-peak": partial(matrix_peak, table),
        "matrix-peak-bfloat16": partial(matrix_peak, low),
        "precision": partial(precision, low, groups),
        "exhaustive-tiny": partial(exhaustive_tiny, table),
        "search": partial(search, table),
        "loading": partial(loading, table, kinds),
    }
    if large.model != table.model:
        found["matrix-peak-large"] = partial(matrix_peak, large)
    return found


def a_run(case: Case, options: Sequence[str]) -> Iterator[Figure]:
    """A whole run of a model, wall clock."""
    with TemporaryDirectory() as folder:
        taken = wall_clock(case, options, Path(folder))
        for listed in list_runs(Path(folder)):
            with RunStore.open(listed.path, read_only=True) as store:
                run = Run(store)
                where = f"{run.placed['dtype']} on {run.placed['device']}" if run.placed else ""
                yield Figure(f"a whole run of {case.model}", taken, "s", "", where)


def device_name(device: str) -> str:
    """The kind of device, without the machine's name."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else str(machine()["cpu"])


def check(device: str, quick: bool) -> None:
    """Raises `ModelUnavailable` where there is no CUDA device, `UsageError` for another one at full size."""
    if device == "cpu" and quick:
        return
    if not device.startswith("cuda"):
        raise UsageError(f"expected a CUDA device, got {device}; `--device cpu` goes with --quick only")
    here = this_machine()
    if not any(name.startswith(device) for name in here):
        raise ModelUnavailable(
            f"expected the device {device}, this machine has {', '.join(here)}; run this where there is one, or try "
            "the same code with `--device cpu --quick`"
        )


def measure(arguments: argparse.Namespace) -> None:
    """Prints the table, and writes it where it is wanted. Raises as `check`."""
    device, quick = arguments.device, arguments.quick
    check(device, quick)
    table = Case(device=device)
    if quick:
        table = Case(model=BUNDLED, device=device, records=200, slice=16)
    wanted = sections(table, replace(table, model=arguments.model or table.model, dtype="auto"), quick)
    if unknown := sorted(set(arguments.only) - set(wanted)):
        raise UsageError(f"expected sections of: {', '.join(wanted)}; got {', '.join(unknown)}")
    chosen = {name: wanted[name] for name in arguments.only or wanted}
    about: dict[str, object] = {"device": device_name(device), "cuda": torch.version.cuda}
    about |= {"dtype": table.dtype, "machine": machine()}
    written = arguments.json or (None if quick else WRITTEN)
    told(chosen, lambda figures: write(written, figures, about) if written else None)


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 0, or that of the error that it prints in one line; `words` are the command line's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help=f"small sizes, on {BUNDLED}")
    parser.add_argument(
        "--model", help=f"whose whole run is timed; default {SMOLLM2}, with --quick {BUNDLED}"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="SECTION")
    try:
        measure(parser.parse_args(words))
    except MechaRuleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
