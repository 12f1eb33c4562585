"""In: declared, observed and recorded worlds. Out: a plan as data, and its waves of batches.

Must not know: HCL, terminals, the audit log, Kafka.
"""
