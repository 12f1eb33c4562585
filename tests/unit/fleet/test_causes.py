"""What the report says to do first: causes, their order, and that no advice harms later."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.fleet.report import access, causes, documents
from kafkaform.fleet.report.cause_model import SEVERITIES, Cause, Reach
from kafkaform.fleet.report.cause_questions import CAUSES
from kafkaform.fleet.report.causes import list_missing, rank_causes
from kafkaform.fleet.report.questions import ask_questions
from kafkaform.fleet.tables.definitions import TABLES
from kafkaform.fleet.tables.reader import Gold, read_current

from ...kit.fleet import sample
from ...kit.fleet.lake import NOW, publish
from ...kit.fleet.sample import ago

Row = dict[str, Any]
EVERYBODY = "User:*|*|Read|Allow|Topic|*|Literal"
BILLING = "User:billing|*|Read|Allow|Topic|billing.in|Literal"
ENVS = {"eu": "prod", "us": "prod", "qa": "qa", "lab": "test", "odd": None}


def judged(folder: Path, **tables: Iterable[Row]) -> tuple[Cause, ...]:
    """The causes of a fleet of ENVS, all read, that shows these rows and nothing else."""
    names = {name for question in CAUSES.values() for name in question.tables}
    rows: dict[str, list[Row]] = {name: list(tables.get(name, ())) for name in names}
    rows["cluster"] = [
        {"cluster": name, "status": "read", "registered": True, "env": env}
        for name, env in ENVS.items()
    ]
    rows["lineage"] = [{"lineage": "a1", "name": "shop"}]
    publish(folder, "b-1", rows)
    answers = ask_questions(Gold(read_current(str(folder))), CAUSES)
    assert list_missing(answers) == ()
    return rank_causes(answers, NOW)


def grant(finding: str, subject: str, *, cluster: str = "eu", **more: Any) -> Row:
    principal, _, operation, _, kind, name, pattern = subject.split("|")
    shown = f"{name}*" if pattern == "Prefixed" else name
    return {
        "cluster": cluster,
        "finding": finding,
        "severity": "high" if operation == "All" else "medium",
        "subject": subject,
        "resource": f"{kind.lower()}/{shown}",
        "principal": principal,
        **more,
    }


def shadow(subject: str, by: str, *, reason: str = "another ACL already says this: ") -> Row:
    return grant("shadowed", subject, severity="low", detail=f"{reason}{by}")


def topics(count: int, cluster: str = "eu", prefix: str = "t") -> list[Row]:
    return [
        {"cluster": cluster, "topic": f"{prefix}.{n}", "verdict": "in_use", "bytes": 1024}
        for n in range(count)
    ]


def edit(key: str = "orders", cluster: str = "eu", **more: Any) -> Row:
    return {
        "cluster": cluster,
        "kind": "kafka_topic",
        "key": key,
        "path": "config.retention.ms",
        "drift_class": "drifted",
        "desired": "86400000",
        "live": "60000",
        "lineage": "a1",
        "address": f"kafka_topic.{key}",
        "first_seen": ago(3),
        **more,
    }


def whole(kind: str, key: str, drift_class: str, **more: Any) -> Row:
    return edit(key, kind=kind, path="", drift_class=drift_class, desired=None, live=None) | more


# ── advice that must not harm ───────────────────────────────────────────────────────────


def test_what_has_no_effect_beside_everybody_waits(tmp_path: Path) -> None:
    """Billing's narrow ACL says nothing only because everybody may read everything: it is to be
    kept, and the right of everybody is the cause. An ACL that a sound one covers may go."""
    wide = "User:billing|*|Read|Allow|Topic|billing.|Prefixed"
    other = "User:billing|*|Read|Allow|Topic|billing.out|Literal"
    made = judged(
        tmp_path,
        grant_findings=[
            grant("any_principal", EVERYBODY, severity="high"),
            grant("any_resource", EVERYBODY, severity="high"),
            shadow(BILLING, EVERYBODY),
            shadow(other, wide),
        ],
        unused_topics=topics(3),
        effective_permissions=[
            {"cluster": "eu", "principal": name, "host": "*"}
            for name in ("User:*", "User:billing", "User:checkout")
        ],
    )
    first, second = made
    assert first.title == "Everybody (User:*) has Read on every topic"
    assert (first.severity, first.rule) == ("critical", "access-gained-by-everybody")
    assert first.reach == Reach(principals=2, topics=3, bytes=3072)
    assert first.waiting.startswith("1 ACL has no effect because of it: keep it")
    assert first.waits == (BILLING,)
    assert "First declare what each client needs" in first.mend
    assert (second.title, second.rule) == ("1 ACL changes nobody's access", "access-unchanged")


@pytest.mark.parametrize(
    ("drift_class", "title"),
    [
        ("in_sync", "1 ACL changes nobody's access"),
        ("pending_delete", "1 ACL has no effect beside an ACL that is not settled"),
        ("unmanaged", "1 ACL has no effect beside an ACL that is not settled"),
    ],
)
def test_nothing_rests_on_an_acl_that_may_go(tmp_path: Path, drift_class: str, title: str) -> None:
    """An ACL that is to be deleted, or that nobody manages, is no reason to delete another."""
    wide = "User:billing|*|Read|Allow|Topic|billing.|Prefixed"
    made = judged(
        tmp_path,
        grant_findings=[shadow(BILLING, wide)],
        drift=[whole("kafka_acl", wide, drift_class)],
    )
    told = next(cause for cause in made if "effect" in cause.title or "access" in cause.title)
    assert told.title == title
    assert ("Keep" in told.mend) == (drift_class != "in_sync")


def test_nobody_is_told_to_take_a_role_apart(tmp_path: Path) -> None:
    """Read implies Describe, and every role declares both: Describe is no cause."""
    describe = BILLING.replace("|Read|", "|Describe|")
    assert judged(tmp_path, grant_findings=[shadow(describe, BILLING)]) == ()


def test_a_rule_that_an_edit_breaks_is_listed_at_the_edit(tmp_path: Path) -> None:
    """It is of the rule's severity; a rule that was broken before is a cause of its own."""
    broken = {"cluster": "eu", "kind": "kafka_topic", "key": "orders", "severity": "high"}
    made = judged(
        tmp_path,
        drift=[edit()],
        policy_findings=[
            broken | {"rule": "short-retention", "first_seen": ago(3)},
            broken | {"rule": "old-rule", "severity": "low", "first_seen": ago(9), "message": "m"},
        ],
    )
    edited, old = made
    assert edited.title == (
        "config.retention.ms of topic orders was edited: 1 min (60000) instead of 1 d (86400000)"
    )
    assert (edited.severity, edited.waits) == ("high", ("short-retention",))
    assert edited.waiting.startswith("1 broken rule since then")
    assert old.title == "topic orders breaks old-rule: m"


