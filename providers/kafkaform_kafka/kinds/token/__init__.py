"""`kafka_delegation_token`: tokens to log in with, which only a command creates and ends."""
