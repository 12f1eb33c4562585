"""`kafka_topic`: topics, their configs, and the moves of their replicas."""
