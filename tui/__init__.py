"""The terminal app: shows a run's state and sends intents; knows no model."""
