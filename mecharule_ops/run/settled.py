"""What a run over a table keeps beside its name: how many tokens an answer takes, and the hash of the rows."""

from __future__ import annotations

from mecharule_ops.config import RunConfig
from mecharule_ops.loading.model_names import on_this_machine
from mecharule_ops.loading.shape import read_tokenizer
from mecharule_ops.tasks.prompt_table import PromptTable
from mecharule_ops.tasks.task_names import settings_for, task_of
from mecharule_ops.types import Value


def settled(config: RunConfig) -> RunConfig:
    """The config with both in its task settings, unless they say so already; of another task the config itself.

    A word behind a prompt that ends without a space is measured with one before it, as a model writes it; any other
    answer with and without, and the longer counts. Where only the model's own tokenizer code can count tokens, the
    bytes of the answers stand for them.
    Raises `UsageError` for a table that does not read, `ModelUnavailable` for a model without a tokenizer here.
    """
    task = task_of(config)
    if not isinstance(task, PromptTable):
        return config
    chosen = {**settings_for(config.task, config.model), **config.task_settings}
    told: dict[str, Value] = {"content": str(task.describe()["content"])}
    if "max_new_tokens" not in chosen:
        told["max_new_tokens"] = answer_tokens(task, config.model)
    return config.model_copy(update={"task_settings": {**told, **config.task_settings}})


def answer_tokens(task: PromptTable, model: str) -> int:
    """How many tokens the longest answer takes a model, one more where it ends in a digit. Raises as `settled`."""
    tokenizer = read_tokenizer(on_this_machine(model))
    if tokenizer is None:
        return task.max_new_tokens

    spaced = not any(prompt[-1:].isspace() for prompt in task.questions)

    def length(answer: str) -> int:
        word = answer.strip()
        texts = (f" {word}",) if spaced and word[0].isalpha() else (word, f" {word}")
        return max(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)

    return task.tokens_for(length)
