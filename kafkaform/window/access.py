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
from kafkaform_kafka.inspect.explanations import (
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
from ..fleet.report.rows import Sheet, to_text
from ..state.model import Row, State
from ..workflow.fleet.answers import find_who_can
from .page import (
    ACL_COLUMNS,
    Blank,
    Cell,
    CellRow,
    Choice,
    Form,
    WindowPage,
    WindowSection,
    WindowTable,
    describe_object,
    link_object,
    make_acl_row,
    make_table,
)
from .sources import (
    DeclaredRules,
    Query,
    Sources,
    build_recorded_access,
    collect_acls,
    list_instances,
    read_number,
    read_rules,
)

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
    source: str
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
    return WindowPage(page.menu_path, page.title, page.subtitle, (*page.sections, fleet))


def read_question(query: Query) -> AccessForm:
    """The question of a query. What the form cannot ask becomes what it asks first."""
    fields = {name: query.get(name, "").strip() for name in AccessForm.__struct_fields__}
    question = AccessForm(**fields)
    if question.kind not in SUPPORTED:
        fields["kind"] = "Topic"
    if question.no_acl not in RULES:
        fields["no_acl"] = ""
    return AccessForm(**fields)


def show_access(
    state: State | None,
    question: AccessForm,
    rules: DeclaredRules = DeclaredRules(),
    firsts: Mapping[str, int] = EMPTY,
) -> WindowPage:
    """The page of these recorded ACLs and declared rules. firsts: part of the query -> the row to
    begin with, for the answers, the ACLs that were considered, and all ACLs (`first`)."""
    instances = list_instances(state, rules.blocks)
    if not instances:
        lead = ("The state records no ACLs.",)
        section = WindowSection("answer", "By the recorded ACLs", lead)
        return WindowPage("access", "Who may do what", "", (section,))
    instance = question.instance if question.instance in instances else instances[0]
    basis = RecordedRules(
        collect_acls(state).get(instance, {}),
        rules.blocks.get(instance, EMPTY),
        rules.sources.get(instance, ""),
        str(state.providers.get(instance, "")) if state else "",
    )
    form = _make_form(instances, instance, question, basis.declared)
    answer = _answer_question(basis, question, form, firsts)
    if gap := rules.explain_gap(instance):
        gap_warning = f"The configuration's authorizer block may be incomplete: {gap}."
        warning = f"{answer.warning} {gap_warning}".strip()
        answer = replace(answer, warning=warning)
    sections = (answer, _list_acls(basis.acls, instance, question, firsts))
    return WindowPage("access", "Who may do what", "", sections)


def _answer_question(
    basis: RecordedRules, access_form: AccessForm, form: Form, firsts: Mapping[str, int]
) -> WindowSection:
    title, facts = "By the recorded ACLs", _list_rules(basis, access_form)
    name = CLUSTER if access_form.kind == "Cluster" else access_form.name
    if not name:
        return WindowSection("answer", title, (ONLY_RECORDED,), facts=facts, form=form)
    wrong = " ".join(_find_faults(access_form))
    if wrong:
        return WindowSection("answer", title, warning=wrong, facts=facts, form=form)
    rule = {"yes": True, "no": False}.get(access_form.no_acl)
    access = build_recorded_access(
        basis.acls, basis.declared, _split_names(access_form.super_users) or None, rule
    )
    host = normalize_host(access_form.host) if access_form.host else None
    operations = (access_form.right,) if access_form.right else SUPPORTED[access_form.kind]
    question = AccessQuery(access_form.kind, name, operations, access_form.principal or None, host)
    document = explain_access(access, question, basis.scope)
    lead = [ONLY_RECORDED]
    if document["unknown"]:
        lead.append(_describe_unknown(document["unknown"]))
    tables = tuple(_list_tables(document, basis, access_form, firsts))
    if not document["answers"]:
        lead.append("By these ACLs, nobody can.")
    return WindowSection("answer", title, tuple(lead), facts=facts, form=form, tables=tables)


def _find_faults(question: AccessForm) -> Iterator[str]:
    """Why the question has no answer, as `explain access` says it."""
    names = {"Principal": (question.principal,), "Super users": _split_names(question.super_users)}
    for field, principals in names.items():
        for name in filter(None, principals):
            if fault := find_principal_fault(name):
                yield f"{field}: {name} {fault[0]}. {fault[1]}"
    if question.right and question.right not in SUPPORTED[question.kind]:
        listed = ", ".join(SUPPORTED[question.kind])
        text = f"{question.right} does not exist for resources of type {question.kind}"
        yield f"{text}. Use {listed}."
    try:
        normalize_host(question.host or "127.0.0.1")
    except ValueError:
        yield f"{question.host} is not an IP address: ACLs are compared with addresses, not names."


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
    document: FrozenMap, basis: RecordedRules, question: AccessForm, firsts: Mapping[str, int]
) -> Iterator[WindowTable]:
    """The answers, and the ACLs that were looked at for them."""
    if rows := [_make_answer_row(answer) for answer in document["answers"]]:
        address = document["host"] or "any address"
        caption = f"{document['resource_type']} {document['resource_name']}, from {address}"
        columns: tuple[str, ...] = ("Principal", "Operation", "Answer", "Why")
        yield _make_answer_table(caption, columns, rows, "answers", question, firsts)
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
        yield _make_answer_table(caption, columns, acl_rows, "considered", question, firsts)


