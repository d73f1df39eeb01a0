"""Predicates that a language model proposes, and how each is judged."""
