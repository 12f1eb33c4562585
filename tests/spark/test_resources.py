"""Clusters, lineages and what is in them now, against a reading of the snapshots one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.datasets.resources import (
    build_cluster,
    build_credentials,
    build_desired,
    build_lineage,
    build_live,
    build_recorded,
)
from kafkaform.fleet.landed.register import Owner, Register, RegisteredCluster, RegisteredState
from kafkaform.fleet.tables.definitions import BuildContext

from ..kit.fleet.frames import frame
from ..kit.fleet.landings import audit_rows, collected, in_order, log, moment, row, snapshot_rows
from . import live_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]
Snapshot = tuple[dict[str, Any], Rows]
CASES = 60
AS_OF = moment(50)
KINDS = ("kafka_topic", "kafka_acl")
REGISTER = Register(
    clusters=tuple(
        RegisteredCluster(
            f"c{n}", f"id{n}" if n % 3 else None, "prod", "eu", "team", ("User:a",), n % 2 == 0
        )
        for n in range(0, CASES, 2)
    ),
    states=(
        RegisteredState("payments", "l0", None, "team"),
        RegisteredState("unread"),
        RegisteredState("new", "l-new"),
    ),
)
CONTEXT = BuildContext(REGISTER, AS_OF, "b1")


# -- random landings


def of_cluster(name: str, dice: random.Random) -> Iterable[Snapshot]:
    """An id that may change, two names with one id, kinds that could not be read."""
    number, names = int(name[1:]), dice.sample("abcdefgh", 4)
    for hours in sorted(dice.sample(range(50), dice.randint(0, 4))):
        rows = [
            row(kind, key, {"n": str(hours), "p": "1"}, incarnation=dice.choice(("i", None)))
            for kind in (*KINDS, "stray")
            for key in ("k1", "k2")
            if dice.random() < 0.7
        ]
        attrs = {"brokers": str(hours), "quota_callback": "q"}
        told = dice.sample(("3.9", "4.0", "4.0"), dice.randrange(4))
        attrs |= {f"versions.{broker}": release for broker, release in enumerate(told)}
        rows.append(row("cluster", "cluster", attrs))
        how = ("complete", "complete", "visible_only", "failed")
        coverage = {kind: dice.choice(how) for kind in KINDS if dice.random() < 0.9}
        scope = dice.choice((f"id{number}", f"id{number}", f"id{number - 1}", None))
        about = {"scope_id": scope, "coverage": coverage, "snapshot": names.pop()}
        fault = dice.random() < 0.2
        about |= {"complete": dice.random() < 0.5 and not fault, "error": "e" if fault else None}
        yield snapshot_rows("live", name, hours, None if fault else rows, **about)


def of_lineage(name: str, dice: random.Random) -> Iterable[Snapshot]:
    for source in ("state", "desired"):
        for hours in sorted(dice.sample(range(50), dice.randint(0, 3))):
            scopes = {i: f"id{dice.randrange(CASES * 2)}" for i in ("one", "two", "new")[:2]}
            rows = [
                row(
                    *(kind, key, {"n": str(hours)}),
                    instance=instance,
                    scope_id=dice.choice((scopes.get(instance), scopes.get(instance), None)),
                    address=f"{kind}.{key}",
                    owner=dice.choice(("team", None)),
                    incarnation="i" if source == "state" else None,
                )
                for kind in KINDS
                for key in ("k1", "k2")
                for instance in ("one", "two", "new")
                if dice.random() < 0.5
            ]
            fault = dice.random() < 0.25
            about = {"scopes": scopes, "error": "e" if fault else None}
            yield snapshot_rows(source, name, hours, None if fault else rows, **about)


@pytest.fixture(scope="module")
def landed() -> list[Snapshot]:
    dice = random.Random(3)
    found = [one for n in range(CASES) for one in of_cluster(f"c{n}", dice)]
    found += [one for n in range(CASES) for one in of_lineage(f"l{n}", dice)]
    dice.shuffle(found)
    return found


@pytest.fixture(scope="module")
def audit() -> Rows:
    scopes = {"a": "id3", "b": "from-a-log"}
    begin = ("run_begin", "r", {"scopes": scopes, "command": "apply", "host": "h"})
    return audit_rows("l0", log("l0", [begin])) + audit_rows("l-log", log("l-log", [begin]))


# -- the oracle


def newest(landed: Iterable[Snapshot], wanted: Callable[[dict[str, Any]], bool]) -> Snapshot | None:
    found = [one for one in landed if wanted(one[0])]
    return max(found, key=lambda one: (one[0]["captured_at"], one[0]["snapshot"]), default=None)


def is_good(meta: Mapping[str, Any]) -> bool:
    return meta["sha256"] is not None


def clusters(landed: list[Snapshot], audit: Rows) -> Rows:
    declared = {c.name: c for c in REGISTER.clusters}
    tried = {meta["subject"] for meta, _ in landed if meta["source"] == "live"}
    found = [one_cluster(name, declared.get(name), landed) for name in {*declared, *tried}]
    told = {scope for meta, _ in landed for scope in meta["scopes"].values()}
    told |= {s for one in audit for s in json.loads(one["body"])["scopes"].values()}
    strangers = told - {one["cluster_id"] for one in found}
    return found + [one_cluster(scope, None, []) | {"cluster_id": scope} for scope in strangers]


def one_cluster(
    name: str, said: RegisteredCluster | None, landed: list[Snapshot]
) -> dict[str, Any]:
    mine = [one for one in landed if (one[0]["source"], one[0]["subject"]) == ("live", name)]
    last, good = newest(mine, lambda _: True), newest(mine, is_good)
    identified = newest(mine, lambda meta: meta["scope_id"] is not None)
    meta, rows = good or ({}, [])
    about = next((r["attrs"] for r in rows if r["kind"] == "cluster"), {})
    old = meta and meta["captured_at"] < AS_OF - timedelta(hours=36)
    return {
        "cluster": name,
        "cluster_id": identified[0]["scope_id"] if identified else said and said.cluster_id,
        **{n: getattr(said, n, None) for n in ("env", "region", "owner", "allow_if_no_acl")},
        "super_users": said.super_users if said else None,
        "registered": said is not None,
        "status": "failed"
        if last and not is_good(last[0])
        else "never"
        if not meta
        else "stale"
        if old
        else "read"
        if meta["complete"]
        else "partial",
        **{n: meta.get(n) for n in ("snapshot", "captured_at")},
        "coverage": meta.get("coverage", {}),
        "error": last[0].get("error") if last else None,
        "brokers": int(about["brokers"]) if about else None,
        "quota_callback": about.get("quota_callback"),
        "releases": sorted({v for n, v in about.items() if n.startswith("versions.")}) or None,
    }


def now_live(landed: list[Snapshot]) -> Rows:
    found = []
    for name in {meta["subject"] for meta, _ in landed if meta["source"] == "live"}:
        mine = [o for o in landed if (o[0]["source"], o[0]["subject"]) == ("live", name)]
        mine = [one for one in mine if is_good(one[0])]
        spoken = {kind for meta, _ in mine for kind in meta["coverage"]}
        for kind in (*KINDS, "stray", "cluster"):
            covers = covering(kind) if kind in spoken else is_good
            meta, rows = newest(mine, covers) or ({}, [])
            found += [
                {"cluster": name, **{n: r.get(n) for n in ("kind", "key", "owner", "incarnation")}}
                | {n: r[n] for n in ("attrs", "snapshot", "captured_at")}
                for r in rows
                if r["kind"] == kind
            ]
    return found


def covering(kind: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda meta: meta["coverage"].get(kind, "failed") != "failed"


def of_lineages(landed: list[Snapshot], source: str, names: Mapping[str, str]) -> Rows:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for name in sorted({m["subject"] for m, _ in landed if m["source"] == source}):
        mine = [o for o in landed if (o[0]["source"], o[0]["subject"]) == (source, name)]
        one = newest(mine, is_good if source == "state" else lambda _: True)
        meta, rows = one or ({}, [])
        for item in sorted(rows, key=lambda r: str(r["instance"])):
            scope = item["scope_id"] or meta["scopes"].get(item["instance"])
            if scope:
                same = ("kind", "key", "instance", "address", "owner", "attrs", "captured_at")
                made = {"cluster": names.get(scope, scope), "lineage": name}
                made |= {n: item[n] for n in same}
                if source == "state":
                    made["incarnation"] = item["incarnation"]
                found.setdefault((made["cluster"], item["kind"], item["key"], name), made)
    return list(found.values())


def names_of(rows: Rows) -> dict[str, str]:
    """Of two names with one id, the registered one that was read last."""
    ordered = sorted(
        (r for r in rows if r["cluster_id"]),
        key=lambda r: (
            not r["registered"],
            -(r["captured_at"].timestamp() if r["captured_at"] else 0),
            r["cluster"],
        ),
    )
    return {r["cluster_id"]: r["cluster"] for r in reversed(ordered)}


def lineages(landed: list[Snapshot], audit: Rows) -> Rows:
    declared = {s.lineage: s for s in REGISTER.states if s.lineage}
    spoken = {m["subject"] for m, _ in landed if m["source"] != "live"}
    found = []
    for name in {*declared, *spoken, *(one["lineage"] for one in audit)}:
        mine = [one for one in landed if one[0]["subject"] == name]
        want = newest(mine, lambda meta: meta["source"] == "desired")
        state = newest(mine, lambda meta: meta["source"] == "state" and is_good(meta))
        known = want is not None and is_good(want[0])
        found.append(
            {
                "lineage": name,
                **{n: getattr(declared.get(name), n, None) for n in ("name", "owner")},
                **{"desired_known": known, "error": want[0]["error"] if want else None},
                "desired_at": want[0]["captured_at"] if want and known else None,
                "state_at": state[0]["captured_at"] if state else None,
                "scopes": (want[0]["scopes"] if want else {})
                | (state[0]["scopes"] if state else {}),
            }
        )
    return found


# -- tests


RAN = {"run": "r", "actor": "a", "started_at": moment(0), "refused": 0, "chain": "sound"}


def frames_of(spark: SparkSession, landed: list[Snapshot], audit: Rows) -> dict[str, DataFrame]:
    """As the store has them, with everything twice where that can happen."""
    raw = [one for _, rows in landed for one in rows]
    return {
        "snapshot": frame(spark, "snapshot", [meta for meta, _ in landed]),
        "snapshot_raw": frame(spark, "snapshot_raw", raw + raw[:50]),
        "audit_raw": frame(spark, "audit_raw", audit),
        "run": frame(
            spark,
            "run",
            [
                {**RAN, "lineage": one["lineage"], "scopes": json.loads(one["body"])["scopes"]}
                for one in audit
            ],
        ),
    }


def test_clusters_and_what_they_show(
    spark: SparkSession, landed: list[Snapshot], audit: Rows
) -> None:
    """Each kind as it could be read last, and never what a failed snapshot left."""
    frames = frames_of(spark, landed, audit)
    found = collected(build_cluster(frames, CONTEXT))
    assert in_order(found) == in_order(clusters(landed, audit))
    assert {one["status"] for one in found} == {"read", "partial", "failed", "stale", "never"}
    assert in_order(collected(build_live(frames, CONTEXT))) == in_order(now_live(landed))


def test_states_and_configurations(
    spark: SparkSession, landed: list[Snapshot], audit: Rows
) -> None:
    """Each object in the cluster of its scope id, by the name that this one has; nothing of a
    configuration that could not be read the last time."""
    frames = frames_of(spark, landed, audit)
    known = clusters(landed, audit)
    frames["cluster"] = frame(spark, "cluster", known)
    names = names_of(known)
    for source, build in (("state", build_recorded), ("desired", build_desired)):
        found = collected(build(frames, CONTEXT))
        assert in_order(found) == in_order(of_lineages(landed, source, names))
        assert len(found) > 50
    assert in_order(collected(build_lineage(frames, CONTEXT))) == in_order(lineages(landed, audit))


SCRAM = "kafka_user_scram_credential"


def test_credentials(spark: SparkSession) -> None:
    """Passwords of random users: set by the last apply that sent one, unless later iterations show
    that somebody else did; otherwise by the first snapshot. Applies that failed, deleted or adopted
    set nothing."""
    dice, live, events, past, wanted = random.Random(4), [], [], [], {}
    for number in range(60):
        key, cluster = f"u{number}|SCRAM-SHA-512", f"c{number % 3}"
        attrs = {"username": f"u{number}", "scram_mechanism": "SCRAM-SHA-512"}
        about = {"cluster": cluster, "kind": SCRAM, "key": key}
        live.append({**about, "attrs": attrs, "snapshot": "s", "captured_at": AS_OF})
        turns = sorted(dice.sample(range(40), dice.randrange(1, 3)))
        for turn, hours in enumerate(turns):
            before = moment(hours - 3) if turn or dice.random() < 0.5 else None
            last = {"valid_from": moment(hours), "seen_before": before}
            marks = {"deleted": False, "known_until": AS_OF, "known_snapshots": 9}
            past.append({**about, "attrs": attrs, **last, **marks})
        sent = []
        for seq in range(dice.randrange(4)):
            hours = dice.randrange(48)
            action = dice.choice(("create", "update", "update", "delete"))
            outcome, adopts = dice.choice(("applied", "applied", "failed")), dice.random() < 0.2
            step = {"action": action, "outcome": outcome, "adopts": adopts, "ts": moment(hours)}
            ids = {"event_id": f"l/{number}-{seq}", "lineage": "l", "seq": seq, "run": "r"}
            fixed = {"actor": "a", "record": "outcome", "scope_id": "i", "step": "s", "attempt": 1}
            events.append({**about, **step, **ids, **fixed, "changes": []})
            if outcome == "applied" and not adopts and action != "delete":
                sent.append(moment(hours))
        ours = max(sent, default=None)
        if ours and (last["seen_before"] is None or ours >= last["seen_before"]):
            wanted[cluster, key] = (ours, "log")
        else:
            wanted[cluster, key] = (last["valid_from"], "snapshot")
    frames = _credential_frames(spark, live, events, past)
    rows = collected(build_credentials(frames, CONTEXT))
    assert {(r["cluster"], r["key"]): (r["begins_at"], r["origin"]) for r in rows} == wanted
    assert all(r["age_days"] == (AS_OF.date() - r["begins_at"].date()).days for r in rows)
    assert {r["origin"] for r in rows} == {"log", "snapshot"}
    assert {(r["kind"], r["ends_at"], r["days_left"]) for r in rows} == {(SCRAM, None, None)}


def test_tokens_and_certificates(spark: SparkSession) -> None:
    """From the row of the cluster, with the days that are left; a token has the owner of its
    principal, and its id may look like a path."""
    ends = {"soon": AS_OF + timedelta(days=3, hours=1), "gone": AS_OF - timedelta(hours=1)}
    begins = AS_OF - timedelta(days=40)

    def times(prefix: str, end: Any) -> dict[str, str]:
        stamps = {"begins": begins, "ends": end}
        return {f"{prefix}.{n}": str(int(t.timestamp() * 1000)) for n, t in stamps.items()}

    attrs = {
        **times("delegation_tokens.a_-.b", ends["soon"]),
        "delegation_tokens.a_-.b.owner": "User:etl",
        **times("certificates.1", ends["gone"]),
        "certificates.1.subject": "CN=kafka-1",
        **times("certificates.login", ends["soon"]),
        **{"certificates.login.subject": "CN=fleet", "certificates.login.owner": "User:fleet"},
        **{"brokers": "1", "certificates.2.subject": "CN=without times"},
    }
    about = {"cluster": "c0", "kind": "cluster", "key": "id", "snapshot": "s"}
    frames = _credential_frames(spark, [{**about, "captured_at": AS_OF, "attrs": attrs}], [], [])
    owners = (Owner("data", principals=("User:etl",)), Owner("ops", principals=("User:fleet",)))
    register = Register(owners=owners)
    rows = collected(build_credentials(frames, BuildContext(register, AS_OF, "b1")))
    told = {
        r["key"]: [r[n] for n in ("kind", "principal", "subject", "owner", "ends_at", "days_left")]
        for r in rows
    }
    assert told == {
        "a_-.b": ["delegation_token", "User:etl", None, "data", ends["soon"], 3],
        "1": ["certificate", None, "CN=kafka-1", None, ends["gone"], -1],
        "login": ["certificate", "User:fleet", "CN=fleet", "ops", ends["soon"], 3],
    }
    assert {(r["begins_at"], r["age_days"], r["origin"]) for r in rows} == {(begins, 40, "cluster")}


def _credential_frames(
    spark: SparkSession, live: Rows, events: Rows, past: Rows
) -> dict[str, DataFrame]:
    names = [f"c{n}" for n in range(3)]
    known = {"status": "read", "registered": True, "coverage": {}, "captured_at": AS_OF}
    tables = {"live": live, "event": events, "history": past}
    tables["cluster"] = [{"cluster": name, **known} for name in names]
    return live_rows.frames(spark, tables)
