"""Sessions on the run's broker."""

from ...kit.kafka.fixtures import admin, ci, prefix

__all__ = ["admin", "ci", "prefix"]
