"""Faults on purpose: processes killed, disks that fail, commands that race, certificates forged, random keys.

`python -m benchmarks.faults` tries them all and writes `docs/reliability.md`; `make test-slow` tries a sample.
Damaged files and invented texts are Hypothesis's work, in `tests/faults`.
"""
