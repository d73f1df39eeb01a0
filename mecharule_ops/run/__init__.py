"""The four stages in order on one run, with everything that needs the model and the store at once."""
