"""`kafka_topic_leaders`: which replica leads each partition, changed only by an election."""
