"""The rights of a user as the simulated cluster reports them."""

from __future__ import annotations

from collections.abc import Iterable

from ..authority.required_rights import HeldRights
from ..protocol.rights import OPERATIONS
from ..simulation.rights import CLUSTER, User


def list_rights(who: User, names: Iterable[str]) -> HeldRights:
    """The rights of this user on the cluster and on these topics, if he may describe them."""
    every = OPERATIONS.values()
    topics = {
        name: frozenset(each for each in every if who.may_on_topic(each, name))
        for name in names
        if who.may_on_topic("Describe", name)
    }
    cluster = frozenset(each for each in every if who.may(each, CLUSTER))
    # A real broker does not report Delete on the cluster; there the ACLs show it.
    return HeldRights(cluster, topics, "Delete" in cluster)
