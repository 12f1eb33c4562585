"""The steps of this provider: the order of all requests of a plan, and how a step is made.

Part 1 creates, changes and moves; part 2 deletes. Within a part, lower phases leave first, and each
phase waits for the answers of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.value import FrozenMap, Value

from ..protocol import apis
from ..protocol.apis import Api

SILENT = frozenset({Action.ADOPT, Action.IMPORT, Action.FORGET, Action.NOOP})
"""Actions that only change the state: nothing is sent."""


def make_step(
    change: Change,
    number: int,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    *,
    weight: int,
    repeat: Repeat = Repeat.SAFE,
    evidence: Evidence = Evidence.REMOTE,
) -> Step:
    """One request's share of a change.

    number: position among the steps of the change, from 1; weight: metadata records, or the unit of
    the request's `RequestLimits`; repeat: what to do if the answer is lost; evidence: what a dry
    run can prove.
    """
    return Step(
        id=f"{change.identity.instance}/{change.identity.kind}/{change.identity.key}#{number}",
        identity=change.identity,
        address=change.address,
        request=request,
        payload=FrozenMap(payload),
        weight=weight,
        after=(),
        repeat=repeat,
        evidence=evidence,
        paths=paths,
    )


def all_paths(change: Change) -> tuple[Path, ...]:
    """All paths of the change: what the step of a create or a delete makes true."""
    return tuple(item.path for item in change.paths)


def paths_below(change: Change, *heads: str) -> tuple[Path, ...]:
    """The paths of the change below these attributes. No request concerns `owner` and `labels`."""
    return tuple(item.path for item in change.paths if item.path[0] in heads)


CREATING, DELETING = 1, 2


def make_request(
    api: Api, position: int, phase: int, *, gated: bool = False, node: str | None = None
) -> Request:
    """A place in the order. gated, node: see `Request`. Raises ValueError for an API that only
    reads."""
    if api.limits is None:
        raise ValueError(f"{api.name} changes nothing, so no step can send it")
    limits = api.limits
    return Request(api.name, position, phase, limits.items, limits.weight, node=node, gated=gated)


# Audit logs contain the phase numbers, so a request keeps its number for good. The gaps leave room
# for new ones.

# A request may name a user only once (error 92, KIP-554), so each mechanism has its own phase.
SET_SCRAM_SHA_256 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, CREATING, 10)
SET_SCRAM_SHA_512 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, CREATING, 11)
CREATE_TOPICS = make_request(apis.CREATE_TOPICS, CREATING, 20)
CREATE_PARTITIONS = make_request(apis.CREATE_PARTITIONS, CREATING, 30)
ALTER_TOPIC_CONFIGS = make_request(apis.INCREMENTAL_ALTER_CONFIGS, CREATING, 31)
ALTER_QUOTAS = make_request(apis.ALTER_CLIENT_QUOTAS, CREATING, 40)
ALTER_CONFIGS = make_request(apis.INCREMENTAL_ALTER_CONFIGS, CREATING, 50)
# KIP-4 deletes ACLs before it adds others, which refuses clients in between. By default we create
# first: our delete filters are exact, so they cannot match a new ACL.
DELETE_ALLOW_AHEAD, DELETE_DENY_AHEAD = 55, 56
"""Phases of part 1 for deletes of ACLs with `acl_order = "delete_first"`, before CREATE_ACLS."""
CREATE_ACLS = make_request(apis.CREATE_ACLS, CREATING, 60)
MOVE_REPLICAS = make_request(apis.ALTER_PARTITION_REASSIGNMENTS, CREATING, 70)
# After the moves, which can change the first replica of a partition.
ELECT_LEADERS = make_request(apis.ELECT_LEADERS, CREATING, 80)
CREATE_TOKEN = make_request(apis.CREATE_DELEGATION_TOKEN, CREATING, 90)
RENEW_TOKEN = make_request(apis.RENEW_DELEGATION_TOKEN, CREATING, 91)
END_TOKEN_LATER = make_request(apis.EXPIRE_DELEGATION_TOKEN, CREATING, 92)
UPDATE_FEATURES = make_request(apis.UPDATE_FEATURES, CREATING, 100)

# A DENY goes last, and only if all deletes of ALLOWs before it succeeded: otherwise it would permit
# what should not be permitted.
DELETE_ALLOW_ACLS = make_request(apis.DELETE_ACLS, DELETING, 10)
DELETE_DENY_ACLS = make_request(apis.DELETE_ACLS, DELETING, 11, gated=True)
REMOVE_QUOTAS = make_request(apis.ALTER_CLIENT_QUOTAS, DELETING, 20)
DELETE_SCRAM_SHA_256 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, DELETING, 30)
DELETE_SCRAM_SHA_512 = make_request(apis.ALTER_USER_SCRAM_CREDENTIALS, DELETING, 31)
REMOVE_CONFIGS = make_request(apis.INCREMENTAL_ALTER_CONFIGS, DELETING, 40)
DELETE_TOPICS = make_request(apis.DELETE_TOPICS, DELETING, 50)
END_TOKEN = make_request(apis.EXPIRE_DELEGATION_TOKEN, DELETING, 60)
