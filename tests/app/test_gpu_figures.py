"""`make gpu` without a card: it says so in one line, and at small size on the processor all of its code runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def told(*options: str) -> subprocess.CompletedProcess[str]:
    """What the program says."""
    command = [sys.executable, str(PROGRAM), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


REFUSED = {
    (): (
        3,
        "expected the device cuda, this machine has cpu; run this where there is one, or try the same code with "
        "`--device cpu --quick`",
    ),
    ("--device", "cpu"): (2, "expected a CUDA device, got cpu; `--device cpu` goes with --quick only"),
    ("--device", "cpu", "--quick", "--only", "nothing"): (
        2,
        "expected sections of: run, evaluation, decided, matrix-peak, matrix-peak-bfloat16, "
        "precision, exhaustive-tiny, search, loading; got nothing",
    ),
}
"""Command lines, the exit code of each and all that it says. A section that is added is added to a test below."""


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a card")
def test_what_cannot_be_measured_is_said_in_one_line() -> None:
    """No card is as any device that cannot be had; on a processor at full size `bench.py` measures."""
    asked = f"import sys, gpu\nprint(*[gpu.main(words) for words in {list(REFUSED)}])"
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=PROGRAM.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(code) for code, _ in REFUSED.values()]
    assert done.stderr.splitlines() == [said for _, said in REFUSED.values()]


def figures_of(written: Path, *sections: str) -> dict[str, dict[str, object]]:
    """What the sections write at small size, by figure; all of it is printed too."""
    done = told("--device", "cpu", "--quick", "--json", str(written), "--only", *sections)
    assert done.returncode == 0, done.stderr
    found = json.loads(written.read_text(encoding="utf-8"))
    assert set(found) == {"device", "cuda", "dtype", "machine", "versions", "figures"}
    assert found["dtype"] == "float32"
    assert all(figure["figure"] in done.stdout for figure in found["figures"])
    return {figure["figure"]: figure for figure in found["figures"]}


@pytest.mark.slow
def test_what_is_measured_in_one_process_runs_on_the_processor(tmp_path: Path) -> None:
    """Every such section gives figures; what two ways compute agrees."""
    names = ("evaluation", "decided", "matrix-peak", "matrix-peak-bfloat16", "precision")
    figures = figures_of(tmp_path / "gpu.json", *names, "exhaustive-tiny", "search")
    for start in (
        *("one group alone", "one decided group"),
        *("share of the float32 matrix peak", "share of the bfloat16 matrix peak", "exhaustive mlp_out"),
        "CHA of arith-tiny",
    ):
        assert any(name.startswith(start) for name in figures), start
    assert "completions equal" in str(figures["one group alone, layer 0"]["note"])
    differing = [
        figure["value"] for name, figure in figures.items() if name.startswith("outcomes that differ")
    ]
    assert not any(differing)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_measured_in_processes_of_its_own_runs_on_the_processor(tmp_path: Path) -> None:
    """A whole run, and the peak of loading."""
    figures = figures_of(tmp_path / "gpu.json", "run", "loading")
    for start in ("a whole run of arith-tiny", "peak of loading float32 as bfloat16"):
        assert any(name.startswith(start) for name in figures), start