def test_a_change_that_an_apply_tried_in_vain_is_one_cause(tmp_path: Path) -> None:
    """The failure with its error; not the change that waits for it as well."""
    key = {"cluster": "eu", "kind": "kafka_topic", "key": "orders"}
    end = key | {
        "lineage": "a1",
        "record": "outcome",
        "run": "r-7",
        "actor": "mia",
        "address": "kafka_topic.orders",
    }
    failed = end | {"event_id": "1", "outcome": "failed", "ts": ago(2), "error_code": "X"}
    waiting = [whole("kafka_topic", name, "pending_create") for name in ("orders", "other")]
    made = judged(tmp_path / "1", drift=waiting, event=[failed | {"error": "it is refused"}])
    assert [cause.title for cause in made] == [
        "The newest apply of topic orders failed [X]: it is refused",
        "1 change is declared and not applied",
    ]
    assert (made[0].actor, made[0].command) == (
        "by mia (run r-7)",
        "kafkaform apply --target kafka_topic.orders",
    )
    done = end | {"event_id": "2", "outcome": "applied", "ts": ago(1), "seq": 1}
    assert judged(tmp_path / "2", event=[failed, done]) == ()


def finding(name: str, subject: str, principal: str, resource: str = "", **more: Any) -> Row:
    known = {"cluster": "eu", "severity": "low", "detail": "it is so", **more}
    about = {"subject": subject, "principal": principal, "resource": resource}
    return {"finding": name, **about, **known}


def rule(name: str, key: str, **more: Any) -> Row:
    row = {"cluster": "eu", "kind": "kafka_topic", "key": key, "rule": name, "message": "m"}
    return {**row, "severity": "high", "first_seen": ago(1), **more}


