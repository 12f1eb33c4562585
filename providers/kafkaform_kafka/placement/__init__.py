"""Proposes where replicas and leaders should be.

In: partitions with their replicas and sizes, and the brokers that may have them. Out: a placement,
as a document and as arguments of blocks. `problem` and `search` are pure and deterministic. Must
not know: plans, state, terminals.
"""
