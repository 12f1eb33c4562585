"""In: declared and live objects of one kind of system. Out: the contract a provider fulfils,
the registry that finds providers, and the conformance suite that accepts them.

Must not know: HCL, state files, plans, Kafka.
"""
