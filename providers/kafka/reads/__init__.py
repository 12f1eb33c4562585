"""In: identities of one kind, or none for a listing, and an open connection. Out: readings, and
listings with their coverage; a failed request is a reading too, never an exception.
Must not know: plans, changes, state, or how anything is written.
"""
