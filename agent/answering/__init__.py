"""Questions about a run: routed, answered by tools, every number in a fact that a tool states."""
