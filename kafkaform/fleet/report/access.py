"""Sections of the report on permissions, rules and quotas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from kafkaform_kafka.rules.access_rows import EVERY, EVERYBODY, EVERYTHING, UNCHANGED
from kafkaform_kafka.rules.missing_names import LOGIN_MISSING

from ...core.landing import LOGIN
from ...core.rule import Rule
from ..tables.definitions import SOON_DAYS
from .figures import (
    CLUSTER,
    DETAIL,
    FINDING,
    OBJECT,
    OWNER,
    SEVERITY,
    Bar,
    Chart,
    ColumnKind,
    GridColumn,
    Outline,
    SectionAnswers,
    SectionBlock,
    SectionPiece,
    Series,
    make_grid,
    name_objects,
    render_count,
    sum_column,
)

SEVERITIES = (
    Series("high", "high", "H"),
    Series("medium", "medium", "M"),
    Series("low", "low", "L"),
)
RULES: Mapping[str, Rule] = {
    "any_principal": EVERYBODY,
    "any_operation": EVERYTHING,
    "any_resource": EVERY,
    "shadowed": UNCHANGED,
    "no_login": LOGIN_MISSING,
}
"""Finding -> the rule that finds the same in a plan."""
FINDINGS: Mapping[str, str] = {
    # A cell of a table begins with a small letter.
    **{finding: rule.title[0].lower() + rule.title[1:] for finding, rule in RULES.items()},
    "short_prefix": "a short prefix is allowed",
    "any_host": "from every host",
    "matches_nothing": "the ACL matches nothing",
    "unknown_principal": "nobody knows the principal",
    "quota_of_nobody": "the quota's user does not exist",
    "open_by_default": "allowed where there is no ACL",
}


class UselessWords(Struct, frozen=True):
    """What is told of a finding on ACLs that change nothing, or on strangers."""

    severity: str
    noun: str
    plural: str
    mend: str
    command: str = ""


USELESS: Mapping[str, UselessWords] = {
    "shadowed": UselessWords(
        "low",
        "ACL changes nobody's access",
        "ACLs change nobody's access",
        "Another ACL, which its state keeps, says the same. Delete their blocks: the plan shows "
        "that nobody loses anything.",
    ),
    "unsettled": UselessWords(
        "low",
        "ACL has no effect beside an ACL that is not settled",
        "ACLs have no effect beside ACLs that are not settled",
        "Keep them. No state manages the broader ACLs, or those are to be deleted: settle that "
        "first.",
        "kafkaform import --all --type kafka_acl --out acls.kf.hcl",
    ),
    "matches_nothing": UselessWords(
        "low",
        "ACL matches no topic or group",
        "ACLs match no topic or group",
        "Ask the owners: a topic or group may come later, or come again.",
    ),
    "any_host": UselessWords(
        "low",
        "ACL allows every host, and other ACLs of the principal do not",
        "ACLs allow every host, and other ACLs of the principals do not",
        "Ask the owners from where these clients connect.",
    ),
    "unknown_principal": UselessWords(
        "medium",
        "principal has ACLs, and nobody declares it",
        "principals have ACLs, and nobody declares them",
        "Name them in the principals of an owner in fleet.hcl; whom nobody wants to own loses its "
        "ACLs.",
    ),
    "quota_of_nobody": UselessWords(
        "low",
        "quota is of a user that does not exist",
        "quotas are of users that do not exist",
        "Ask the owners: a misspelt name limits nobody. Correct or delete these quotas.",
    ),
    "no_login": UselessWords(
        "low",
        "principal has ACLs and no SCRAM credential",
        "principals have ACLs and no SCRAM credential",
        "Declare their kafka_user_scram_credential, or ask the owners how they log in.",
    ),
}
"""Finding -> what a cause says of it. `unsettled`: shadowed by an ACL that may go."""

_PRINCIPALS = (
    GridColumn("principal", "Principal", ColumnKind.CODE),
    GridColumn("high", "High", ColumnKind.NUMBER),
    GridColumn("medium", "Medium", ColumnKind.NUMBER),
    GridColumn("low", "Low", ColumnKind.NUMBER),
    GridColumn("clusters", "Clusters", ColumnKind.NUMBER),
)
_GRANTS = (
    SEVERITY,
    FINDING,
    CLUSTER,
    GridColumn("principal", "Principal", ColumnKind.CODE),
    GridColumn("resource", "Resource", ColumnKind.CODE),
    DETAIL,
    GridColumn("subject", "ACL, quota or principal", ColumnKind.KEY),
    OWNER,
)
_CREDENTIAL_KINDS: Mapping[str, str] = {
    "kafka_user_scram_credential": "password",
    "delegation_token": "delegation token",
    "certificate": "certificate of a broker",
    LOGIN: "certificate of the fleet's own login",
}
"""Kind of a credential, or its key -> what it is."""
_ORIGINS: Mapping[str, str] = {
    "cluster": "the cluster",
    "log": "the log of an apply",
    "snapshot": "a snapshot",
}
_CREDENTIALS = (
    CLUSTER,
    GridColumn("what", "Credential", ColumnKind.WORD),
    GridColumn("principal", "Principal", ColumnKind.CODE, "none"),
    GridColumn("key", "User, token or broker", ColumnKind.KEY),
    GridColumn("days_left", "Days left", ColumnKind.NUMBER, "does not expire"),
    GridColumn("age_days", "Age in days, at least", ColumnKind.NUMBER),
    GridColumn("from", "Known from", ColumnKind.WORD),
    GridColumn("ends_at", "Expires", ColumnKind.TIME, "does not expire"),
    OWNER,
)
_RULES = (
    SEVERITY,
    GridColumn("rule", "Rule", ColumnKind.CODE),
    CLUSTER,
    OBJECT,
    GridColumn("message", "Message", ColumnKind.LONG),
    GridColumn("first_seen", "Since", ColumnKind.TIME),
    GridColumn("waived", "Waived", ColumnKind.FLAG),
    GridColumn("waived_until", "Until", ColumnKind.DAY),
    OWNER,
)
_LEVELS: Mapping[int | None, str] = {
    1: "user and client",
    2: "user and default client",
    3: "user",
    4: "default user and client",
    5: "default user and default client",
    6: "default user",
    7: "client",
    8: "default client",
    None: "no limit",
}
_QUOTAS = (
    CLUSTER,
    GridColumn("user", "User", ColumnKind.CODE, "any other"),
    GridColumn("client_id", "Client", ColumnKind.CODE, "any other"),
    GridColumn("quota_key", "Quota", ColumnKind.CODE),
    GridColumn("value", "Limit", ColumnKind.NUMBER, "unknown"),
    GridColumn("unit", "Unit", ColumnKind.WORD),
    GridColumn("from", "Set by", ColumnKind.WORD),
    GridColumn("shared_scope", "Shared with"),
)
_QUOTA_UNITS: Mapping[str, str] = {
    "producer_byte_rate": "bytes a second",
    "consumer_byte_rate": "bytes a second",
    "request_percentage": "% of a thread",
    "controller_mutation_rate": "partitions a second",
    "connection_creation_rate": "connections a second",
}
_BY_LEVEL = (
    GridColumn("quota_key", "Quota", ColumnKind.CODE),
    GridColumn("from", "Set by", ColumnKind.WORD),
    GridColumn("pairs", "Users and clients", ColumnKind.NUMBER),
    GridColumn("clusters", "Clusters", ColumnKind.NUMBER),
)


def chart_findings(
    rows: Sequence[Mapping[str, Any]], anchor: str, title: str, words: Mapping[str, str]
) -> Chart:
    """Draw a bar per kind of finding, the most severe first."""
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        counted[row["finding"]][row["severity"]] += row["findings"]
    bars = [
        Bar(words.get(finding, finding), tuple(counts[s.key] for s in SEVERITIES))
        for finding, counts in counted.items()
    ]
    bars.sort(key=lambda bar: ([-value for value in bar.values], bar.label))
    return Chart(anchor, title, "findings", "kind of finding", SEVERITIES, tuple(bars))


def _describe_finding(finding: str) -> str:
    """Its words, with the id of its rule as plans write it."""
    rule = RULES.get(finding)
    words = FINDINGS.get(finding, finding)
    return words if rule is None else f"{words} [{rule.id}]"


def show_grants(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on access findings."""
    kinds = answers["grant_kinds"]
    rows = [{**row, "what": _describe_finding(row["finding"])} for row in answers["grant_rows"]]
    high = sum_column([row for row in kinds if row["severity"] == "high"], "findings")
    everything = sum_column(kinds, "findings")
    lead = (
        f"{render_count(everything, 'access finding')}, {high:,} of high severity."
        if everything
        else "No access findings."
    )
    chart = chart_findings(kinds, "grants", "Access findings by kind", FINDINGS)
    return SectionBlock(
        (lead,),
        (chart,),
        (
            make_grid(
                "Principals with the most severe findings", _PRINCIPALS, answers["principals"]
            ),
            make_grid("Access findings", _GRANTS, rows, "grant_findings"),
        ),
    )


