"""A fleet of twelve clusters in every state, as tables of two builds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

from kafkaform.fleet.tables.definitions import GOLD

from .lake import NOW

Row = dict[str, Any]
CLUSTERS = (
    *(f"payments-{region}" for region in ("eu-1", "eu-2", "us-1", "us-2", "ap-1")),
    *(f"orders-{region}" for region in ("eu-1", "us-1")),
    *("analytics", "staging", "edge-oslo", "edge-lima", "legacy-on-premises-frankfurt"),
)
STATUS = {"edge-oslo": "stale", "edge-lima": "failed", "staging": "partial", "analytics": "never"}
ENVS = {"payments": "prod", "orders": "prod", "staging": "staging"}
OWNERS = ("team-payments", "team-orders", "platform", None)
KNOWN = tuple(name for name in CLUSTERS if STATUS.get(name, "read") in ("read", "partial"))


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def tables(random: Random, grown: int = 0) -> dict[str, list[Row]]:
    """grown: how much more there is of everything than in the build before."""
    made: dict[str, Iterable[Row]] = {
        "cluster": clusters(),
        "lineage": lineages(),
        "drift": drift(random, grown),
        "drift_daily": drift_daily(random),
        "change_attribution": changes(random, grown),
        "effective_permissions": permissions(),
        "grant_findings": grants(random, grown),
        "unused_topics": unused(random),
        "effective_quotas": quotas(random),
        "policy_findings": policies(random),
        "apply_reliability": reliability(random),
        "capacity": capacity(random),
        "topic_growth": growth(random),
        "disks": disks(random),
        "credentials": credentials(random),
        "group_progress": progress(random),
        "fleet_consistency": consistency(),
        "run": runs(),
        "quarantine": quarantine(),
        "event": events(),
        "live": groups(),
        "history": history(),
    }
    assert set(GOLD) <= made.keys()
    return {name: unique(name, rows) for name, rows in made.items()}


def unique(table: str, rows: Iterable[Row]) -> list[Row]:
    from kafkaform.fleet.tables.definitions import TABLES

    key = TABLES[table].key or TABLES[table].names
    return list({tuple(str(row.get(name)) for name in key): row for row in rows}.values())


def clusters() -> Iterator[Row]:
    for name in CLUSTERS:
        status = STATUS.get(name, "read")
        yield {
            "cluster": name,
            "status": status,
            "registered": True,
            "env": ENVS.get(name.partition("-")[0]),
            "owner": "platform",
            "captured_at": None if status == "never" else ago(3 if status == "stale" else 0.1),
            "coverage": {"kafka_topic": "complete", "kafka_acl": "failed"}
            if status == "partial"
            else {"kafka_topic": "complete", "kafka_acl": "complete"},
            "error": "no broker answered: edge-lima:9092 timed out after 30 s"
            if status == "failed"
            else None,
        }
    yield {"cluster": "Xk3-vQ2bRr6", "status": "read", "registered": False, "captured_at": ago(0.2)}


def lineages() -> Iterator[Row]:
    yield {"lineage": "a1", "name": "payments", "desired_known": True, "desired_at": ago(0)}
    yield {
        "lineage": "b2",
        "name": "legacy",
        "desired_known": False,
        "state_at": ago(1),
        "error": "main.kf.hcl:12: there is no variable retention",
    }


def drift(random: Random, grown: int) -> Iterator[Row]:
    classes = ("drifted", "pending_create", "pending_update", "unmanaged", "state_behind")
    classes += ("deleted_out_of_band", "unadopted", "conflict", "stale_state", "pending_delete")
    for cluster in CLUSTERS:
        known = cluster in KNOWN
        for number in range(40 if known else 12):
            some = random.random() < 0.2 + grown * 0.05
            found = random.choice(classes) if some else "in_sync"
            row = {
                "cluster": cluster,
                "kind": "kafka_topic",
                "key": f"{random.choice(('orders', 'payments', 'audit'))}.v{number}",
                "path": "",
                "drift_class": found if known else "unknown",
                "owner": random.choice(OWNERS),
                "first_seen": ago(random.randint(0, 90)),
                "as_of": NOW,
            }
            yield row
            if found == "drifted" and known:
                live = str(random.choice((3600000, 604800000)))
                told = {"desired": "86400000", "state": "86400000", "live": live}
                yield row | {"path": "config.retention.ms"} | told


def drift_daily(random: Random) -> Iterator[Row]:
    for day in range(40):
        for found in ("drifted", "pending_update", "unmanaged", "unknown"):
            yield {
                "day": ago(day).date(),
                "cluster": random.choice(KNOWN),
                "kind": "kafka_topic",
                "drift_class": found,
                "objects": random.randint(5, 30),
            }


def changes(random: Random, grown: int) -> Iterator[Row]:
    verdicts = ("applied",) * 6 + ("out_of_band",) * 3 + ("unclear", "not_effective")
    for number in range(180 + 10 * grown):
        verdict = random.choice(verdicts)
        end = ago(random.randint(0, 28) + random.random() / 2)
        yield {
            "cluster": random.choice(KNOWN),
            "kind": "kafka_topic",
            "key": f"orders.v{number % 30}",
            "path": random.choice(("config.retention.ms", "config.cleanup.policy", "")),
            "before": "604800000",
            "after": "86400000",
            "window_start": end - timedelta(hours=6),
            "window_end": end,
            "verdict": verdict,
            "event_id": "" if verdict == "out_of_band" else f"a1/{number}",
            "actor": None if verdict == "out_of_band" else random.choice(("mia", "ci-runner")),
            "run": None if verdict == "out_of_band" else f"run-{number:04}",
        }


def permissions() -> Iterator[Row]:
    yield {
        "cluster": "orders-eu-1",
        "resource_type": "topic",
        "resource": "orders.*",
        "pattern_level": True,
        "principal": "User:CN=Ann Lee, OU=ops",
        "host": "*",
        "effective_mask": 8,
        "effective": ["Read"],
        "via": ["User:CN=Ann Lee, OU=ops|*|Read|Allow|Topic|orders.|Prefixed"],
    }


def grants(random: Random, grown: int) -> Iterator[Row]:
    kinds = (
        ("any_principal", "high", "every user may write to it"),
        ("any_operation", "high", "All is allowed"),
        ("short_prefix", "medium", "the prefix has 2 characters"),
        ("unknown_principal", "medium", "no owner names it, and it has no login"),
        ("quota_of_nobody", "low", "its user has no SCRAM credential and no ACL"),
        ("shadowed", "low", "a broader ACL allows the same"),
        ("matches_nothing", "low", "no topic begins with it"),
    )
    for number in range(70 + grown * 4):
        finding, severity, detail = random.choice(kinds)
        who = random.choice(("orders", "billing", "old-etl", "mirror", "ann"))
        principal = "User:*" if finding == "any_principal" else f"User:{who}"
        resource = f"topic/{random.choice(('or*', 'payments.*', 'audit', '*'))}"
        yield {
            "cluster": random.choice(KNOWN),
            "finding": finding,
            "severity": severity,
            "subject": f"{principal}|*|Write|Allow|Topic|t{number}|Literal",
            "resource": resource,
            "principal": principal,
            "detail": f"{detail}: {principal}",
            "owner": random.choice(OWNERS),
        }


def unused(random: Random) -> Iterator[Row]:
    verdicts = ("candidate", "in_use", "in_use", "too_new", "insufficient_evidence")
    for number in range(120):
        known = random.random() < 0.8
        yield {
            "cluster": random.choice(KNOWN),
            "topic": f"tmp.export.{number}",
            "verdict": random.choice(verdicts),
            "confidence": random.choice((0.5, 0.75, 1.0)),
            "idle_since": ago(60 + number) if known else None,
            "empty": random.random() < 0.5,
            "written": False if known else None,
            "read": False if known else None,
            "granted": random.choice((True, False, None)),
            "partitions": random.choice((1, 6, 12)),
            "bytes": random.randint(0, 10**11) if known else None,
            "owner": random.choice(OWNERS),
            "evidence": ["end offsets have not moved for 61 days", "no group has read it"],
            "as_of": NOW,
        }
    for year in (2024, 2025):
        yield {
            **{"cluster": KNOWN[0], "topic": f"audit.{year}", "owner": "audit"},
            **{"verdict": "kept", "confidence": 1.0, "idle_since": ago(200), "bytes": 7 * 10**9},
            "kept": "fleet.hcl keeps it until 2027-06-30: mia reads it once a year",
            "evidence": ["end offsets have not moved for 200 days", "no group has read it"],
            "as_of": NOW,
        }


def quotas(random: Random) -> Iterator[Row]:
    for number in range(40):
        level = random.choice((1, 3, 6, 8, None))
        yield {
            "cluster": random.choice(KNOWN),
            "user": f"user-{number % 7}",
            "client_id": random.choice(("", "app")),
            "quota_key": random.choice(("producer_byte_rate", "consumer_byte_rate")),
            "value": None if level is None else float(random.choice((1048576, 10485760))),
            "level": level,
            "entity": f"user=user-{number % 7}" if level in (1, 3) else "",
            "shared_scope": "all clients of the user",
            "evaluable": number % 13 != 0,
        }


def policies(random: Random) -> Iterator[Row]:
    for number in range(14):
        waived = number % 5 == 0
        yield {
            "rule": random.choice(("min-insync", "retention", "no-compact-without-key")),
            "severity": random.choice(("high", "medium", "low")),
            "cluster": random.choice(KNOWN),
            "kind": "kafka_topic",
            "key": f"orders.v{number}",
            "path": "",
            "message": "min.insync.replicas must be at least 2",
            "owner": random.choice(OWNERS),
            "waived": waived,
            "waiver": "moved next month" if waived else None,
            "waived_until": ago(-30).date() if waived else None,
            "first_seen": ago(number),
        }


def reliability(random: Random) -> Iterator[Row]:
    for day in range(25):
        for cluster in KNOWN[:4]:
            failed = random.choice((0, 0, 0, 1, 4))
            counts = {"applied": random.randint(5, 60), "failed": failed, "unknown": day % 9 == 0}
            base = {
                "day": ago(day).date(),
                "cluster": cluster,
                "kind": "kafka_topic",
                "error_code": "",
                "steps": sum(counts.values()),
                **{name: int(value) for name, value in counts.items()},
                "runs": 3,
                "retries": failed,
                "p95_ms": random.uniform(40, 900),
            }
            yield base
            if failed:
                yield base | {"error_code": "POLICY_VIOLATION", "applied": 0}
    # Nobody could read it lately; its log tells what was sent.
    lost = {"day": ago(2).date(), "cluster": "edge-lima", "kind": "kafka_topic", "error_code": ""}
    yield lost | {"steps": 3, "applied": 1, "failed": 2}


def capacity(random: Random) -> Iterator[Row]:
    money = {"currency": "EUR", "as_of": NOW}
    for cluster in KNOWN:
        replicas = random.randint(800, 3900)
        counts = {"topics": 300, "partitions": replicas // 3, "replicas": replicas}
        yield {
            "cluster": cluster,
            "subject": "cluster",
            **counts,
            "limit_replicas": 4000 if cluster != "staging" else None,
            "growth_per_day": random.uniform(-1, 20),
            "breach_on": ago(-60).date() if replicas > 3000 else None,
            "below_rf": random.randint(0, 4),
            "bytes": replicas * 10**9 if cluster != "staging" else None,
            "bytes_per_day": random.uniform(-1, 9) * 10**9 if cluster != "staging" else None,
            "ingress_per_day": None,
            "egress_per_day": replicas * 10**8,
            **paid(replicas * 0.05, ["ingress"]),
            **money,
        }
        for number, owner in enumerate(OWNERS[:3]):
            part = {name: value // 3 for name, value in counts.items()}
            known = {
                **{"bytes": replicas * 10**9 // 3, "bytes_per_day": (number + 1) * 2e9},
                **{"ingress_per_day": replicas * 10**8, "egress_per_day": replicas * 10**8},
            }
            # Of one owner, nobody knows how much is written to some topics.
            some = {**known, "ingress_per_day": None, "bytes_per_day": None}
            amounts = some if owner == "platform" else known
            cost = paid(replicas * 0.05 / 3, ["ingress"] if owner == "platform" else [])
            subject = {"cluster": cluster, "subject": f"owner {owner}"}
            yield {**subject, **part, **amounts, **cost, **money}


def paid(cost: float, unknown: list[str]) -> Row:
    least = {"cost_at_least": cost, "cost_unknown": unknown, "unpriced_topics": 4 * len(unknown)}
    return {"cost": None if unknown else cost, **least}


def growth(random: Random) -> Iterator[Row]:
    for cluster in KNOWN:
        for number in range(12):
            young = number == 3
            yield {
                "cluster": cluster,
                "topic": f"orders.v{number}",
                "owner": random.choice(OWNERS),
                "partitions": 12,
                "bytes": number * 7 * 10**8,
                "bytes_per_day": None if young else random.uniform(-(10**7), 10**8),
                "records_per_day": None if young else random.uniform(0, 10**5),
                "ingress_per_day": None if young else number * 10**7,
                "egress_per_day": None if young else number * 3 * 10**7,
                "bytes_skew": random.uniform(1, 4),
                "records_skew": random.uniform(1, 6),
                "days": 2 if young else 31,
                "as_of": NOW,
            }


def credentials(random: Random) -> Iterator[Row]:
    for number, cluster in enumerate(KNOWN):
        about = {"cluster": cluster, "as_of": NOW}
        yield {
            **about,
            **{"kind": "kafka_user_scram_credential", "key": "old-etl|SCRAM-SHA-512"},
            **{"principal": "User:old-etl", "begins_at": ago(400 + number)},
            **{"origin": random.choice(("log", "snapshot")), "age_days": 400 + number},
        }
        yield {
            **about,
            **{"kind": "certificate", "key": "1", "subject": f"CN={cluster}-1"},
            **{"begins_at": ago(300), "ends_at": ago(-12 * number), "origin": "cluster"},
            **{"age_days": 300, "days_left": 12 * number},
        }


def disks(random: Random) -> Iterator[Row]:
    for cluster in KNOWN:
        for broker in range(3):
            used = random.uniform(0.2, 0.9)
            soon = used > 0.7
            yield {
                "cluster": cluster,
                "broker": broker,
                "log_dirs": "/var/lib/kafka",
                "total_bytes": 10**12,
                "usable_bytes": round(10**12 * (1 - used)),
                "log_bytes": round(10**12 * used * 0.9),
                "replicas": 900,
                "failed": cluster == "orders-us-1" and broker == 2,
                "used_share": used,
                "used_per_day": 10**9 if soon else -(10**8),
                "full_on": ago(-300).date() if soon else None,
                "days": 31,
                "as_of": NOW,
            }


def progress(random: Random) -> Iterator[Row]:
    verdicts = ("progressing", "idle", "stuck", "stopped", "unused", "insufficient_evidence")
    for cluster in KNOWN:
        for number, verdict in enumerate(verdicts):
            yield {
                "cluster": cluster,
                "group_id": f"billing-{number}",
                "topic": "orders.v1",
                "verdict": verdict,
                "owner": random.choice(OWNERS),
                "state": "Stable" if number < 3 else "Empty",
                "members": 2 if number < 3 else 0,
                "committed": 40,
                "lag": 0 if verdict == "idle" else random.randint(1, 10**6),
                "moved_at": ago(number),
                "since": ago(30),
                "as_of": NOW,
            }


def consistency() -> Iterator[Row]:
    for finding, severity, cluster, detail in (
        ("unlike", "medium", "orders-us-1", "config.retention.ms is 86400000, elsewhere 604800000"),
        ("chain_broken", "high", "payments-eu-1", "record 812 does not follow from record 811"),
        ("unregistered", "low", "Xk3-vQ2bRr6", "it is in a state and not in fleet.hcl"),
    ):
        yield {
            "finding": finding,
            "severity": severity,
            "cluster": cluster,
            "kind": "kafka_topic" if finding == "unlike" else "",
            "key": "orders.v1" if finding == "unlike" else "",
            "detail": detail,
            "clusters": [cluster],
        }


def runs() -> Iterator[Row]:
    for number in range(30):
        yield {
            "lineage": "a1" if number else "b2",
            "run": f"run-{number:04}",
            "actor": "mia",
            "started_at": ago(number),
            "ended_at": ago(number) if number != 4 else None,
            "refused": 0,
            "chain": "sound" if number else "broken",
        }


def events() -> Iterator[Row]:
    for number, (outcome, code) in enumerate((("failed", "POLICY_VIOLATION"), ("applied", None))):
        yield {
            "event_id": f"a1/{number}",
            "cluster": "orders-eu-1",
            "lineage": "a1",
            "seq": number,
            "ts": ago(2 - number),
            "run": f"run-{number:04}",
            "actor": "mia",
            "record": "outcome",
            "address": f"kafka_topic.orders_v{number}",
            "kind": "kafka_topic",
            "key": f"orders.v{number}",
            "action": "update",
            "outcome": outcome,
            "error_code": code,
            "error": "the policy refuses it" if code else None,
        }


def groups() -> Iterator[Row]:
    for cluster in KNOWN:
        for group in ("billing", "mirror"):
            yield {"cluster": cluster, "kind": "group_usage", "key": f"{group}||orders.v1"}


def history() -> Iterator[Row]:
    for cluster in KNOWN:
        key = "User:*|*|Write|Allow|Topic|t1|Literal"
        yield {"cluster": cluster, "kind": "kafka_acl", "key": key, "valid_from": ago(40)}


def quarantine() -> Iterator[Row]:
    for number, reason in enumerate(("not_json", "not_json", "bad_checksum")):
        yield {
            "source": "audit" if reason == "not_json" else "live",
            "reason": reason,
            "position": number,
            "text": "{",
            "_file": f"landing/audit/a1/00000000000{number}.jsonl",
            "_build": "b-2",
            "_ingested_at": NOW,
        }


def hostile(rows: Mapping[str, list[Row]], text: str) -> dict[str, list[Row]]:
    """The same tables with every free text replaced by this one. Clusters that nobody knows have
    other names: their rows would be left out."""
    from kafkaform.fleet.tables.definitions import TABLES

    kept = {"drift_class", "verdict", "severity", "finding", "status", "subject", "chain", "path"}
    kept |= {"source", "reason", "error_code"}
    return {
        table: [
            {
                name: f"{text}{row['status']}"
                if name == "cluster" and row.get("status") in ("stale", "failed", "never")
                else text
                if isinstance(value, str) and value and name not in kept
                else [text] * len(value)
                if isinstance(value, list)
                else value
                for name, value in row.items()
            }
            for row in some
        ]
        for table, some in rows.items()
        if TABLES[table]
    }