def _make_answer_table(
    caption: str,
    columns: tuple[str, ...],
    rows: Sequence[CellRow],
    field: str,
    question: AccessForm,
    firsts: Mapping[str, int],
) -> WindowTable:
    return make_table(
        caption, columns, rows, firsts.get(field, 0), "access", field, **question.filled
    )


def _list_rules(basis: RecordedRules, question: AccessForm) -> tuple[tuple[str, Cell], ...]:
    """What holds beside the ACLs, and who says so."""
    source_note = f" (declared, {basis.source})" if basis.source else " (declared)"
    supers, rule = basis.declared.get("super_users"), basis.declared.get("allow_if_no_acl")
    declared = {
        "Super users": None if supers is None else ", ".join(supers) or "none",
        "Without an ACL": None if rule is None else RULES["yes" if rule else "no"],
    }
    form_values = {
        "Super users": ", ".join(_split_names(question.super_users)),
        "Without an ACL": RULES[question.no_acl] if question.no_acl else "",
    }
    return tuple(
        (
            name,
            Cell(
                f"{form_values[name]} (from the form)"
                if form_values[name]
                else ("not known" if text is None else text + source_note)
            ),
        )
        for name, text in declared.items()
    )


def _make_form(
    instances: tuple[str, ...], instance: str, question: AccessForm, declared: FrozenMap
) -> Form:
    supers, rule = declared.get("super_users"), declared.get("allow_if_no_acl")
    usual = "not known" if rule is None else f"as declared: {RULES['yes' if rule else 'no']}"
    operations = {name: name for names in SUPPORTED.values() for name in names}
    hint = "not known, or User:a; User:b" if supers is None else "as declared"
    choices = {name: name for name in instances}
    fields = (
        *((Choice("instance", "Provider", instance, choices),) if len(instances) > 1 else ()),
        Choice("kind", "Resource type", question.kind, {name: name for name in SUPPORTED}),
        Blank("name", "Resource", question.name, "orders"),
        Choice("right", "Operation", question.right, {"": "all", **operations}),
        Blank("principal", "Principal", question.principal, "all, or User:ci"),
        Blank("host", FIELDS[Need.HOST], question.host, "any"),
        Blank("super_users", FIELDS[Need.SUPER_USERS], question.super_users, hint),
        Choice("no_acl", FIELDS[Need.ALLOW_IF_NO_ACL], question.no_acl, {**RULES, "": usual}),
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
    acls: Mapping[Acl, Row], instance: str, question: AccessForm, firsts: Mapping[str, int]
) -> WindowSection:
    title = f"Recorded ACLs of {instance}"
    if not acls:
        return WindowSection("acls", title, (f"The state records no ACLs of {instance}.",))
    rows = [make_acl_row(acls[acl]) for acl in sorted(acls)]
    query = {**question.filled, "instance": instance}
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
            principal_name, host_name = principal or None, host or None
            sheet = find_who_can(
                root, operation, resource, cluster=None, principal=principal_name, host=host_name
            )
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
