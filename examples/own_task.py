"""A task of one's own: is a one-line review positive or negative?

    mecharule run ./examples/own_task.py:SentimentTask -m smollm2-135m --basis attn_head --regime 1 --yes

The table's columns, the prompt and the completion become the columns of predicates: `contains(review, 'not')`,
`words(review) >= 8`, `sentiment == 'negative'`, `first_word == 'positive'`.
"""

from dataclasses import dataclass

from mecharule_ops.tasks import from_file, text


@dataclass(frozen=True, kw_only=True)
class SentimentTask(from_file.TableTask):
    """Every field is a setting: `--set task.file=other.csv`, `--set task.max_new_tokens=2`."""

    name = "sentiment"
    needs = ("review", "sentiment")
    """Columns that the table must have; it may have more."""
    file: str = "reviews.csv"
    """Looked for in the folder that the command runs in, then beside this file."""
    prefix: str = (
        "Review: A lovely evening. Sentiment: positive\n"
        "Review: I want my money back. Sentiment: negative\n"
        "Review: Not bad at all. Sentiment: positive\n"
        "Review: Nothing worked. Sentiment: negative\n"
    )
    """Few-shot lines, the same before every question."""
    max_new_tokens: int = 3

    def question(self, row: text.Row) -> str:
        """The prompt of one row, after the few-shot lines."""
        return f"Review: {row['review']} Sentiment:"

    def success(self, row: text.Row, completion: str) -> bool:
        """The label: B(x) = 1 when the model names the sentiment of the table."""
        return text.first_word(completion) == row["sentiment"]
