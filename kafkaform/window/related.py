"""Find what belongs together among the recorded objects, and show it on the page of an object: of a
topic its ACLs, the quotas of those who may use it, and the objects of all providers that work with
it; of any other object what it works with. And who uses it now, if the window was started with
`--live`.

Each search looks at each row once, so a page about one object stays linear in the state. A page
shows the answer of a look that is kept and asks nobody. Only the button of its form does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import EVERYBODY, list_acls
from kafkaform_kafka.kinds.quota.limits import USER
from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTA
from kafkaform_kafka.kinds.quota.resource_type import parse_entity_key
from kafkaform_kafka.protocol.acl import ALLOW
from kafkaform_kafka.protocol.acl import KIND as ACL

from ..core.errors import KafkaformError
from ..core.resource import Facts, Identity, Use
from ..core.text import Cells, Grid, Prose, render_count, render_span
from ..core.value import EMPTY, FrozenMap
from ..plan.uses import find_used, list_partners
from ..provider.contract import collect_types
from ..provider.registry import Registry
from ..state.model import Row, State
from ..workflow.connection import KAFKA
from ..workflow.live_looks import KEPT_SECONDS, LiveLooks, LookAnswer, Subject
from .page import (
    ACL_COLUMNS,
    Cell,
    CellRow,
    Form,
    Types,
    WindowPage,
    WindowSection,
    WindowTable,
    link_object,
    list_values,
    make_acl_row,
    make_id,
    make_link,
    make_table,
)
from .sources import (
    Query,
    Sources,
    build_recorded_access,
    collect_acls,
    list_instances,
    make_edited_error,
    read_rules,
)

TOPIC = "kafka_topic"


class Relation(Struct, frozen=True):
    """An object that another one works with."""

    row: Row
    verb: str
    """In the third person: `reads orders`, or `reads` where the object follows."""


class Related(Struct, frozen=True):
    """What concerns a topic."""

    acls: tuple[Row, ...]
    """Those that cover it, the most specific first."""
    quotas: tuple[tuple[Row, str], ...]
    """Each with the user whom it limits; empty for the default of all users."""
    members: tuple[Row, ...]
    """Objects that manage a part of it, such as its configs."""
    users: tuple[Relation, ...]
    """Objects of any provider that work with it."""

    @property
    def identities(self) -> frozenset[Identity]:
        """All of them."""
        rows = (*self.acls, *(row for row, _ in self.quotas), *self.members)
        users = (relation.row for relation in self.users)
        return frozenset(row.identity for row in (*rows, *users))


def read_types(state: State | None) -> Types:
    """The resource types of the recorded objects, without those of providers that are not
    installed."""
    registry, providers = Registry(), []
    for name in sorted({identity.provider for identity in state.objects} if state else ()):
        try:
            providers.append(registry.load(name))
        except KafkaformError:
            continue  # the state stays readable without a provider, and so do its objects
    return collect_types(providers)


def find_related(state: State, topic: Identity, types: Types) -> Related:
    """What the state records about a topic, whether or not it records the topic itself."""
    acls = collect_acls(state).get(topic.instance, {})
    covering = list_acls(build_recorded_access(acls, EMPTY), "Topic", topic.key)
    allowed = {acl.principal for acl in covering if acl.permission == ALLOW}
    sections = (
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
        tuple(sections),
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
            # This version cannot tell whom such a quota limits.
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
        verbs = [
            f"{use.verb} {used_identity.key}"
            for used_identity, use in _list_used(row, types, partners, used)
        ]
        if verbs:
            yield Relation(row, " and ".join(dict.fromkeys(verbs)))
            for owned_identity in _list_owned(state, row, types, partners):
                levels[owned_identity] = identity.key
    for identity, key in levels.items():
        yield Relation(state.objects[identity], f"belongs to {key}")


def _list_owned(
    state: State, row: Row, types: Types, partners: Mapping[str, Sequence[str]]
) -> Iterator[Identity]:
    """The recorded objects that the system deletes together with this one."""
    find_uses = types[row.identity.kind].uses
    # Most objects have none, and a pattern of theirs would be compared with every recorded object.
    if find_uses and any(use.ends_with for use in find_uses(row.attributes)):
        for identity, use in _list_used(row, types, partners, state.objects):
            if use.ends_with:
                yield identity


def find_links(state: State, row: Row, types: Types) -> tuple[Relation, ...]:
    """The recorded objects that this one works with, or that it covers if it is an ACL."""
    if row.identity.kind == ACL:
        return tuple(Relation(topic, "covers") for topic in _list_covered(state, row))
    used = _list_used(row, types, _list_partners(state), state.objects)
    return tuple(Relation(state.objects[identity], use.verb) for identity, use in used)


def _list_covered(state: State, row: Row) -> Iterator[Row]:
    """The recorded topics that an ACL covers."""
    acls = collect_acls(state)[row.identity.instance]
    access = build_recorded_access(
        {acl: acl_row for acl, acl_row in acls.items() if acl_row is row}, EMPTY
    )
    for identity, topic in sorted(state.objects.items()):
        same_instance = identity.kind == TOPIC and identity.instance == row.identity.instance
        if same_instance and list_acls(access, "Topic", identity.key):
            yield topic


def _list_used(
    row: Row,
    types: Types,
    partners: Mapping[str, Sequence[str]],
    identities: Collection[Identity],
) -> tuple[tuple[Identity, Use], ...]:
    """Raises KafkaformError for a row that somebody edited."""
    identity = row.identity
    if identity.kind not in types or types[identity.kind].uses is None:
        return ()
    try:
        return tuple(find_used(identity, row.attributes, types, partners, identities))
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
        inner = [cluster for cluster in clusters if cluster != scope and cluster in scope]
        partner = FrozenMap({KAFKA: inner[-1]}) if inner else EMPTY
        facts[name] = Facts(scope, partners=partner)
    return {name: tuple(partners) for name, partners in list_partners(facts).items()}


TABLES = ("acls", "quotas", "parts", "users", "links")
"""The parts of the query with the first row of each table."""


def list_related_sections(
    state: State, identity: Identity, types: Types, id: str, firsts: Mapping[str, int]
) -> tuple[WindowSection, ...]:
    """The sections of an object. id: of its page; firsts: part of the query -> first row."""
    if identity.kind == TOPIC:
        return tuple(_list_topic_sections(state, identity, types, id, firsts))
    row = state.objects.get(identity)
    if row is None or not (links := find_links(state, row, types)):
        return ()
    rows = [
        (
            Cell(relation.verb),
            link_object(relation.row.identity),
            Cell(relation.row.identity.kind, style="code"),
            Cell(relation.row.identity.instance),
        )
        for relation in links
    ]
    columns = ("How", "Object", "Kind", "Provider")
    table = make_table("Recorded objects", columns, rows, firsts["links"], f"objects/{id}", "links")
    return (WindowSection("links", "Works with", tables=(table,)),)


def _list_topic_sections(
    state: State, topic: Identity, types: Types, id: str, firsts: Mapping[str, int]
) -> Iterator[WindowSection]:
    related, path = find_related(state, topic, types), f"objects/{id}"
    access = make_link("access", instance=topic.instance, kind="Topic", name=topic.key)
    concerned = make_link("objects", topic=topic.key)
    lead = "The state records no ACL that covers this topic."
    if related.acls:
        number = render_count(len(related.acls), "recorded ACL")
        lead = f"{number} for this name, for a prefix of it, or for every topic."
    yield WindowSection(
        "acls",
        "ACLs",
        (lead,),
        tables=_make_tables(
            "Covering ACLs, the most specific first",
            ACL_COLUMNS,
            [make_acl_row(row) for row in related.acls],
            path,
            "acls",
            firsts,
        ),
        links=(
            Cell("Who may do what with this topic", access),
            Cell("All objects that concern it", concerned),
        ),
    )
    yield _show_quotas(related.quotas, path, types, firsts)
    yield _show_users(related.users, path, firsts)
    if related.members:
        rows = [(link_object(row.identity), Cell(row.identity.kind)) for row in related.members]
        tables = _make_tables("Objects", ("Object", "Kind"), rows, path, "parts", firsts)
        yield WindowSection("parts", "Parts that are managed separately", tables=tables)


def _show_quotas(
    quotas: Sequence[tuple[Row, str]], path: str, types: Types, firsts: Mapping[str, int]
) -> WindowSection:
    lead = (
        "Quotas limit users and clients, not topics. These are of the users whom the ACLs above "
        "allow something."
        if quotas
        else "The state records no quota for a user whom the ACLs above allow something."
    )
    rows = [
        (
            link_object(row.identity),
            Cell("; ".join(_list_limits(row, types)), style="code"),
            Cell(user or "each user without a quota of its own"),
        )
        for row, user in quotas
    ]
    columns = ("Quota", "Limits", "User")
    tables = _make_tables("Quotas of its users", columns, rows, path, "quotas", firsts)
    return WindowSection("quotas", "Quotas", (lead,), tables=tables)


def _list_limits(row: Row, types: Types) -> Iterator[str]:
    for name, text in list_values(row, types):
        attribute, dot, key = name.partition(".")
        if attribute == "config" and dot:
            yield f"{key} = {text}"


def _show_users(users: Sequence[Relation], path: str, firsts: Mapping[str, int]) -> WindowSection:
    rows = [
        (
            link_object(relation.row.identity),
            Cell(relation.row.identity.kind, style="code"),
            Cell(relation.verb),
            Cell(relation.row.identity.instance),
            Cell(", ".join(relation.row.owners), style="code"),
        )
        for relation in users
    ]
    lead = () if users else ("The state records no schema or connector of this topic.",)
    columns = ("Object", "Kind", "How", "Provider", "Addresses")
    tables = _make_tables("Recorded objects", columns, rows, path, "users", firsts)
    return WindowSection("users", "Schemas and connectors", lead, tables=tables)


def _make_tables(
    caption: str,
    columns: tuple[str, ...],
    rows: Sequence[CellRow],
    path: str,
    field: str,
    firsts: Mapping[str, int],
) -> tuple[WindowTable, ...]:
    if not rows:
        return ()
    return (make_table(caption, columns, rows, firsts[field], path, field),)


NOW = "now"
"""The id of the section on the page of an object."""
DISKS = "disks"
_OFFLINE = (
    "The window was started without --live, so it asks no cluster. `kafkaform serve --live` looks "
    "who uses a topic now when you ask for it."
)
_KEPT = f"Answers are shown for {render_span(int(KEPT_SECONDS))}. Nothing is asked by itself."


def make_object_sections(
    sources: Sources, state: State | None, identity: Identity
) -> Iterator[WindowSection]:
    """The section of an object that can be looked at."""
    if state is None or identity not in state.objects:
        return
    if sources.live is None:
        if identity.kind == TOPIC:
            yield WindowSection(NOW, "Now", (_OFFLINE,))
        return
    lead = sources.live.find_lead(identity.kind, identity.instance)
    if lead:
        path = f"objects/{make_id(str(identity))}"
        subject = _make_subject(sources, state, identity.instance, identity)
        yield _make_section(sources.live, subject, NOW, "Now", lead, path)


def make_disks_page(sources: Sources, query: Query) -> WindowPage:
    """The disks of each system that the state or the configuration names."""
    assert sources.live is not None  # the menu of another window has no such page
    state, rules = sources.open_store().backend.load().state, read_rules(sources)
    sections = tuple(
        _make_section(
            sources.live,
            _make_subject(sources, state, instance),
            make_id(instance),
            instance,
            lead,
            f"{DISKS}/{make_id(instance)}",
        )
        for instance in list_instances(state, rules.blocks)
        if (lead := sources.live.find_lead("", instance))
    )
    if not sections:
        text = rules.fault or "Neither the state nor the configuration names a cluster."
        sections = (WindowSection(DISKS, "Disks", (text,)),)
    return WindowPage(DISKS, "Disks", "What the brokers say when you ask.", sections)


def find_object_subject(sources: Sources, id: str) -> tuple[Subject, str] | None:
    """What the form of an object's page asks about, and the place that shows the answer."""
    state = sources.open_store().backend.load().state
    for identity in state.objects if state else ():
        if make_id(str(identity)) == id and sources.live is not None:
            if not sources.live.find_lead(identity.kind, identity.instance):
                return None
            subject = _make_subject(sources, state, identity.instance, identity)
            return subject, f"objects/{id}#{NOW}"
    return None


