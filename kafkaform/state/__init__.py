"""In: bytes of a state file, edits. Out: the recorded world as frozen rows, saved whole or not.

Must not know: HCL, plans, systems, the audit log (it only keeps its head).
"""
