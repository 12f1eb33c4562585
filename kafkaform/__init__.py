"""kafkaform: plan and apply for Apache Kafka."""

__version__ = "0.1.0"
