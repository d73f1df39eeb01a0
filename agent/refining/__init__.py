"""Hypotheses about units: suggested, registered, tested once, kept in the ledger."""
