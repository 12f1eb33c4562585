"""`ResourceKind`: everything that the provider needs to know about one kind of object; and how the
steps of a kind are made.

Each folder of `kinds/` exports its values as `KINDS`, and `resource_kinds.py` lists them. From that
list the provider, its sessions, the lock-out guard, `describe` and the simulated cluster build
their tables, so no other module names a kind.

Part 1 of a plan creates, changes and moves; part 2 deletes. Within a part, lower phases leave
first, and each phase waits for the answers of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.lazy import load
from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.contract import Closure, ResourceType

from ..protocol import apis
from ..protocol.acl import DENY, EVERYTHING, LITERAL, Acl
from ..protocol.acl import KIND as ACL
from ..protocol.apis import Api
from ..protocol.keys import SEPARATOR

if TYPE_CHECKING:
    from .context import Requests
    from .simulation import SimulatedKind


class KindRights(Struct, frozen=True):
    """The operations that ACLs must allow on the objects of one kind, all on one resource type.

    The lock-out guard blocks plans that take these from the principal that runs them.
    """

    resource_type: str
    """Topic, Group or Cluster; the name of the topic or group is the object's key."""
    sees: tuple[str, ...] = ()
    """Operations that a plan needs to read an object."""
    # Without Delete: somebody who denies it to his own principal protects the object on purpose.
    changes: tuple[str, ...] = ()
    """Operations that a plan needs to change an object."""
    deletes: str = ""
    """The operation that a delete needs. Deletes leave after new ACLs have taken effect."""


Rows = Callable[[Sequence[Observed], str, Mapping[str, str]], Sequence[FrozenMap]]
"""Objects, a glob for names, globs by field -> a row for each object that fits."""


class Document(Struct, frozen=True):
    """The table that `describe` shows for one kind."""

    name: str
    """The word after `describe`; also the document's member with the rows."""
    rows: Rows
    hidden: str
    """What to say if the listing is not complete."""


def defer(package: str, target: str, *arguments: Any) -> Callable[[], Any]:
    """A function that imports and returns a value, so that `validate` does not load the clients.

    target: `module:NAME` in the package; arguments: what to call the value with, if it is a
    function.
    """

    def load_value() -> Any:
        value = load(f"{package}.{target}")
        return value(*arguments) if arguments else value

    return load_value


class ResourceKind(Struct, frozen=True):
    """One kind of object."""

    name: str
    type: ResourceType | None = None
    """None for a kind that only reviews read."""
    commanded: bool = False
    """True if only commands change it: no block declares it, and no state records it."""
    rights: KindRights | None = None
    """None if the lock-out guard has nothing to protect. ACLs have rules of their own."""
    connect: Callable[[], Requests] | None = None
    """Imports the functions that list, read and send it (see `defer`). None for a composite, which
    expands to objects of another kind."""
    simulate: Callable[[], SimulatedKind] | None = None
    """Imports its part of the simulated cluster."""
    document: Document | None = None
    """None if `describe` does not show it."""


def list_attributes(
    items: Sequence[Observed], _: str, fields: Mapping[str, str]
) -> tuple[FrozenMap, ...]:
    """The attributes of each object that fits. fields: attribute -> glob for its value."""
    return tuple(
        item.attributes
        for item in sort_by_fields(items)
        if all(fnmatchcase(str(item.attributes[name]), glob) for name, glob in fields.items())
    )


def sort_by_fields(items: Iterable[Observed]) -> list[Observed]:
    """Sorted by the fields of the key: `User:b` before `User:billing`."""
    # `|` is greater than all letters, so the plain text would put `User:billing|…` first.
    return sorted(items, key=lambda item: item.identity.key.replace(SEPARATOR, "\0"))


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


def make_closure(name: str, principal: str, operation: str, resource: tuple[str, str]) -> Closure:
    """A DENY that takes the access to a parked object away. name: for its address; resource: type
    and name."""
    acl = Acl(principal, EVERYTHING, operation, DENY, *resource, LITERAL)
    return Closure(ACL, acl.key, name, acl.attributes)


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
COMMIT_OFFSETS = make_request(apis.OFFSET_COMMIT, CREATING, 110)
ALTER_SHARE_OFFSETS = make_request(apis.ALTER_SHARE_GROUP_OFFSETS, CREATING, 111)
DELETE_OFFSETS = make_request(apis.OFFSET_DELETE, CREATING, 112)
DELETE_SHARE_OFFSETS = make_request(apis.DELETE_SHARE_GROUP_OFFSETS, CREATING, 113)

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
DELETE_GROUP = make_request(apis.DELETE_GROUPS, DELETING, 70)
