"""kafkaform: plan and apply for Apache Kafka."""

from .version import VERSION as __version__

__all__ = ["__version__"]
