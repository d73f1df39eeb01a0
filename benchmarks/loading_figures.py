"""Peak memory of loading a sharded model, over its weights: run as a script it is the fresh process that is measured.

Every weight is read once after loading. What only this process holds counts: pages of mapped files are shared by the
processes of a machine, and the system takes them back when it needs them. Copies that an engine makes afterwards are
counted apart.
"""

import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from setting import DEFAULT, Case, Figure

from mecharule_ops.loading.model_names import BUNDLED, load

SHARDS = 4
KINDS = (("float32", "float32"), ("float32", "bfloat16"), ("bfloat16", "bfloat16"), ("bfloat16", "float32"))
"""Types in the files and in memory."""
EVERY = 0.002
"""Seconds between two looks at the memory that only the process holds."""


def loading(case: Case = DEFAULT, kinds: Sequence[tuple[str, str]] = KINDS) -> Iterator[Figure]:
    """Peak of the processor's memory while a model in shards is loaded, over the bytes of its weights."""
    for stored in dict.fromkeys(kept for kept, _ in kinds):
        with TemporaryDirectory() as folder:
            shards = saved_in_shards(case.model, stored, Path(folder))
            for dtype in (held for kept, held in kinds if kept == stored):
                found = in_a_fresh_process(Path(folder), case.device, dtype)
                weights = found["weights"]
                note = f"{weights / 1e6:.0f} MB of weights, {shards} shards"
                label = f"peak of loading {stored} as {dtype}, over the weights"
                yield Figure(label, found["peak"] / weights, "×", note=note)


def saved_in_shards(model: str, dtype: str, folder: Path) -> int:
    """How many files a copy of the model in this type was cut into, at least `SHARDS` where its matrices allow it."""
    subject = load(model)
    hf = subject.hf.to(getattr(torch, dtype))
    largest = -(-sum(tensor.nbytes for tensor in hf.parameters()) // SHARDS)
    hf.save_pretrained(folder, max_shard_size=largest)
    subject.tokenizer.save_pretrained(folder)
    return len(list(folder.glob("*.safetensors")))


def in_a_fresh_process(directory: Path, device: str, dtype: str) -> dict[str, int]:
    """What `main` prints in a process of its own."""
    command = [sys.executable, __file__, str(directory), device, dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"expected the model to load, got {done.returncode}: {done.stderr[-300:]}")
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(directory: str, device: str, dtype: str) -> None:
    """Loads the model and prints bytes: its weights and the peaks above what imports take."""
    load(BUNDLED, device, dtype)  # Everything that is imported on the way is imported now.
    gc.collect()
    before = own_memory()
    with watched() as seen:
        subject = load(directory, device, dtype)
        for parameter in subject.hf.parameters():
            parameter.detach().sum().item()  # A mapped page is there once it was read.
    weights = sum(parameter.nbytes for parameter in subject.hf.parameters())
    print(json.dumps({"weights": weights, "peak": max(seen) - before}))


def own_memory() -> int:
    """Bytes that only this process holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


@contextmanager
def watched() -> Iterator[list[int]]:
    """Inside, the memory that only this process holds is noted every `EVERY` seconds."""
    seen, ended = [own_memory()], threading.Event()

    def watch() -> None:
        while not ended.wait(EVERY):
            seen.append(own_memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()
        seen.append(own_memory())


if __name__ == "__main__":
    main(*sys.argv[1:])
