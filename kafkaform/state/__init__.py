"""In: bytes of a state file, and edits. Out: the recorded world as frozen rows, saved atomically.

Must not know: HCL, plans, systems, the audit log (it only keeps its head).
"""
