"""One SQLite file a run: its config, events, outcomes, artefacts and certificates."""
