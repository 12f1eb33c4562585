"""The version of kafkaform, which state, plans and logs name."""

VERSION = "0.1.0"
