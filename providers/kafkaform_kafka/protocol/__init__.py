"""In: names, numbers and texts of Kafka's protocol. Out: what they mean: error codes as faults,
config keys with their types and units, one spelling for equal values, what a broker would refuse.
Must not know: connections, clients, resource types, plans.
"""
