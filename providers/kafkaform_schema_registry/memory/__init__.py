"""In: calls of the API. Out: what a registry would answer, without a network.

Must not know: sessions of real registries, plans, state files.
"""
