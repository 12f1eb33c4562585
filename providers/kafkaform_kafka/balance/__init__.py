"""In: partitions with their replicas and sizes, and the brokers that may have them. Out: where each
replica should be. Pure and deterministic. Must not know: sessions, requests, configuration.
"""
