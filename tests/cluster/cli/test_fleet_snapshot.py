"""Snapshots of a fleet on the real broker: what is there lands, and what was not seen is not said
to be missing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kafkaform.core.errors import StorageError, UsageError
from kafkaform.core.objects import StoredObject
from kafkaform.core.progress import Event, Progress
from kafkaform.fleet.landed.register import read_register as read_register
from kafkaform.inventory import landing as places
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet import snapshot as fleetsnapshot
from kafkaform.workflow.fleet import states
from kafkaform.workflow.fleet.register_file import read_fleet
from kafkaform.workflow.fleet.snapshot import Summary, take_snapshot

from ...conftest import Broker
from ...kit.commands.folder import LOG, STATE, Folder
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import eventually, reading

CLUSTER = """
cluster "{name}" {{
  env = "test"
  connection {{
    bootstrap_servers = ["{bootstrap}"]
    security_protocol = "SASL_PLAINTEXT"
    sasl_mechanism    = "{mechanism}"
    sasl_username     = "{user}"
    sasl_password     = secret_env("{secret}")
    operation_timeout = "{timeout}"
  }}
}}
"""
STATE_BLOCK = 'state "{name}" {{\n  folder = "{folder}"\n  {more}\n}}\n'


class Fleet:
    """A fleet.hcl beside the folder's configuration, and what has landed."""

    def __init__(self, folder: Folder) -> None:
        self.folder, self.root = folder, folder.path / "data"
        self.text = 'fleet {\n  root = "data"\n}\n'
        self.kept: dict[str, bytes] = {}

    def cluster(self, name: str, **given: str) -> None:
        usual = {"user": "admin", "mechanism": "PLAIN", "timeout": "15s"}
        usual["bootstrap"] = self.folder.broker.bootstrap
        said = {**usual, **given}
        said.setdefault("secret", f"{said['user'].upper()}_PASSWORD")
        self.text += CLUSTER.format(name=name, **said)

    def state(self, name: str, folder: str = ".", more: str = "") -> None:
        self.text += STATE_BLOCK.format(name=name, folder=folder, more=more)

    def take(self, **options: Any) -> Summary:
        path = self.folder.write("fleet.hcl", self.text)
        return take_snapshot(read_fleet(path, Inputs()), **options)

    def files(self) -> dict[str, bytes]:
        landing = self.root / "landing"
        found = (path for path in landing.rglob("*") if path.is_file())
        return {path.relative_to(landing).as_posix(): path.read_bytes() for path in found}

    def meta(self, source: str, subject: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.files()[f"{source}/{subject}/{name}.meta.json"])
        return found

    def rows(self, source: str, subject: str, name: str) -> dict[tuple[str, str], Any]:
        lines = self.files()[f"{source}/{subject}/{name}.jsonl"].splitlines()
        return {(row["kind"], row["key"]): row for row in map(json.loads, lines)}

    def register(self) -> Any:
        last = max(name for name in self.files() if name.startswith("register/"))
        return read_register(self.files()[last].decode())

    def clean(self) -> None:
        """Destroy what `configuration` made, whatever became of its state."""
        if self.kept:
            for file in self.folder.path.glob("*.kf.hcl"):
                file.unlink()
            self.folder.connect()
            for name, data in self.kept.items():
                (self.folder.path / name).write_bytes(data)
            cluster = self.folder.broker.cluster_id
            self.folder.done("destroy", "--accept-open-access", "--confirm", cluster)


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """A snapshot takes all that a cluster has, and says whether it is all."""
    return exclusive_broker


@pytest.fixture
def fleet(folder: Folder) -> Iterator[Fleet]:
    made = Fleet(folder)
    yield made
    made.clean()


