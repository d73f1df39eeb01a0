"""Several processes with one copy of the model each, which answer what one process asks."""
