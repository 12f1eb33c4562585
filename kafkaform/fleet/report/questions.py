"""The questions that the report asks of the tables, as SQL. The engine counts, sorts and cuts, so
the report of three thousand clusters takes no more memory than that of three."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from ..tables.definitions import TABLES, quote_text
from ..tables.reader import Gold
from .rows import Mask, render_utc

LIMIT = 500
"""Rows of a table in the report; the CSV files have all."""
DAYS = 30
"""How many days the report looks back where it counts events."""

KNOWN = ("read", "partial")
"""Status of clusters whose rows tell how they are now."""
UNKNOWN = ("stale", "failed", "never")
"""Status of clusters of which nobody knows how they are now."""
PLACED = frozenset(
    name for name, table in TABLES.items() if "cluster" in table.names and name != "cluster"
)
"""Tables whose rows belong to a cluster."""

Rows = list[Mapping[str, Any]]
Answers = Mapping[str, Rows | None]
"""Question -> rows. None: the build lacks a table that is needed."""


class ReportQuestion(Struct, frozen=True):
    """A query. `{since}` and `{day}` are the start of the time that it covers, `{limit}` is
    LIMIT."""

    tables: tuple[str, ...]
    """The tables that it needs. The rows are shown as rows of the first, by which names are
    masked."""
    sql: str
    of_unknown: bool = False
    """It asks about clusters of which nobody knows how they are now, and not about the others."""


COST_PARTS = ("bytes", "ingress", "egress")
"""What of a cost may be unknown, as in `capacity.cost_unknown`."""
_SUMS = ("bytes", "bytes_per_day", "ingress_per_day", "egress_per_day", "cost")


def _sum(column: str) -> str:
    """The sum of a column of `capacity`."""
    if next(c.type for c in TABLES["capacity"].columns if c.name == column) != "double":
        return f"sum({column})"
    # A sum of doubles would depend on the order of the rows.
    return f"cast(sum(cast({column} as decimal(38, 9))) as double)"


def _sum_known(column: str) -> str:
    """The sum of a column, null if a part of it is."""
    return f"case when count({column}) = count(*) then {_sum(column)} end as {column}"


_UNKNOWN_PARTS = ", ".join(
    f"bool_or(array_has(cost_unknown, '{name}')) as unknown_{name}" for name in COST_PARTS
)
"""Columns for each part of a cost: true if it is unknown."""


NUMBERS: Mapping[str, ReportQuestion] = {
    "clusters": ReportQuestion(
        ("cluster",),
        "select status, registered, count(*) as clusters, min(captured_at) as oldest"
        " from cluster group by status, registered order by status, registered",
    ),
    "differing": ReportQuestion(
        ("drift",),
        "select count(*) as n from drift"
        " where path = '' and drift_class not in ('in_sync', 'unknown', 'undeclared_override',"
        " 'unmanaged', 'unadopted')",
    ),
    # Nobody has declared or recorded them, so they differ from nothing.
    "unmanaged": ReportQuestion(
        ("drift",),
        "select count(*) as n from drift"
        " where path = '' and drift_class in ('unmanaged', 'unadopted')",
    ),
    "outside": ReportQuestion(
        ("change_attribution",),
        "select count(*) as n from change_attribution"
        " where verdict = 'out_of_band' and window_end > {since}",
    ),
    "policy_high": ReportQuestion(
        ("policy_findings",),
        "select count(*) as n from policy_findings where severity = 'high' and not waived",
    ),
    "grants_high": ReportQuestion(
        ("grant_findings",), "select count(*) as n from grant_findings where severity = 'high'"
    ),
    "failed": ReportQuestion(
        ("apply_reliability",),
        "select coalesce(sum(failed), 0) as n from apply_reliability"
        " where error_code = '' and day > {day}",
    ),
}
"""Questions whose answers are compared with the build before."""

DETAILS: Mapping[str, ReportQuestion] = {
    "clusters_off": ReportQuestion(
        ("cluster",),
        "select count(*) over () as total, cluster, status, registered, owner, captured_at,"
        " coverage, error from cluster where status <> 'read' or not registered"
        " order by status, cluster limit {limit}",
    ),
    # Logs say what was done to a cluster, even if nobody knows how it is now.
    "failures_off": ReportQuestion(
        ("apply_reliability",),
        "select cluster, sum(failed) as failed, sum(unknown) as unknown from apply_reliability"
        " where error_code = '' and day > {day} group by cluster order by cluster",
        of_unknown=True,
    ),
    "states_off": ReportQuestion(
        ("lineage",),
        "select count(*) over () as total, coalesce(name, lineage) as state, owner, desired_at,"
        " state_at, error from lineage where not desired_known order by state, lineage"
        " limit {limit}",
    ),
    "drift_classes": ReportQuestion(
        ("drift",),
        "select drift_class, count(*) as objects, count(distinct cluster) as clusters,"
        " min(first_seen) as oldest from drift where path = '' group by drift_class"
        " order by drift_class",
    ),
    "drift_clusters": ReportQuestion(
        ("drift",),
        "select cluster, drift_class, count(*) as objects, min(first_seen) as oldest from drift"
        " where path = '' and drift_class <> 'in_sync' group by cluster, drift_class"
        " order by cluster, drift_class",
    ),
    "drift_owners": ReportQuestion(
        ("drift",),
        "select owner, drift_class, count(*) as objects from drift"
        " where path = '' and drift_class <> 'in_sync' group by owner, drift_class"
        " order by owner, drift_class",
    ),
    "overrides": ReportQuestion(
        ("drift",), "select count(*) as n from drift where drift_class = 'undeclared_override'"
    ),
    "drift_rows": ReportQuestion(
        ("drift",),
        "select count(*) over () as total, cluster, kind, key, path, drift_class, desired, state,"
        " live, owner, first_seen from drift where drift_class not in ('in_sync', 'unknown')"
        " and (path <> '' or drift_class not in"
        " ('drifted', 'pending_update', 'state_behind', 'conflict'))"
        " order by case when drift_class in ('drifted', 'conflict', 'deleted_out_of_band',"
        " 'undeclared_override') then 0 when drift_class in ('unmanaged', 'unadopted') then 2"
        " else 1 end, first_seen, cluster, kind, key, path limit {limit}",
    ),
    "drift_days": ReportQuestion(
        ("drift_daily",),
        "select day, drift_class, sum(objects) as objects from drift_daily"
        " where drift_class <> 'in_sync' and day > {day} group by day, drift_class"
        " order by day, drift_class",
    ),
    "change_days": ReportQuestion(
        ("change_attribution",),
        "select cast(window_end as date) as day, verdict, count(*) as changes"
        " from change_attribution where window_end > {since}"
        " group by cast(window_end as date), verdict order by day, verdict",
    ),
    "change_rows": ReportQuestion(
        ("change_attribution",),
        "select count(*) over () as total, window_start, window_end, cluster, kind, key, path,"
        " before, after, verdict, actor, run from change_attribution"
        " where verdict <> 'applied' and window_end > {since}"
        " order by window_end desc, cluster, kind, key, path, event_id limit {limit}",
    ),
    "grant_kinds": ReportQuestion(
        ("grant_findings",),
        "select finding, severity, count(*) as findings, count(distinct cluster) as clusters"
        " from grant_findings group by finding, severity order by finding, severity",
    ),
    "principals": ReportQuestion(
        ("grant_findings",),
        "select count(*) over () as total, principal,"
        " count(*) filter (where severity = 'high') as high,"
        " count(*) filter (where severity = 'medium') as medium,"
        " count(*) filter (where severity = 'low') as low, count(distinct cluster) as clusters"
        " from grant_findings where principal is not null group by principal"
        " order by high desc, medium desc, low desc, principal limit 20",
    ),
    "grant_rows": ReportQuestion(
        ("grant_findings",),
        "select count(*) over () as total, severity, finding, cluster, principal, subject,"
        " resource, detail, owner from grant_findings order by case severity when 'high' then 0"
        " when 'medium' then 1 else 2 end, cluster, finding, subject, resource limit {limit}",
    ),
    "credential_rows": ReportQuestion(
        ("credentials",),
        "select count(*) over () as total, cluster, kind, principal, key, subject, owner,"
        " days_left, ends_at, age_days, begins_at, origin from credentials"
        " order by days_left asc nulls last, age_days desc, cluster, kind, key limit {limit}",
    ),
    "policy_rows": ReportQuestion(
        ("policy_findings",),
        "select count(*) over () as total, severity, rule, cluster, kind, key, path, message,"
        " owner, waived, waived_until, first_seen from policy_findings"
        " order by waived, case severity when 'high' then 0 when 'medium' then 1 else 2 end,"
        " first_seen, rule, cluster, kind, key, path limit {limit}",
    ),
    "unused_verdicts": ReportQuestion(
        ("unused_topics",),
        "select verdict, count(*) as topics, sum(partitions) as partitions, sum(bytes) as bytes"
        " from unused_topics group by verdict order by verdict",
    ),
    "unused_rows": ReportQuestion(
        ("unused_topics",),
        "select count(*) over () as total, cluster, topic, owner, confidence, idle_since,"
        " partitions, bytes, evidence from unused_topics"
        " where verdict = 'candidate' order by confidence desc, idle_since, partitions desc,"
        " cluster, topic limit {limit}",
    ),
    "kept_topics": ReportQuestion(
        ("unused_topics",),
        "select count(*) over () as total, cluster, topic, owner, idle_since, bytes, kept"
        " from unused_topics where verdict = 'kept' order by cluster, topic limit {limit}",
    ),
    "quota_levels": ReportQuestion(
        ("effective_quotas",),
        "select quota_key, case when evaluable then level end as level, evaluable,"
        " count(*) as pairs, count(distinct cluster) as clusters from effective_quotas"
        " group by quota_key, case when evaluable then level end, evaluable"
        " order by quota_key, evaluable, level",
    ),
    "quota_rows": ReportQuestion(
        ("effective_quotas",),
        'select count(*) over () as total, cluster, "user", client_id, quota_key, value, level,'
        " entity, shared_scope, evaluable from effective_quotas"
        " where level is not null or not evaluable"
        ' order by quota_key, value, cluster, "user", client_id limit {limit}',
    ),
    "disk_rows": ReportQuestion(
        ("disks",),
        "select count(*) over () as total, cluster, broker, log_dirs, total_bytes, usable_bytes,"
        " used_share, used_per_day, full_on, failed from disks"
        " order by failed desc, full_on asc nulls last, used_share desc nulls last, cluster,"
        " broker, log_dirs limit {limit}",
    ),
    "growth_rows": ReportQuestion(
        ("topic_growth",),
        "select count(*) over () as total, cluster, topic, owner, partitions, bytes,"
        " bytes_per_day, records_per_day, bytes_skew, records_skew from topic_growth"
        " order by bytes_per_day desc nulls last, bytes desc nulls last, cluster, topic"
        " limit {limit}",
    ),
    "group_verdicts": ReportQuestion(
        ("group_progress",),
        "select verdict, count(*) as pairs, count(distinct cluster || ' ' || group_id) as members"
        " from group_progress group by verdict order by verdict",
    ),
    "group_rows": ReportQuestion(
        ("group_progress",),
        "select count(*) over () as total, cluster, group_id, topic, verdict, owner, members, lag,"
        " coalesce(moved_at, since) as since from group_progress"
        " where verdict in ('stuck', 'stopped', 'unused') order by case verdict when 'stuck' then 0"
        " when 'stopped' then 1 else 2 end, lag desc nulls last, cluster, group_id, topic"
        " limit {limit}",
    ),
    "capacity_clusters": ReportQuestion(
        ("capacity",),
        "select count(*) over () as total, cluster, topics, partitions, replicas, limit_replicas,"
        " growth_per_day, breach_on, below_rf, bytes, bytes_per_day, cost, cost_at_least,"
        " unpriced_topics, currency from capacity where subject = 'cluster'"
        " order by replicas * 1.0 / limit_replicas desc nulls last,"
        " replicas desc, cluster limit {limit}",
    ),
    "capacity_owners": ReportQuestion(
        ("capacity",),
        "select count(*) over () as total,"
        " case when subject <> 'unowned' then substr(subject, 7) end as owner, currency,"
        " count(distinct cluster) as clusters, sum(topics) as topics,"
        " sum(partitions) as partitions, sum(replicas) as replicas,"
        f" {', '.join(map(_sum_known, _SUMS))},"
        f" {_sum('cost_at_least')} as cost_at_least, sum(unpriced_topics) as unpriced_topics,"
        f" {_UNKNOWN_PARTS}"
        " from capacity where subject like 'owner %' or subject = 'unowned'"
        " group by subject, currency"
        " order by cost_at_least desc nulls last, replicas desc, owner, currency limit {limit}",
    ),
    "apply_days": ReportQuestion(
        ("apply_reliability",),
        "select day, sum(applied) as applied, sum(failed) as failed, sum(unknown) as unknown,"
        " sum(skipped) as skipped from apply_reliability where error_code = '' and day > {day}"
        " group by day order by day",
    ),
    # A run counts once per kind that it changed, so per day only the kind with the most counts.
    "apply_clusters": ReportQuestion(
        ("apply_reliability",),
        "select count(*) over () as total, cluster, sum(steps) as steps, sum(applied) as applied,"
        " sum(failed) as failed, sum(unknown) as unknown, sum(skipped) as skipped,"
        " sum(retries) as retries, sum(partial_runs) as partial_runs,"
        " sum(validated_then_failed) as validated_then_failed, max(p95_ms) as p95_ms"
        " from (select cluster, day, sum(steps) as steps, sum(applied) as applied,"
        " sum(failed) as failed, sum(unknown) as unknown, sum(skipped) as skipped,"
        " sum(retries) as retries, max(partial_runs) as partial_runs,"
        " sum(validated_then_failed) as validated_then_failed, max(p95_ms) as p95_ms"
        " from apply_reliability where error_code = '' and day > {day} group by cluster, day)"
        " group by cluster order by failed desc, unknown desc, steps desc, cluster limit {limit}",
    ),
    "apply_errors": ReportQuestion(
        ("apply_reliability",),
        "select count(*) over () as total, error_code, sum(failed) as failed,"
        " sum(unknown) as unknown, count(distinct cluster) as clusters from apply_reliability"
        " where error_code <> '' and day > {day} group by error_code"
        " order by failed desc, unknown desc, error_code limit 20",
    ),
    "chains": ReportQuestion(
        ("run",),
        "select chain, count(distinct lineage) as logs, count(*) as runs,"
        " count(*) filter (where ended_at is null) as unended from run"
        " group by chain order by chain",
    ),
    "consistency_rows": ReportQuestion(
        ("fleet_consistency",),
        "select count(*) over () as total, severity, finding, cluster, kind, key, detail, owner"
        " from fleet_consistency order by case severity when 'high' then 0"
        " when 'medium' then 1 else 2 end, finding, cluster, kind, key, detail limit {limit}",
    ),
    "consistency_kinds": ReportQuestion(
        ("fleet_consistency",),
        "select finding, severity, count(*) as findings, count(distinct cluster) as clusters"
        " from fleet_consistency group by finding, severity order by finding, severity",
    ),
    "quarantine": ReportQuestion(
        ("quarantine",),
        'select count(*) over () as total, source, reason, count(*) as lines, min("_file") as file,'
        ' max("_ingested_at") as newest from quarantine group by source, reason'
        " order by lines desc, source, reason limit {limit}",
    ),
}
"""The other questions."""


def ask_questions(
    gold: Gold, questions: Mapping[str, ReportQuestion], mask: Mask | None = None
) -> dict[str, Rows | None]:
    """Return the answers of one build, counted back from its own time. Raises StorageError."""
    since = gold.build.as_of - timedelta(days=DAYS)
    times = {
        "{since}": f"to_timestamp('{render_utc(since)}')",
        "{day}": f"date '{since.date().isoformat()}'",
        "{limit}": str(LIMIT),
    }
    return {
        name: _answer_question(gold, question, times, mask) for name, question in questions.items()
    }


def select_known(tables: Iterable[str], sql: str, *, of_unknown: bool = False) -> str:
    """The query over these tables without the rows of clusters of which nobody knows how they are
    now; of_unknown: with their rows alone. Rows that belong to no cluster count as known."""
    condition = "in" if of_unknown else "not in"
    statuses = ", ".join(map(quote_text, UNKNOWN))
    views = [
        f"{name} as (select * from {name} where cluster {condition}"
        f" (select cluster from cluster where status in ({statuses})))"
        for name in tables
        if name in PLACED
    ]
    if not views:
        return sql
    # A query that begins with views of its own goes on with them.
    body = sql.removeprefix("with ")
    return f"with {', '.join(views)}{', ' if body != sql else ' '}{body}"


def is_known(gold: Gold, table: str) -> bool:
    """The build tells which rows of the table say how clusters are now."""
    # A table that is missing is "unknown", never an empty answer. Without `cluster`, nobody knows
    # which rows tell how clusters are now.
    return gold.has(table, *(("cluster",) if table in PLACED else ()))


def _answer_question(
    gold: Gold, question: ReportQuestion, times: Mapping[str, str], mask: Mask | None
) -> Rows | None:
    if not all(is_known(gold, table) for table in question.tables):
        return None
    sql = select_known(question.tables, question.sql, of_unknown=question.of_unknown)
    for name, value in times.items():
        sql = sql.replace(name, value)
    rows = gold.read_rows(sql)
    return [mask(question.tables[0], row) if mask else row for row in rows]
