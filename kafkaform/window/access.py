"""Who may do what: by the ACLs that the state records, and by the fleet's tables.

The recorded ACLs and the `authorizer` block of the configuration go through the same rules as those
of a live cluster (`explain access`). But the ACLs are those of one configuration, as they were
applied last, so the page says what it cannot know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform_kafka.authority.authorizer import Need
from kafkaform_kafka.inspect.access import (
    ANYBODY,
    DECLARE,
    AccessQuery,
    explain_access,
    find_principal_fault,
    normalize_host,
)
from kafkaform_kafka.protocol.acl import CLUSTER, KIND, SUPPORTED, Acl, parse_acl

from ..core.errors import KafkaformError
from ..core.resource import Identity
from ..core.value import EMPTY, FrozenMap
from ..fleet.exports.rows import Sheet, to_text
from ..state.model import Row, State
from ..workflow.fleet.answers import find_who_can
from .authority import (
    DeclaredRules,
    build_recorded_access,
    collect_acls,
    list_instances,
    read_rules,
)
from .names import ACL_COLUMNS, describe_object, link_object, make_acl_row
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

ONLY_RECORDED = (
    "These answers follow from the ACLs that the state records, as they were applied last. ACLs "
    "that others made are not known here and can allow or deny more; kafkaform explain access "
    "asks the cluster."
)
RULES = {"": "as declared", "yes": "allowed", "no": "denied"}
"""Answers to what holds for a resource without ACLs (allow.everyone.if.no.acl.found)."""
FIELDS = {
    Need.SUPER_USERS: "Super users",
    Need.ALLOW_IF_NO_ACL: "Without an ACL",
    Need.HOST: "Client's address",
}
"""What can be missing for an answer -> the field of the form that gives it."""
_STYLES = {"allowed": "good", "denied": "bad", "unknown": "warn"}
# A comma separates two names only if a type follows: a distinguished name contains commas.
_BETWEEN = re.compile(r"\s*(?:;|,(?=\s*[A-Za-z]+:))\s*")


class AccessForm(Struct, frozen=True):
    """What the form asks."""

    instance: str = ""
    kind: str = "Topic"
    name: str = ""
    right: str = ""
    principal: str = ""
    host: str = ""
    super_users: str = ""
    no_acl: str = ""

    @property
    def filled(self) -> dict[str, str]:
        """The fields that say something, for links to further rows of the same answer."""
        return {name: text for name in self.__struct_fields__ if (text := getattr(self, name))}


class RecordedRules(Struct, frozen=True):
    """Everything that answers about one provider instance follow from."""

    acls: Mapping[Acl, Row]
    declared: FrozenMap
    place: str
    """Where its provider block is."""
    scope: str


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Answer the question of the query."""
    state = sources.open_store().backend.load().state
    firsts = {name: read_number(query, name) for name in ("first", "answers", "considered")}
    page = show_access(state, read_question(query), read_rules(sources), firsts)
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


def show_access(
    state: State | None,
    asked: AccessForm,
    rules: DeclaredRules = DeclaredRules(),  # noqa: B008  # it is frozen
    firsts: Mapping[str, int] = EMPTY,
) -> WindowPage:
    """The page of these recorded ACLs and declared rules. firsts: part of the query -> the row to
    begin with, for the answers, the ACLs that were considered, and all ACLs (`first`)."""
    instances = list_instances(state, rules.blocks)
    if not instances:
        lead = ("The state records no ACLs.",)
        section = WindowSection("answer", "By the recorded ACLs", lead)
        return WindowPage("access", "Who may do what", "", (section,))
    instance = asked.instance if asked.instance in instances else instances[0]
    basis = RecordedRules(
        collect_acls(state).get(instance, {}),
        rules.blocks.get(instance, EMPTY),
        rules.places.get(instance, ""),
        str(state.providers.get(instance, "")) if state else "",
    )
    form = _make_form(instances, instance, asked, basis.declared)
    answer = _answer_question(basis, asked, form, firsts)
    if gap := rules.explain_gap(instance):
        about = f"The configuration's authorizer block may be incomplete: {gap}."
        warning = f"{answer.warning} {about}".strip()
        answer = replace(answer, warning=warning)
    sections = (answer, _list_acls(basis.acls, instance, asked, firsts))
    return WindowPage("access", "Who may do what", "", sections)


def _answer_question(
    basis: RecordedRules, asked: AccessForm, form: Form, firsts: Mapping[str, int]
) -> WindowSection:
    title, facts = "By the recorded ACLs", _list_rules(basis, asked)
    name = CLUSTER if asked.kind == "Cluster" else asked.name
    if not name:
        return WindowSection("answer", title, (ONLY_RECORDED,), facts=facts, form=form)
    wrong = " ".join(_find_faults(asked))
    if wrong:
        return WindowSection("answer", title, warning=wrong, facts=facts, form=form)
    rule = {"yes": True, "no": False}.get(asked.no_acl)
    access = build_recorded_access(
        basis.acls, basis.declared, _split_names(asked.super_users) or None, rule
    )
    host = normalize_host(asked.host) if asked.host else None
    operations = (asked.right,) if asked.right else SUPPORTED[asked.kind]
    question = AccessQuery(asked.kind, name, operations, asked.principal or None, host)
    document = explain_access(access, question, basis.scope)
    lead = [ONLY_RECORDED]
    if document["unknown"]:
        lead.append(_describe_unknown(document["unknown"]))
    tables = tuple(_list_tables(document, basis, asked, firsts))
    if not document["answers"]:
        lead.append("By these ACLs, nobody can.")
    return WindowSection("answer", title, tuple(lead), facts=facts, form=form, tables=tables)


