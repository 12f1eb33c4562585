"""`kafka_quota`: limits for a user, a client id, both together, or an IP address."""
