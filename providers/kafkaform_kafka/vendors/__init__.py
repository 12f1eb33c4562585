"""What clusters of a vendor refuse or answer differently from Apache Kafka, as tables.

In: changes, faults, and what a cluster says about itself. Out: which vendor's rules apply, why a
change cannot work there, and what a refusal means. Must not know: connections and requests. A
vendor is a table of rules with their sources; no code is about one vendor alone.
"""
