"""The Kafka provider of kafkaform.

In: declared and observed attributes, and one Kafka cluster's answers to admin requests.
Out: resource types as data and pure functions, and sessions that read and write that cluster.
Must not know: HCL, state files, audit logs, rendering, or how the engine orders its batches.
"""
