"""In: lines of a log. Out: those lines, durable and in order, or a refusal.

Must not know: what the lines say. `local` keeps a file beside the state, `objects` keeps the
appends as objects of a store.
"""
