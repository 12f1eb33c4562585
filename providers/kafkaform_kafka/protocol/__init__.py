"""What names, numbers and texts of Kafka's protocol mean, as tables and pure functions.

In: error codes, config keys and values, topic names. Out: faults, types and units of configs, one
spelling for equal values, what a broker would refuse. Must not know: connections, clients, resource
types, plans.
"""
