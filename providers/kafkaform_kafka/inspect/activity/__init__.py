"""In: an open session. Out: documents of what the applications do with a cluster now: their groups
and transactions. Nothing is changed. Must not know: plans, state, terminals.
"""
