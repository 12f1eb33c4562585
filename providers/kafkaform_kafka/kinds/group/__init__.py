"""`kafka_consumer_group`: the names of the live groups, which only reviews list."""
