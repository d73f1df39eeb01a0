"""Models whose circuit is known because it was compiled or planted, and what a run must find on them."""

from pathlib import Path

MODELS = Path(__file__).with_name("models")
"""A directory a model, by the name of its program."""
