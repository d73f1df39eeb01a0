"""Gates: when to switch a found unit off so that more answers become right than stop being so; one test decides.

`learning` finds clauses on a third of fresh records, `material` picks gates on another, `testing` opens the last third
once, beside three controls that need none of the units; `exported` makes them work on a plain transformers model.
"""
