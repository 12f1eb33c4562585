"""In: lines of a log. Out: those lines, durably and in order, or a refusal.

Must not know: what the lines say. `local` keeps a file beside the state,
`objects` pieces of it in a store.
"""
