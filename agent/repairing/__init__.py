"""Gates that a language model proposes to a repair."""
