"""The report of a run: one set of findings on a screen, as terminal text or as one HTML page (paper, §5–6).

`content` says what is in it, once, for all of them; only the page has plots. No model, no disk.
"""
