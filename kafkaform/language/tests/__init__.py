"""In: test files (`*.kftest.hcl`), and what their runs yield. Out: suites, and the faults of runs.
Must not know: how a run plans or applies, simulated systems, terminals.
"""
