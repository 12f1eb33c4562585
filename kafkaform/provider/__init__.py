"""In: declared and live objects of one kind of system. Out: the contract of a provider, the
registry that finds providers, and the conformance suite that tests them.

Must not know: HCL, state files, plans, Kafka.
"""