def failure(key: str, **more: Any) -> Row:
    row = {"cluster": "eu", "kind": "kafka_topic", "key": key, "lineage": "a1", "event_id": key}
    told = {"record": "outcome", "outcome": "failed", "ts": ago(2), "error_code": "X"}
    return {**row, **told, "error": "it is refused", "address": f"kafka_topic.{key}", **more}


def unused(key: str, **more: Any) -> Row:
    row = {"cluster": "eu", "topic": key, "verdict": "candidate", "confidence": 1.0}
    return {**row, "bytes": 1024, **more}


def doubt(name: str, kind: str, key: str, **more: Any) -> Row:
    return {
        **{"finding": name, "severity": "high", "cluster": "eu", "kind": kind, "key": key},
        **{"detail": "recorded in the states a, b", **more},
    }


PAYMENTS = "User:etl|*|All|Allow|Topic|*|Literal"
NARROWER = "User:etl|*|All|Allow|Topic|t.|Prefixed"
STRANGER = "User:gone|*|Read|Allow|Topic|old|Literal"
OWNED = STRANGER.replace("gone", "app").replace("old", "late")
PREFIXED = OWNED.replace("late|Literal", "la|Prefixed")
# Tables, then the one cause: how its title begins, its severity, what waits, what is said of it.
WAITS: Any = {
    "a broad ACL of one principal": (
        {
            "grant_findings": [
                grant("any_operation", PAYMENTS),
                grant("any_operation", NARROWER),
                *(
                    shadow(f"User:etl|*|Read|Allow|Topic|{name}|Literal", PAYMENTS)
                    for name in ("b", "a")
                ),
                shadow(
                    "User:etl|*|Read|Allow|Topic|t.c|Literal",
                    NARROWER,
                ),
            ]
        },
        "User:etl has 2 broad ACLs",
        "high",
        [f"User:etl|*|Read|Allow|Topic|{name}|Literal" for name in ("a", "b", "t.c")],
        "3 ACLs have no effect because of it",
    ),
    "an ACL beside one that is not settled": (
        {
            "grant_findings": [shadow(BILLING, "User:billing|*|Read|Allow|Topic|b|Prefixed")],
            "drift": [
                whole("kafka_acl", "User:billing|*|Read|Allow|Topic|b|Prefixed", "unmanaged")
            ],
        },
        "1 ACL has no effect beside an ACL that is not settled",
        "low",
        [BILLING],
        "1 finding to look at again",
    ),
    "a stranger, of whose ACLs nobody can be asked": (
        {
            "grant_findings": [
                finding("unknown_principal", "User:gone", "User:gone", severity="medium"),
                finding("matches_nothing", STRANGER, "User:gone", "topic/old"),
                finding("any_host", STRANGER.replace("old", "x"), "User:gone", "topic/x"),
            ]
        },
        "1 principal has ACLs, and nobody declares it",
        "medium",
        [STRANGER, STRANGER.replace("old", "x")],
        "Nobody can be asked about 2 findings",
    ),
    "a login that somebody deleted": (
        {
            "drift": [
                whole("kafka_user_scram_credential", "ci|SCRAM-SHA-512", "deleted_out_of_band")
            ],
            "grant_findings": [
                finding("no_login", "User:ci", "User:ci"),
                finding("quota_of_nobody", "user=ci", "User:ci"),
            ],
        },
        "user scram credential ci|SCRAM-SHA-512 was deleted",
        "high",
        ["User:ci", "user=ci"],
        "2 findings may end with it",
    ),
    "a topic that is declared and not created yet": (
        {
            "drift": [whole("kafka_topic", "late", "pending_create")],
            "grant_findings": [
                finding("matches_nothing", OWNED, "User:app", "topic/late"),
                finding("matches_nothing", PREFIXED, "User:app", "topic/la*"),
            ],
        },
        "1 change is declared and not applied",
        "low",
        [OWNED, PREFIXED],
        "2 findings may end with it",
    ),
    "an unused topic that the next apply deletes": (
        {
            "drift": [whole("kafka_topic", "old", "pending_delete")],
            "unused_topics": [unused("old")],
        },
        "1 change is declared and not applied",
        "low",
        ["topic old"],
        "1 finding may end with it",
    ),
    "rules that an unused topic breaks": (
        {
            "unused_topics": [unused("old")],
            "policy_findings": [rule("copies", "old"), rule("waived", "old", waived=True)],
        },
        "1 topic may be unused",
        "high",
        ["copies (topic old)"],
        "1 finding on these topics may end with them",
    ),
    "an edit that an apply tried to set back": (
        {
            "drift": [edit("orders", first_seen=ago(3))],
            "event": [failure("orders")],
            "policy_findings": [rule("brief", "orders")],
        },
        "The newest apply of topic orders failed",
        "high",
        ["brief", "topic orders config.retention.ms"],
        "2 findings cannot be mended before",
    ),
    "a change that an apply tried": (
        {
            "drift": [whole("kafka_topic", "orders", "pending_create")],
            "event": [failure("orders")],
        },
        "The newest apply of topic orders failed",
        "medium",
        ["topic orders"],
        "1 finding cannot be mended before",
    ),
    "an object of two states": (
        {
            "fleet_consistency": [doubt("two_owners", "kafka_topic", "orders")],
            "drift": [edit("orders")],
            "event": [failure("orders")],
            "policy_findings": [rule("copies", "orders", first_seen=ago(9))],
            "unused_topics": [unused("orders")],
        },
        "orders is recorded in the states a, b",
        "high",
        [
            *("apply of topic orders", "copies (topic orders)"),
            *("topic orders config.retention.ms", "unused topic orders"),
        ],
        "4 findings on it to look at again",
    ),
    "a state whose log was altered": (
        {
            "fleet_consistency": [
                doubt("chain_broken", "state", "shop", cluster="", clusters=["eu", "lab"])
            ],
            "drift": [edit("orders"), whole("kafka_topic", "new", "pending_create")],
            "event": [failure("pay")],
            "policy_findings": [rule("brief", "orders")],
        },
        "The audit log of shop was altered",
        "high",
        ["apply of topic pay", "topic new", "topic orders config.retention.ms"],
        "3 findings cannot be mended before",
    ),
}
HOLDING = {"access", "useless", "outside", "failed", "idle", "doubted"}
FREE = {"broken", "full", "disks", "expiring"}
"""Questions whose causes hold nothing back: to mend one makes no other advice wrong."""


