"""Who may do what: by the ACLs that the state records, and by the fleet's tables.

The recorded ACLs go through the same rules as those of a live cluster (`explain access`). But they
are those of one configuration, as they were applied last, so the page says what it cannot know.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import SUPPORTED, Access, index_acls
from kafkaform_kafka.inspect.access_explanation import AccessQuery, explain_access, normalize_host
from kafkaform_kafka.kinds.acl.resource_type import CLUSTER, KIND, Acl, parse_acl

from ..core.errors import KafkaformError
from ..core.value import FrozenMap
from ..fleet.exports.rows import Sheet, to_text
from ..state.model import State
from ..workflow.fleet.answers import find_who_can
from .page import (
    Blank,
    Cell,
    CellRow,
    Choice,
    Form,
    WindowPage,
    WindowSection,
    WindowTable,
    make_table,
)
from .sources import Query, Sources, read_number

ANYBODY = "anybody else"
ONLY_RECORDED = (
    "These answers follow from the ACLs that the state records, as they were applied last. ACLs "
    "that others made are not known here and can allow or deny more; kafkaform explain access "
    "asks the cluster."
)
NOT_KNOWN = (
    "Some answers are unknown, because brokers do not report their super users, or what holds "
    "without an ACL. Fill in what you know."
)
RULES = {"": "not known", "yes": "allowed", "no": "denied"}
"""Answers to what holds for a resource without ACLs (allow.everyone.if.no.acl.found)."""
_STYLES = {"allowed": "good", "denied": "bad", "unknown": "warn"}


class AccessForm(Struct, frozen=True):
    """What the form asks."""

    instance: str = ""
    kind: str = "Topic"
    name: str = ""
    principal: str = ""
    host: str = ""
    super_users: str = ""
    no_acl: str = ""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Answer the question of the query."""
    state = sources.open_store().backend.load().state
    page = show_access(state, read_question(query), read_number(query, "first"))
    if sources.fleet_root is None:
        return page
    fleet = _show_fleet(sources.fleet_root, query)
    return WindowPage(page.place, page.title, page.about, (*page.sections, fleet))


def read_question(query: Query) -> AccessForm:
    """The question of a query. What the form cannot ask becomes what it asks first."""
    given = {name: query.get(name, "").strip() for name in AccessForm.__struct_fields__}
    asked = AccessForm(**given)
    if asked.kind not in SUPPORTED:
        given["kind"] = "Topic"
    if asked.no_acl not in RULES:
        given["no_acl"] = ""
    return AccessForm(**given)


def show_access(state: State | None, asked: AccessForm, first: int = 0) -> WindowPage:
    """The page of these recorded ACLs."""
    recorded = _collect_acls(state)
    if not recorded:
        lead = ("The state records no ACLs.",)
        section = WindowSection("answer", "By the recorded ACLs", lead)
        return WindowPage("access", "Who may do what", "", (section,))
    instance = asked.instance if asked.instance in recorded else min(recorded)
    acls = recorded[instance]
    scope = str(state.providers.get(instance, "")) if state else ""
    sections = (
        _show_answer(acls, recorded, instance, asked, scope),
        _list_acls(acls, instance, first),
    )
    return WindowPage("access", "Who may do what", "", sections)


def _collect_acls(state: State | None) -> Mapping[str, list[Acl]]:
    """Provider instance -> its recorded ACLs."""
    found: dict[str, list[Acl]] = {}
    for identity, row in state.objects.items() if state else ():
        if identity.kind == KIND:
            try:
                found.setdefault(identity.instance, []).append(parse_acl(row.attributes))
            except KeyError as error:
                raise KafkaformError(
                    f"the recorded ACL {identity} lacks {error}",
                    "The state was edited; restore it from a backup.",
                ) from None
    return found


def _show_answer(
    acls: list[Acl], recorded: Mapping[str, list[Acl]], instance: str, asked: AccessForm, scope: str
) -> WindowSection:
    title, form = "By the recorded ACLs", _make_form(recorded, instance, asked)
    name = CLUSTER if asked.kind == "Cluster" else asked.name
    if not name:
        return WindowSection("answer", title, (ONLY_RECORDED,), form=form)
    try:
        host = normalize_host(asked.host) if asked.host else None
    except ValueError:
        wrong = f"{asked.host} is not an IP address: ACLs are compared with addresses, not names."
        return WindowSection("answer", title, warning=wrong, form=form)
    document = explain_access(_make_access(acls, asked), _make_query(asked, name, host), scope)
    rows = [_make_answer_row(answer) for answer in document["answers"]]
    lead = [ONLY_RECORDED, *((NOT_KNOWN,) if document["unknown"] else ())]
    if not rows:
        lead.append("By these ACLs, nobody can.")
    caption = f"{asked.kind} {name}, from {host or 'any address'}"
    columns = ("Principal", "Operation", "Answer", "Why")
    tables = (make_table(caption, columns, rows),) if rows else ()
    return WindowSection("answer", title, tuple(lead), form=form, tables=tables)


