"""Models by name, fetched and read: weights, tokenizer, wiring of each architecture, and what a plain model generates."""