@pytest.mark.parametrize("case", WAITS)
def test_what_waits_is_listed_by_name(tmp_path: Path, case: str) -> None:
    """It is no cause of its own: its advice would do harm, or would be in vain."""
    tables, title, severity, waits, said = WAITS[case]
    made = judged(tmp_path, **tables)
    assert [cause.title.startswith(title) for cause in made] == [True], made
    assert (made[0].severity, list(made[0].waits)) == (severity, waits)
    assert said in made[0].waiting
    assert made[0].rank == 0, "it is as urgent as what waits, which is in production"


def test_every_kind_of_cause_holds_back_or_is_known_to_hold_nothing() -> None:
    """A new kind of cause needs a case, or a place among those that hold nothing."""
    assert {f"cause_{name}" for name in HOLDING | FREE} == CAUSES.keys()


def test_what_does_not_wait(tmp_path: Path) -> None:
    """A failure before the edit tried something else; of a login that nobody declares, none comes
    back; what another object breaks, or what is on another cluster, has nothing to do with it; the
    rights of everybody stay a cause also where two states record the ACL."""
    made = judged(
        tmp_path,
        drift=[
            edit("orders", first_seen=ago(1)),
            whole("kafka_user_scram_credential", "ci|SCRAM-SHA-512", "unmanaged"),
            edit("pay", "us", path="partitions"),
        ],
        event=[failure("orders")],
        policy_findings=[rule("copies", "pay")],
        grant_findings=[
            finding("no_login", "User:ci", "User:ci"),
            grant("any_principal", EVERYBODY),
        ],
        unused_topics=[unused("pay", cluster="us")],
        fleet_consistency=[
            doubt("two_owners", "kafka_topic", "pay", cluster="qa"),
            doubt("two_owners", "kafka_acl", EVERYBODY),
            doubt("conflicting_event", "event", "a1/7", cluster="", clusters=["eu"]),
        ],
    )
    assert {cause.title.split(" was ")[0].split(" failed")[0] for cause in made} == {
        "The newest apply of topic orders",
        "config.retention.ms of topic orders",
        "partitions of topic pay",
        "topic pay breaks copies: m",
        "1 principal has ACLs and no SCRAM credential",
        "1 topic may be unused",
        "Everybody (User:*) has Read on every topic",
        "pay is recorded in the states a, b: each apply may undo the other",
        f"{EVERYBODY} is recorded in the states a, b: each apply may undo the other",
        "The audit log has two versions of record a1/7: recorded in the states a, b",
    }
    assert not any(cause.waits for cause in made)