def _make_access(acls: list[Acl], asked: AccessForm) -> Access:
    supers = frozenset(one.strip() for one in asked.super_users.split(",") if one.strip())
    rule = {"yes": True, "no": False}.get(asked.no_acl)
    return Access(index_acls(acls), supers or None, rule)


def _make_query(asked: AccessForm, name: str, host: str | None) -> AccessQuery:
    operations = SUPPORTED[asked.kind]
    return AccessQuery(asked.kind, name, operations, asked.principal or None, host)


def _make_form(recorded: Mapping[str, list[Acl]], instance: str, asked: AccessForm) -> Form:
    instances = {name: name for name in sorted(recorded)}
    fields = (
        *((Choice("instance", "Provider", instance, instances),) if len(recorded) > 1 else ()),
        Choice("kind", "Resource type", asked.kind, {name: name for name in SUPPORTED}),
        Blank("name", "Resource", asked.name, "orders"),
        Blank("principal", "Principal", asked.principal, "all, or User:ci"),
        Blank("host", "Client's address", asked.host, "any"),
        Blank("super_users", "Super users", asked.super_users, "not known, or User:a, User:b"),
        Choice("no_acl", "Without an ACL", asked.no_acl, RULES),
    )
    return Form("access", "Who may do what", fields, "Answer")


def _make_answer_row(answer: FrozenMap) -> CellRow:
    verdict = str(answer["verdict"])
    return (
        Cell(str(answer["principal"] or ANYBODY)),
        Cell(str(answer["operation"])),
        Cell(verdict, style=_STYLES[verdict]),
        Cell(str(answer["why"])),
    )


def _list_acls(acls: list[Acl], instance: str, first: int) -> WindowSection:
    rows = [
        (
            Cell(acl.principal),
            Cell(acl.permission, style="bad" if acl.permission == "Deny" else "good"),
            Cell(acl.operation),
            Cell(acl.resource_type),
            Cell(acl.resource_name, style="code"),
            Cell(acl.pattern_type),
            Cell(acl.host),
        )
        for acl in sorted(acls)
    ]
    columns = ("Principal", "Permission", "Operation", "Type", "Resource", "Pattern", "From")
    table = make_table("By principal", columns, rows, first, "access", instance=instance)
    return WindowSection("acls", f"Recorded ACLs of {instance}", tables=(table,))


# ── the fleet ───────────────────────────────────────────────────────────────────────────


def _show_fleet(root: str, query: Query) -> WindowSection:
    """The answer of `fleet who-can`, from snapshots of all clusters."""
    operation, resource = query.get("operation", "").strip(), query.get("resource", "").strip()
    principal, host = query.get("who", "").strip(), query.get("from", "").strip()
    fields = (
        Blank("operation", "Operation", operation, "READ"),
        Blank("resource", "Resource", resource, "topic/orders"),
        Blank("who", "Principal", principal, "all, or User:ci"),
        Blank("from", "Client's address", host, "any"),
    )
    form = Form("access", "Who may do what in the fleet", fields, "Answer")
    title, warning = "In the fleet, by its snapshots", ""
    tables: tuple[WindowTable, ...] = ()
    if operation and resource:
        try:
            who, where = principal or None, host or None
            sheet = find_who_can(root, operation, resource, cluster=None, principal=who, host=where)
            tables = (show_sheet(sheet, f"{operation} {resource}"),)
        except KafkaformError as error:
            warning = f"{error.message}. {error.advice}"
    return WindowSection("fleet", title, warning=warning, form=form, tables=tables)


def show_sheet(sheet: Sheet, caption: str) -> WindowTable:
    """A table of an answer about the fleet."""
    rows = [tuple(Cell(to_text(value)) for value in row) for row in sheet.rows]
    return make_table(caption, tuple(sheet.names), rows)
