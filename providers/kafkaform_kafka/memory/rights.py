"""The rights of a user as the simulated cluster reports them."""

from __future__ import annotations

from collections.abc import Iterable

from ..authority.required_rights import HeldRights
from ..protocol.rights import OPERATIONS
from ..simulation.rights import CLUSTER, User


def list_rights(user: User, names: Iterable[str]) -> HeldRights:
    """The rights of this user on the cluster and on these topics, if he may describe them."""
    operations = OPERATIONS.values()
    topics = {
        name: frozenset(operation for operation in operations if user.may_on_topic(operation, name))
        for name in names
        if user.may_on_topic("Describe", name)
    }
    cluster = frozenset(operation for operation in operations if user.may(operation, CLUSTER))
    # A real broker does not report Delete on the cluster; there the ACLs show it.
    return HeldRights(cluster, topics, "Delete" in cluster)
