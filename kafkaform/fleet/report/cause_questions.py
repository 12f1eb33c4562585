"""The questions whose rows are causes (`causes`), as SQL: one row for all that one act, one ACL or
one rule did.

`rank` is that of the environment, `severity` counts from 0 (low). What follows from another cause,
or what nobody should mend before it, is counted at that cause (`waiting`), listed by name there
(`waits`), and is no row of its own.
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


def _list_waits(keys: str, source: str) -> str:
    """For each value of the keys, how many entries a query has (`waiting`), and the first
    (`waits`)."""
    # Lists are dear: no more than what is shown is put into one.
    return (
        f"(select {keys}, max(total) as waiting, array_agg(entry order by entry) as waits"
        f" from (select *, count(*) over (partition by {keys}) as total,"
        f" row_number() over (partition by {keys} order by entry) as place"
        f" from (select distinct {keys}, entry from ({source}))) where place <= {MAX_WAITS}"
        f" group by {keys})"
    )


def _name_entry(row: str) -> str:
    """`topic orders config.retention.ms`."""
    return f"trim(replace({row}.kind, 'kafka_', '') || ' ' || {row}.key || ' ' || {row}.path)"


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
        _collect("{0}.cluster", "clusters"),
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
    " order by ts desc, seq desc, event_id) as n from event where record = 'outcome'"
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
    " b.cause order by r.topics desc nulls last, b.severity desc, b.subject, b.resource) as n"
    " from broad b"
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
    " listed as "
    + _list_waits(
        "env, rank, cause",
        "select p.env, p.rank, b.cause, s.subject as entry from shadows s join broad b"
        " on b.cluster = s.cluster and b.subject = s.by join placed p on p.cluster = s.cluster",
    )
    + " select p.env, p.rank, 'kafka_acl' as kind, max(b.principal) as principal,"
    " count(distinct b.subject) as acls, first_value(b.subject order by b.n, b.subject)"
    " as subject, first_value(b.resource order by b.n, b.subject, b.resource) as resource,"
    " first_value(b.finding order by b.n, b.subject, b.resource, b.finding) as finding,"
    " bool_or(b.everybody) as everybody, bool_or(b.open) as open,"
    " max(case when b.everybody and (b.severity = 2 and starts_with(b.resource, 'cluster/')"
    f" or b.severity > 0 and b.name = '*') then {CRITICAL} else b.severity end) as severity,"
    " case when bool_or(b.everybody or b.open)"
    " then sum(case when b.n = 1 then h.principals end) else 1 end as principals,"
    " sum(case when b.n = 1 then b.topics end) as topics,"
    " case when count(b.bytes) = count(b.topics) then sum(case when b.n = 1 then b.bytes end) end"
    " as bytes, min(coalesce(l.since, c.window_end)) as since, sum(w.waiting) as waiting,"
    " first_value(i.waits order by b.n) as waits,"
    f" {_WHERE_AND_WHO.format('b', 'd')}"
    " from ranked b join placed p on p.cluster = b.cluster"
    " left join held h on h.cluster = b.cluster"
    " left join lived l on l.cluster = b.cluster and l.key = b.subject"
    " left join waiting w on w.cluster = b.cluster and w.by = b.subject"
    " left join listed i on i.env = p.env and i.rank = p.rank and i.cause = b.cause"
    " left join (select * from changes where n = 1 and kind = 'kafka_acl' and path = '') c"
    " on c.cluster = b.cluster and c.key = b.subject"
    " left join (select cluster, key, address, lineage from drift where kind = 'kafka_acl'"
    " and path = '') d on d.cluster = b.cluster and d.key = b.subject"
    " left join states s on s.lineage = d.lineage"
    " group by p.env, p.rank, b.cause order by rank, severity desc, principals desc,"
    " topics desc nulls last, subject, env, b.cause limit {limit}"
)
_HELD_BY = (
    "doubled as (select distinct cluster, kind, key from fleet_consistency"
    " where finding = 'two_owners'),"
    " altered as (select distinct l.lineage, f.key as log from fleet_consistency f join lineage l"
    " on coalesce(l.name, l.lineage) = f.key where f.finding = 'chain_broken')"
)
"""Objects that each apply of two states would undo, and logs beside which no apply begins."""
_ACTS = (
    f"{_HELD_BY}, seen as (select cluster, kind, key, path, desired, live, lineage, address, owner,"
    f" first_seen, case when drift_class in ({_EDITED}) then 'edited'"
    " when drift_class = 'deleted_out_of_band' then 'deleted'"
    " when starts_with(drift_class, 'pending_') then 'pending' else 'behind' end as act,"
    " drift_class from drift"
    f" where drift_class not in ({_SETTLED}, 'unmanaged', 'unadopted') and (path <> ''"
    " or drift_class not in ('drifted', 'conflict', 'pending_update', 'state_behind'))),"
    " acts as (select a.* from seen a left anti join doubled d on d.cluster = a.cluster"
    " and d.kind = a.kind and d.key = a.key"
    " left anti join altered l on l.lineage = a.lineage)"
)
"""`seen` is what differs, `acts` what of it can be mended now."""
_FOLLOWING = (
    "following as (select f.rule, f.cluster, f.kind, f.key, f.severity from policy_findings f"
    " join (select cluster, kind, key, min(first_seen) as since from seen where act = 'edited'"
    " group by cluster, kind, key) a on a.cluster = f.cluster and a.kind = f.kind"
    " and a.key = f.key where not f.waived and f.first_seen >= a.since)"
)
"""Rules that an object breaks since it was edited: the edit is the cause."""
_BROKEN_OBJECTS = (
    f"broken as (select cluster, kind, key, count(*) as waiting, max({_RISK}) as risk"
    " from following group by cluster, kind, key)"
)
_IN_VAIN = (
    "e.n = 1 and e.outcome = 'failed' and e.ts > {since} and e.cluster = a.cluster"
    " and e.kind = a.kind and e.key = a.key"
    " and (a.act = 'pending' or a.act in ('edited', 'deleted') and e.ts >= a.first_seen)"
)
"""An act (a) that the newest apply (e) tried to mend in vain: the failure is the cause."""
_IDLE_TOPICS = (
    "idle as (select u.cluster, u.topic, u.owner, u.bytes, u.idle_since, d.drift_class"
    " from unused_topics u left join (select cluster, key, drift_class from drift"
    " where kind = 'kafka_topic' and path = '' and drift_class = 'pending_delete') d"
    " on d.cluster = u.cluster and d.key = u.topic"
    " where u.verdict = 'candidate' and u.confidence >= 0.75)"
)
"""Topics that may be unused; drift_class: `pending_delete`, or null."""
_FINDING = (
    "select g.cluster, g.finding, g.subject, r.kind, r.key, r.act from grant_findings g"
    " join returning r on r.cluster = g.cluster"
)
_RETURNING = (
    "returning as (select cluster, kind, key, act from acts where act = 'deleted'"
    " or drift_class = 'pending_create'),"
    # The key of a login is `USER|MECHANISM`.
    f" back as ({_FINDING} and r.kind = 'kafka_user_scram_credential'"
    " and g.principal = 'User:' || split_part(r.key, '|', 1)"
    " where g.finding in ('no_login', 'quota_of_nobody')"
    f" union all {_FINDING} and r.kind = 'kafka_topic' and g.resource = 'topic/' || r.key"
    " where g.finding = 'matches_nothing'"
    # Apart, so that the join above is one of equal texts.
    f" union all {_FINDING} and r.kind = 'kafka_topic'"
    " and starts_with('topic/' || r.key, rtrim(g.resource, '*'))"
    " where g.finding = 'matches_nothing' and ends_with(g.resource, '*'))"
)
"""Findings that end as soon as an apply creates a login or topic."""
_USELESS = (
    f"with {_PLACED}, {_ACTS}, {_RETURNING},"
    " broad as (select distinct cluster, subject from grant_findings"
    f" where finding in ({_BROAD}, 'any_host', 'matches_nothing')),"
    " unsettled as (select distinct cluster, key from drift where kind = 'kafka_acl'"
    f" and path = '' and drift_class not in ({_SETTLED})),"
    " shadows as (select cluster, subject, principal, owner, regexp_replace(detail,"
    " '^(another ACL already says this: |it allows nothing, because of )', '') as by"
    " from grant_findings where finding = 'shadowed'),"
    # Of a stranger there is no owner to ask.
    " strangers as (select distinct cluster, principal from grant_findings"
    " where finding = 'unknown_principal'),"
    " useless as (select s.cluster, s.subject, s.principal, s.owner,"
    " case when u.key is null then 'shadowed' else 'unsettled' end as finding,"
    " s.subject as entry, u.key is not null as waits from shadows s"
    " left join broad b on b.cluster = s.cluster and b.subject = s.by"
    " left join unsettled u on u.cluster = s.cluster and u.key = s.by where b.subject is null"
    # Read implies Describe, and roles declare both: nobody can take one of them away.
    f" and not (regexp_like(s.subject, '\\|Describe(Configs)?\\|Allow\\|')"
    f" and {_PATTERN.format('s.subject')} = {_PATTERN.format('s.by')})"
    " union all select g.cluster, g.subject, g.principal, g.owner,"
    " case when t.principal is null then g.finding else 'unknown_principal' end as finding,"
    " g.subject as entry, t.principal is not null as waits from grant_findings g"
    " left join strangers t on t.cluster = g.cluster and t.principal = g.principal"
    " and g.finding in ('matches_nothing', 'any_host')"
    " left anti join back r on r.cluster = g.cluster and r.finding = g.finding"
    " and r.subject = g.subject where g.finding in ('matches_nothing', 'unknown_principal',"
    " 'no_login', 'any_host', 'quota_of_nobody')),"
    " listed as "
    + _list_waits(
        "env, rank, finding",
        "select p.env, p.rank, u.finding, u.entry from useless u"
        " join placed p on p.cluster = u.cluster where u.waits",
    )
    + " select p.env, p.rank, u.finding,"
    " count(distinct case when u.finding in ('unknown_principal', 'no_login') then principal"
    " else u.cluster || subject end) as objects,"
    " count(distinct principal) as principals,"
    " min(principal) as principal, max(l.waiting) as waiting, first_value(l.waits) as waits,"
    f" {_collect('p.cluster', 'clusters')}, {_collect('owner', 'owners')}"
    " from useless u join placed p on p.cluster = u.cluster"
    " left join listed l on l.env = p.env and l.rank = p.rank and l.finding = u.finding"
    " group by p.env, p.rank, u.finding order by rank, objects desc, finding, env limit {limit}"
)
_OUTSIDE = (
    f"with {_PLACED}, {_STATES}, {_LAST_CHANGES}, {_ACTS}, {_FOLLOWING}, {_BROKEN_OBJECTS},"
    f" {_ENDS}, {_RETURNING}, {_IDLE_TOPICS},"
    # Distinct rows first: a set for each topic takes far more memory.
    " readers as (select cluster, topic, count(*) as groups from (select distinct cluster,"
    " split_part(key, '|', -1) as topic,"
    r" regexp_replace(key, '\|[^|]*\|[^|]*$', '') as consumers"
    " from live where kind = 'group_usage') group by cluster, topic),"
    # What an apply tried in vain is listed at its failure.
    f" open_acts as (select a.* from acts a left anti join ends e on {_IN_VAIN}),"
    " placed_acts as (select *, concat_ws('|', env, act, type, attribute,"
    " coalesce(cast(day as varchar), ''), coalesce(lineage, '')) as cause from (select a.*,"
    " p.env, p.rank, case when act in ('edited', 'deleted') then path else '' end"
    " as attribute, case when act in ('edited', 'deleted') then kind else '' end as type,"
    " case when act in ('edited', 'deleted') then cast(first_seen as date) end as day"
    " from open_acts a join placed p on p.cluster = a.cluster)),"
    " listed as "
    + _list_waits(
        "cause",
        "select a.cause, f.rule as entry from placed_acts a join following f on a.act = 'edited'"
        " and f.cluster = a.cluster and f.kind = a.kind and f.key = a.key"
        " union all select a.cause, r.subject as entry from placed_acts a join back r"
        " on r.act = a.act and r.cluster = a.cluster and r.kind = a.kind and r.key = a.key"
        " union all select a.cause, 'topic ' || a.key as entry from placed_acts a join idle i"
        " on i.drift_class = a.drift_class and i.cluster = a.cluster and i.topic = a.key"
        " and a.kind = 'kafka_topic'",
    )
    + f" select {_GROUPED}, act, type as kind, attribute as path, count(*) as objects,"
    " min(a.key) as key, min(a.desired) as desired, min(a.live) as live,"
    " count(distinct coalesce(a.live, '')) as lives, count(distinct coalesce(a.desired, ''))"
    " as desires, min(a.first_seen) as since, max(case a.act when 'deleted' then 2"
    " when 'edited' then greatest(1, coalesce(b.risk, 0)) else 0 end) as severity,"
    " case when act = 'edited' then sum(b.waiting) else max(w.waiting) end as waiting,"
    " first_value(w.waits) as waits, count(u.topic) as topics,"
    " case when count(u.bytes) = count(u.topic) then sum(u.bytes) end as bytes,"
    f" sum(r.groups) as groups, {_WHERE_AND_WHO.format('a', 'a')}"
    " from placed_acts a left join listed w on w.cause = a.cause"
    " left join states s on s.lineage = a.lineage"
    " left join broken b on a.act = 'edited' and b.cluster = a.cluster and b.kind = a.kind"
    " and b.key = a.key"
    " left join (select cluster, topic, bytes from unused_topics) u on u.cluster = a.cluster"
    " and u.topic = a.key and a.type in ('kafka_topic', 'kafka_topic_config')"
    " left join readers r on r.cluster = a.cluster and r.topic = u.topic"
    " left join (select * from changes where n = 1) c on c.cluster = a.cluster and c.kind = a.kind"
    " and c.key = a.key and c.path = a.path"
    f" group by {_GROUPED}, act, type, attribute, day, a.lineage"
    " order by rank, severity desc, topics desc, objects desc, since, key, min(a.cause)"
    " limit {limit}"
)
_BROKEN = (
    f"with {_PLACED}, {_ACTS}, {_FOLLOWING}, {_IDLE_TOPICS},"
    f" findings as (select f.*, {_RISK} as risk from policy_findings f"
    " left anti join following w on w.rule = f.rule and w.cluster = f.cluster"
    " and w.kind = f.kind and w.key = f.key"
    " left anti join doubled d on d.cluster = f.cluster and d.kind = f.kind and d.key = f.key"
    " left anti join idle i on i.cluster = f.cluster and i.topic = f.key"
    " and f.kind = 'kafka_topic' where not f.waived)"
    f" select {_GROUPED}, f.rule, max(f.risk) as severity, min(f.message) as message,"
    " count(distinct f.cluster || '/' || f.kind || '/' || f.key) as objects,"
    " min(f.kind) as kind, min(f.key) as key, min(f.first_seen) as since,"
    f" {_collect('f.cluster', 'clusters')}, {_collect('f.owner', 'owners')}"
    " from findings f join placed p on p.cluster = f.cluster"
    f" group by {_GROUPED}, f.rule order by rank, severity desc, objects desc, f.rule, env"
    " limit {limit}"
)
_FAILED = (
    f"with {_PLACED}, {_STATES}, {_ACTS}, {_FOLLOWING}, {_BROKEN_OBJECTS}, {_ENDS},"
    " failed as (select e.*, concat_ws('|', p.env, coalesce(error_code, ''), e.lineage) as cause,"
    " p.env, p.rank from ends e join placed p on p.cluster = e.cluster"
    " left anti join doubled d on d.cluster = e.cluster and d.kind = e.kind and d.key = e.key"
    " left anti join altered l on l.lineage = e.lineage"
    " where n = 1 and outcome = 'failed' and ts > {since}),"
    f" held as (select e.cause, e.event_id, {_name_entry('a')} as entry,"
    " case a.act when 'deleted' then 2 when 'edited' then coalesce(b.risk, 1) else 1 end as risk"
    f" from acts a join failed e on {_IN_VAIN} left join broken b on a.act = 'edited'"
    " and b.cluster = a.cluster and b.kind = a.kind and b.key = a.key"
    # A rule that is broken since an edit waits with it.
    " union all select e.cause, e.event_id, f.rule as entry, 1 as risk from failed e"
    " join following f on f.cluster = e.cluster and f.kind = e.kind and f.key = e.key"
    f" join acts a on a.act = 'edited' and {_IN_VAIN}),"
    " listed as "
    + _list_waits("cause", "select cause, entry from held")
    + ", risks as (select cause, max(risk) as risk from held group by cause)"
    f" select {_GROUPED}, error_code, count(*) as objects, min(e.kind) as kind, min(e.key) as key,"
    " max(e.error) as error, min(e.ts) as since, max(e.run) as run,"
    " greatest(1, coalesce(max(h.risk), 0)) as severity, max(w.waiting) as waiting,"
    " first_value(w.waits) as waits,"
    f" {_collect('e.cluster', 'clusters')}, {_collect('e.actor', 'actors')},"
    f" {_collect('s.state', 'states')}, {_collect('e.address', 'addresses')}"
    " from failed e left join listed w on w.cause = e.cause"
    " left join risks h on h.cause = e.cause left join states s on s.lineage = e.lineage"
    f" group by {_GROUPED}, error_code, e.lineage order by rank, objects desc, since, min(e.cause)"
    " limit {limit}"
)
_FULL = (
    f"with {_PLACED} select {_GROUPED}, replicas, limit_replicas, growth_per_day, breach_on,"
    f" topics, bytes, array[p.cluster] as clusters from capacity c"
    " join placed p on p.cluster = c.cluster where subject = 'cluster'"
    " and (breach_on is not null or replicas > limit_replicas)"
    " order by rank, breach_on nulls first, p.cluster limit {limit}"
)
_DISKS = (
    f"with {_PLACED} select {_GROUPED}, count(*) as objects, min(full_on) as full_on,"
    f" count(*) filter (where failed) as failed, {_collect('p.cluster', 'clusters')}"
    " from disks d join placed p on p.cluster = d.cluster where full_on is not null or failed"
    f" group by {_GROUPED}, d.cluster, failed order by rank, failed desc, full_on, d.cluster"
    " limit {limit}"
)
_EXPIRING = (
    f"with {_PLACED} select {_GROUPED}, key = {quote_text(LOGIN)} as own, count(*) as objects,"
    f" min(ends_at) as ends_at,"
    f" min(days_left) as days_left, {_collect('p.cluster', 'clusters')}"
    " from credentials c join placed p on p.cluster = c.cluster"
    f" where kind = 'certificate' and days_left <= {SOON_DAYS}"
    f" group by {_GROUPED}, own, days_left < 0 order by rank, days_left, env, own"
    " limit {limit}"
)
_IDLE = (
    f"with {_PLACED}, {_ACTS}, {_FOLLOWING}, {_IDLE_TOPICS},"
    # What is about to be deleted is listed there, and what two states record at that.
    " asked as (select i.*, p.env, p.rank, concat_ws('|', p.env, i.owner is null,"
    " coalesce(i.owner, '')) as cause from idle i join placed p on p.cluster = i.cluster"
    " left anti join doubled d on d.cluster = i.cluster and d.kind = 'kafka_topic'"
    " and d.key = i.topic where i.drift_class is null),"
    f" held as (select a.cause, f.rule || ' (topic ' || f.key || ')' as entry, {_RISK} as risk"
    " from asked a join policy_findings f on f.cluster = a.cluster and f.kind = 'kafka_topic'"
    " and f.key = a.topic left anti join following w on w.rule = f.rule and w.cluster = f.cluster"
    " and w.kind = f.kind and w.key = f.key where not f.waived),"
    " listed as "
    + _list_waits("cause", "select cause, entry from held")
    + ", risks as (select cause, max(risk) as risk from held group by cause)"
    f" select {_GROUPED}, owner, count(*) as topics,"
    " case when count(bytes) = count(*) then sum(bytes) end as bytes,"
    " coalesce(max(h.risk), 0) as severity, max(w.waiting) as waiting,"
    " first_value(w.waits) as waits,"
    f" max(idle_since) as since, {_collect('a.cluster', 'clusters')} from asked a"
    " left join listed w on w.cause = a.cause left join risks h on h.cause = a.cause"
    f" group by {_GROUPED}, owner order by rank, bytes desc nulls last, topics desc, env, owner"
    " limit {limit}"
)
_DOUBTED = (
    f"with {_PLACED}, {_ACTS}, {_ENDS}, {_IDLE_TOPICS},"
    " doubts as (select finding, kind, key, detail, owner, case when cluster = '' then null"
    " else cluster end as cluster, clusters from fleet_consistency where severity = 'high'"
    " and finding in ('chain_broken', 'conflicting_event', 'two_owners')),"
    f" waiting as (select cluster, kind, key, lineage, {_name_entry('a')} as entry from seen a"
    " union all select cluster, kind, key, lineage,"
    " 'apply of ' || replace(kind, 'kafka_', '') || ' ' || key as entry from ends"
    " where n = 1 and outcome = 'failed' and ts > {since}"
    " union all select cluster, kind, key, null as lineage,"
    " rule || ' (' || replace(kind, 'kafka_', '') || ' ' || key || ')' as entry"
    " from policy_findings where not waived"
    " union all select cluster, 'kafka_topic' as kind, topic as key, null as lineage,"
    " 'unused topic ' || topic as entry from idle),"
    " listed as "
    + _list_waits(
        "finding, kind, key",
        "select 'two_owners' as finding, d.kind, d.key, w.entry from doubled d join waiting w"
        " on w.cluster = d.cluster and w.kind = d.kind and w.key = d.key"
        " union all select 'chain_broken' as finding, 'state' as kind, l.log as key, w.entry"
        " from altered l join waiting w on w.lineage = l.lineage",
    )
    + ", places as (select d.finding, d.kind, d.key, p.env, p.rank from (select finding, kind, key,"
    " unnest(case when cluster is null then clusters else array[cluster] end) as cluster"
    " from doubts) d join placed p on p.cluster = d.cluster),"
    " ranks as (select finding, kind, key, min(rank) as rank,"
    " first_value(env order by rank, env) as env from places group by finding, kind, key)"
    " select d.finding, d.kind, d.key, coalesce(max(r.rank), 1) as rank, max(r.env) as env,"
    " count(*) as objects, min(detail) as detail,"
    " max(w.waiting) as waiting, first_value(w.waits) as waits,"
    f" {_collect('owner', 'owners')}, {_collect('cluster', 'clusters')} from doubts d"
    " left join listed w on w.finding = d.finding and w.kind = d.kind and w.key = d.key"
    " left join ranks r on r.finding = d.finding and r.kind = d.kind and r.key = d.key"
    " group by d.finding, d.kind, d.key order by rank, waiting desc nulls last, finding, key,"
    " d.kind limit {limit}"
)
_JUDGED_ACTS = ("drift", "fleet_consistency", "lineage")
"""What tells which differences can be mended now."""
CAUSES: Mapping[str, ReportQuestion] = {
    "cause_access": ReportQuestion(
        ("grant_findings", "cluster", "unused_topics", "effective_permissions", "history")
        + ("change_attribution", "drift", "lineage"),
        _ACCESS,
    ),
    "cause_useless": ReportQuestion(("grant_findings", "cluster", *_JUDGED_ACTS), _USELESS),
    "cause_outside": ReportQuestion(
        (*_JUDGED_ACTS, "cluster", "unused_topics", "live", "policy_findings")
        + ("change_attribution", "event", "grant_findings"),
        _OUTSIDE,
    ),
    "cause_broken": ReportQuestion(
        ("policy_findings", "cluster", "unused_topics", *_JUDGED_ACTS), _BROKEN
    ),
    "cause_failed": ReportQuestion(("event", "cluster", "policy_findings", *_JUDGED_ACTS), _FAILED),
    "cause_full": ReportQuestion(("capacity", "cluster"), _FULL),
    "cause_disks": ReportQuestion(("disks", "cluster"), _DISKS),
    "cause_expiring": ReportQuestion(("credentials", "cluster"), _EXPIRING),
    "cause_idle": ReportQuestion(
        ("unused_topics", "cluster", "policy_findings", *_JUDGED_ACTS), _IDLE
    ),
    "cause_doubted": ReportQuestion(
        ("fleet_consistency", "cluster", "drift", "lineage", "event", "policy_findings")
        + ("unused_topics",),
        _DOUBTED,
    ),
}
"""Questions whose rows are causes."""