# ── causes, not rows ────────────────────────────────────────────────────────────────────


def test_one_act_is_one_line(tmp_path: Path) -> None:
    """Forty topics that somebody edited in one way on one day, on two clusters; who it was is not
    known, and that is said."""
    rows = [edit(f"t.{n}", cluster) for n in range(20) for cluster in ("eu", "us")]
    changes = [
        {
            **{name: row[name] for name in ("cluster", "kind", "key", "path")},
            "window_end": ago(3),
            "verdict": "out_of_band",
        }
        for row in rows
    ]
    usage = [{"cluster": "eu", "kind": "group_usage", "key": "a\\|b||t.1"}]
    made = judged(
        tmp_path,
        drift=rows,
        change_attribution=changes,
        unused_topics=[*topics(20), *topics(20, "us")],
        live=usage,
    )
    assert len(made) == 1
    assert made[0].title.startswith("config.retention.ms of 40 topics was edited: 1 min (60000)")
    assert made[0].reach == Reach(topics=40, bytes=40960, groups=1, objects=40)
    assert made[0].reach.text == "40 topics, 1 consumer group, 40.0 KiB"
    assert (made[0].where, made[0].actor) == ("prod: eu and us", "not by kafkaform")
    assert made[0].command == "kafkaform apply"
    assert "in the folder of state shop" in made[0].mend


def test_broad_acls_of_one_principal_are_one_line(tmp_path: Path) -> None:
    """The widest is named, and tells how many topics it reaches; those of everybody stay apart."""
    some = [f"User:etl|*|All|Allow|Topic|{name}" for name in ("*|Literal", "t.|Prefixed")]
    made = judged(
        tmp_path,
        grant_findings=[
            *(grant("any_operation", subject) for subject in some),
            *(grant("any_principal", s.replace("etl", "*")) for s in some),
        ],
        unused_topics=[*topics(4), *topics(3, prefix="u")],
    )
    assert [(cause.title, cause.severity, cause.reach.topics) for cause in made] == [
        ("Everybody (User:*) has every right on every topic", "critical", 7),
        ("User:etl has 2 broad ACLs, the widest on every topic", "high", 7),
        ("Everybody (User:*) has every right on topics that begin with t.", "high", 4),
    ]


def test_who_made_an_acl_and_where_it_is_declared(tmp_path: Path) -> None:
    """An apply did: by whom, in which run; its block is named with its state."""
    made = judged(
        tmp_path,
        grant_findings=[grant("any_principal", EVERYBODY, owner="team-x")],
        change_attribution=[
            {
                "cluster": "eu",
                "kind": "kafka_acl",
                "key": EVERYBODY,
                "after": "present",
                "window_end": ago(5),
                "verdict": "applied",
                "actor": "mia",
                "run": "r-1",
            }
        ],
        history=[{"cluster": "eu", "kind": "kafka_acl", "key": EVERYBODY, "valid_from": ago(5)}],
        drift=[whole("kafka_acl", EVERYBODY, "in_sync", address="kafka_acl.all")],
    )
    cause = made[0]
    assert (cause.actor, cause.since, cause.owner) == ("by mia (run r-1)", ago(5), "team-x")
    assert (cause.command, cause.severity) == ("kafkaform plan", "critical")
    assert "delete kafka_acl.all in the folder of state shop" in cause.mend


