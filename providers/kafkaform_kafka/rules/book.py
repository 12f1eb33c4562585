"""Short because it is only the list of all rules of the provider: one line for each part."""

from __future__ import annotations

from kafkaform.core.rule import RuleBook

from . import names, quotas, topic_configs, users, vendors

# Sorted, so that changes of several subjects do not meet in one line.
BOOK = RuleBook(
    judges=(
        *names.JUDGES,
        *quotas.JUDGES,
        *topic_configs.JUDGES,
        *users.JUDGES,
        *vendors.JUDGES,
    ),
    surveys=(
        *names.SURVEYS,
        *quotas.SURVEYS,
        *topic_configs.SURVEYS,
        *vendors.SURVEYS,
    ),
)
