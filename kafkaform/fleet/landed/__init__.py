"""Parse and verify what has landed: snapshots, the register, and lines of audit logs.

In: landing files as bytes. Out: rows, and the reason for each file or line that is rejected. Must
not know: Delta tables, builds, answers.
"""