CASES: Any = [
    (
        {"drift": [whole("kafka_topic", "gone", "deleted_out_of_band")]},
        "topic gone was deleted outside kafkaform",
        "kafkaform apply --target kafka_topic.gone",
    ),
    (
        {"drift": [edit(drift_class="state_behind")]},
        "1 value of the state is behind the cluster",
        "kafkaform apply --refresh-only",
    ),
    (
        {
            "capacity": [
                {
                    "cluster": "eu",
                    "subject": "cluster",
                    "replicas": 3900,
                    "limit_replicas": 4000,
                    "growth_per_day": 10.0,
                    "breach_on": ago(-11).date(),
                }
            ]
        },
        "The limit of 4,000 replicas will be reached on 2026-12-03: 3,900 now, 10.0 more a day",
        "kafkaform describe brokers",
    ),
    (
        {
            "unused_topics": [
                {
                    "cluster": "eu",
                    "topic": "old",
                    "verdict": "candidate",
                    "confidence": 1.0,
                    "owner": "o'brien",
                }
            ]
        },
        "1 topic may be unused",
        'kafkaform fleet query "select cluster, topic, idle_since, evidence from unused_topics'
        " where verdict = 'candidate' and owner = 'o''brien'\"",
    ),
    (
        {
            "grant_findings": [
                {
                    "cluster": name,
                    "finding": "unknown_principal",
                    "severity": "medium",
                    "subject": "User:x",
                    "principal": "User:x",
                }
                for name in ("eu", "us")
            ]
        },
        "1 principal has ACLs, and nobody declares it",
        'kafkaform fleet query "select cluster, principal, subject, owner, detail from '
        "grant_findings where finding = 'unknown_principal'\"",
    ),
    (
        {"disks": [{"cluster": "eu", "broker": n, "full_on": ago(-9 - n).date()} for n in (1, 2)]},
        "2 disks will be full, the first on 2026-12-02",
        "kafkaform describe brokers --disks",
    ),
    (
        {"disks": [{"cluster": "eu", "failed": True}]},
        "1 disk cannot be used",
        "kafkaform describe brokers --disks",
    ),
    (
        {
            "credentials": [
                {
                    "cluster": "eu",
                    "kind": "certificate",
                    "key": f"{n}",
                    "ends_at": ago(-n),
                    "days_left": n,
                }
                for n in (12, 200)
            ]
        },
        "1 broker certificate expires within 30 days, the first on 2026-12-04",
        'kafkaform fleet query "select cluster, key, subject, ends_at from credentials'
        " where kind = 'certificate' order by ends_at\"",
    ),
    (
        {
            "credentials": [
                {
                    "cluster": "eu",
                    "kind": "certificate",
                    "key": "login",
                    "ends_at": ago(2),
                    "days_left": -2,
                }
            ]
        },
        "1 certificate of the fleet's own logins has expired, the first on 2026-11-20",
        'kafkaform fleet query "select cluster, key, subject, ends_at from credentials'
        " where kind = 'certificate' order by ends_at\"",
    ),
    (
        {
            "fleet_consistency": [
                {
                    "finding": "chain_broken",
                    "severity": "high",
                    "cluster": "",
                    "kind": "state",
                    "key": "shop",
                    "detail": "the log is not what was written",
                }
            ]
        },
        "The audit log of shop was altered: the log is not what was written",
        "kafkaform audit verify",
    ),
    (
        {
            "grant_findings": [
                {
                    "cluster": "eu",
                    "finding": "open_by_default",
                    "severity": "high",
                    "subject": "User:*",
                    "principal": "User:*",
                    "resource": "",
                }
            ]
        },
        "Everybody (User:*) may do everything with what has no ACL",
        "kafkaform fleet permissions --cluster eu",
    ),
]
FAMILIES = {title: command for _, title, command in CASES}


@pytest.mark.parametrize(("tables", "title", "command"), CASES)
def test_each_family(tmp_path: Path, tables: Any, title: str, command: str) -> None:
    """One row, its sentence, and what to type."""
    made = judged(tmp_path, **tables)
    assert [(cause.title, cause.command) for cause in made] == [(title, command)]


# ── order ───────────────────────────────────────────────────────────────────────────────


def test_order(tmp_path: Path) -> None:
    """Production first, then what may be production, then the rest; there severity, reach, age."""
    made = judged(
        tmp_path,
        grant_findings=[grant("any_principal", EVERYBODY, cluster="lab")],
        drift=[
            edit("a", "us", first_seen=ago(1)),
            edit("b", "us", path="partitions", first_seen=ago(9)),
            edit("c", "eu", path="config.x", first_seen=ago(1)),
            edit("d", "odd"),
            edit("e", "qa"),
            whole("kafka_topic", "gone", "deleted_out_of_band", cluster="eu"),
        ],
        unused_topics=[{"cluster": "eu", "topic": "c", "verdict": "in_use"}],
    )
    assert [(cause.env, cause.severity) for cause in made] == [
        ("prod", "high"),
        ("prod", "medium"),
        ("prod", "medium"),
        ("prod", "medium"),
        ("", "medium"),
        ("qa", "medium"),
        ("test", "critical"),
    ]
    assert [made[n].title.split(" was")[0] for n in (1, 2, 3)] == [
        "config.x of topic c",
        "partitions of topic b",
        "config.retention.ms of topic a",
    ]