def find_disks_subject(sources: Sources, id: str) -> tuple[Subject, str] | None:
    """The same of a system on the page of disks."""
    state = sources.open_store().backend.load().state
    for instance in list_instances(state, read_rules(sources).blocks):
        if make_id(instance) == id:
            return _make_subject(sources, state, instance), f"{DISKS}#{id}"
    return None


def _make_subject(
    sources: Sources, state: State | None, instance: str, identity: Identity | None = None
) -> Subject:
    scope = str(state.providers.get(instance, "")) if state else ""
    kind, key = (identity.kind, identity.key) if identity else ("", "")
    return Subject(sources.folder, instance, kind, key, scope)


def _make_section(
    live: LiveLooks, subject: Subject, id: str, title: str, lead: str, path: str
) -> WindowSection:
    """path: of the form."""
    answer = live.find_answer(subject)
    texts, warning, button = [lead], "", "Look now"
    tables: list[WindowTable] = []
    if live.is_running(subject):
        texts.append("A look is under way. Load the page again to see what it has seen.")
    elif answer is None:
        texts.append(_KEPT)
    else:
        button, warning = "Look again", answer.fault
        sentences, tables = _split_page(answer.page)
        texts += [_render_age(answer), *sentences]
    form = Form(path, title, (), button, method="post")
    return WindowSection(id, title, tuple(texts), warning=warning, form=form, tables=tuple(tables))


def _render_age(answer: LookAnswer) -> str:
    time = datetime.fromtimestamp(answer.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"Asked at {time}, {render_span(answer.age)} ago."


def _split_page(page: Sequence[str | Grid | Prose]) -> tuple[list[str], list[WindowTable]]:
    """The sentences and the tables. A line before a table is its caption."""
    texts: list[str] = []
    tables: list[WindowTable] = []
    previous: str | Grid | Prose = ""
    for item in page:
        if isinstance(item, Grid):
            caption = item.caption
            if not caption and isinstance(previous, str) and previous:
                caption = texts.pop()
            head, *rows = item.rows
            tables.append(make_table(caption, head, [_make_cells(item, row) for row in rows]))
        else:
            texts.append(item.text if isinstance(item, Prose) else item)
        previous = item
    return texts, tables


def _make_cells(grid: Grid, row: Cells) -> CellRow:
    return tuple(
        Cell(text, style="number" if column in grid.right else "")
        for column, text in enumerate(row)
    )
