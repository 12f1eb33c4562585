"""In: nothing. Out: requests and responses that kafka-python does not have, as its own classes. The
JSON files have the names, types and versions of Kafka 4.3.1's message definitions
(`clients/src/main/resources/common/message`). Must not know: what is asked, and why.
"""
