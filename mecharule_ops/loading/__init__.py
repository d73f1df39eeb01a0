"""Models by name, fetched and read: weights, tokenizer, wiring of each architecture, plain generation."""
