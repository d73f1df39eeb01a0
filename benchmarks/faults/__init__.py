"""Faults on purpose: processes killed, disks filled, files damaged, texts invented; what was tried and what came of it.

`python -m benchmarks.faults` runs them one by one and writes `docs/reliability.md`.
"""
