"""Gates as a folder, and on a plain transformers model: inside the context its `generate` acts where a gate fires.

`gate.json` says which gates of which model, `values.safetensors` what units are set to. Gates decide from the prompts,
so everything is generated in one pass. A prompt that is none of the task's is left alone. Rows may be padded on the
left; caches and stopping are the model's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mecharule_ops.certificates.bundles import make_empty
from mecharule_ops.codec import decode, encode, parse_json
from mecharule_ops.errors import ClaimNotSupported, ModelUnavailable, StoreError, UsageError, system_errors
from mecharule_ops.gates.choosing import NOTHING, acting
from mecharule_ops.gates.material import firing, readable
from mecharule_ops.gates.outcome import Gate
from mecharule_ops.loading.generation import Tokens
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.passes.spans import first_offset
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.replacement.table_files import arrays_of, table_from
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.task_names import task_from
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Example, Intervention, Neuron, Phase

FORMAT = 3
"""Version of the folder's layout; another one is refused."""
GATE, VALUES = "gate.json", "values.safetensors"
_REFUSED = ("assistant_model", "prompt_lookup_num_tokens", "prefill_chunk_size", "num_beams")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFile:
    """What `gate.json` says."""

    format: int
    run: str
    model: str
    """What the run called it."""
    model_hash: str
    tokenizer_hash: str
    task: Mapping[str, int | float | str | bool]
    """The task's own description."""
    basis: Basis
    baseline: Baseline
    phase: Phase
    values_hash: str
    """Of the table of replacement values."""
    gates: tuple[Gate, ...]
    """In the order in which they were chosen."""


