"""The questions whose rows are causes (`causes`), as SQL: one row for all that one act, one ACL or
one rule did.

`rank` is that of the environment, `severity` counts from 0 (low). What follows from another cause
is counted at that cause (`waiting`) and is no row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.landing import LOGIN
from ..tables.definitions import quote_text
from .questions import ReportQuestion

_ENV_RANKS = (
    (("prod", "prd", "live"), 0),
    (("stag", "stg", "pre", "uat", "qa"), 2),
    (("dev", "test", "lab", "sandbox"), 3),
)
"""How names of environments begin, and their rank. Others may be production: they have 1."""
CRITICAL = 3
"""Above `high`, which is 2: everybody's right on everything."""
SOON_DAYS = 30
"""A certificate that expires so soon is a cause."""
MAX_WAITS = 20
"""How many of those that wait for a cause, or follow from it, are listed."""
_BROAD = "'any_principal', 'any_operation', 'any_resource', 'short_prefix', 'open_by_default'"
_SETTLED = "'in_sync', 'unknown'"
_EDITED = "'drifted', 'conflict', 'undeclared_override'"


def _make_ranks() -> str:
    cases = (
        f"when starts_with(lower(env), '{prefix}') then {rank}"
        for prefixes, rank in _ENV_RANKS
        for prefix in prefixes
    )
    return f"case {' '.join(cases)} else 1 end"


def _collect(column: str, name: str) -> str:
    return (
        f"array_agg(distinct {column} order by {column})"
        f" filter (where {column} is not null) as {name}"
    )


def _list(column: str) -> str:
    return f"array_slice(array_agg(distinct {column} order by {column}), 1, {MAX_WAITS})"


_PLACED = (
    f"placed as (select cluster, coalesce(env, '') as env, {_make_ranks()} as rank from cluster)"
)
_RISK = "case severity when 'high' then 2 when 'medium' then 1 else 0 end"
_STATES = "states as (select lineage, coalesce(name, lineage) as state from lineage)"
_LAST_CHANGES = (
    "changes as (select cluster, kind, key, path, window_end, verdict, actor, run,"
    " row_number() over (partition by cluster, kind, key, path order by window_end desc, event_id)"
    " as n from change_attribution)"
)
_WHERE_AND_WHO = ", ".join(
    (
        _collect("p.cluster", "clusters"),
        _collect("{0}.owner", "owners"),
        _collect("c.actor", "actors"),
        _collect("c.verdict", "verdicts"),
        "max(c.run) as run",
        _collect("s.state", "states"),
        _collect("{1}.address", "addresses"),
    )
)
_GROUPED = "env, rank"
_PATTERN = r"regexp_replace({0}, '\|[A-Za-z]+\|(Allow|Deny)\|', '|')"
"""The key of an ACL without its operation and permission."""
_ENDS = (
    "ends as (select *, row_number() over (partition by cluster, kind, key"
    " order by ts desc, seq desc) as n from event where record = 'outcome'"
    " and outcome in ('applied', 'failed'))"
)

