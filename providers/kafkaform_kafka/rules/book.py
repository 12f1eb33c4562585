"""Short because it is only the list of all rules of the provider: one line for each part."""

from __future__ import annotations

from kafkaform.core.rule import RuleBook

from . import topic_config_values, topic_configs, topic_moves, topic_names, topics

# Sorted, so that changes of several subjects do not meet in one line.
BOOK = RuleBook(
    judges=(
        *topic_config_values.JUDGES,
        *topic_configs.JUDGES,
        *topic_moves.JUDGES,
        *topics.JUDGES,
    ),
    surveys=(
        *topic_configs.SURVEYS,
        *topic_names.SURVEYS,
    ),
)