def write_gates(run: Run, gates: tuple[Gate, ...], folder: Path) -> GateFile:
    """Both files. Raises `StoreError` when they cannot be written, or on a folder in use."""
    how = run.intervention(gates[0].unit.basis)
    table = run.replacement(how)
    described = run.task.describe().items()
    stated = GateFile(
        format=FORMAT,
        run=run.id,
        model=run.config.model,
        model_hash=run.subject.model_hash,
        tokenizer_hash=run.subject.tokenizer_hash,
        task={name: value.value if hasattr(value, "value") else value for name, value in described},
        basis=how.basis,
        baseline=how.baseline,
        phase=how.phase,
        values_hash=table.hash,
        gates=gates,
    )
    make_empty(folder)
    text = json.dumps(encode(stated), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    with system_errors(f"to write gates to {folder}"):
        (folder / GATE).write_text(text, encoding="utf-8")
        save_file(arrays_of(table), folder / VALUES)
    return stated


def load_gates(folder: str | Path) -> LoadedGates:
    """The gates of a folder. Raises `StoreError` on files that do not read, `ClaimNotSupported` on what is not so."""
    folder = Path(folder)
    try:
        with system_errors(f"{GATE} in {folder}"):
            said: Any = parse_json((folder / GATE).read_text(encoding="utf-8"))
        version = said.get("format") if isinstance(said, dict) else None
        if version != FORMAT:
            raise ClaimNotSupported(f"expected gates of format {FORMAT}, got {version!r}; export them again")
        stated = decode(GateFile, said)
        how = Intervention(basis=stated.basis, baseline=stated.baseline, phase=stated.phase)
        table = table_from(load_file(folder / VALUES), how)
    except (ValueError, UsageError) as error:
        raise ClaimNotSupported(f"expected gates in {folder / GATE}: {error}") from error
    except (OSError, KeyError, SafetensorError) as error:
        raise StoreError(f"expected replacement values in {folder / VALUES}: {error}") from error
    if table.hash != stated.values_hash:
        raise ClaimNotSupported(
            f"expected replacement values {stated.values_hash} in {folder / VALUES}, got {table.hash}; export again"
        )
    return LoadedGates(stated=stated, table=table, task=task_from(stated.task))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedGates:
    """Gates with their replacement values, ready to be attached to the model that they were made on."""

    stated: GateFile
    table: ReplacementTable
    task: Task

    @contextmanager
    def attached(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> Iterator[PreTrainedModel]:
        """Inside, `model.generate` acts where a gate fires; afterwards the model is as before.

        Raises `ModelUnavailable` for weights or a tokenizer that the gates were not made on, or numbers other than
        float32, `UsageError` for a model in training.
        """
        if model.training:
            raise UsageError("expected a model in evaluation mode, got one in training; call model.eval()")
        subject = Subject(name=self.stated.model, directory=Path(), hf=model, tokenizer=tokenizer)
        for what, wanted, here in (
            ("numbers", "float32", str(model.dtype).removeprefix("torch.")),
            ("weights", self.stated.model_hash, subject.model_hash),
            ("a tokenizer", self.stated.tokenizer_hash, subject.tokenizer_hash),
        ):
            if wanted != here:
                raise ModelUnavailable(
                    f"expected {what} {wanted} of {self.stated.model}, got {here}; the gates are of that model alone"
                )
        # Through `Any`: an instance's own attribute hides the method, and goes away again.
        opened: Any = model
        opened.generate = partial(self._generate, subject, opened.generate)
        try:
            yield model
        finally:
            del opened.generate

    def _generate(
        self, subject: Subject, plain: Callable[..., Any], inputs: Tensor | None = None, **given: Any
    ) -> Any:
        """What the model's own `generate` gives, with units ablated where gates fire."""
        ids = given.pop("input_ids", inputs)
        if ids is None:
            raise UsageError("expected input_ids, got none; gates decide from the prompt's tokens")
        refused = [name for name in _REFUSED if given.get(name) not in (None, 1)]
        if refused or given.get("num_return_sequences", 1) != 1:
            raise UsageError(
                f"expected plain decoding under a gate, got {', '.join(refused) or 'several sequences'}"
            )
        prompts = _prompts(ids, given.get("attention_mask"))
        acts = self._acts(subject, prompts)
        with ablating_rows(subject, self.table, prompts, ids.shape[1], acts):
            return plain(ids, **given)

    def _acts(self, subject: Subject, prompts: Sequence[Tokens]) -> list[Neuron | None]:
        """The unit that is ablated on each row whose prompt is one of the task's."""
        read = dict[int, Example]()
        for row, prompt in enumerate(prompts):
            with suppress(UsageError):
                example = self.task.read(subject.decode(prompt))
                if tuple(subject.encode([example.prompt])[0]) == prompt:
                    read[row] = example
        gates = self.stated.gates
        blank = [
            BehaviourRecord(
                example=one, tokens=(), completion="", parsed=self.task.parse(one, ""), label=False
            )
            for one in read.values()
        ]
        acts: list[Neuron | None] = [None] * len(prompts)
        if blank:
            fires = firing(gates, readable(self.task, blank), len(blank))
            for row, gate in zip(read, acting([one.gain for one in gates], fires), strict=True):
                acts[row] = None if gate == NOTHING else gates[gate].unit
        return acts


def _prompts(ids: Tensor, mask: Tensor | None) -> list[Tokens]:
    """Each row's prompt without padding. Raises `UsageError` for padding on the right."""
    if mask is None:
        return [tuple(row) for row in ids.tolist()]
    if not bool(mask[:, -1].all()):
        raise UsageError(
            "expected prompts padded on the left, got padding on the right; set padding_side='left'"
        )
    return [tuple(row[kept].tolist()) for row, kept in zip(ids, mask.bool(), strict=True)]


@contextmanager
def ablating_rows(
    subject: Subject,
    table: ReplacementTable,
    prompts: Sequence[Tokens],
    width: int,
    acts: Sequence[Neuron | None],
) -> Iterator[None]:
    """Inside, each row's unit is replaced at every intervened position; prompts fill `width` from the right."""
    begins = [0]

    def note(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        cache = kwargs.get("past_key_values")
        begins[0] = 0 if cache is None else int(cache.get_seq_length())

    blocks, basis = subject.wiring.blocks(subject.hf), table.intervention.basis
    with ExitStack() as stack:
        hook = subject.hf.register_forward_pre_hook(note, with_kwargs=True)
        stack.callback(hook.remove)
        for layer in sorted({unit.layer for unit in acts if unit is not None}):
            rows = [row for row, unit in enumerate(acts) if unit is not None and unit.layer == layer]
            channels = torch.tensor(
                [unit.channel for unit in acts if unit is not None and unit.layer == layer]
            )
            lowest = torch.tensor([first_offset(table.intervention.phase, len(prompts[row])) for row in rows])
            module, in_input = subject.wiring.site(blocks[layer], basis)
            here = (layer, torch.tensor(rows), channels, lowest[:, None])
            see = partial(_write, table, here, subject.unit_shape(basis), begins, width)
            stack.callback(hooked(module, in_input, see).remove)
        yield


def _write(
    table: ReplacementTable,
    here: tuple[int, Int[Tensor, " row"], Int[Tensor, " row"], Int[Tensor, "row 1"]],
    shape: tuple[int, ...],
    begins: Sequence[int],
    width: int,
    site: Tensor,
) -> None:
    """Set the units of one layer in their rows, in place: a site is a fresh tensor that is read once."""
    layer, rows, channels, lowest = here
    offsets = torch.arange(site.shape[1]) + begins[0] - (width - 1)
    row, position = (offsets >= lowest).nonzero(as_tuple=True)
    if len(row):
        values = table.value(layer, offsets, channels).transpose(0, 1)
        site.unflatten(-1, shape)[rows[row], position, channels[row]] = values[row, position].to(site)
