"""`kafka_topic_leaders`: the leader of each partition, which only an election changes."""
