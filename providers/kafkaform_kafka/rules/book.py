"""Short because it is only the list of all rules of the provider: one line for each part."""

from __future__ import annotations

from kafkaform.core.rule import RuleBook

from . import access, acls, commands, topic_configs

# Sorted, so that changes of several subjects do not meet in one line.
BOOK = RuleBook(
    judges=(
        *acls.JUDGES,
        *topic_configs.JUDGES,
    ),
    surveys=(
        *access.SURVEYS,
        *topic_configs.SURVEYS,
    ),
    others=(*commands.RULES,),
)