def configuration(fleet: Fleet) -> None:
    """A topic, overrides of somebody else's topic, an ACL and a quota, all applied."""
    folder, mine = fleet.folder, fleet.folder.prefix
    folder.create("theirs")
    folder.declare("a", partitions=2, more='config = { "retention.ms" = "1000000" }')
    folder.write(
        "more.kf.hcl",
        f'resource "kafka_topic_config" "theirs" {{\n  topic  = "{mine}theirs"\n'
        '  config = { "cleanup.policy" = "compact" }\n}\n'
        f'resource "kafka_acl" "read" {{\n  resource_name = "{mine}a"\n  resource_type = "Topic"\n'
        '  acl_principal = "User:nobody"\n  acl_host = "*"\n  acl_operation = "Read"\n'
        '  acl_permission_type = "Allow"\n}\n'
        f'resource "kafka_quota" "ci" {{\n  entity_name = "{mine}user"\n  entity_type = "user"\n'
        "  config = { consumer_byte_rate = 4000000 }\n}\n",
    )
    folder.done("apply", "-auto-approve")
    fleet.kept = {name: (folder.path / name).read_bytes() for name in (STATE, LOG)}


def test_a_cluster_its_state_and_its_log(fleet: Fleet) -> None:
    """Everything that was made there lands: live, recorded and declared alike, the log byte for
    byte; the register knows cluster and state by their ids."""
    folder = fleet.folder
    configuration(fleet)
    folder.create("found")
    fleet.cluster("eu")
    fleet.state("main")
    taken = fleet.take()
    mine, lineage = folder.prefix, taken.states[0].lineage
    assert taken.exit_code == 0, list(taken.render_lines())
    assert (taken.clusters[0].status, taken.states[0].errors) == ("read", ())
    live = fleet.rows("live", "eu", taken.snapshot)
    state = fleet.rows("state", lineage, taken.snapshot)
    desired = fleet.rows("desired", lineage, taken.snapshot)
    assert state.keys() == desired.keys()
    assert {kind for kind, _ in state} == {
        *("kafka_topic", "kafka_topic_config", "kafka_acl", "kafka_quota"),
    }
    assert state.keys() <= live.keys() and ("kafka_topic", f"{mine}found") in live
    for key in state:
        wanted, have = desired[key]["attrs"], live[key]["attrs"]
        assert {name: have.get(name) for name in wanted} == wanted
        assert {row["scope_id"] for row in (state[key], desired[key], live[key])} == {
            folder.broker.cluster_id
        }
        assert state[key]["address"] == desired[key]["address"]
        assert state[key].get("incarnation") == live[key].get("incarnation")
    times = [fleet.meta(*one, taken.snapshot) for one in (("state", lineage), ("live", "eu"))]
    spans = [time for meta in times for time in (meta["started"], meta["ended"])]
    assert spans == sorted(spans)  # each as it was read, the state before the cluster
    log = b"".join(data for name, data in sorted(fleet.files().items()) if "audit/" in name)
    assert log == (folder.path / LOG).read_bytes()
    register = fleet.register()
    assert register.clusters[0].cluster_id == folder.broker.cluster_id
    assert register.states[0].lineage == lineage


def test_usage(fleet: Fleet) -> None:
    """How far topics go, how large they are, and what a group has read of them: with its members
    while they are there, and what it committed when they have gone."""
    folder = fleet.folder
    folder.create("busy", partitions=2)
    topic, group = f"{folder.prefix}busy", f"{folder.prefix}group"
    _produce(folder, topic, 10)
    fleet.cluster("eu")
    with reading(folder.broker, topic, group):
        taken = fleet.take()
        rows = fleet.rows("live", "eu", taken.snapshot)
    usage = rows["topic_usage", topic]["attrs"]
    assert (usage["start_offsets_sum"], usage["end_offsets_sum"]) == ("0", "10")
    assert int(usage["bytes"]) > 500
    assert 0 < int(usage["partition_bytes_max"]) <= int(usage["bytes"])
    assert int(usage["partition_records_max"]) >= int(usage["partition_records_min"]) >= 0
    (disk,) = [row["attrs"] for (kind, _), row in rows.items() if kind == "disk_usage"]
    assert 0 < int(disk["usable_bytes"]) < int(disk["total_bytes"]) and disk["failed"] == "false"
    (about,) = [row["attrs"] for (kind, _), row in rows.items() if kind == "cluster"]
    assert about[f"versions.{disk['broker']}"][0].isdigit()
    assert int(about[f"leaders.{disk['broker']}"]) > 0
    read = rows["group_usage", f"{group} {topic}"]["attrs"]
    assert read == {"members": "1", "state": "Stable"} | read
    later = fleet.take()
    read = fleet.rows("live", "eu", later.snapshot)["group_usage", f"{group} {topic}"]["attrs"]
    assert (read["members"], read["state"]) == ("0", "Empty")
    assert 0 < int(read["committed_sum"]) <= 10
    coverage = fleet.meta("live", "eu", later.snapshot)["coverage"]
    assert {coverage[kind] for kind in ("cluster", "topic_usage", "group_usage")} == {"complete"}
    cluster = rows["cluster", folder.broker.cluster_id]["attrs"]
    assert cluster["brokers"] == "1" and int(cluster["metadata_version"]) > 20


