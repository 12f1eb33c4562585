"""The ACL changes of a plan: the ACLs before and after it, and the resources that it closes and
opens.

Where `allow.everyone.if.no.acl.found` is true, a resource without ACLs is open to everybody. There,
the first ACL of a resource takes access from those whom no ACL names, and the deletion of the last
one gives it to everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import AccessRow
from kafkaform.core.resource import CoverageKind, Facts, Identity, Sweep
from kafkaform.core.value import EMPTY

from ..protocol import acl as acls
from ..protocol.acl import OTHER, PREFIXED, SUPPORTED, Acl, describe_pattern, join_words
from ..protocol.cluster_facts import KafkaFacts
from .authorizer import (
    SOME_TOPIC,
    Access,
    AccessQuestion,
    AccessVerdict,
    decide,
    has_acl,
    index_acls,
)
from .effects import AccessChange, list_held, make_row
from .permissions import IDEMPOTENT, OwnPrincipal, Probe

SETTINGS = ("super_users", "allow_if_no_acl")
"""What the provider block declares of the authorizer."""


class AclChanges(Struct, frozen=True):
    """The ACL changes of a plan."""

    created: Mapping[Identity, Acl]
    """The ACLs that it creates."""
    deleted: Mapping[Identity, Acl]
    """The ACLs that it deletes."""
    live: tuple[Acl, ...]
    """The ACLs of the cluster before the plan."""

    @property
    def after(self) -> tuple[Acl, ...]:
        """The ACLs of the cluster after the plan."""
        gone = set(self.deleted.values())
        return (*(acl for acl in self.live if acl not in gone), *self.created.values())

    @property
    def all(self) -> Mapping[Identity, Acl]:
        """The ACLs that it creates or deletes."""
        return {**self.created, **self.deleted}


def is_acl_change(change: Change) -> bool:
    """True if the plan creates or deletes an ACL."""
    sent = change.action in (Action.CREATE, Action.DELETE)
    return change.identity.kind == acls.KIND and sent and change.blocked is None


def collect_acls(changes: Sequence[Change], sweep: Sweep) -> AclChanges:
    """The ACLs before and after these changes of ACLs. sweep: all ACLs of the cluster."""
    parse = acls.parse_acl
    return AclChanges(
        {c.identity: parse(c.after or EMPTY) for c in changes if c.action is Action.CREATE},
        {c.identity: parse(c.before or EMPTY) for c in changes if c.action is Action.DELETE},
        tuple(parse(item.attributes) for item in sweep.items),
    )


def build_access(listed: Iterable[Acl], facts: Facts) -> Access:
    """The authorizer with these ACLs, and with what is known of its settings."""
    supers, rule = (read_setting(name, facts) for name in SETTINGS)
    return Access(
        index_acls(listed),
        None if supers is None else frozenset(supers),
        rule,
        zookeeper=bool(KafkaFacts.of(facts).zookeeper),
    )


def read_setting(name: str, facts: Facts) -> Any:
    """What the provider block declares, or Kafka's default for a setting that the brokers do not
    have; None if it is unknown. name: one of SETTINGS."""
    cluster = KafkaFacts.of(facts)
    # Brokers hide the values of both, but list them if their properties have them.
    declared, listed = cluster.authorizer.get(name), cluster.authorizer_settings
    if declared is None and listed is not None and name not in listed:
        return _DEFAULTS[name]
    return declared


_DEFAULTS: Mapping[str, Any] = {"super_users": (), "allow_if_no_acl": False}
"""Setting -> Kafka's default (StandardAuthorizer)."""


# ── resources that close and open ───────────────────────────────────────────────────────


def find_closing(acl: Acl, before: Access, after: Access) -> AccessChange | None:
    """What everybody loses because this created ACL is the first one of an open resource; None if
    it closes nothing, or if the ACLs of the plan give it back to everybody."""
    if before.allow_if_no_acl is not True or not _is_only_acl(acl, after, before):
        return None
    point = Probe(f"User:{OTHER}", OTHER, generalize_name(acl))
    had, has = (list_held(access, acl.resource_type, point) for access in (before, after))
    names = [name for name in SUPPORTED[acl.resource_type] if name in had - has]
    if not names:
        return None
    # Kafka asks about the cluster before the topic.
    by_cluster = after.every_topic if acl.resource_type == "Topic" else frozenset()
    partly = has & {*SUPPORTED[acl.resource_type]} - by_cluster
    scope = f"{join_words(names)} on" if partly else "access to"
    text = (
        f"everybody loses {scope} {describe_pattern(acl)}, which was open, except for what ACLs "
        "allow"
    )
    of_topics = [name for name in ("Create", "Delete") if name in after.every_topic & {*names}]
    if acl.resource_type == "Cluster" and of_topics:
        verbs = " and ".join(f"{name.lower()}d" for name in of_topics)
        text += f"; topics that have ACLs can no longer be {verbs} by everybody"
    elif acl.resource_type == "Topic" and {"Create", "Delete"} <= has:
        open_ = not has_acl(after.index, "Cluster", acls.CLUSTER)
        text += "; everybody can still create and delete it, because the cluster " + (
            "has no ACL" if open_ else "allows that"
        )
    return AccessChange(text, (make_row(acl, point, names, had, has),))


