"""Each thing that a person reads is worded here once: searches, flips, controls, rules.

Reports, tools, answers and screens share these words; each keeps its own layout. No phrase is stronger than its
evidence, and a share is printed with its counts.
"""
