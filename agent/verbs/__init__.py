"""The command line's verbs that are no tools: runs, what asks about them, and what concerns the machine or files."""
