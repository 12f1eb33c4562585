"""In: a provider and a fixture that its authors write. Out: the promises of the contract it breaks.

Must not know: any provider, plans, states.
"""
