"""In: what a run is about to do, and what came of it. Out: a hash-chained log that proves it.

Must not know: the state, plans (it keeps them as data), systems, terminals.
"""
