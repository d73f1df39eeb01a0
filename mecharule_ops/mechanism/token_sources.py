"""Which named piece of its text each token of a record stands for: what attribution patching of a head is summed over.

A prompt's characters come from the tokenizer's own offsets, those of a completion from decoding token by token. A
token belongs to the piece that holds most of its visible characters, the first on a tie. Axes: token.
"""

from collections.abc import Sequence
from itertools import pairwise

from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.links import END
from mecharule_ops.tasks import base, text_pieces
from mecharule_ops.types import BehaviourRecord

BEGIN, FIRST, OTHER = "beginning of text", "first token", "other"
"""A special token without text; the first token of all, where many heads rest; a token of no piece."""
Offsets = Sequence[tuple[int, int]]


def token_sources(subject: Subject, task: base.Task, record: BehaviourRecord) -> tuple[str, ...]:
    """A name for each token of the prompt and of the completion."""
    prompt = record.example.prompt
    spans = task.sources(record.example, record.completion)
    asked = prompt_offsets(subject, prompt)
    written = [(len(prompt) + a, len(prompt) + b) for a, b in decoded_offsets(subject, record.tokens)]
    text = prompt + record.completion
    names = [_name(text, spans, start, stop) for start, stop in (*asked, *written)]
    if asked and names[0] != BEGIN:
        names[0] = FIRST if len(asked) > 1 and names[0] == names[1] else names[0]
    return tuple(names)


def token_name(subject: Subject, token: int) -> str:
    """The text of a token; of one without text, such as the end of the sequence, the tokenizer's name for it."""
    return subject.decode([token]) or str(subject.tokenizer.convert_ids_to_tokens(token))


def prompt_offsets(subject: Subject, prompt: str) -> Offsets:
    """First character and the one behind the last of each prompt token; equal for a special one."""
    (tokens,) = subject.encode([prompt])
    own = subject.tokenizer(prompt, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [(0, 0)] * (len(tokens) - len(own)) + [tuple(pair) for pair in own]


def decoded_offsets(subject: Subject, tokens: Sequence[int]) -> Offsets:
    """The characters that each token adds to the decoded text."""
    lengths = [len(subject.decode(tokens[:count])) for count in range(len(tokens) + 1)]
    return [(start, max(start, stop)) for start, stop in pairwise(lengths)]


def _name(text: str, spans: Sequence[text_pieces.SourceSpan], start: int, stop: int) -> str:
    if start == stop:
        return BEGIN if start == 0 else END if start == len(text) else OTHER
    best, most = OTHER, (0, 0)
    for span in spans:
        shared = text[max(start, span.start) : min(stop, span.stop)] if span.start < stop else ""
        weight = (len(shared.strip()), len(shared))
        if weight > most:
            best, most = span.name, weight
    return best
