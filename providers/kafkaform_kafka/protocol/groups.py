"""Short because it is one name that several rooms need: what listings of groups are called."""

from __future__ import annotations

KIND = "kafka_consumer_group"
"""A listing for reviews, and what users of the contract call a group. No block declares one: a
group exists as long as it has members or offsets."""
