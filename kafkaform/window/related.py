"""Find what belongs together among the recorded objects: a topic, its ACLs, the quotas of those who
may use it, and the objects of all providers that work with it.

Each search looks at each row once, so a page about one object stays linear in the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import EVERYBODY, list_acls
from kafkaform_kafka.kinds.quota.limits import USER
from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTA
from kafkaform_kafka.kinds.quota.resource_type import parse_entity_key
from kafkaform_kafka.protocol.acl import ALLOW
from kafkaform_kafka.protocol.acl import KIND as ACL

from ..core.errors import KafkaformError
from ..core.resource import Facts, Identity, Use
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import collect_types
from ..provider.registry import Registry
from ..provider.uses import find_used, list_partners
from ..state.model import Row, State
from ..workflow.connection import KAFKA
from .authority import build_recorded_access, collect_acls, make_edited_error
from .names import Types

TOPIC = "kafka_topic"


class Relation(Struct, frozen=True):
    """An object that another one works with."""

    row: Row
    how: str
    """In the third person: `reads orders`, or `reads` where the object follows."""


class Related(Struct, frozen=True):
    """What concerns a topic."""

    acls: tuple[Row, ...]
    """Those that cover it, the most specific first."""
    quotas: tuple[tuple[Row, str], ...]
    """Each with the user whom it limits; empty for the default of all users."""
    parts: tuple[Row, ...]
    """Objects that manage a part of it, such as its configs."""
    users: tuple[Relation, ...]
    """Objects of any provider that work with it."""

    @property
    def identities(self) -> frozenset[Identity]:
        """All of them."""
        rows = (*self.acls, *(row for row, _ in self.quotas), *self.parts)
        users = (relation.row for relation in self.users)
        return frozenset(row.identity for row in (*rows, *users))


def read_types(state: State | None) -> Types:
    """The resource types of the recorded objects, without those of providers that are not
    installed."""
    registry, known = Registry(), []
    for name in sorted({identity.provider for identity in state.objects} if state else ()):
        try:
            known.append(registry.load(name))
        except KafkaformError:
            continue  # the state stays readable without a provider, and so do its objects
    return collect_types(known)


def find_related(state: State, topic: Identity, types: Types) -> Related:
    """What the state records about a topic, whether or not it records the topic itself."""
    acls = collect_acls(state).get(topic.instance, {})
    covering = list_acls(build_recorded_access(acls, EMPTY), "Topic", topic.key)
    allowed = {acl.principal for acl in covering if acl.permission == ALLOW}
    parts = (
        row
        for identity, row in state.objects.items()
        if identity.key == topic.key
        and identity.instance == topic.instance
        and identity.kind in types
        and types[identity.kind].part_of == topic.kind
    )
    return Related(
        tuple(acls[acl] for acl in covering),
        tuple(_find_quotas(state, topic.instance, allowed)),
        tuple(parts),
        tuple(
            sorted(
                find_users(state, {topic}, types),
                key=lambda relation: (relation.row.identity.kind, relation.row.identity),
            )
        ),
    )


def _find_quotas(
    state: State, instance: str, principals: Collection[str]
) -> Iterator[tuple[Row, str]]:
    """The quotas of these users, and the default of all users."""
    # Quotas of client ids and addresses alone say nothing about who uses a topic.
    names = {name.removeprefix("User:") for name in principals}
    for identity, row in sorted(state.objects.items()) if principals else ():
        if identity.kind != QUOTA or identity.instance != instance:
            continue
        try:
            entity = parse_entity_key(identity.key)
        except ValueError:
            continue
        if USER in entity:
            user = entity[USER]
            if user is None or user in names or EVERYBODY in principals:
                yield row, str(user or "")


def find_users(state: State, used: Collection[Identity], types: Types) -> Iterator[Relation]:
    """The recorded objects that work with one of these, and what the system deletes with them."""
    partners = _list_partners(state)
    levels: dict[Identity, str] = {}
    for identity, row in state.objects.items():
        verbs = [f"{use.verb} {one.key}" for one, use in _list_used(row, types, partners, used)]
        if verbs:
            yield Relation(row, " and ".join(dict.fromkeys(verbs)))
            for other in _list_owned(state, row, types, partners):
                levels[other] = identity.key
    for identity, key in levels.items():
        yield Relation(state.objects[identity], f"belongs to {key}")


def _list_owned(
    state: State, row: Row, types: Types, partners: Mapping[str, Sequence[str]]
) -> Iterator[Identity]:
    """The recorded objects that the system deletes together with this one."""
    find_uses = types[row.identity.kind].uses
    # Most objects have none, and a pattern of theirs would be compared with every recorded object.
    if find_uses and any(use.ends_with for use in find_uses(row.attributes)):
        for other, use in _list_used(row, types, partners, state.objects):
            if use.ends_with:
                yield other


def find_links(state: State, row: Row, types: Types) -> tuple[Relation, ...]:
    """The recorded objects that this one works with, or that it covers if it is an ACL."""
    if row.identity.kind == ACL:
        return tuple(Relation(topic, "covers") for topic in _list_covered(state, row))
    used = _list_used(row, types, _list_partners(state), state.objects)
    return tuple(Relation(state.objects[identity], use.verb) for identity, use in used)


def _list_covered(state: State, row: Row) -> Iterator[Row]:
    """The recorded topics that an ACL covers."""
    acls = collect_acls(state)[row.identity.instance]
    access = build_recorded_access({acl: one for acl, one in acls.items() if one is row}, EMPTY)
    for identity, topic in sorted(state.objects.items()):
        own = identity.kind == TOPIC and identity.instance == row.identity.instance
        if own and list_acls(access, "Topic", identity.key):
            yield topic


def _list_used(
    row: Row,
    types: Types,
    partners: Mapping[str, Sequence[str]],
    known: Collection[Identity],
) -> tuple[tuple[Identity, Use], ...]:
    """Raises KafkaformError for a row that somebody edited."""
    identity = row.identity
    if identity.kind not in types or types[identity.kind].uses is None:
        return ()
    try:
        return tuple(find_used(identity, row.attributes, types, partners, known))
    except KeyError as error:
        raise make_edited_error(identity, error) from None


def _list_partners(state: State) -> Mapping[str, tuple[str, ...]]:
    """Provider instance -> the instances whose objects it can work with."""
    names = sorted({*state.providers, *(identity.instance for identity in state.objects)})
    scopes = {name: str(state.providers.get(name, "")) for name in names}
    clusters = sorted(
        (scope for name, scope in scopes.items() if name.partition(".")[0] == KAFKA and scope),
        key=len,
    )
    facts = {}
    for name, scope in scopes.items():
        # Some systems have the id of their Kafka cluster in their own; others can work with any.
        inner = [one for one in clusters if one != scope and one in scope]
        partner = FrozenMap({KAFKA: inner[-1]}) if inner else EMPTY
        facts[name] = Facts(scope, partners=partner)
    return {name: tuple(others) for name, others in list_partners(facts).items()}
