"""The paper's experiments (§5, appendix C) over the library: named runs, their tables as CSV, one page.

`python -m benchmarks.paper [NAME …]`; `catalogue` lists the experiments, `finishing` makes the runs.
"""