_ACCESS = (
    f"with {_PLACED}, {_STATES}, {_LAST_CHANGES},"
    " broad as (select cluster, subject, resource, max(principal) as principal,"
    " max(owner) as owner, substr(resource, strpos(resource, '/') + 1) as name,"
    f" max({_RISK}) as severity, bool_or(finding = 'any_principal') as everybody,"
    " min(finding) as finding, bool_or(finding = 'open_by_default') as open,"
    # What everybody may do is a cause each; the broad ACLs of one principal are one.
    " case when max(principal) = 'User:*' then subject || ' ' || resource else max(principal) end"
    f" as cause from grant_findings where finding in ({_BROAD})"
    " group by cluster, subject, resource),"
    " sizes as (select cluster, topic, bytes from unused_topics),"
    " totals as (select cluster, count(*) as topics,"
    " case when count(bytes) = count(*) then sum(bytes) end as bytes from sizes group by cluster),"
    " patterns as (select distinct cluster, resource, name from broad"
    " where starts_with(resource, 'topic/') and resource <> 'topic/*'),"
    " reach as (select cluster, 'topic/*' as resource, topics, bytes from totals"
    " union all select p.cluster, p.resource, count(*) as topics,"
    " case when count(u.bytes) = count(*) then sum(u.bytes) end as bytes"
    " from patterns p join sizes u on u.cluster = p.cluster and (u.topic = p.name"
    " or (ends_with(p.name, '*') and starts_with(u.topic, rtrim(p.name, '*'))))"
    " group by p.cluster, p.resource),"
    # Of several ACLs the widest says how far a principal reaches: their topics overlap.
    " ranked as (select b.*, r.topics, r.bytes, row_number() over (partition by b.cluster,"
    " b.cause order by r.topics desc nulls last, b.severity desc, b.subject) as n from broad b"
    " left join reach r on r.cluster = b.cluster and r.resource = case when b.open"
    " or starts_with(b.resource, 'cluster/') then 'topic/*' else b.resource end),"
    " held as (select cluster, count(distinct principal) as principals from effective_permissions"
    " where principal <> 'User:*' group by cluster),"
    " lived as (select cluster, key, min(valid_from) as since from history"
    " where kind = 'kafka_acl' and valid_to is null group by cluster, key),"
    " shadows as (select cluster, subject,"
    " substr(detail, length('another ACL already says this: ') + 1) as by"
    " from grant_findings where finding = 'shadowed'"
    " and starts_with(detail, 'another ACL already says this: ')),"
    " waiting as (select cluster, by, count(*) as waiting from shadows group by cluster, by),"
    # Lists are dear, so only what everybody's ACLs hold back is listed.
    f" listed as (select cluster, by, {_list('subject')} as waits from shadows"
    " where starts_with(by, 'User:*|') group by cluster, by)"
    f" select {_GROUPED}, 'kafka_acl' as kind, max(b.principal) as principal,"
    " count(distinct b.subject) as acls, first_value(b.subject order by b.n, b.subject)"
    " as subject, first_value(b.resource order by b.n, b.subject) as resource,"
    " first_value(b.finding order by b.n, b.subject) as finding,"
    " bool_or(b.everybody) as everybody, bool_or(b.open) as open,"
    " max(case when b.everybody and (b.severity = 2 and starts_with(b.resource, 'cluster/')"
    f" or b.severity > 0 and b.name = '*') then {CRITICAL} else b.severity end) as severity,"
    " case when bool_or(b.everybody or b.open)"
    " then sum(case when b.n = 1 then h.principals end) else 1 end as principals,"
    " sum(case when b.n = 1 then b.topics end) as topics,"
    " case when count(b.bytes) = count(b.topics) then sum(case when b.n = 1 then b.bytes end) end"
    " as bytes, min(coalesce(l.since, c.window_end)) as since, sum(w.waiting) as waiting,"
    " first_value(i.waits order by w.waiting desc nulls last) as waits,"
    f" {_WHERE_AND_WHO.format('b', 'd')}"
    " from ranked b join placed p on p.cluster = b.cluster"
    " left join held h on h.cluster = b.cluster"
    " left join lived l on l.cluster = b.cluster and l.key = b.subject"
    " left join waiting w on w.cluster = b.cluster and w.by = b.subject"
    " left join listed i on i.cluster = b.cluster and i.by = b.subject"
    " left join (select * from changes where n = 1 and kind = 'kafka_acl' and path = '') c"
    " on c.cluster = b.cluster and c.key = b.subject"
    " left join (select cluster, key, address, lineage from drift where kind = 'kafka_acl'"
    " and path = '') d on d.cluster = b.cluster and d.key = b.subject"
    " left join states s on s.lineage = d.lineage"
    f" group by {_GROUPED}, b.cause order by rank, severity desc, principals desc,"
    " topics desc nulls last, subject limit {limit}"
)
_USELESS = (
    f"with {_PLACED}, broad as (select distinct cluster, subject from grant_findings"
    f" where finding in ({_BROAD}, 'any_host', 'matches_nothing')),"
    " unsettled as (select distinct cluster, key from drift where kind = 'kafka_acl'"
    f" and path = '' and drift_class not in ({_SETTLED})),"
    " shadows as (select cluster, subject, principal, owner, regexp_replace(detail,"
    " '^(another ACL already says this: |it allows nothing, because of )', '') as by"
    " from grant_findings where finding = 'shadowed'),"
    " useless as (select s.cluster, s.subject, s.principal, s.owner,"
    " case when u.key is null then 'shadowed' else 'unsettled' end as finding from shadows s"
    " left join broad b on b.cluster = s.cluster and b.subject = s.by"
    " left join unsettled u on u.cluster = s.cluster and u.key = s.by where b.subject is null"
    # Read implies Describe, and roles declare both: nobody can take one of them away.
    f" and not (regexp_like(s.subject, '\\|Describe(Configs)?\\|Allow\\|')"
    f" and {_PATTERN.format('s.subject')} = {_PATTERN.format('s.by')})"
    " union all select cluster, subject, principal, owner, finding from grant_findings"
    " where finding in ('matches_nothing', 'unknown_principal', 'no_login', 'any_host',"
    " 'quota_of_nobody'))"
    f" select {_GROUPED}, finding,"
    " count(distinct case when finding in ('unknown_principal', 'no_login') then principal"
    " else u.cluster || subject end) as objects,"
    " count(distinct principal) as principals,"
    " min(principal) as principal,"
    f" {_collect('p.cluster', 'clusters')}, {_collect('owner', 'owners')}"
    " from useless u join placed p on p.cluster = u.cluster"
    f" group by {_GROUPED}, finding order by rank, objects desc, finding limit {{limit}}"
)
_ACTS = (
    "acts as (select cluster, kind, key, path, desired, live, lineage, address, owner, first_seen,"
    f" case when drift_class in ({_EDITED}) then 'edited'"
    " when drift_class = 'deleted_out_of_band' then 'deleted'"
    " when starts_with(drift_class, 'pending_') then 'pending' else 'behind' end as act from drift"
    f" where drift_class not in ({_SETTLED}, 'unmanaged', 'unadopted') and (path <> ''"
    " or drift_class not in ('drifted', 'conflict', 'pending_update', 'state_behind')))"
)
_FOLLOWING = (
    "following as (select f.rule, f.cluster, f.kind, f.key, f.severity from policy_findings f"
    " join (select cluster, kind, key, min(first_seen) as since from acts where act = 'edited'"
    " group by cluster, kind, key) a on a.cluster = f.cluster and a.kind = f.kind"
    " and a.key = f.key where not f.waived and f.first_seen >= a.since)"
)
"""Rules that an object breaks since it was edited: the edit is the cause."""
_OUTSIDE = (
    f"with {_PLACED}, {_STATES}, {_LAST_CHANGES}, {_ACTS}, {_FOLLOWING}, {_ENDS},"
    f" broken as (select cluster, kind, key, count(*) as waiting, max({_RISK}) as risk,"
    f" {_list('rule')} as rules from following group by cluster, kind, key),"
    # Distinct rows first: a set for each topic takes far more memory.
    " readers as (select cluster, topic, count(*) as groups from (select distinct cluster,"
    " split_part(key, '|', -1) as topic,"
    r" regexp_replace(key, '\|[^|]*\|[^|]*$', '') as consumers"
    " from live where kind = 'group_usage') group by cluster, topic),"
    " placed_acts as (select a.*, case when act in ('edited', 'deleted') then path else '' end"
    " as attribute, case when act in ('edited', 'deleted') then kind else '' end as type,"
    " case when act in ('edited', 'deleted') then cast(first_seen as date) end as day from acts a)"
    f" select {_GROUPED}, act, type as kind, attribute as path, count(*) as objects,"
    " min(a.key) as key, min(a.desired) as desired, min(a.live) as live,"
    " count(distinct coalesce(a.live, '')) as lives, count(distinct coalesce(a.desired, ''))"
    " as desires, min(a.first_seen) as since, max(case a.act when 'deleted' then 2"
    " when 'edited' then greatest(1, coalesce(b.risk, 0)) else 0 end) as severity,"
    " sum(b.waiting) as waiting,"
    " first_value(b.rules order by b.waiting desc nulls last) as waits, count(u.topic) as topics,"
    " case when count(u.bytes) = count(u.topic) then sum(u.bytes) end as bytes,"
    f" sum(r.groups) as groups, {_WHERE_AND_WHO.format('a', 'a')}"
    " from placed_acts a join placed p on p.cluster = a.cluster"
    " left join states s on s.lineage = a.lineage"
    " left join ends e on e.n = 1 and e.outcome = 'failed' and e.cluster = a.cluster"
    " and e.kind = a.kind and e.key = a.key"
    " left join broken b on a.act = 'edited' and b.cluster = a.cluster and b.kind = a.kind"
    " and b.key = a.key"
    " left join (select cluster, topic, bytes from unused_topics) u on u.cluster = a.cluster"
    " and u.topic = a.key and a.type in ('kafka_topic', 'kafka_topic_config')"
    " left join readers r on r.cluster = a.cluster and r.topic = u.topic"
    " left join (select * from changes where n = 1) c on c.cluster = a.cluster and c.kind = a.kind"
    " and c.key = a.key and c.path = a.path"
    # What an apply tried in vain is a cause of its own.
    " where not (a.act = 'pending' and e.key is not null)"
    f" group by {_GROUPED}, act, type, attribute, day, a.lineage"
    " order by rank, severity desc, topics desc, objects desc, since, key limit {limit}"
)
_BROKEN = (
    f"with {_PLACED}, {_ACTS}, {_FOLLOWING},"
    f" findings as (select f.*, {_RISK} as risk from policy_findings f"
    " left anti join following w on w.rule = f.rule and w.cluster = f.cluster"
    " and w.kind = f.kind and w.key = f.key where not f.waived)"
    f" select {_GROUPED}, f.rule, max(f.risk) as severity, min(f.message) as message,"
    " count(distinct f.cluster || '/' || f.kind || '/' || f.key) as objects,"
    " min(f.kind) as kind, min(f.key) as key, min(f.first_seen) as since,"
    f" {_collect('f.cluster', 'clusters')}, {_collect('f.owner', 'owners')}"
    " from findings f join placed p on p.cluster = f.cluster"
    f" group by {_GROUPED}, f.rule order by rank, severity desc, objects desc, f.rule"
    " limit {limit}"
)
_FAILED = (
    f"with {_PLACED}, {_STATES}, {_ENDS}"
    f" select {_GROUPED}, error_code, count(*) as objects, min(e.kind) as kind, min(e.key) as key,"
    " max(e.error) as error, min(e.ts) as since, max(e.run) as run,"
    f" {_collect('e.cluster', 'clusters')}, {_collect('e.actor', 'actors')},"
    f" {_collect('s.state', 'states')}, {_collect('e.address', 'addresses')}"
    " from ends e join placed p on p.cluster = e.cluster"
    " left join states s on s.lineage = e.lineage"
    " where n = 1 and outcome = 'failed' and ts > {since}"
    f" group by {_GROUPED}, error_code, e.lineage order by rank, objects desc, since"
    " limit {limit}"
)
_FULL = (
    f"with {_PLACED} select {_GROUPED}, replicas, limit_replicas, growth_per_day, breach_on,"
    f" topics, bytes, array[p.cluster] as clusters from capacity c"
    " join placed p on p.cluster = c.cluster where subject = 'cluster'"
    " and (breach_on is not null or replicas > limit_replicas)"
    " order by rank, breach_on nulls first limit {limit}"
)
_DISKS = (
    f"with {_PLACED} select {_GROUPED}, count(*) as objects, min(full_on) as full_on,"
    f" count(*) filter (where failed) as failed, {_collect('p.cluster', 'clusters')}"
    " from disks d join placed p on p.cluster = d.cluster where full_on is not null or failed"
    f" group by {_GROUPED}, d.cluster, failed order by rank, failed desc, full_on limit {{limit}}"
)
_EXPIRING = (
    f"with {_PLACED} select {_GROUPED}, key = {quote_text(LOGIN)} as own, count(*) as objects,"
    f" min(ends_at) as ends_at,"
    f" min(days_left) as days_left, {_collect('p.cluster', 'clusters')}"
    " from credentials c join placed p on p.cluster = c.cluster"
    f" where kind = 'certificate' and days_left <= {SOON_DAYS}"
    f" group by {_GROUPED}, own, days_left < 0 order by rank, days_left limit {{limit}}"
)
_IDLE = (
    f"with {_PLACED} select {_GROUPED}, owner, count(*) as topics,"
    " case when count(bytes) = count(*) then sum(bytes) end as bytes,"
    f" max(idle_since) as since, {_collect('p.cluster', 'clusters')} from unused_topics u"
    " join placed p on p.cluster = u.cluster where verdict = 'candidate' and confidence >= 0.75"
    f" group by {_GROUPED}, owner order by rank, bytes desc nulls last, topics desc limit {{limit}}"
)
_DOUBTED = (
    "select finding, kind, key, count(*) as objects, min(detail) as detail,"
    f" {_collect('owner', 'owners')}, {_collect('cluster', 'clusters')} from fleet_consistency"
    " where severity = 'high' and finding in ('chain_broken', 'conflicting_event', 'two_owners')"
    " group by finding, kind, key order by finding, key limit {limit}"
)
CAUSES: Mapping[str, ReportQuestion] = {
    "cause_access": ReportQuestion(
        ("grant_findings", "cluster", "unused_topics", "effective_permissions", "history")
        + ("change_attribution", "drift", "lineage"),
        _ACCESS,
    ),
    "cause_useless": ReportQuestion(("grant_findings", "cluster", "drift"), _USELESS),
    "cause_outside": ReportQuestion(
        ("drift", "cluster", "unused_topics", "live", "policy_findings", "change_attribution")
        + ("event", "lineage"),
        _OUTSIDE,
    ),
    "cause_broken": ReportQuestion(("policy_findings", "cluster", "drift"), _BROKEN),
    "cause_failed": ReportQuestion(("event", "cluster", "lineage"), _FAILED),
    "cause_full": ReportQuestion(("capacity", "cluster"), _FULL),
    "cause_disks": ReportQuestion(("disks", "cluster"), _DISKS),
    "cause_expiring": ReportQuestion(("credentials", "cluster"), _EXPIRING),
    "cause_idle": ReportQuestion(("unused_topics", "cluster"), _IDLE),
    "cause_doubted": ReportQuestion(("fleet_consistency", "cluster"), _DOUBTED),
}
"""Questions whose rows are causes."""