def _find_faults(asked: AccessForm) -> Iterator[str]:
    """Why the question has no answer, as `explain access` says it."""
    names = {"Principal": (asked.principal,), "Super users": _split_names(asked.super_users)}
    for field, principals in names.items():
        for name in filter(None, principals):
            if fault := find_principal_fault(name):
                yield f"{field}: {name} {fault[0]}. {fault[1]}"
    if asked.right and asked.right not in SUPPORTED[asked.kind]:
        listed = ", ".join(SUPPORTED[asked.kind])
        yield f"{asked.right} does not exist for resources of type {asked.kind}. Use {listed}."
    try:
        normalize_host(asked.host or "127.0.0.1")
    except ValueError:
        yield f"{asked.host} is not an IP address: ACLs are compared with addresses, not names."


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name for name in _BETWEEN.split(text.strip()) if name)


def _describe_unknown(unknown: tuple[str, ...]) -> str:
    fields = [field for need, field in FIELDS.items() if DECLARE[need] in unknown]
    text = f"Some answers are unknown. Fill in: {', '.join(fields)}."
    if fields == [FIELDS[Need.HOST]]:
        return text
    return (
        f"{text} Brokers do not report their super users, or what holds without an ACL; an "
        "authorizer block in the provider block declares both for good."
    )


def _list_tables(
    document: FrozenMap, basis: RecordedRules, asked: AccessForm, firsts: Mapping[str, int]
) -> Iterator[WindowTable]:
    """The answers, and the ACLs that were looked at for them."""
    if rows := [_make_answer_row(answer) for answer in document["answers"]]:
        where = document["host"] or "any address"
        caption = f"{document['resource_type']} {document['resource_name']}, from {where}"
        columns: tuple[str, ...] = ("Principal", "Operation", "Answer", "Why")
        yield _make_answer_table(caption, columns, rows, "answers", asked, firsts)
    if acls := [parse_acl(acl) for acl in document["acls"]]:
        deciding = {answer["acl"] for answer in document["answers"]}
        acl_rows = [
            (
                link_object(basis.acls[acl].identity),
                Cell("decides" if acl.attributes in deciding else ""),
            )
            for acl in acls
        ]
        caption, columns = "ACLs that were considered", ("ACL", "Effect")
        yield _make_answer_table(caption, columns, acl_rows, "considered", asked, firsts)


def _make_answer_table(
    caption: str,
    columns: tuple[str, ...],
    rows: Sequence[CellRow],
    field: str,
    asked: AccessForm,
    firsts: Mapping[str, int],
) -> WindowTable:
    return make_table(caption, columns, rows, firsts.get(field, 0), "access", field, **asked.filled)


def _list_rules(basis: RecordedRules, asked: AccessForm) -> tuple[tuple[str, Cell], ...]:
    """What holds beside the ACLs, and who says so."""
    place = f" (declared, {basis.place})" if basis.place else " (declared)"
    supers, rule = basis.declared.get("super_users"), basis.declared.get("allow_if_no_acl")
    declared = {
        "Super users": None if supers is None else ", ".join(supers) or "none",
        "Without an ACL": None if rule is None else RULES["yes" if rule else "no"],
    }
    given = {
        "Super users": ", ".join(_split_names(asked.super_users)),
        "Without an ACL": RULES[asked.no_acl] if asked.no_acl else "",
    }
    return tuple(
        (
            name,
            Cell(
                f"{given[name]} (from the form)"
                if given[name]
                else ("not known" if text is None else text + place)
            ),
        )
        for name, text in declared.items()
    )


def _make_form(
    instances: tuple[str, ...], instance: str, asked: AccessForm, declared: FrozenMap
) -> Form:
    supers, rule = declared.get("super_users"), declared.get("allow_if_no_acl")
    usual = "not known" if rule is None else f"as declared: {RULES['yes' if rule else 'no']}"
    operations = {name: name for names in SUPPORTED.values() for name in names}
    hint = "not known, or User:a; User:b" if supers is None else "as declared"
    choices = {name: name for name in instances}
    fields = (
        *((Choice("instance", "Provider", instance, choices),) if len(instances) > 1 else ()),
        Choice("kind", "Resource type", asked.kind, {name: name for name in SUPPORTED}),
        Blank("name", "Resource", asked.name, "orders"),
        Choice("right", "Operation", asked.right, {"": "all", **operations}),
        Blank("principal", "Principal", asked.principal, "all, or User:ci"),
        Blank("host", FIELDS[Need.HOST], asked.host, "any"),
        Blank("super_users", FIELDS[Need.SUPER_USERS], asked.super_users, hint),
        Choice("no_acl", FIELDS[Need.ALLOW_IF_NO_ACL], asked.no_acl, {**RULES, "": usual}),
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


def _list_acls(
    acls: Mapping[Acl, Row], instance: str, asked: AccessForm, firsts: Mapping[str, int]
) -> WindowSection:
    title = f"Recorded ACLs of {instance}"
    if not acls:
        return WindowSection("acls", title, (f"The state records no ACLs of {instance}.",))
    rows = [make_acl_row(acls[acl]) for acl in sorted(acls)]
    query = {**asked.filled, "instance": instance}
    table = make_table("By principal", ACL_COLUMNS, rows, firsts.get("first", 0), "access", **query)
    return WindowSection("acls", title, tables=(table,))


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
    rows = [tuple(map(_make_sheet_cell, sheet.names, row)) for row in sheet.rows]
    return make_table(caption, tuple(sheet.names), rows)


def _make_sheet_cell(name: str, value: object) -> Cell:
    if name == "via" and isinstance(value, tuple):
        return Cell("; ".join(describe_object(Identity("", KIND, str(key))) for key in value))
    return Cell(to_text(value))
