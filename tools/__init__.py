"""What the agent and every verb may do: typed arguments in, short JSON and text out, one file a tool."""
