"""In: the contract, and the REST API of Kafka Connect workers. Out: the provider `kafka_connect`.

Must not know: how plans are made, sent or recorded, and any other provider.
"""
