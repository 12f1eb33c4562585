"""A cluster, a store and a forge as a team would have them: each login with the rights that the
example's README lists, and no more."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kafkaform.audit.records import Record, decode, read_line, verify_log
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform_kafka.connection.settings import make_librdkafka_config

from ...kit.kafka.sessions import eventually, login
from ...kit.stores import s3
from .forge import EXAMPLE, Forge, forge
from .jobs import Runner

PATIENCE = 60.0
PASSWORDS = {"pipeline-reader": "pw-of-the-reader", "pipeline-writer": "pw-of-the-writer"}
KEYS = {"reader": "pw-of-the-store-reader", "writer": "pw-of-the-store-writer"}
LEASE, TIMEOUT = "2s", "1s"
"""Short ones, so that what waits for them does not wait long."""
TOPICS, BILLING = ("checkout.orders", "checkout.refunds"), "User:billing"
_EVERYTHING = (ResourceType.ANY, None, ResourcePatternType.ANY)
_SCRAM = ScramMechanism.SCRAM_SHA_256


@dataclass(frozen=True)
class World:
    """admin: a client with all rights; bucket: what the store holds; address: of the store."""

    broker: Any
    admin: AdminClient
    bucket: s3.Bucket
    address: str
    folder: Path

    def forge(self, form: str) -> Forge:
        place = self.folder / form
        place.mkdir()
        return forge(place, form)

    def runner(self, made: Forge, **more: Any) -> Runner:
        return Runner(made, self.folder, **more)

    def name_state(self, path: str) -> str:
        """The address of a state in the store."""
        query = f"endpoint={self.address}&region=us-east-1&use_path_style=true&lease={LEASE}"
        return f"s3://{s3.BUCKET}/{path}?{query}"

    def settings(self, who: str) -> dict[str, str]:
        """The variables that a job gets: `reader` or `writer`."""
        user = f"pipeline-{who}"
        return {
            "KAFKAFORM_STATE": self.name_state("prod"),
            "AWS_ACCESS_KEY_ID": who,
            "AWS_SECRET_ACCESS_KEY": KEYS[who],
            "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "KAFKAFORM_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "KAFKAFORM_KAFKA_SASL_MECHANISM": "SCRAM-SHA-256",
            "KAFKAFORM_KAFKA_SASL_USERNAME": user,
            "KAFKAFORM_KAFKA_SASL_PASSWORD": PASSWORDS[user],
        }

    def context(self, event: str, **more: Any) -> dict[str, Any]:
        """What GitHub's expressions see."""
        reader, writer = self.settings("reader"), self.settings("writer")
        return {
            "github.event_name": event,
            "github.repository": "team/kafka",
            "github.token": "pw-of-the-forge",
            "vars.KAFKAFORM_STATE": reader["KAFKAFORM_STATE"],
            "vars.KAFKA_BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "vars.KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "vars.KAFKA_SASL_MECHANISM": "SCRAM-SHA-256",
            "vars.KAFKA_READER": "pipeline-reader",
            "vars.KAFKA_WRITER": "pipeline-writer",
            "secrets.STATE_READER_KEY_ID": "reader",
            "secrets.STATE_READER_KEY": KEYS["reader"],
            "secrets.STATE_WRITER_KEY_ID": "writer",
            "secrets.STATE_WRITER_KEY": KEYS["writer"],
            "secrets.KAFKA_READER_PASSWORD": reader["KAFKAFORM_KAFKA_SASL_PASSWORD"],
            "secrets.KAFKA_WRITER_PASSWORD": writer["KAFKAFORM_KAFKA_SASL_PASSWORD"],
            **more,
        }

    # ── what can be seen ────────────────────────────────────────────────────────────────

    def topics(self) -> dict[str, int]:
        """Those of the example: name -> partitions."""
        found = self.admin.list_topics(timeout=PATIENCE).topics
        return {name: len(found[name].partitions) for name in TOPICS if name in found}

    def acls(self) -> int:
        """How many ACLs the example's application has."""
        mine = (BILLING, None, AclOperation.ANY, AclPermissionType.ANY)
        return len(self.admin.describe_acls(AclBindingFilter(*_EVERYTHING, *mine)).result(PATIENCE))

    def clear(self) -> None:
        """Everything that the example made is gone, in the cluster and in the store."""
        left = [*self.topics()]
        if left:
            _done(self.admin.delete_topics(left))
        mine = (BILLING, None, AclOperation.ANY, AclPermissionType.ANY)
        _done(self.admin.delete_acls([AclBindingFilter(*_EVERYTHING, *mine)]))
        eventually(lambda: (self.topics(), self.acls()), lambda left: left == ({}, 0))
        self.bucket.objects.clear()

    def records(self, path: str = "prod") -> list[Record]:
        """The audit log, which verifies, reaches the state's anchor, and has one end for each
        intent. path: of the state."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in s3.ENVIRONMENT.items():
                patch.setenv(name, value)
            objects = open_objects(f"s3://{s3.BUCKET}/{path}", s3.options(self.address))
            state = ObjectBackend(objects).load().state
            assert state is not None and ObjectBackend(objects).holder() is None
            sink = ObjectSink(objects)
            verdict = verify_log(sink.lines(), state.audit_head)
            assert verdict.ok, verdict.problem
            records = [decode(read_line(line)) for line in sink.lines()]
        ends = sum(record.kind in ("outcome", "recover") for record in records)
        assert sum(record.kind == "intent" for record in records) == ends
        return records


@pytest.fixture
def world(broker: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Nothing of the example is there, neither before nor afterwards. Its names are those of the
    example, so processes that share the broker take turns."""
    with (tmp_path_factory.getbasetemp().parent / "pipelines.turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        with opened(broker, tmp_path) as made:
            yield made


@contextmanager
def opened(broker: Any, folder: Path) -> Iterator[World]:
    """A world with this broker."""
    admin = AdminClient({**make_librdkafka_config(login(broker, "admin")), "log_level": 0})
    bucket = s3.Bucket()
    bucket.always.append(_rights)
    with s3.serving(bucket) as address, _logins(admin):
        made = World(broker, admin, bucket, address, folder)
        yield made
        made.clear()


def _rights(bucket: s3.Bucket, request: s3.Request) -> s3.Answer | None:
    """The store's reader has GetObject and ListBucket."""
    signed_by_reader = "Credential=reader/" in request.headers["authorization"]
    if signed_by_reader and request.method not in ("GET", "HEAD"):
        return s3.refusal(403, "AccessDenied")
    return None


@contextmanager
def _logins(admin: AdminClient) -> Iterator[None]:
    """Both logins, with the rights of the README's table."""
    info = ScramCredentialInfo(_SCRAM, 4096)
    rights = readme_rights()
    for user, password in PASSWORDS.items():
        made = UserScramCredentialUpsertion(user, info, password.encode())
        _done(admin.alter_user_scram_credentials([made]))
        _done(admin.create_acls([_rule(user, *what) for what in rights[user]]))
    yield
    for user in PASSWORDS:
        gone = AclBindingFilter(
            *_EVERYTHING, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY
        )
        _done(admin.delete_acls([gone]))
        _done(admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, _SCRAM)]))


def readme_rights() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Login -> (resource, operation), as the table of the README says."""
    text = (EXAMPLE / "README.md").read_text()
    rights: dict[str, list[tuple[str, str]]] = {}
    for user, *cells in re.findall(r"^\| `(pipeline-\w+)` \| (.+) \| (.+) \| (.+) \|$", text, re.M):
        rights[user] = [
            (kind, operation)
            for kind, cell in zip(("Cluster", "Topic", "Group"), cells, strict=True)
            for operation in cell.split(", ")
        ]
    assert rights.keys() == PASSWORDS.keys()
    return rights


def _rule(user: str, kind: str, operation: str) -> AclBinding:
    words = re.findall("[A-Z][a-z]+", operation)
    return AclBinding(
        {"Cluster": ResourceType.BROKER, "Topic": ResourceType.TOPIC, "Group": ResourceType.GROUP}[
            kind
        ],
        "kafka-cluster" if kind == "Cluster" else "*",
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation["_".join(words).upper()],
        AclPermissionType.ALLOW,
    )


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(PATIENCE)
