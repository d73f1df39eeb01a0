"""Questions about a run: routed, answered by tools, every number checked against its source."""
