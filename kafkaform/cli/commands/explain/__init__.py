"""`kafkaform explain`: why a cluster treats somebody as it does, one file a question."""
