"""Explain from the ACLs why somebody can or cannot do something, and from the quotas which limits
apply to a client: the documents and the pages of `explain access` and `explain quota`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from ipaddress import IPv6Address, ip_address
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Sweep
from kafkaform.core.text import Cells, Grid, Page, inline
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import cell

from ..authority import acl_changes
from ..authority.authorizer import (
    EVERYBODY,
    SOME_TOPIC,
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    DecisionRule,
    Need,
    authorize,
    decide,
    fits,
    list_acls,
    list_principals,
    to_cluster_question,
    to_topics_question,
)
from ..kinds.quota.limits import (
    CLIENT_ID,
    QUOTA_KEYS,
    USER,
    LevelLimit,
    Quotas,
    list_levels,
    sharers_text,
)
from ..kinds.quota.resource_type import IP, index_quotas, make_exact
from ..protocol import acl as acls
from ..protocol.acl import CLUSTER, OTHER, Acl, describe_acl
from ..protocol.cluster_facts import KafkaFacts
from .cells import count, entity_text, limit_text

DECLARE = {
    Need.SUPER_USERS: "whether it is a super user: declare authorizer { super_users = […] } in "
    "the provider block, or give --super-user",
    Need.ALLOW_IF_NO_ACL: "what holds where no ACL is: declare authorizer { allow_if_no_acl = … "
    "} in the provider block, or give --allow-if-no-acl or --no-allow-if-no-acl",
    Need.HOST: "where it connects from: give --host",
}
"""What is unknown, and how to provide it."""
FIRST = "the controller checks the cluster before the topic"
WRITES = "who can Write to a topic needs no IdempotentWrite (KIP-679)"


class AccessQuery(Struct, frozen=True):
    """A question about access to one resource."""

    resource_type: str
    resource_name: str
    operations: Sequence[str]
    """Answers are in this order."""
    principal: str | None = None
    """None: list all principals that can."""
    host: str | None = None


def build_access(
    sweep: Sweep,
    facts: Facts,
    super_users: Sequence[str] | None = None,
    allow_if_no_acl: bool | None = None,
) -> Access:
    """The authorizer of a cluster: its ACLs with the settings that are known or given here."""
    access = acl_changes.build_access(
        (acls.parse_acl(item.attributes) for item in sweep.items), facts
    )
    return replace(
        access,
        super_users=access.super_users if super_users is None else frozenset(super_users),
        allow_if_no_acl=access.allow_if_no_acl if allow_if_no_acl is None else allow_if_no_acl,
    )


def normalize_host(host: str) -> str:
    """An address as brokers write it. Raises ValueError for a name or a network."""
    # ACLs compare the text of Java's InetAddress, which writes IPv6 without `::`.
    address = ip_address(host)
    return acls.format_java_address(address) if isinstance(address, IPv6Address) else str(address)


def find_principal_fault(principal: str) -> tuple[str, str] | None:
    """Why a text is no principal, and what to do; None for a principal."""
    kind, colon, name = principal.partition(":")
    if not colon:
        return "has no type", f"Write User:{principal or 'NAME'}."
    return None if kind and name else ("is no principal", "Write User:NAME.")


def explain_access(access: Access, query: AccessQuery, cluster_id: str) -> FrozenMap:
    """The document: answers, all ACLs of the resource, and what has to be known for certainty."""
    answers = [
        (principal, operation, decide(access, _make_question(query, principal, operation)))
        for principal in _list_principals(access, query)
        for operation in query.operations
    ]
    if query.principal is None:
        answers = [answer for answer in answers if answer[2].verdict is not AccessVerdict.DENIED]
    needs = dict.fromkeys(need for _, _, decision in answers for need in decision.needs)
    return FrozenMap(
        format_version="1.0",
        kind="access_explanation",
        cluster_id=cluster_id,
        resource_type=query.resource_type,
        resource_name=query.resource_name,
        host=query.host,
        principal=query.principal,
        super_users=None if access.super_users is None else tuple(sorted(access.super_users)),
        allow_if_no_acl=access.allow_if_no_acl,
        answers=tuple(_describe_answer(access, query, *answer) for answer in answers),
        acls=tuple(
            FrozenMap(text=describe_acl(acl), **acl.attributes) for acl in _list_acls(access, query)
        ),
        unknown=tuple(DECLARE[need] for need in needs if need in DECLARE),
    )


def _list_principals(access: Access, query: AccessQuery) -> tuple[str, ...]:
    """The principals to answer for: one, or all that ACLs name and one that none names."""
    if query.principal is not None:
        return (query.principal,)
    questions = (_make_question(query, EVERYBODY, operation) for operation in query.operations)
    named = sorted(
        {principal for question in questions for principal in list_principals(access, question)}
    )
    return (*(principal for principal in named if principal != EVERYBODY), f"User:{OTHER}")


def _make_question(query: AccessQuery, principal: str, operation: str) -> AccessQuestion:
    return AccessQuestion(
        principal, query.host, operation, query.resource_type, query.resource_name
    )


def _list_acls(access: Access, query: AccessQuery) -> tuple[Acl, ...]:
    """All ACLs of the resource, followed by those of the cluster and of topics that can decide
    instead."""
    own = list_acls(access, query.resource_type, query.resource_name)
    questions = [_make_question(query, EVERYBODY, operation) for operation in query.operations]
    operations = [
        question.operation
        for question in questions
        if to_cluster_question(question, zookeeper=access.zookeeper)
    ]
    cluster = list_acls(access, "Cluster", CLUSTER) if operations else ()
    writers = access.index.writers if any(map(to_topics_question, questions)) else {}
    principals = writers if query.principal is None else {query.principal, EVERYBODY}
    topics = sorted(acl for name in principals for acl in writers.get(name, ()))
    return (
        *own,
        *(
            acl
            for acl in cluster
            if any(fits(acl, cluster_operation) for cluster_operation in operations)
        ),
        *topics,
    )


def _describe_answer(
    access: Access, query: AccessQuery, principal: str, operation: str, decision: Decision
) -> FrozenMap:
    reason = _explain_decision(decision)
    if decision.on_cluster and decision.verdict is AccessVerdict.ALLOWED:
        reason = f"{reason}: {FIRST}"
        own = authorize(access, _make_question(query, principal, operation))
        if operation == "Delete" and own.verdict is not AccessVerdict.ALLOWED:
            # DeleteRecords is checked by the leader of the partition, not by the controller.
            reason = (
                f"{reason}. Not its records: for these, brokers check Delete on the topic itself"
            )
    if decision.on_topic and decision.verdict is AccessVerdict.ALLOWED:
        reason = f"{reason}: {WRITES}"
    if operation == "IdempotentWrite" and decision.verdict is AccessVerdict.DENIED:
        reason = f"{reason}, and no ACL allows Write to a topic (KIP-679)"
    return FrozenMap(
        principal=None if principal.endswith(OTHER) else principal,
        operation=operation,
        verdict=str(decision.verdict),
        rule=str(decision.rule),
        acl=decision.acl.attributes if decision.acl else None,
        why=reason,
        on_cluster=decision.on_cluster,
        on_topic=decision.on_topic,
    )


def _explain_decision(decision: Decision) -> str:
    if decision.acl is not None and decision.rule is DecisionRule.ACL:
        return describe_acl(decision.acl)
    if decision.rule is DecisionRule.UNDECLARED:
        missing = ", ".join(decision.needs)
        alternative = f"; without that: {describe_acl(decision.acl)}" if decision.acl else ""
        return f"not known: {missing}{alternative}"
    scope = "the cluster" if decision.on_cluster else "this resource"
    if decision.on_topic:
        scope = f"a topic named {SOME_TOPIC}, which brokers check"
    return {
        DecisionRule.SUPER_USER: "super users are allowed everything",
        DecisionRule.NO_ACL: f"no ACL applies to {scope},"
        " and allow_if_no_acl is "
        + ("true" if decision.verdict is AccessVerdict.ALLOWED else "false"),
        DecisionRule.NO_MATCH: "there are ACLs for this resource, but none that allows it",
        DecisionRule.OWN: "everybody can create and see own tokens (KIP-48)",
    }[decision.rule]


ANYBODY = "anybody else"
_DECIDES = "*"


def access_page(document: FrozenMap) -> Page:
    """The page of a document of `explain access`."""
    host = "any address" if document["host"] is None else document["host"]
    resource = f"{document['resource_type']} {document['resource_name']}"
    yield f"{resource}, from {host}"
    yield ""
    if document["answers"]:
        yield Grid(
            (("Principal", "Operation", "Answer", "Why"), *map(_render_row, document["answers"]))
        )
    else:
        yield "Nobody can."
    yield ""
    foreign = any(acl["resource_type"] != document["resource_type"] for acl in document["acls"])
    scopes = " and of topics" if document["resource_type"] == "Cluster" else " and of the cluster"
    yield f"{count(len(document['acls']), 'ACL')} of this resource" + (
        f"{scopes * foreign} ({_DECIDES} decides):" if document["acls"] else "."
    )
    deciding = [answer["acl"] for answer in document["answers"] if answer["acl"]]
    for acl in document["acls"]:
        mark = _DECIDES if acl.without(["text"]) in deciding else " "
        yield f"{mark} {acl['text']}"
    for unknown in document["unknown"]:
        yield f"Not known: {unknown}."


def _render_row(answer: FrozenMap) -> Cells:
    return answer["principal"] or ANYBODY, answer["operation"], answer["verdict"], answer["why"]


# ── quotas ──────────────────────────────────────────────────────────────────────────

UNNAMED = "\0"
"""Stands for a user or client id that no quota names; no real one has this character."""


class Client(Struct, frozen=True):
    """The client that is asked about."""

    user: str | None = None
    client_id: str | None = None
    """The user or the client id is None for all that no quota names."""
    ip: str | None = None
    """The address from which it connects."""


def explain_quotas(client: Client, sweep: Sweep, facts: Facts) -> FrozenMap:
    """The document: `levels` (each with its entity and settings) and `limits` (each key with the
    level that applies, None if nothing limits it)."""
    # A custom client.quota.callback.class decides by rules of its own (KIP-257). The document names
    # it, and the page says that these levels are Kafka's.
    quotas = index_quotas(sweep)
    levels, limits = [], []
    if client.user is not None or client.client_id is not None:
        user, client_id = [
            UNNAMED if name is None else name for name in (client.user, client.client_id)
        ]
        rungs = {key: list_levels(key, user, client_id, quotas) for key in _list_keys(ip=False)}
        if UNNAMED in (user, client_id):
            rungs = {
                key: tuple(level for level in rung_levels if UNNAMED not in level.entity.values())
                for key, rung_levels in rungs.items()
            }
        levels += _describe_levels(rungs)
        limits += [_describe_limit(key, rung_levels) for key, rung_levels in rungs.items()]
    if client.ip is not None:
        addresses = _describe_addresses(client.ip, quotas)
        levels += addresses
        limits += [
            _describe_address_limit(key, addresses, client.ip) for key in _list_keys(ip=True)
        ]
    return FrozenMap(
        format_version="1.0",
        kind="quota_explanation",
        cluster_id=facts.scope_id,
        user=client.user,
        client_id=client.client_id,
        ip=client.ip,
        others=_list_others(client, quotas),
        callback=KafkaFacts.of(facts).quota_callback,
        levels=tuple(levels),
        limits=tuple(limits),
    )


def _list_others(client: Client, quotas: Quotas) -> tuple[str, ...]:
    """If only the user is given: the client ids that quotas name for this user; if only the client
    id is given: the users with quotas of their own. They have other limits than the answer says."""
    if (client.user is None) == (client.client_id is None):
        return ()
    kind, named, default = (
        (USER, client.user, CLIENT_ID)
        if client.client_id is None
        else (CLIENT_ID, client.client_id, USER)
    )
    fits = (entity for entity in quotas if entity.get(default) is not None)
    return tuple(
        sorted({entity[default] for entity in fits if entity.get(kind, named) in (named, None)})
    )


def _list_keys(*, ip: bool) -> tuple[str, ...]:
    return tuple(name for name, key in QUOTA_KEYS.items() if key.ip == ip)


def _describe_levels(rungs: Mapping[str, tuple[LevelLimit, ...]]) -> list[FrozenMap]:
    """The eight levels. A level has the same entity for every key."""
    return [
        FrozenMap(
            level=step[0].level.number,
            entity=step[0].entity,
            config=FrozenMap(
                {
                    key: make_exact(rung.value)
                    for key, rung in zip(rungs, step, strict=True)
                    if rung.value is not None
                }
            ),
        )
        for step in zip(*rungs.values(), strict=True)
    ]


def _describe_limit(key: str, rungs: tuple[LevelLimit, ...]) -> FrozenMap:
    winner = next((rung for rung in rungs if rung.value is not None), None)
    if winner is None:
        return _make_row(key, None, None, None, None)
    return _make_row(
        key, winner.level.number, winner.entity, winner.value, _name_sharers(*winner.sharers)
    )


def _name_sharers(user: str | None, client_id: str | None) -> str:
    """Who shares a limit. Of those that no quota names, each has it alone."""
    if UNNAMED not in (user, client_id):
        return sharers_text(user, client_id)
    kind, default, named = (
        (USER, CLIENT_ID, client_id) if user == UNNAMED else (CLIENT_ID, USER, user)
    )
    return f"each {kind} alone" + (f", with {default} {named}" if named is not None else "")


def _describe_addresses(ip: str, quotas: Quotas) -> list[FrozenMap]:
    """The levels of addresses (KIP-612): the address itself and the default. They have no
    number."""
    entities = (FrozenMap({IP: ip}), FrozenMap({IP: None}))
    return [
        FrozenMap(
            level=None,
            entity=entity,
            config=FrozenMap({key: make_exact(v) for key, v in quotas.get(entity, {}).items()}),
        )
        for entity in entities
    ]


def _describe_address_limit(key: str, levels: list[FrozenMap], ip: str) -> FrozenMap:
    winner = next((row for row in levels if key in row["config"]), None)
    if winner is None:
        return _make_row(key, None, None, None, None)
    value = Decimal(str(winner["config"][key]))
    return _make_row(key, None, winner["entity"], value, f"everybody who connects from {ip}")


def _make_row(
    key: str,
    level: int | None,
    entity: FrozenMap | None,
    value: Decimal | None,
    shared_by: str | None,
) -> FrozenMap:
    quota_key = QUOTA_KEYS[key]
    row: dict[str, Value] = {
        "key": key,
        "of": "ip" if quota_key.ip else "client",
        "unit": quota_key.unit,
        "scope": quota_key.scope,
        "value": None if value is None else make_exact(value),
        "level": level,
        "entity": entity,
        "shared_by": shared_by,
    }
    return FrozenMap(row)


WINS = "*"
_OTHERS_SHOWN = 10
"""Names that the page lists of those with limits of their own."""


def quota_page(document: FrozenMap) -> Page:
    """The page of a document of `explain quota`."""
    if document["callback"]:
        yield (
            f"The brokers have client.quota.callback.class = {document['callback']}. Only that "
            "class decides. The following shows what Kafka's own rules would do with these quotas."
        )
        yield ""
    if document["user"] is not None or document["client_id"] is not None:
        entity = {"user": document["user"], "client-id": document["client_id"]}
        yield ", ".join(
            f"any {kind} without a limit of its own" if name is None else _render_client(kind, name)
            for kind, name in entity.items()
        )
        if document["others"]:
            kind = "client-id" if document["client_id"] is None else "user"
            option = "client ID" if kind == "client-id" else "user NAME"
            names = ", ".join(inline(name) for name in document["others"][:_OTHERS_SHOWN])
            hidden_count = len(document["others"]) - _OTHERS_SHOWN
            tail = f" and {hidden_count:,} more" if hidden_count > 0 else ""
            yield f"Other limits can apply with {kind} {names}{tail}: add `{option}`."
        numbered = [row for row in document["levels"] if row["level"] is not None]
        yield _render_grid(numbered, _select_limits(document, "client"))
        yield ""
    if document["ip"] is not None:
        yield _render_client("ip", document["ip"])
        addresses = [row for row in document["levels"] if row["level"] is None]
        yield _render_grid(addresses, _select_limits(document, "ip"))
        yield ""
    yield "What applies (* above):"
    yield Grid(tuple(map(_render_limit, document["limits"])))


def _render_client(kind: str, name: str) -> str:
    return entity_text({kind: name})


def _select_limits(document: FrozenMap, whom: str) -> list[FrozenMap]:
    return [limit for limit in document["limits"] if limit["of"] == whom]


def _render_grid(levels: list[FrozenMap], limits: list[FrozenMap]) -> Grid:
    keys = [limit["key"] for limit in limits]
    rows: list[Cells] = [("Level", "Entity", *keys)]
    for level in levels:
        number = cell(level["level"]) if level["level"] is not None else ""
        values = (_render_value(level, limit) for limit in limits)
        rows.append((number, entity_text(level["entity"]), *values))
    return Grid(tuple(rows), frozenset({0}))


def _render_value(level: Mapping[str, Any], limit: FrozenMap) -> str:
    text = limit_text(limit["key"], level["config"].get(limit["key"]))
    return f"{text} {WINS}" if limit["entity"] == level["entity"] else text


def _render_limit(limit: FrozenMap) -> Cells:
    if limit["value"] is None:
        return limit["key"], "no limit", ""
    text = limit_text(limit["key"], limit["value"])
    counted = text if limit["unit"] == "bytes/s" else f"{text} {limit['unit']}"
    return limit["key"], f"{counted} at {limit['scope']}", f"shared by {limit['shared_by']}"
