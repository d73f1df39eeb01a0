"""The command line's verbs that are no tools: run, demo, refine."""
