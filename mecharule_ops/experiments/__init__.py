"""The paper's experiments (§5, appendix C), each a set of named runs and a page of tables and figures over them.

`plan` names the runs, `folder` finishes them (the only module here that runs anything), and one module an
experiment turns finished runs into blocks of a report. `catalogue` lists them.
"""
