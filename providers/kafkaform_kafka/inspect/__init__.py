"""In: an open session. Out: documents that describe a cluster or explain why it behaves as it does.
Nothing is changed. Must not know: plans, state, terminals.
"""