def test_who_may_not_see(fleet: Fleet, stranger: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without rights: what is hidden is not said to be missing, what was refused has
    failed, and the exit code tells that it is not the whole cluster."""
    fleet.folder.create("hidden")
    monkeypatch.setenv("STRANGER_PASSWORD", stranger.password)
    fleet.cluster(
        "eu", user=stranger.user, mechanism=stranger.mechanism, secret="STRANGER_PASSWORD"
    )
    taken = fleet.take()
    meta = fleet.meta("live", "eu", taken.snapshot)
    assert taken.exit_code == 5 and taken.clusters[0].status == "partial"
    assert meta["complete"] is False and meta["scope_id"] == fleet.folder.broker.cluster_id
    assert meta["coverage"]["kafka_topic"] == "visible_only"
    assert meta["coverage"]["kafka_acl"] == "failed" and "kafka_acl" in meta["error"]
    assert "complete" not in {meta["coverage"][k] for k in ("kafka_quota", "topic_usage")}
    shown = "\n".join(taken.render_lines())
    assert "partial" in shown and "some may be hidden: " in shown


RIGHTS = {
    ResourceType.TOPIC: ("*", AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS),
    ResourceType.GROUP: ("*", AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS),
    ResourceType.BROKER: ("kafka-cluster", AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS),
}
"""What docs/fleet/register.md says that a snapshot needs; BROKER is the cluster's own type."""


@pytest.fixture
def auditor(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A user who may see everything and change nothing."""
    admin, user = fleet.folder.admin, f"{fleet.folder.prefix}auditor"
    monkeypatch.setenv("AUDITOR_PASSWORD", "auditor-Zq7")
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    changes = [UserScramCredentialUpsertion(user, info, b"auditor-Zq7")]
    _done(admin.alter_user_scram_credentials(changes))
    _done(admin.create_acls([_acl(user, *right) for right in _rights()]))
    yield user
    _done(admin.delete_acls([_filter(user)]))
    gone = [UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)]
    _done(admin.alter_user_scram_credentials(gone))


def test_rights_to_see_all_are_enough(fleet: Fleet, auditor: str) -> None:
    """Who holds the rights that the documentation names reads a cluster whole: also topics, of
    which Kafka never says so. A prefix that is denied to them spoils that."""
    folder = fleet.folder
    folder.create("x")
    fleet.cluster("eu", user=auditor, mechanism="SCRAM-SHA-256", secret="AUDITOR_PASSWORD")

    def coverage() -> dict[str, str]:
        taken = fleet.take()
        if taken.clusters[0].status == "failed":  # its login is not known everywhere yet
            return {}
        assert ("kafka_topic", f"{folder.prefix}x") in fleet.rows("live", "eu", taken.snapshot)
        found: dict[str, str] = fleet.meta("live", "eu", taken.snapshot)["coverage"]
        return found

    eventually(coverage, lambda found: set(found.values()) == {"complete"})
    denied = _acl(
        auditor, ResourceType.TOPIC, f"{folder.prefix}den", AclOperation.DESCRIBE, deny=True
    )
    _done(folder.admin.create_acls([denied]))
    found = eventually(coverage, lambda found: found["kafka_topic"] != "complete")
    assert found["kafka_topic"] == found["topic_usage"] == "visible_only"


def _rights() -> Iterator[tuple[ResourceType, str, AclOperation]]:
    for kind, (name, *operations) in RIGHTS.items():
        yield from ((kind, name, operation) for operation in operations)


def _acl(
    user: str, kind: ResourceType, name: str, operation: AclOperation, *, deny: bool = False
) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if deny else ResourcePatternType.LITERAL
    verdict = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, verdict)


def _filter(user: str) -> AclBindingFilter:
    return AclBindingFilter(
        *(ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{user}"),
        *(None, AclOperation.ANY, AclPermissionType.ANY),
    )


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(60)


def test_a_cluster_that_is_not_there(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded as failed, with why and without rows; the others are read meanwhile, and wait
    for nothing. So are a missing secret and a refused login. The broker is busy with other tests:
    what has just begun there, such as a coordinator that still loads, is over a moment later."""
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setenv("WRONG", "Canary-wrong-password")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        fleet.cluster("deaf", bootstrap=f"127.0.0.1:{deaf.getsockname()[1]}", timeout="4s")
        fleet.cluster("closed", bootstrap="127.0.0.1:1")
        fleet.cluster("unset", secret="NOT_SET")
        fleet.cluster("refused", secret="WRONG")
        fleet.cluster("sound")
        failed = dict.fromkeys(("deaf", "closed", "unset", "refused"), "failed")
        statuses = {**failed, "sound": "read"}

        def settled(taken: Summary) -> bool:
            found = {one.name: one for one in taken.clusters}
            right = {name: one.status for name, one in found.items()} == statuses
            return right and found["sound"].seconds < found["deaf"].seconds < 25

        taken = eventually(fleet.take, settled)
    assert taken.exit_code == 5
    for name, words in (("closed", "127.0.0.1:1"), ("unset", "NOT_SET"), ("refused", "login")):
        meta = fleet.meta("live", name, taken.snapshot)
        assert words in meta["error"] or name == "refused", meta
        assert meta["error"] and not meta["complete"] and "sha256" not in meta
        assert f"live/{name}/{taken.snapshot}.jsonl" not in fleet.files()
    assert b"Canary" not in b"".join(fleet.files().values())
    shown = [*taken.render_lines()]
    lines = {line.split()[0]: n for n, line in enumerate(shown)}
    for name in ("deaf", "closed", "unset", "refused"):
        assert "failed   nothing was read" in shown[lines[name]]
        assert shown[lines[name] + 1].startswith("    ")
    assert "objects" in shown[lines["sound"]] and "1 read, 0 partial, 4 failed" in shown[-1]


def test_the_second_changes_nothing_of_the_first(fleet: Fleet) -> None:
    """Whatever happens between them; the log goes on where it had ended."""
    folder = fleet.folder
    configuration(fleet)
    fleet.cluster("eu")
    fleet.state("main")
    fleet.take()
    first = fleet.files()
    folder.declare("a", "b", partitions=3)
    folder.done("apply", "-auto-approve")
    second = fleet.take()
    after = fleet.files()
    assert {name: after[name] for name in first} == first
    segments = sorted(name for name in after if name.startswith("audit/"))
    assert len(segments) == 2 and second.states[0].records > 0
    assert b"".join(after[name] for name in segments) == (folder.path / LOG).read_bytes()


def test_a_configuration_with_faults(fleet: Fleet) -> None:
    """Its state and log land; of what it declares nothing does but why."""
    folder = fleet.folder
    configuration(fleet)
    folder.write("bad.kf.hcl", 'resource "kafka_topic" "x" {\n  partitions = "many"\n}\n')
    fleet.cluster("eu")
    fleet.state("main")
    taken = fleet.take()
    state = taken.states[0]
    meta = fleet.meta("desired", state.lineage, taken.snapshot)
    assert "bad.kf.hcl:2" in meta["error"] and meta["complete"] is False
    assert f"desired/{state.lineage}/{taken.snapshot}.jsonl" not in fleet.files()
    assert state.recorded == 4 and state.records > 0 and state.declared is None
    assert taken.exit_code == 5


def test_data_sources_that_cannot_be_asked(fleet: Fleet) -> None:
    """A configuration that asks a cluster that is down declares nothing that is known."""
    folder = fleet.folder
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    folder.connect(bootstrap="127.0.0.1:1")
    folder.write("data.kf.hcl", 'data "kafka_cluster" "here" {\n}\nlocals {\n'
                 "  n = data.kafka_cluster.here.cluster_id\n}\n")  # fmt: skip
    fleet.cluster("eu")
    fleet.state("main")
    taken = fleet.take()
    meta = fleet.meta("desired", taken.states[0].lineage, taken.snapshot)
    assert "127.0.0.1:1" in meta["error"]


def test_a_log_somebody_changed(fleet: Fleet) -> None:
    """Nothing of it lands, and the summary says why; the state itself does."""
    folder = fleet.folder
    configuration(fleet)
    log = folder.path / LOG
    log.write_bytes(log.read_bytes().replace(b'"applied"', b'"appliec"', 1))
    fleet.cluster("eu")
    fleet.state("main")
    taken = fleet.take()
    assert taken.exit_code == 5 and "record" in taken.states[0].errors[0]
    assert not any(name.startswith("audit/") for name in fleet.files())
    assert taken.states[0].recorded == 4


def test_states_elsewhere(fleet: Fleet) -> None:
    """A state by its location, with variables of the fleet file; the same under another name, one
    without the variable, one that is broken, and one of which nothing was ever applied."""
    folder = fleet.folder
    folder.declare("a")
    variable = 'variable "n" {\n  type = number\n}\noutput "n" {\n  value = var.n\n}\n'
    folder.write("var.kf.hcl", variable)
    folder.done("apply", "-auto-approve", "-var=n=1")
    folder.write("broken.json", "{}")
    for name, text in (("empty", 'output "x" {\n  value = 1\n}\n'), ("other", variable)):
        (folder.path / name).mkdir()
        folder.write(f"{name}/main.kf.hcl", text)
    fleet.state("main", more='location = "kafkaform.state.json"\n  vars = { n = 2 }')
    fleet.state("again", more="vars = { n = 3 }")
    fleet.state("unset", "other")
    fleet.state("new", "empty")
    fleet.text += 'state "broken" {\n  location = "broken.json"\n}\n'
    found = {one.name: one for one in fleet.take().states}
    assert found["main"].errors == () and found["main"].declared == 1
    assert "same state as main" in found["again"].errors[0]
    assert 'variable "n" has no value' in found["unset"].errors[0]
    assert found["new"].errors == () and found["new"].lineage == ""
    assert "broken.json" in found["broken"].errors[0]


def test_states_in_other_places(fleet: Fleet) -> None:
    """In a store, named by the fleet file, and where the configuration's backend block says; with
    their logs, which are beside them."""
    folder, far = fleet.folder, "memory://fleet-state/far"
    folder.declare("a")
    folder.done("apply", "-auto-approve", f"--state={far}")
    (folder.path / "near").mkdir()
    block = 'kafkaform {\n  backend "local" {\n    path = "states/x.json"\n  }\n}\n'
    (folder.path / "near/states").mkdir()
    for name in ("provider.kf.hcl", "topics.kf.hcl"):
        text = (folder.path / name).read_text().replace(f"{folder.prefix}a", f"{folder.prefix}b")
        folder.write(f"near/{name}", text)
    folder.write("near/backend.kf.hcl", block)
    folder.monkeypatch.chdir(folder.path / "near")
    folder.done("apply", "-auto-approve")
    folder.monkeypatch.chdir(folder.path)
    fleet.state("far", more=f'location = "{far}"')
    fleet.state("near", "near")
    taken = fleet.take()
    for state, topic in zip(taken.states, "ab", strict=True):
        assert state.errors == () and (state.recorded, state.declared) == (1, 1)
        rows = fleet.rows("state", state.lineage, taken.snapshot)
        assert [*rows] == [("kafka_topic", f"{folder.prefix}{topic}")] and state.records > 5
    files = fleet.files()
    near = [data for name, data in files.items() if f"audit/{taken.states[1].lineage}/" in name]
    assert near == [(folder.path / "near/states/x.audit.jsonl").read_bytes()]


def test_ids_are_remembered(fleet: Fleet) -> None:
    """A cluster that cannot be reached keeps the id that it had, and so does a state."""
    folder = fleet.folder
    configuration(fleet)
    fleet.cluster("eu")
    fleet.state("main")
    lineage = fleet.take().states[0].lineage
    fleet.text = fleet.text.replace(folder.broker.bootstrap, "127.0.0.1:1")
    (folder.path / STATE).write_text("{}")
    fleet.take()
    register = fleet.register()
    assert register.clusters[0].cluster_id == folder.broker.cluster_id
    assert register.states[0].lineage == lineage


def test_no_secret_lands(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of connections nor those that a configuration declares."""
    folder = fleet.folder
    canary = "Canary-Zq7-secret"
    monkeypatch.setenv("USER_SECRET", canary)
    user = f"{folder.prefix}user"
    folder.write(
        "user.kf.hcl",
        'resource "kafka_user_scram_credential" "u" {\n'
        f'  username = "{user}"\n  scram_mechanism = "SCRAM-SHA-256"\n'
        '  password = secret_env("USER_SECRET")\n}\n',
    )
    folder.done("apply", "-auto-approve")
    fleet.cluster("eu")
    fleet.state("main")
    taken = fleet.take()
    lineage = taken.states[0].lineage
    key = ("kafka_user_scram_credential", f"{user}|SCRAM-SHA-256")
    live = fleet.rows("live", "eu", taken.snapshot)[key]["attrs"]
    assert fleet.rows("desired", lineage, taken.snapshot)[key]["attrs"].items() <= live.items()
    landed = b"".join(fleet.files().values())
    for secret in (canary, folder.broker.admin_password):
        assert secret.encode() not in landed
    folder.done("destroy", "--confirm", folder.broker.cluster_id)


def test_what_is_ignored_is_no_wish(fleet: Fleet) -> None:
    """What a block leaves to others is landed as it is: it is no drift."""
    folder = fleet.folder
    more = 'config = { "retention.ms" = "1000000", "segment.ms" = "9000000" }\n'
    more += '  lifecycle {\n    ignore_changes = [config["segment.ms"]]\n  }'
    folder.declare("a", more=more)
    folder.done("apply", "-auto-approve")
    folder.alter("a", "segment.ms", "8000000")
    folder.alter("a", "retention.ms", "2000000")
    fleet.cluster("eu")
    fleet.state("main")
    taken = fleet.take()
    rows = fleet.rows("desired", taken.states[0].lineage, taken.snapshot)
    attrs = rows["kafka_topic", f"{folder.prefix}a"]["attrs"]
    assert attrs["config.segment.ms"] == "8000000"
    assert attrs["config.retention.ms"] == "1000000"
    assert "replica_assignment" not in attrs


def test_a_fault_of_ours(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody expected of one cluster and one state leaves the others alone, and its text,
    which could hold anything, lands nowhere."""
    fleet.folder.declare("a")
    fleet.folder.done("apply", "-auto-approve")
    for name in ("eu", "us"):
        fleet.cluster(name)
        fleet.state(name.upper())
    real_capture, real_known = fleetsnapshot.capture_cluster, states._read_state

    def capture(session: Any, reader: Any, named: Any, task: str, report: Any) -> Any:
        if task == "us":
            raise ZeroDivisionError("Canary-text")
        return real_capture(session, reader, named, task, report)

    def known(entry: Any) -> Any:
        if entry.name == "US":
            raise ZeroDivisionError("Canary-text")
        return real_known(entry)

    monkeypatch.setattr(fleetsnapshot, "capture_cluster", capture)
    monkeypatch.setattr(states, "_read_state", known)
    taken = fleet.take()
    assert [one.status for one in taken.clusters] == ["read", "failed"]
    assert [one.recorded for one in taken.states] == [1, None]
    assert "ZeroDivisionError" in (taken.clusters[1].error or "") and taken.exit_code == 5
    assert "Canary" not in str(taken) and b"Canary" not in b"".join(fleet.files().values())


def test_some_of_the_fleet(fleet: Fleet) -> None:
    """By name; a name that is none is refused before anything is read."""
    fleet.cluster("eu-1")
    fleet.cluster("us-1", bootstrap="127.0.0.1:1")
    events: list[Event] = []
    taken = fleet.take(only=("eu-*",), report=events.append)
    assert [one.name for one in taken.clusters] == ["eu-1"] and taken.exit_code == 0
    told = [event for event in events if isinstance(event, Progress) and event.task == "fleet"]
    assert [(event.done, event.total) for event in told] == [(0, 1), (1, 1)] and told[-1].finished
    with pytest.raises(UsageError, match="eu-2"):
        fleet.take(only=("eu-2",))
    document: Mapping[str, Any] = taken.make_document()
    assert document["complete"] is True and document["clusters"][0]["status"] == "read"


def test_a_place_that_cannot_be_written(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is an error of its own, and no snapshot."""
    fleet.cluster("eu")

    def full(self: places.Folder, key: str, data: bytes) -> str:
        raise StorageError(f"cannot write: {key}: the disk is full", "Free some space.")

    monkeypatch.setattr(places.Folder, "create", full)
    with pytest.raises(StorageError, match="disk is full"):
        fleet.take()
    assert fleet.files() == {}


def test_a_store_as_the_place(fleet: Fleet) -> None:
    """The same files under a prefix of an object store."""
    fleet.cluster("eu")
    taken = fleet.take(root="memory://fleet-test/x")
    place = places.open_place("memory://fleet-test/x")
    keys = [entry.key for entry in place.names("landing")]
    stem = f"landing/live/eu/{taken.snapshot}"
    assert keys == [f"{stem}.jsonl", f"{stem}.meta.json", f"landing/register/{taken.snapshot}.json"]
    found: StoredObject | None = place.read(f"{stem}.meta.json")
    assert found and json.loads(found.data)["rows"] == taken.clusters[0].objects
    assert not (fleet.folder.path / "data").exists()


def test_nobody_says_where(fleet: Fleet) -> None:
    """Without a root nothing is read."""
    fleet.text = ""
    fleet.cluster("eu")
    with pytest.raises(UsageError, match="there is no root"):
        fleet.take()


def _produce(folder: Folder, topic: str, count: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": folder.broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": folder.broker.admin_password,
        }
    )
    for number in range(count):
        producer.produce(topic, b"x" * 100, key=str(number))
    assert producer.flush(10) == 0


def test_as_it_is_typed(fleet: Fleet) -> None:
    """The command tells people in lines and programs in JSON, and ends with the summary's code."""
    folder = fleet.folder
    folder.create("x")
    fleet.cluster("eu")
    fleet.cluster("down", bootstrap="127.0.0.1:1")
    folder.write("fleet.hcl", fleet.text)
    said = folder.run("fleet", "snapshot", "--only=eu", "--quiet")
    assert said.code == 0 and "1 read, 0 partial, 0 failed" in said.text
    said = folder.run("fleet", "snapshot", "--json")
    document = json.loads(said.out)
    assert said.code == 5 and document["complete"] is False
    found = {one["name"]: one["status"] for one in document["clusters"]}
    assert found == {"eu": "read", "down": "failed"}
    folder.write("fleet.hcl", "fleet {\n  rot = 1\n}\n")
    said = folder.run("fleet", "snapshot")
    assert said.code == 1 and "fleet.hcl:2" in said.text and 'Did you mean "root"?' in said.text
