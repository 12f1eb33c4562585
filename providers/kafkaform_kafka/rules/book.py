"""All rules of the provider, and the listings that they need: one line for each part.

The lines are sorted, so that changes of several subjects do not meet in one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Change
from kafkaform.core.resource import Depth
from kafkaform.core.rule import RuleBook

from ..kinds.kind import KindRights
from . import (
    access,
    broker_config_values,
    brokers,
    commanded,
    groups,
    looks,
    missing_names,
    names,
    quotas,
    topic_configs,
    users,
    vendors,
)
from .topics import life, moves

BOOK = RuleBook(
    judges=(
        *broker_config_values.JUDGES,
        *brokers.JUDGES,
        *commanded.JUDGES,
        *groups.JUDGES,
        *names.JUDGES,
        *quotas.JUDGES,
        *topic_configs.JUDGES,
        *life.JUDGES,
        *moves.JUDGES,
        *users.JUDGES,
        *vendors.JUDGES,
    ),
    surveys=(
        *missing_names.SURVEYS,
        *quotas.SURVEYS,
        *topic_configs.SURVEYS,
        *life.SURVEYS,
        *vendors.SURVEYS,
    ),
    checks=(*access.CHECKS,),
    others=(*commanded.RULES, *looks.RULES),
)


def make_book(rights: Mapping[str, KindRights]) -> RuleBook:
    """BOOK, and the rules of access of a provider. rights: kind -> the rights on its objects that a
    plan must not take from the principal that runs it."""
    return replace(BOOK, surveys=(*access.make_surveys(rights), *BOOK.surveys))


_NEEDS = (
    access.list_needs,
    missing_names.list_needs,
    quotas.list_needs,
    topic_configs.list_needs,
    life.list_needs,
)


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """Resource type -> how deep it has to be listed for the surveys of these changes."""
    needs: dict[str, Depth] = {}
    for list_kinds in _NEEDS:
        for kind, depth in list_kinds(changes).items():
            # A full listing serves those that need only names as well.
            if depth is Depth.FULL or kind not in needs:
                needs[kind] = depth
    return needs
