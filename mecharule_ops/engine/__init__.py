"""do(A), exactly and fast: group ablations on a model, their plain reference path, and the proof that a hook fired."""