def show_rules(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on broken rules."""
    rows = answers["policy_rows"]
    table = make_grid("Rules that are broken", _RULES, name_objects(rows), "policy_findings")
    if not rows:
        return SectionBlock(("No rule is broken.",), (), (table,))
    return SectionBlock(
        (f"{render_count(table.total, 'finding')} of rules, waived ones last.",), (), (table,)
    )


def show_credentials(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on credentials that expire or are old."""
    rows = [
        {
            **row,
            "what": _CREDENTIAL_KINDS.get(LOGIN if row["key"] == LOGIN else row["kind"], "unknown"),
            "from": _ORIGINS.get(row["origin"], "unknown"),
        }
        for row in answers["credential_rows"]
    ]
    soon = sum(1 for row in rows if row["days_left"] is not None and row["days_left"] < SOON_DAYS)
    lead = (
        f"{render_count(soon, 'certificate or token', 'certificates or tokens')} "
        f"expired or will expire within {SOON_DAYS} days."
        if soon
        else f"No certificate or token that was seen expires within {SOON_DAYS} days."
    )
    caption = "Credentials, the first to expire first, then the oldest passwords"
    return SectionBlock((lead,), grids=(make_grid(caption, _CREDENTIALS, rows, "credentials"),))


def show_quotas(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on quotas."""
    levels = [{**row, "from": _name_source(row)} for row in answers["quota_levels"]]
    rows = [
        {**row, "from": _name_source(row), "unit": _QUOTA_UNITS.get(row["quota_key"])}
        for row in answers["quota_rows"]
    ]
    user_count = sum_column(levels, "pairs")
    unlimited = sum_column(
        [row for row in levels if row["evaluable"] and row["level"] is None], "pairs"
    )
    lead = (
        f"{unlimited:,} of {render_count(user_count, 'user and client', 'users and clients')} "
        "with each quota key have no limit."
        if user_count
        else "No quotas and no users to judge."
    )
    return SectionBlock(
        (lead,),
        (),
        (
            make_grid("Where limits come from", _BY_LEVEL, levels),
            make_grid("Limits in force, smallest first", _QUOTAS, rows, "effective_quotas"),
        ),
    )


def _name_source(row: Mapping[str, Any]) -> str:
    if not row["evaluable"]:
        return "the brokers' own callback"
    return _LEVELS.get(row["level"], "unknown")


PERMISSIONS = Outline(
    "permissions",
    "Permissions and rules",
    "Grants that are broader than they look, useless ones, and rules of fleet.hcl that are broken.",
    (
        SectionPiece("access findings", ("grant_kinds", "grant_rows", "principals"), show_grants),
        SectionPiece("credentials", ("credential_rows",), show_credentials),
        SectionPiece("rules", ("policy_rows",), show_rules),
    ),
)
QUOTAS = Outline(
    "quotas",
    "Quotas",
    "Which limit applies to whom, and who shares it.",
    (SectionPiece("quotas", ("quota_levels", "quota_rows"), show_quotas),),
)
