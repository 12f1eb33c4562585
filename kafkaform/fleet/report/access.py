"""Sections on who may do what, which rules are broken, and who may spend how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .charts import Bar, Chart, Series
from .grids import CLUSTER, DETAIL, FINDING, OBJECT, OWNER, SEVERITY, Column, Kind, grid, total
from .sections import Block, Known, Outline, Piece, count, named

SEVERITIES = (
    Series("high", "high", "H"),
    Series("medium", "medium", "M"),
    Series("low", "low", "L"),
)
FINDINGS: Mapping[str, str] = {
    "any_principal": "everybody is allowed",
    "any_operation": "every operation is allowed",
    "any_resource": "every resource is allowed",
    "short_prefix": "a short prefix is allowed",
    "any_host": "from every host",
    "shadowed": "the ACL has no effect",
    "matches_nothing": "the ACL matches nothing",
    "unknown_principal": "nobody knows the principal",
    "no_login": "the principal has no login",
    "open_by_default": "allowed where no ACL is",
}
_PRINCIPALS = (
    Column("principal", "Principal", Kind.CODE),
    Column("high", "High", Kind.NUMBER),
    Column("medium", "Medium", Kind.NUMBER),
    Column("low", "Low", Kind.NUMBER),
    Column("clusters", "Clusters", Kind.NUMBER),
)
_GRANTS = (
    SEVERITY,
    FINDING,
    CLUSTER,
    Column("principal", "Principal", Kind.CODE),
    Column("resource", "Resource", Kind.CODE),
    DETAIL,
    Column("subject", "ACL or principal", Kind.KEY),
    OWNER,
)
_RULES = (
    SEVERITY,
    Column("rule", "Rule", Kind.CODE),
    CLUSTER,
    OBJECT,
    Column("message", "Message", Kind.LONG),
    Column("first_seen", "Since", Kind.TIME),
    Column("waived", "Waived", Kind.FLAG),
    Column("waived_until", "Until", Kind.DAY),
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
    Column("user", "User", Kind.CODE, "any other"),
    Column("client_id", "Client", Kind.CODE, "any other"),
    Column("quota_key", "Quota", Kind.CODE),
    Column("value", "Limit", Kind.NUMBER, "not known"),
    Column("from", "Set by", Kind.WORD),
    Column("shared_scope", "Shared with"),
)
_BY_LEVEL = (
    Column("quota_key", "Quota", Kind.CODE),
    Column("from", "Set by", Kind.WORD),
    Column("pairs", "Users and clients", Kind.NUMBER),
    Column("clusters", "Clusters", Kind.NUMBER),
)


def findings(
    rows: Sequence[Mapping[str, Any]], place: str, title: str, words: Mapping[str, str]
) -> Chart:
    """Bars of findings by kind, the most severe first."""
    counted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        counted[row["finding"]][row["severity"]] += row["findings"]
    bars = [
        Bar(words.get(finding, finding), tuple(counts[s.key] for s in SEVERITIES))
        for finding, counts in counted.items()
    ]
    bars.sort(key=lambda bar: ([-value for value in bar.values], bar.label))
    return Chart(place, title, "findings", "kind of finding", SEVERITIES, tuple(bars))


def granted(known: Known, as_of: datetime) -> Block:
    kinds = known["grant_kinds"]
    rows = [{**row, "what": FINDINGS.get(row["finding"])} for row in known["grant_rows"]]
    high = total([row for row in kinds if row["severity"] == "high"], "findings")
    everything = total(kinds, "findings")
    lead = (
        f"{count(everything, 'access finding')}, {high:,} of high severity."
        if everything
        else "No access findings."
    )
    chart = findings(kinds, "grants", "Access findings by kind", FINDINGS)
    return Block(
        (lead,),
        (chart,),
        (
            grid("Principals with the most severe findings", _PRINCIPALS, known["principals"]),
            grid("Access findings", _GRANTS, rows, "grant_findings"),
        ),
    )


def ruled(known: Known, as_of: datetime) -> Block:
    rows = known["policy_rows"]
    table = grid("Rules that are broken", _RULES, named(rows), "policy_findings")
    if not rows:
        return Block(("No rule is broken.",), (), (table,))
    return Block((f"{count(table.total, 'finding')} of rules, waived ones last.",), (), (table,))


def limited(known: Known, as_of: datetime) -> Block:
    levels = [{**row, "from": _source(row)} for row in known["quota_levels"]]
    rows = [{**row, "from": _source(row)} for row in known["quota_rows"]]
    pairs = total(levels, "pairs")
    free = total([row for row in levels if row["evaluable"] and row["level"] is None], "pairs")
    lead = (
        f"{free:,} of {count(pairs, 'user and client', 'users and clients')} with each quota key "
        "have no limit."
        if pairs
        else "No quotas and no users to judge."
    )
    return Block(
        (lead,),
        (),
        (
            grid("Where limits come from", _BY_LEVEL, levels),
            grid("Limits in force, smallest first", _QUOTAS, rows, "effective_quotas"),
        ),
    )


def _source(row: Mapping[str, Any]) -> str:
    if not row["evaluable"]:
        return "the brokers' own callback"
    return _LEVELS.get(row["level"], "unknown")


PERMISSIONS = Outline(
    "permissions",
    "Permissions and rules",
    "Grants that are broader than they look, useless ones, and rules of fleet.hcl that are broken.",
    (
        Piece("access findings", ("grant_kinds", "grant_rows", "principals"), granted),
        Piece("rules", ("policy_rows",), ruled),
    ),
)
QUOTAS = Outline(
    "quotas",
    "Quotas",
    "Which limit is in force for whom, and who spends from the same one.",
    (Piece("quotas", ("quota_levels", "quota_rows"), limited),),
)
