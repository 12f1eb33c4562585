"""In: the steps of one request and an open connection. Out: one reply a step, in order.
Every request is sent once; with `validate_only` nothing is changed.
Must not know: plans, batches, state, or what an outcome means for the run.
"""
