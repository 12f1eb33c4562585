"""In: open clients. Out: what every request needs to know about the cluster: its id, live brokers,
features and defaults, and how a failed call becomes a fault.
Must not know: resource types, plans, state.
"""
