"""What a run over a table keeps beside its name: how many tokens an answer takes, and the hash of the rows."""

from __future__ import annotations

from mecharule_ops.config import RunConfig
from mecharule_ops.loading.model_names import on_this_machine
from mecharule_ops.loading.shape import read_tokenizer
from mecharule_ops.tasks.prompt_table import PromptTable, Write
from mecharule_ops.tasks.task_names import settings_for, task_of
from mecharule_ops.types import Value


def settled(config: RunConfig) -> RunConfig:
    """The config with both in its task settings, unless they say so already; of another task the config itself.

    Where only the model's own tokenizer code can count tokens, the bytes of the answers stand for them.
    Raises `UsageError` for a table that does not read, `ModelUnavailable` for a model without a tokenizer here.
    """
    task = task_of(config)
    if not isinstance(task, PromptTable):
        return config
    chosen = {**settings_for(config.task, config.model), **config.task_settings}
    told: dict[str, Value] = {"content": str(task.describe()["content"])}
    if "max_new_tokens" not in chosen:
        write = writing(task, config.model)
        told["max_new_tokens"] = (
            task.max_new_tokens
            if write is None
            else task.tokens_for(lambda answer: max(count for count, _ in write(answer)))
        )
    return config.model_copy(update={"task_settings": {**told, **config.task_settings}})


def writing(task: PromptTable, model: str) -> Write | None:
    """How a model's tokenizer writes answers of a table; None where only the model's own code reads it.

    A word behind a prompt that ends without a space has one before it, as a model writes it; any other answer is
    tried with and without. Raises as `settled`.
    """
    tokenizer = read_tokenizer(on_this_machine(model))
    if tokenizer is None:
        return None
    spaced = not any(prompt[-1:].isspace() for prompt in task.questions)

    def write(answer: str) -> list[tuple[int, str]]:
        word = answer.strip()
        texts = (f" {word}",) if spaced and word[0].isalpha() else (word, f" {word}")
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        return [(len(each), tokenizer.decode(each)) for each in ids]

    return write
