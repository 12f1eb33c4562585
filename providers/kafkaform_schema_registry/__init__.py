"""In: provider blocks, subjects and schemas. Out: a provider for registries that speak the API of
Confluent's Schema Registry: Confluent's own, Karapace, Redpanda's and Apicurio's.

Must not know: Kafka's protocol, plans, state files.
"""
