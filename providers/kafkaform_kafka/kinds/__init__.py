"""A folder for each kind of object. `resource_type` says what a block may hold, what it means and
which steps make it true; `read` asks a cluster for objects; `send` carries steps out, once;
`simulation` does both for the simulated cluster; `kind` hands all of it to the provider.
In: declared and observed attributes, steps, an open connection. Out: readings, listings with their
coverage, and one reply for each step. Must not know: plans, batches, state, other kinds' requests.
"""