def find_producers_closing(acl: Acl, before: Access, after: Access) -> AccessChange | None:
    """What idempotent producers lose because this created ACL is the first one of SOME_TOPIC."""
    # Brokers ask whether a producer may write to SOME_TOPIC (KIP-679). In an open cluster that is a
    # yes for everybody until an ACL covers that name.
    if before.allow_if_no_acl is not True or acl.resource_name == acls.EVERYTHING:
        return None
    if acl.resource_type != "Topic" or not has_acl(index_acls([acl]), "Topic", SOME_TOPIC):
        return None
    principal = f"User:{OTHER}"
    question = AccessQuestion(principal, OTHER, IDEMPOTENT, "Cluster", acls.CLUSTER)
    had, has = (decide(access, question).verdict for access in (before, after))
    if had is not AccessVerdict.ALLOWED or has is AccessVerdict.ALLOWED:
        return None
    cluster = replace(acl, resource_type="Cluster", resource_name=acls.CLUSTER)
    point = Probe(principal, OTHER, acls.CLUSTER)
    sets = (list_held(access, "Cluster", point) for access in (before, after))
    return AccessChange(
        "everybody without an ACL for Write loses IdempotentWrite for all topics, because brokers "
        f"check it on a topic with the name '{SOME_TOPIC}'",
        (make_row(cluster, point, (IDEMPOTENT,), *sets),),
    )


class Opening(Struct, frozen=True):
    """A resource that has an ACL now and none after the plan."""

    resource: str
    """The resource, or all resources of the ACL's pattern, in words."""
    change: AccessChange
    """What everybody gains."""
    exists: bool
    """False if there is certainly no such resource today."""


def find_opening(
    acl: Acl, before: Access, after: Access, me: OwnPrincipal, live: Sweep | None
) -> Opening | None:
    """What the deletion of this ACL opens, if it is the last one of a resource. live: the topics,
    None if they could not be listed."""
    if before.allow_if_no_acl is False:
        return None
    kind, general = acl.resource_type, generalize_name(acl)
    opened = [
        name
        for name in dict.fromkeys((general, *_list_live_topics(acl, live)))
        if has_acl(before.index, kind, name) and not has_acl(after.index, kind, name)
    ]
    existing = [name for name in opened if _may_exist(kind, name, before, me, live)]
    for name in (*existing, *opened):
        resource = describe_pattern(acl) if name == general else f"{kind} {name}"
        consequence = ", and can create and delete every topic" if kind == "Cluster" else ""
        return Opening(
            resource,
            AccessChange(
                f"everybody gains everything on {resource}{consequence}",
                (_make_opened_row(acl, name, before, after),),
            ),
            bool(existing),
        )
    return None


def _make_opened_row(acl: Acl, name: str, before: Access, after: Access) -> AccessRow:
    point = Probe(f"User:{OTHER}", OTHER, name)
    sets = [
        list_held(replace(access, allow_if_no_acl=True), acl.resource_type, point)
        for access in (before, after)
    ]
    return make_row(acl, point, SUPPORTED[acl.resource_type], *sets)


def _is_only_acl(acl: Acl, access: Access, counterpart: Access) -> bool:
    """True if the resource of the ACL has an ACL in `access` and none in `other`."""
    kind, name = acl.resource_type, generalize_name(acl)
    return has_acl(access.index, kind, name) and not has_acl(counterpart.index, kind, name)


def generalize_name(acl: Acl) -> str:
    """A name that this ACL covers, but no narrower pattern."""
    if acl.pattern_type == PREFIXED:
        return acl.resource_name + OTHER
    return OTHER if acl.resource_name == acls.EVERYTHING else acl.resource_name


def _list_live_topics(acl: Acl, live: Sweep | None) -> Iterator[str]:
    """The live topics that an ACL with a wide pattern covers."""
    if acl.resource_type != "Topic" or not generalize_name(acl).endswith(OTHER):
        return
    prefix = generalize_name(acl).removesuffix(OTHER)
    for item in live.items if live else ():
        if item.identity.key.startswith(prefix):
            yield item.identity.key


def _may_exist(kind: str, name: str, before: Access, me: OwnPrincipal, live: Sweep | None) -> bool:
    """True unless it is certain that the resource does not exist."""
    # A listing hides topics that we may not describe, so it proves nothing about those.
    if kind != "Topic" or live is None or live.coverage.kind is CoverageKind.FAILED:
        return True
    if any(item.identity.key == name for item in live.items):
        return True
    question = AccessQuestion(me.principal, None, "Describe", kind, name)
    return not me.root and decide(me.access(before), question).verdict is not AccessVerdict.ALLOWED
