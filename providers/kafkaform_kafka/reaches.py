"""The names that an object has or has an effect on, for the boundary of a folder: a prefix of an
ACL covers every name that begins with it, and `User:*` is everybody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafkaform.core.resource import Reach
from kafkaform.core.value import FrozenMap

from .kinds.acl import roles
from .kinds.kind import KindRights
from .kinds.quota.limits import CLIENT_ID, USER
from .kinds.quota.resource_type import IP, read_entity
from .protocol.acl import EVERYTHING, NOUNS, parse_acl
from .protocol.acl import KIND as ACL

LISTS: Mapping[str, tuple[str, str]] = {
    "Topic": ("topics", "resource_name"),
    "Group": ("groups", "resource_name"),
    "TransactionalID": ("transactional_ids", "resource_name"),
    # The name of such a resource is the principal whose tokens it is about (KIP-373).
    "User": ("principals", "resource_name"),
}
"""Resource type of an ACL -> the list of a boundary, and the attribute with the name."""


def _reach_principal(principal: str, attribute: str) -> Reach:
    everybody = principal.endswith(f":{EVERYTHING}")
    named = f"everybody ({principal})" if everybody else f'the principal "{principal}"'
    return Reach("principals", principal, named, (attribute,))


def _reach_acl(attributes: FrozenMap) -> Iterator[Reach]:
    acl = parse_acl(attributes)
    yield _reach_principal(acl.principal, "acl_principal")
    noun = NOUNS.get(acl.resource_type, acl.resource_type)
    if acl.resource_type not in LISTS:
        article = "the" if acl.resource_type == "Cluster" else "every"
        yield Reach("", "", f"the ACL is for {article} {noun}", ("resource_type",))
        return
    name, (boundary_list, attribute) = acl.resource_name, LISTS[acl.resource_type]
    if acl.pattern_type == "Prefixed":
        text = f'every {noun} whose name begins with "{name}"'
        yield Reach(boundary_list, f"{name}*", text, (attribute,))
    elif name == EVERYTHING:
        yield Reach(boundary_list, "*", f"every {noun}", (attribute,))
    else:
        yield Reach(boundary_list, name, f'the {noun} "{name}"', (attribute,))


def _reach_quota(attributes: FrozenMap) -> Iterator[Reach]:
    entity = read_entity(attributes)
    if USER in entity:
        # A quota of users says their names without the type.
        name = entity[USER]
        path = ("user",) if attributes.get("user") is not None else ("entity_name",)
        text = "the quota of every user" if name is None else f'the quota of "User:{name}"'
        yield Reach("principals", f"User:{name or EVERYTHING}", text, path)
    elif IP in entity:
        yield Reach("", "", "the quota is for an IP address, which anybody can have", ("ip",))
    elif CLIENT_ID in entity:
        text = "the quota is for a client id, which clients of any user can have"
        yield Reach("", "", text, ("client_id",))


def _reach_topic(attribute: str) -> Callable[[FrozenMap], Iterator[Reach]]:
    def find(attributes: FrozenMap) -> Iterator[Reach]:
        name = str(attributes[attribute])
        yield Reach("topics", name, f'the topic "{name}"', (attribute,))

    return find


def _reach_group(attributes: FrozenMap) -> Iterator[Reach]:
    name = str(attributes["group"])
    yield Reach("groups", name, f'the group "{name}"', ("group",))


def _reach_user(attributes: FrozenMap) -> Iterator[Reach]:
    yield _reach_principal(f"User:{attributes['username']}", "username")


def _reach_token(attributes: FrozenMap) -> Iterator[Reach]:
    owner = attributes.get("owner")
    if owner is None:
        yield Reach("", "", "the token has no owner that is known here")
    else:
        yield _reach_principal(str(owner), "owner")
    for renewer in attributes.get("renewers") or ():
        yield _reach_principal(str(renewer), "renewers")


def _reach_all(text: str) -> Callable[[FrozenMap], Iterator[Reach]]:
    def find(_: FrozenMap) -> Iterator[Reach]:
        yield Reach("", "", text)

    return find


REACHES: Mapping[str, Callable[[FrozenMap], Iterator[Reach]]] = {
    "kafka_topic": _reach_topic("name"),
    "kafka_topic_config": _reach_topic("topic"),
    "kafka_topic_leaders": _reach_topic("topic"),
    ACL: _reach_acl,
    "kafka_quota": _reach_quota,
    "kafka_user_scram_credential": _reach_user,
    "kafka_group_config": _reach_group,
    "kafka_group_offsets": _reach_group,
    "kafka_delegation_token": _reach_token,
    "kafka_broker_config": _reach_all("the configs of a broker concern all its clients"),
    "kafka_cluster_config": _reach_all("the configs of all brokers concern all clients"),
    "kafka_client_metrics": _reach_all("a subscription to metrics concerns clients of any user"),
    "kafka_feature": _reach_all("a feature concerns the whole cluster"),
}
"""Type -> what finds the names that its objects reach."""


def list_reaches(kind: str, attributes: FrozenMap) -> tuple[Reach, ...] | None:
    """See `kafkaform.provider.contract.Provider`."""
    return tuple(REACHES[kind](attributes)) if kind in REACHES else None


# ── what a login needs ──────────────────────────────────────────────────────────────────

_PATTERNS: Mapping[str, tuple[str, str, str]] = {
    "Topic": ("topics", "topics", "topic_prefixes"),
    "Group": ("groups", "groups", "group_prefixes"),
}
"""Resource type of an ACL -> the list of a boundary, and the arguments of a role for names and for
prefixes."""
_CREATE = {"Topic": ("Create",)}


def list_login_rights(
    rights: Iterable[KindRights], principal: object, lists: Mapping[str, Sequence[str]]
) -> tuple[list[tuple[str, Mapping[str, Any]]], list[str]]:
    """See `kafkaform.provider.contract.Provider`. rights: of the kinds of objects."""
    blocks: list[tuple[str, Mapping[str, Any]]] = []
    gaps: list[str] = []
    needed = list(rights)
    for resource_type, (noun, names_argument, prefixes_argument) in _PATTERNS.items():
        operations = {
            operation
            for row in needed
            if row.resource_type == resource_type
            for operation in (*row.sees, *row.changes, row.deletes, *_CREATE.get(resource_type, ()))
        }
        names = [pattern for pattern in lists.get(noun, ()) if EVERYTHING not in pattern]
        stems = [p.removesuffix(EVERYTHING) for p in lists.get(noun, ()) if p.endswith(EVERYTHING)]
        prefixes = [stem for stem in stems if stem and EVERYTHING not in stem]
        names += [EVERYTHING] if "" in stems else []
        gaps += (
            f'no ACL can say the pattern "{pattern}" of {noun}'
            for pattern in lists.get(noun, ())
            if EVERYTHING in pattern.removesuffix(EVERYTHING)
        )
        arguments = {names_argument: names, prefixes_argument: prefixes}
        written = {name: tuple(texts) for name, texts in arguments.items() if texts}
        if written:
            role = {"principal": principal, "role": "custom", **written}
            blocks.append((roles.KIND, {**role, "operations": tuple(sorted(operations - {""}))}))
    if lists.get("principals"):
        gaps.append(
            "ACLs, quotas and SCRAM users need rights on the cluster (Alter, AlterConfigs), which "
            "no ACL limits to some principals: a login that has them could declare them for anybody"
        )
    return blocks, gaps
