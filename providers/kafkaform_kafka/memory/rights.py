"""What the simulated cluster tells a user of his rights."""

from __future__ import annotations

from collections.abc import Iterable

from ..authority.required_rights import HeldRights
from ..protocol.rights import OPERATIONS
from ..simulation.rights import CLUSTER, User


def list_rights(who: User, names: Iterable[str]) -> HeldRights:
    """What the cluster tells this user about itself and about the topics that he may see."""
    every = OPERATIONS.values()
    topics = {
        name: frozenset(each for each in every if who.may_on_topic(each, name))
        for name in names
        if who.may_on_topic("Describe", name)
    }
    cluster = frozenset(each for each in every if who.may(each, CLUSTER))
    return HeldRights(cluster, topics, "Delete" in cluster)
