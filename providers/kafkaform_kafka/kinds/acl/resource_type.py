"""`kafka_acl`: one ACL. All seven fields are its identity, so it is created or deleted, never
updated.

Source: Kafka's AclEntry and StandardAuthorizer (4.3). Brokers accept ACLs that can never match
anything; `rules/names.py` refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Request, Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from ...protocol import acl as acls
from ...protocol.acl import (
    ALLOW,
    DENY,
    EVERYTHING,
    NAMES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    parse_acl,
    parse_acl_key,
)
from ...protocol.acl import KIND as KIND
from ...protocol.cluster_facts import KafkaFacts
from ..kind import (
    CREATE_ACLS,
    DELETE_ALLOW_ACLS,
    DELETE_ALLOW_AHEAD,
    DELETE_DENY_ACLS,
    DELETE_DENY_AHEAD,
    Document,
    ResourceKind,
    all_paths,
    defer,
    list_attributes,
    make_step,
)
from . import roles
from .roles import recognize_roles

DELETE_FIRST = "delete_first"

_DELETES: Mapping[str, Request] = {ALLOW: DELETE_ALLOW_ACLS, DENY: DELETE_DENY_ACLS}
"""Permission -> the request that deletes the ACL."""
_AHEAD: Mapping[str, int] = {ALLOW: DELETE_ALLOW_AHEAD, DENY: DELETE_DENY_AHEAD}
"""Permission -> the phase of the delete with `acl_order = "delete_first"`."""
_NAMES = frozenset(NAMES)
SHARED = "shared"
"""In the payload of a create: another folder may be faster, and wants the same."""


# ── requests ────────────────────────────────────────────────────────────────────────────


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    # `group` keeps the ACLs of one resource pattern in one request, which takes effect as a whole:
    # where allow.everyone.if.no.acl.found is true, the first ALLOW alone would lock out everybody
    # else. `rank` puts DENY before ALLOW.
    if change.action is Action.CREATE:
        request, acl = CREATE_ACLS, parse_acl(change.after or EMPTY)
    elif change.action is Action.DELETE:
        acl = parse_acl(change.before or EMPTY)
        request = _DELETES[acl.permission]
        if KafkaFacts.of(facts).acl_order == DELETE_FIRST:
            request = replace(request, ahead=_AHEAD[acl.permission])
    else:
        return ()
    creates_shared = change.action is Action.CREATE and change.row_after.is_shared
    step = make_step(
        change,
        1,
        request,
        acl.attributes.with_items({SHARED: True}) if creates_shared else acl.attributes,
        all_paths(change),
        weight=1,
        evidence=Evidence.LOCAL,
    )
    return (replace(step, group=acl.pattern, rank=1 if acl.permission == ALLOW else 0),)


# ── type ────────────────────────────────────────────────────────────────────────────────


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    if declared.keys() == _NAMES:
        return declared
    return FrozenMap({name: declared[name] for name in NAMES})


FIELDS = (
    AttributeSchema(
        "resource_name",
        STRING,
        "Name of the resource, or a prefix; * for all resources of the type; kafka-cluster for the "
        "cluster.",
        aliases=("acl_resource_name",),
    ),
    AttributeSchema(
        "resource_type",
        STRING,
        "Type of the resource.",
        choices=tuple(RESOURCE_TYPES),
        aliases=("acl_resource_type",),
    ),
    AttributeSchema("acl_principal", STRING, "The principal: User:NAME, or User:* for everybody."),
    AttributeSchema("acl_host", STRING, "The client's IP address, or * for all hosts."),
    AttributeSchema(
        "acl_operation",
        STRING,
        "The operation that is allowed or denied.",
        choices=tuple(OPERATIONS),
    ),
    AttributeSchema("acl_permission_type", STRING, "Allow or Deny.", choices=tuple(PERMISSIONS)),
)
"""The attributes that an ACL and a filter for ACLs have in common."""

TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "One access rule. All attributes together identify the rule: if you change one, kafkaform "
        "creates the new rule and then deletes the old one. The import id is "
        "acl_principal|acl_host|acl_operation|acl_permission_type|resource_type|resource_name|"
        "resource_pattern_type_filter.",
        *(replace(attribute, required=True) for attribute in FIELDS),
        AttributeSchema(
            "resource_pattern_type_filter",
            STRING,
            "Literal if resource_name is a name, Prefixed if it is a prefix.",
            default="Literal",
            choices=tuple(PATTERN_TYPES),
        ),
    ),
    key=lambda attributes: parse_acl(attributes).key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=lambda text: parse_acl_key(text).key,
    belongs_to=lambda attributes, principal: attributes["acl_principal"] == principal,
    named_by=("acl_principal", "acl_operation", "resource_type", "resource_name"),
    shareable=True,
    # Error 54: without an authorizer, brokers refuse to list ACLs instead of listing none.
    switched_off=frozenset({"SECURITY_DISABLED"}),
)


_UNMANAGEABLE = FrozenMap(
    {"unmanageable": "its type or operation is newer than this version, so it is never changed"}
)


def make_acl_sweep(instance: str, depth: Depth, rows: Iterable[Acl]) -> Sweep:
    """The complete listing of all ACLs of a cluster."""
    # `whole`: an ACL has nothing but its key, so listed ones need no further read.
    items = tuple(
        Observed(
            Identity(instance, acls.KIND, acl.key),
            acl.attributes,
            details=EMPTY if acls.is_known(acl) else _UNMANAGEABLE,
        )
        for acl in rows
    )
    return Sweep(acls.KIND, depth, items, Coverage(CoverageKind.COMPLETE), whole=True)


def make_acl_reading(identity: Identity, exists: bool) -> Reading:
    """The reading of one ACL."""
    if not exists:
        return Absent(identity)
    return Observed(identity, acls.parse_acl_key(identity.key).attributes)


def check_already_done(api: str, step: Step, exists: bool) -> Fault | None:
    """The fault if the ACL is already as this request would make it."""
    # CreateAcls of an existing ACL, and DeleteAcls of a missing one, succeed on the broker without
    # an effect. The plan promised one, so somebody else must have been faster.
    key = step.identity.key
    if exists is (api == "DeleteAcls") or step.payload.get(SHARED):
        return None
    return Fault(
        "CHANGED_OUTSIDE",
        f"{key} {'already exists' if exists else 'no longer exists'}",
        FaultClass.CONVERGED,
        where="DescribeAcls",
        advice="plan again and review the current ACLs",
    )


ANY, MATCH = "Any", "Match"
FILTERS = (*PATTERN_TYPES, ANY, MATCH)
_EXACT = (*(name for name in NAMES if name.startswith("acl_")), "resource_type")


def fits_arguments(acl: Acl, arguments: FrozenMap) -> bool:
    """True if the ACL fits every argument."""
    # Literal and Prefixed match exactly. Any, the default, matches both types with this very name.
    # Match also matches prefixes of the name, and the wildcard.
    attributes = acl.attributes
    filters = {name: value for name, value in arguments.items() if value is not None}
    if any(filters.get(name, attributes[name]) != attributes[name] for name in _EXACT):
        return False
    name, pattern_type = (
        filters.get("resource_name"),
        filters.get("resource_pattern_type_filter", ANY),
    )
    if pattern_type in PATTERN_TYPES and pattern_type != acl.pattern_type:
        return False
    if name is None or name == acl.resource_name:
        return True
    return pattern_type == MATCH and covers(acl, name)


def covers(acl: Acl, name: str) -> bool:
    """True if the ACL applies to the resource with this name."""
    if acl.pattern_type == "Prefixed":
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, EVERYTHING)


def _gather(objects: Sequence[tuple[str, FrozenMap]]) -> Sequence[FrozenMap]:
    return recognize_roles(objects)


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
        document=Document("acls", list_attributes, "other ACLs may be hidden"),
    ),
    ResourceKind(roles.TYPE.name, replace(roles.TYPE, gather=_gather)),
)