def test_every_severity_and_finding_has_words() -> None:
    """What tables.txt lists is judged here, and each severity has its place in the order."""
    assert SEVERITIES == ("low", "medium", "high", "critical")
    about = next(c.about for c in TABLES["grant_findings"].columns if c.name == "finding")
    broad = {"any_principal", "any_operation", "any_resource", "short_prefix", "open_by_default"}
    assert broad | set(access.USELESS) - {"unsettled"} == set(about.split(", "))
    assert causes._PARTS.keys() == CAUSES.keys() == causes._MAKERS.keys()


def test_every_command_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a cause says to type is understood by the program, word by word and flag by flag."""
    publish(tmp_path, "b-1", sample.tables(Random(7)))
    answers = ask_questions(Gold(read_current(str(tmp_path))), CAUSES)
    rows = {**FAMILIES, "sample": rank_causes(answers, NOW)}
    commands = {cause.command for cause in rows.pop("sample")} | set(rows.values())
    assert len(commands) > 10
    for words in map(shlex.split, commands):
        verbs = words[1 : 3 if words[1] in ("fleet", "audit", "state", "describe") else 2]
        assert words[0] == "kafkaform" and run_command_line((*verbs, "--help")) == 0, words
        shown = capsys.readouterr().out
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert [flag for flag in flags if flag not in shown] == [], words


# ── forms ───────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_judged_is_named(tmp_path: Path) -> None:
    """A build without tables has no causes, and says so in every form."""
    publish(tmp_path, "b-1", {"cluster": [], "credentials": []})
    made = documents.make_report(Gold(read_current(str(tmp_path))))
    assert "certificates" not in made.unjudged and "access" in made.unjudged
    for render in documents.FORMS.values():
        assert "failed applies" in render(made)


def test_every_form_has_every_cause(tmp_path: Path) -> None:
    """The page has all of them, the text the first ten, the data all members; none is cut."""
    publish(tmp_path, "b-1", sample.tables(Random(7)))
    made = documents.make_report(Gold(read_current(str(tmp_path))))
    assert len(made.causes) > causes.SHOWN_CAUSES
    page, text, data = (render(made) for render in documents.FORMS.values())
    assert page.count('<p class="title">') == len(made.causes)
    assert text.count("\n   `kafkaform ") == causes.SHOWN_CAUSES
    assert data.count('"waiting":') == len(made.causes)
    assert "<h2>Do this first</h2>" in page and "## Do this first" in text


def test_redacted_causes_name_nobody(tmp_path: Path) -> None:
    """Principals, actors, and addresses of ACLs."""
    publish(tmp_path, "b-1", sample.tables(Random(7)))
    gold = Gold(read_current(str(tmp_path)))
    mask = documents.make_build_redactor(gold, b"key")
    made = documents.make_report(gold, mask=mask)
    text = repr(made.causes)
    assert "User:p-" in text and "User:*" in text
    for name in ("User:billing", "User:ann", "old-etl", "by mia"):
        assert name not in text


def test_the_certificate_of_our_own_login_is_told_apart(tmp_path: Path) -> None:
    """From those of brokers, in the table of credentials; a masked report does not say whom it
    names."""
    login = {
        **{"cluster": sample.KNOWN[0], "kind": "certificate", "key": "login"},
        **{"subject": "CN=reader,O=Acme"},
        **{"begins_at": ago(300), "ends_at": ago(-9), "origin": "cluster", "as_of": ago(0)},
        **{"age_days": 300, "days_left": 9},
    }
    publish(tmp_path, "b-1", {**sample.tables(Random(7)), "credentials": [login]})
    gold = Gold(read_current(str(tmp_path)))
    text = documents.render_data(documents.make_report(gold))
    assert "certificate of the fleet's own login" in text and "certificate of a broker" not in text
    assert "1 certificate of the fleet's own logins expires within 30 days" in text
    mask = documents.make_build_redactor(gold, b"key")
    documents.write_csv(gold, tmp_path, "masked", mask)
    written = (tmp_path / "masked-credentials.csv").read_text()
    assert "p-" in written and "reader" not in written
