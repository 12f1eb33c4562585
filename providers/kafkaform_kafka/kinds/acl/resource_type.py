"""`kafka_acl`: one ACL. All seven fields are its identity, so it is created or deleted, never
updated.

Source: Kafka's AclEntry and StandardAuthorizer (4.3). Brokers accept ACLs that can never match
anything; `rules/acls.py` refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from ...protocol.acl import (
    ALLOW,
    DENY,
    NAMES,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    parse_acl,
    parse_acl_key,
)
from ...protocol.acl import KIND as KIND
from ..request_order import (
    CREATE_ACLS,
    DELETE_ALLOW_ACLS,
    DELETE_ALLOW_AHEAD,
    DELETE_DENY_ACLS,
    DELETE_DENY_AHEAD,
)
from ..steps import all_paths, make_step

DELETE_FIRST = "delete_first"

_DELETES: Mapping[str, Request] = {ALLOW: DELETE_ALLOW_ACLS, DENY: DELETE_DENY_ACLS}
"""Permission -> the request that deletes the ACL."""
_AHEAD: Mapping[str, int] = {ALLOW: DELETE_ALLOW_AHEAD, DENY: DELETE_DENY_AHEAD}
"""Permission -> the phase of the delete with `acl_order = "delete_first"`."""
_NAMES = frozenset(NAMES)


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
        if facts.values.get("acl_order") == DELETE_FIRST:
            request = replace(request, ahead=_AHEAD[acl.permission])
    else:
        return ()
    step = make_step(
        change,
        1,
        request,
        acl.attributes,
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
    # Error 54: without an authorizer, brokers refuse to list ACLs instead of listing none.
    switched_off=frozenset({"SECURITY_DISABLED"}),
)
