"""What to do first: causes instead of rows, ranked by environment, severity, reach and age.

A cause is one thing that somebody can mend. What follows from it, or must wait until it is mended,
is listed under it and is no cause of its own: an ACL that has no effect because everybody may do
the same must stay, or it is missing on the day on which the right of everybody goes away.

Pure functions: `cause_questions` counts and cuts in the engine.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ...core.text import inline
from .access import RULES, USELESS
from .cause_model import CLIPPED, NAME_CHARACTERS, SEVERITIES, Cause, Reach, name_some
from .figures import (
    clip_text,
    render_count,
    render_setting,
)
from .questions import Answers

SHOWN_CAUSES = 10
"""The page shows as many at once, and the others on demand."""
MAX_CAUSES = 50
DAYS_URGENT = 7
"""A certificate that expires so soon is of high severity."""
SOON = timedelta(days=30)
"""A limit that is reached so soon is of high severity."""
Row = Mapping[str, Any]
"""Column -> its value, of a question."""


def rank_causes(answers: Answers, as_of: datetime) -> tuple[Cause, ...]:
    """Return the causes, the first to mend first: by environment, severity, reach and age."""
    causes = [make(row, as_of) for name, make in _MAKERS.items() for row in answers.get(name) or ()]
    causes.sort(
        key=lambda cause: (
            cause.rank,
            -SEVERITIES.index(cause.severity),
            *(-value for value in cause.reach.order),
            cause.since or as_of,
            cause.title,
        )
    )
    return tuple(causes[:MAX_CAUSES])


def list_missing(answers: Answers) -> tuple[str, ...]:
    """Name what could not be judged, because the build lacks tables."""
    return tuple(words for name, words in _PARTS.items() if answers.get(name) is None)


def _quote(name: str) -> str:
    return shlex.quote(clip_text(inline(name), 3 * NAME_CHARACTERS))


def _make_query(sql: str) -> str:
    # In double quotes a shell reads these four.
    quoted = shlex.quote(sql) if re.search(r'["$`\\!]', sql) else f'"{sql}"'
    return f"kafkaform fleet query {quoted}"


def _quote_text(text: str) -> str:
    return "'" + inline(text).replace("'", "''") + "'"


def _take_common(row: Row) -> dict[str, Any]:
    """The members of a cause that every row has."""
    return {
        "env": inline(row.get("env") or ""),
        "rank": row.get("rank", 1),
        "clusters": tuple(row["clusters"] or ()),
        "owners": tuple(row.get("owners") or ()),
        "since": row.get("since"),
        "waits": tuple(row.get("waits") or ()),
    }


def _describe_actor(row: Row) -> str:
    """Who made the change that is the cause."""
    if row.get("actors"):
        run = f" (run {clip_text(inline(row['run']), NAME_CHARACTERS)})" if row.get("run") else ""
        return f"by {name_some(row['actors'])}{run}"
    return "not by kafkaform" if "out_of_band" in (row.get("verdicts") or ()) else ""


def _name_folder(row: Row) -> str:
    """` in the folder of state shop`, or nothing if no state has it."""
    states = row.get("states")
    if not states:
        return ""
    noun = "state" if len(states) == 1 else "states"
    return f" in the folder of {noun} {name_some(states)}"


def _aim(row: Row) -> str:
    """` --target ADDRESS` for one object."""
    addresses: Sequence[str] = row.get("addresses") or ()
    return f" --target {_quote(addresses[0])}" if len(addresses) == row["objects"] == 1 else ""


_RESOURCES: Mapping[str, str] = {
    "topic": "topic",
    "group": "group",
    "transactional_id": "transactional id",
    "delegation_token": "delegation token",
    "user": "user",
}
_FIELD = re.compile(r"(?:[^\\|]|\\.)+")


def _describe_resource(resource: str) -> str:
    """`every topic`, `topics that begin with pay.`, `topic orders`, `the cluster`."""
    kind, _, name = resource.partition("/")
    noun = _RESOURCES.get(kind)
    if noun is None:
        return "the cluster"
    if name == "*":
        return f"every {noun}"
    short_name = clip_text(inline(name), NAME_CHARACTERS)
    if name.endswith("*"):
        return f"{noun}s that begin with {short_name[:-1]}"
    return f"{noun} {short_name}"


def _make_access(row: Row, as_of: datetime) -> Cause:
    everybody = row["everybody"] or row["open"]
    subject = "Everybody (User:*)" if everybody else clip_text(inline(row["principal"]), CLIPPED)
    fields = _FIELD.findall(row["subject"])
    operation = fields[2] if len(fields) > 2 else ""
    if row["open"]:
        right = "may do everything with what has no ACL"
    elif row["acls"] > 1:
        right = (
            f"has {row['acls']:,} broad ACLs, the widest on {_describe_resource(row['resource'])}"
        )
    elif operation == "All":
        right = f"has every right on {_describe_resource(row['resource'])}"
    else:
        right = f"has {inline(operation)} on {_describe_resource(row['resource'])}"
    rule = RULES.get("any_principal" if row["everybody"] else row["finding"])
    mend, command = _mend_access(row, everybody=everybody)
    waiting = int(row["waiting"] or 0)
    return Cause(
        SEVERITIES[int(row["severity"])],
        f"{subject} {right}",
        mend,
        command,
        "permissions",
        rule=rule.id if rule else "",
        reach=_measure(row),
        actor=_describe_actor(row),
        waiting=(
            f"{render_count(waiting, 'ACL')} {'has' if waiting == 1 else 'have'} no effect because "
            "of it: keep "
            f"{'it' if waiting == 1 else 'them'}, {'it is' if waiting == 1 else 'they are'} needed "
            "as soon as this is mended."
        )
        if waiting
        else "",
        **_take_common(row),
    )


def _mend_access(row: Row, *, everybody: bool) -> tuple[str, str]:
    """What to do about an ACL, and what to type."""
    if row["open"]:
        cluster = _quote(row["clusters"][0])
        return (
            "Declare ACLs for every client first. Then set allow.everyone.if.no.acl.found to false "
            "on the brokers.",
            f"kafkaform fleet permissions --cluster {cluster}",
        )
    acl, block = ("ACL", "block") if row["acls"] == 1 else ("ACLs", "blocks")
    before = "First declare what each client needs. Then " if everybody else ""
    verb = "delete" if everybody else "narrow or delete"
    addresses = row["addresses"] or ()
    if addresses:
        mend = f"{before}{verb} {name_some(addresses)}{_name_folder(row)}"
        return _begin(f"{mend}: the plan shows who loses access."), "kafkaform plan"
    return (
        _begin(
            f"{before}take the {acl} over, since no state has {'it' if acl == 'ACL' else 'them'}, "
            f"and {verb} the {block}: the plan shows who loses access."
        ),
        "kafkaform import --all --type kafka_acl --out acls.kf.hcl",
    )


def _begin(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _measure(row: Row) -> Reach:
    return Reach(
        **{name: int(row[name]) for name in Reach.__struct_fields__ if row.get(name) is not None}
    )


def _make_useless(row: Row, as_of: datetime) -> Cause:
    words = USELESS[row["finding"]]
    finding = "shadowed" if row["finding"] == "unsettled" else row["finding"]
    rule = RULES.get(finding)
    query = (
        "select cluster, principal, subject, owner, detail from grant_findings"
        f" where finding = '{finding}'"
    )
    return Cause(
        words.severity,
        render_count(int(row["objects"]), words.noun, words.plural),
        words.mend,
        words.command or _make_query(query),
        "permissions",
        rule=rule.id if rule else "",
        reach=Reach(principals=int(row["principals"])),
        waiting=_tell_waiting(row, _WAITING.get(row["finding"], "")),
        **_take_common(row),
    )


def _tell_waiting(row: Row, sentence: str) -> str:
    """The sentence on what waits, with its number: `{0}`; empty if nothing does."""
    count = int(row["waiting"] or 0)
    return sentence.format(render_count(count, "finding")) if count else ""


_WAITING: Mapping[str, str] = {
    "unknown_principal": "Nobody can be asked about {0} on these ACLs before.",
    "unsettled": "{0} to look at again when that is settled.",
    "deleted": "See what is left when this is mended: {0} may end with it.",
    "pending": "See what is left when this is applied: {0} may end with it.",
    "failed": "{0} cannot be mended before: an apply tried that in vain.",
    "idle": "{0} on these topics may end with them: ask first.",
    "two_owners": "{0} on it to look at again after that: the other state may undo a mend.",
    "chain_broken": "{0} cannot be mended before: a plan of the state needs a sound log.",
}
"""Kind of cause, or finding -> what is said about what waits for it."""


def _make_outside(row: Row, as_of: datetime) -> Cause:
    return _ACTS_MADE[row["act"]](row)


def _name_object(row: Row, count: int) -> str:
    noun = row["kind"].removeprefix("kafka_").replace("_", " ")
    if count == 1:
        return f"{noun} {clip_text(inline(row['key']), NAME_CHARACTERS)}"
    return render_count(count, noun)


def _describe_value(row: Row, name: str, values: str) -> str:
    if row[values] != 1:
        return "several values"
    value = row[name]
    pattern = render_setting(row["path"], value)
    return "not set" if pattern is None else clip_text(inline(pattern), NAME_CHARACTERS)


def _make_edited(row: Row) -> Cause:
    count, waiting = int(row["objects"]), int(row["waiting"] or 0)
    live, desired = (
        _describe_value(row, *names) for names in (("live", "lives"), ("desired", "desires"))
    )
    path = clip_text(inline(row["path"]), NAME_CHARACTERS)
    broken = render_count(waiting, "broken rule")
    return Cause(
        SEVERITIES[int(row["severity"])],
        f"{path} of {_name_object(row, count)} was edited: {live} instead of {desired}",
        f"Apply{_name_folder(row)} to set it back (the plan comes first and shows what that "
        "deletes), or declare what is live.",
        f"kafkaform apply{_aim(row)}",
        "drift",
        reach=_measure(row),
        actor=_describe_actor(row),
        waiting=f"{broken} since then: see what is left when this is mended." if waiting else "",
        **_take_common(row),
    )


def _make_deleted(row: Row) -> Cause:
    count = int(row["objects"])
    verb = "was" if count == 1 else "were"
    return Cause(
        SEVERITIES[int(row["severity"])],
        f"{_name_object(row, count)} {verb} deleted outside kafkaform",
        f"Apply{_name_folder(row)} to create {'it' if count == 1 else 'them'} again, empty; or "
        "remove what is not wanted any more from the configuration.",
        f"kafkaform apply{_aim(row)}",
        "drift",
        reach=_measure(row),
        actor=_describe_actor(row),
        waiting=_tell_waiting(row, _WAITING["deleted"]),
        **_take_common(row),
    )


def _make_pending(row: Row) -> Cause:
    count = int(row["objects"])
    return Cause(
        "low",
        f"{render_count(count, 'change')} {'is' if count == 1 else 'are'} declared and not applied",
        f"Apply{_name_folder(row)}; the plan comes first.",
        f"kafkaform apply{_aim(row)}",
        "drift",
        reach=_measure(row),
        waiting=_tell_waiting(row, _WAITING["pending"]),
        **_take_common(row),
    )


def _make_behind(row: Row) -> Cause:
    count = int(row["objects"])
    return Cause(
        "low",
        f"{render_count(count, 'value')} of the state {'is' if count == 1 else 'are'} behind the "
        "cluster",
        f"Record what is live{_name_folder(row)}: this changes nothing on clusters.",
        "kafkaform apply --refresh-only",
        "drift",
        reach=_measure(row),
        **_take_common(row),
    )


_ACTS_MADE: Mapping[str, Callable[[Row], Cause]] = {
    "edited": _make_edited,
    "deleted": _make_deleted,
    "pending": _make_pending,
    "behind": _make_behind,
}


def _make_broken(row: Row, as_of: datetime) -> Cause:
    count = int(row["objects"])
    rule = clip_text(inline(row["rule"]), NAME_CHARACTERS)
    query = (
        "select cluster, kind, key, owner, message from policy_findings"
        f" where rule = {_quote_text(row['rule'])} and not waived"
    )
    verb = "breaks" if count == 1 else "break"
    return Cause(
        SEVERITIES[int(row["severity"])],
        f"{_name_object(row, count)} {verb} {rule}: {clip_text(inline(row['message']), CLIPPED)}",
        f"Change them where they are declared, or write a waiver into rule {rule} of fleet.hcl.",
        _make_query(query),
        "permissions",
        reach=Reach(objects=count),
        **_take_common(row),
    )


def _make_failed(row: Row, as_of: datetime) -> Cause:
    count = int(row["objects"])
    error = clip_text(inline(row["error"] or row["error_code"] or ""), CLIPPED)
    return Cause(
        SEVERITIES[int(row["severity"])],
        f"The newest apply of {_name_object(row, count)} failed"
        f" [{inline(row['error_code'] or 'unknown')}]: {error}",
        f"Mend the cause, then apply again{_name_folder(row)}.",
        f"kafkaform apply{_aim(row)}",
        "applies",
        reach=Reach(objects=count),
        actor=_describe_actor(row),
        waiting=_tell_waiting(row, _WAITING["failed"]),
        **_take_common(row),
    )


def _make_full(row: Row, as_of: datetime) -> Cause:
    limit, replicas = int(row["limit_replicas"] or 0), int(row["replicas"])
    over = replicas > limit
    day = row["breach_on"]
    soon = over or (day is not None and day - as_of.date() <= SOON)
    growth = f", {row['growth_per_day']:,.1f} more a day" if row["growth_per_day"] else ""
    title = (
        f"{replicas:,} replicas are more than the declared limit of {limit:,}"
        if over
        else f"The limit of {limit:,} replicas will be reached on {day}: {replicas:,} now{growth}"
    )
    return Cause(
        "high" if soon else "medium",
        title,
        "Delete what is unused, or add brokers and then declare the new limit_replicas in "
        "fleet.hcl.",
        "kafkaform describe brokers",
        "capacity",
        reach=_measure(row),
        **_take_common(row),
    )


def _make_disks(row: Row, as_of: datetime) -> Cause:
    failed, day = int(row["failed"]), row["full_on"]
    soon = failed > 0 or day - as_of.date() <= SOON
    count = failed or int(row["objects"])
    title = (
        f"{render_count(failed, 'disk')} cannot be used"
        if failed
        else f"{render_count(count, 'disk')} will be full, the first on {day}"
    )
    return Cause(
        "high" if soon else "medium",
        title,
        "Mend the disk and start the broker again: its replicas come back from the others."
        if failed
        else "Move replicas to other brokers, add disks, or keep records for a shorter time.",
        "kafkaform describe brokers --disks",
        "capacity",
        **_take_common(row),
    )


_CERTIFICATES: Mapping[bool, tuple[str, str, str]] = {
    False: (
        "broker certificate",
        "broker certificates",
        "Give the broker a new certificate and let it load the file, before clients refuse the old "
        "one.",
    ),
    True: (
        "certificate of the fleet's own logins",
        "certificates of the fleet's own logins",
        "Put a new certificate into the file that fleet.hcl names, or the cluster can no longer be "
        "read.",
    ),
}
"""Whether it is that of our login -> singular, plural, and what mends it."""


def _make_expiring(row: Row, as_of: datetime) -> Cause:
    count, days = int(row["objects"]), int(row["days_left"])
    noun, plural, mend = _CERTIFICATES[row["own"]]
    title = render_count(count, noun, plural)
    verb = (
        ("has" if count == 1 else "have") if days < 0 else ("expires" if count == 1 else "expire")
    )
    day = f"{row['ends_at']:%Y-%m-%d}"
    clause = f"expired, the first on {day}" if days < 0 else f"within 30 days, the first on {day}"
    return Cause(
        "high" if days <= DAYS_URGENT else "medium",
        f"{title} {verb} {clause}",
        mend,
        _make_query(
            "select cluster, key, subject, ends_at from credentials"
            " where kind = 'certificate' order by ends_at"
        ),
        "permissions",
        **_take_common(row),
    )


def _make_idle(row: Row, as_of: datetime) -> Cause:
    count, owner = int(row["topics"]), row["owner"]
    condition = "owner is null" if owner is None else f"owner = {_quote_text(owner)}"
    query = (
        "select cluster, topic, idle_since, evidence from unused_topics"
        f" where verdict = 'candidate' and {condition}"
    )
    return Cause(
        SEVERITIES[int(row["severity"])],
        f"{render_count(count, 'topic')} may be unused",
        "Ask the owner, and then delete in two steps: kafkaform fleet unused helps with both.",
        _make_query(query),
        "unused",
        reach=_measure(row),
        waiting=_tell_waiting(row, _WAITING["idle"]),
        **_take_common({**row, "owners": () if owner is None else (owner,)}),
    )


_DOUBTS: Mapping[str, tuple[str, str, str]] = {
    "chain_broken": (
        "The audit log of {0} was altered: {1}",
        "Find out who changed it before you rely on it; compare it with the copy in the topic.",
        "kafkaform audit verify",
    ),
    "conflicting_event": (
        "The audit log has two versions of record {0}: {1}",
        "Find out who changed it before you rely on it; compare it with the copy in the topic.",
        "kafkaform audit verify",
    ),
    "two_owners": (
        "{0} is {1}: each apply may undo the other",
        "Decide which state keeps it, and let the other one forget it.",
        "kafkaform state rm ADDRESS",
    ),
}


def _make_doubted(row: Row, as_of: datetime) -> Cause:
    title, mend, command = _DOUBTS[row["finding"]]
    key, detail = (clip_text(inline(row[name]), CLIPPED) for name in ("key", "detail"))
    return Cause(
        "high",
        title.format(key, detail),
        mend,
        command,
        "trust",
        waiting=_tell_waiting(row, _WAITING.get(row["finding"], "")),
        **_take_common(row),
    )


_MAKERS: Mapping[str, Callable[[Row, datetime], Cause]] = {
    "cause_access": _make_access,
    "cause_useless": _make_useless,
    "cause_outside": _make_outside,
    "cause_broken": _make_broken,
    "cause_failed": _make_failed,
    "cause_full": _make_full,
    "cause_disks": _make_disks,
    "cause_expiring": _make_expiring,
    "cause_idle": _make_idle,
    "cause_doubted": _make_doubted,
}
_PARTS: Mapping[str, str] = {
    "cause_access": "access",
    "cause_useless": "useless ACLs",
    "cause_outside": "drift",
    "cause_broken": "rules",
    "cause_failed": "failed applies",
    "cause_full": "capacity",
    "cause_disks": "disks",
    "cause_expiring": "certificates",
    "cause_idle": "unused topics",
    "cause_doubted": "audit logs",
}
"""Question -> what is not judged without its answer."""
