"""How units move the answer, read off gradients and writes: attribution, leads, pushes, drops. No causal claim.

    law.prediction(subject, records, replacement)      for every unit of the basis: which records it would flip
    law.effects(subject, records, replacement, units)  leads and drops (or direct pushes) of some units, in full

Axes beside the usual ones: `position` t counts the tokens of a completion from 0, `competitor` the best other
tokens at t, best first. Both are NaN or −1 where the phase of the replacement cannot change a token.
"""
