"""The assistant: what it asks of language models, what it answers, and what the command line starts."""
