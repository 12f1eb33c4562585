"""The order in which the requests of a plan leave, all kinds together, first to last.

Part 1 creates, changes and moves; part 2 deletes. Inside a part, lower phases leave first, each
when the one before it has been answered. The numbers are in audit logs, so a place that is taken
keeps its number; gaps are for what comes later.
"""

from __future__ import annotations

from kafkaform.core.change import Request

from ..protocol import apis
from ..protocol.apis import Api

CREATING, DELETING = 1, 2


def make_request(
    api: Api, part: int, phase: int, *, gated: bool = False, node: str | None = None
) -> Request:
    """A place in the order. gated, node: see `Request`. Raises ValueError for an API that changes
    nothing."""
    if api.limits is None:
        raise ValueError(f"{api.name} changes nothing, so no step sends it")
    limits = api.limits
    return Request(api.name, part, phase, limits.items, limits.weight, node=node, gated=gated)


# A request may name a user only once (error 92), so each mechanism has a phase of its own.
SET_SCRAM_SHA_256 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, CREATING, 10)
SET_SCRAM_SHA_512 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, CREATING, 11)
CREATE_TOPICS = make_request(apis.CREATE_TOPICS, CREATING, 20)
CREATE_PARTITIONS = make_request(apis.CREATE_PARTITIONS, CREATING, 30)
ALTER_TOPIC_CONFIGS = make_request(apis.INCREMENTAL_ALTER_CONFIGS, CREATING, 31)
ALTER_QUOTAS = make_request(apis.ALTER_CLIENT_QUOTAS, CREATING, 40)
ALTER_CONFIGS = make_request(apis.INCREMENTAL_ALTER_CONFIGS, CREATING, 50)
DELETE_ALLOW_AHEAD, DELETE_DENY_AHEAD = 55, 56
"""Phases of part 1 for deletes of ACLs in KIP-4's literal order, before CREATE_ACLS."""
CREATE_ACLS = make_request(apis.CREATE_ACLS, CREATING, 60)
MOVE_REPLICAS = make_request(apis.ALTER_PARTITION_REASSIGNMENTS, CREATING, 70)
# After the moves: the first replica may be another one then.
ELECT_LEADERS = make_request(apis.ELECT_LEADERS, CREATING, 80)

# What is denied is allowed last, and only once nothing is left that should not be allowed.
DELETE_ALLOW_ACLS = make_request(apis.DELETE_ACLS, DELETING, 10)
DELETE_DENY_ACLS = make_request(apis.DELETE_ACLS, DELETING, 11, gated=True)
REMOVE_QUOTAS = make_request(apis.ALTER_CLIENT_QUOTAS, DELETING, 20)
DELETE_SCRAM_SHA_256 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, DELETING, 30)
DELETE_SCRAM_SHA_512 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, DELETING, 31)
REMOVE_CONFIGS = make_request(apis.INCREMENTAL_ALTER_CONFIGS, DELETING, 40)
DELETE_TOPICS = make_request(apis.DELETE_TOPICS, DELETING, 50)
