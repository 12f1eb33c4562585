"""In: a state and the version that it follows. Out: that state, durable in one place; or a refusal.

Must not know: what the rows mean. `local` keeps a file beside the configuration, `objects` an
object in a store.
"""
