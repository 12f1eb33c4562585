"""`kafka_quota`: limits of a user, a client id, both together, or an address."""
