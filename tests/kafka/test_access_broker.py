"""Real clients of a real cluster are let in and turned away exactly as `access` says.

KAFKAFORM_ACCESS_PROBES=N asks at least N times, KAFKAFORM_ACCESS_SETS=N with at least N sets of
ACLs; KAFKAFORM_ACCESS_SEED replays a run. `-s` shows how many comparisons were made.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from uuid import UUID

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import probe
from kafkaform.core.secret import Secret
from kafkaform_providers.kafka import connect
from kafkaform_providers.kafka.access import (
    Access,
    Question,
    Verdict,
    authorize,
    decide,
    index,
)
from kafkaform_providers.kafka.acls import Acl
from kafkaform_providers.kafka.settings import Settings
from kafkaform_providers.kafka.wire.client import Wire
from kafkaform_providers.kafka.wire.ids import parse_id
from kafkaform_providers.kafka.wire.topics import list_topics

from .probes import (
    ANY,
    HOST,
    USERS,
    Probe,
    count_acls,
    create_acls,
    delete_all_acls,
    deletions,
    everything,
    random_acls,
    told,
)

PROBES = int(os.environ.get("KAFKAFORM_ACCESS_PROBES", "2000"))
SETS = int(os.environ.get("KAFKAFORM_ACCESS_SETS", "3"))
SEED = int(os.environ.get("KAFKAFORM_ACCESS_SEED", "20"))
PATIENCE = 10.0
MEMORY = "/dev/shm"
TOPICS = ("a", "abc")
"""The topics that are there."""
SUPER_USERS = frozenset({"User:admin", "User:broker"})


@dataclass(frozen=True)
class Cluster:
    """open: its allow.everyone.if.no.acl.found; wires: user -> connection; root: the super user's
    login; ids: of TOPICS."""

    open: bool
    wires: Mapping[str, Wire]
    root: Settings
    ids: dict[str, UUID]

    @property
    def admin(self) -> Wire:
        return self.wires["admin"]


@pytest.fixture(scope="module", params=[True, False], ids=["open", "closed"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A broker that nobody else uses, because its ACLs concern everybody."""
    name = f"access-{os.getpid()}"
    rule = ("allow.everyone.if.no.acl.found", str(request.param).lower())
    options = sandbox.Options(name, config=(rule,), ready_within=90.0)
    folder = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        try:
            made = _populated(sandbox.up(options, probe), request.param)
            yield made
            for wire in made.wires.values():
                wire.close()
        finally:
            sandbox.down(name)


def _populated(box: sandbox.Sandbox, open_: bool) -> Cluster:
    admin = _settings(box, "admin", "PLAIN", box.admin_password)
    client = AdminClient(connect.native_config(admin))
    mechanism = ScramMechanism.SCRAM_SHA_256
    users = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), b"secret-" * 2)
        for user in USERS
    ]
    for future in client.alter_user_scram_credentials(users).values():
        future.result(PATIENCE)
    wires = {"admin": _wire(admin)}
    for user in USERS:
        wires[user] = _wire(_settings(box, user, "SCRAM-SHA-256", "secret-secret-"))
    made = Cluster(open_, wires, admin, {})
    for name in TOPICS:
        create(made, name)
    return made


def create(cluster: Cluster, name: str) -> None:
    """Make a topic, again if it was deleted, and wait until it is seen."""
    client = AdminClient(connect.native_config(cluster.root))
    client.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while True:
        (row,) = list_topics(cluster.admin, [name], PATIENCE)
        number = None if row.code else parse_id(row.topic_id)
        if number not in (None, cluster.ids.get(name)):
            cluster.ids[name] = number
            return
        assert time.monotonic() < deadline, "the topic was never seen"
        time.sleep(0.05)


def _settings(box: sandbox.Sandbox, user: str, mechanism: str, password: str) -> Settings:
    return Settings(
        "kafka",
        (box.bootstrap,),
        "SASL_PLAINTEXT",
        mechanism,
        user,
        Secret(password),
        principal=f"User:{user}",
    )


def _wire(settings: Settings) -> Wire:
    return Wire(connect.pure_config(settings), connect.PATIENCE)


def expected(access: Access, probe: Probe) -> bool:
    """What `access` says of a probe: one of the rights that open its door is held."""
    asks = authorize if probe.alone else decide
    who = f"User:{probe.user}"
    answers = [
        writes_somewhere(access, who)
        if right.resource_name == ANY
        else asks(access, Question(who, HOST, *right)).verdict
        for right in probe.rights
    ]
    assert Verdict.UNKNOWN not in answers, "everything is declared here"
    return Verdict.ALLOWED in answers


def writes_somewhere(access: Access, who: str) -> Verdict:
    """Authorizer.authorizeByResourceType of KIP-679: whether somebody may write to some topic. A
    DENY on every topic takes it whatever else there is, and an ALLOW on all gives it."""
    usual = authorize(access, Question(who, HOST, "Write", "Topic", "hardcode"))
    if usual.verdict is Verdict.ALLOWED:
        return usual.verdict
    tables = ((access.index.literal, "Literal"), (access.index.prefixed, "Prefixed"))
    found = {"Allow": set[tuple[str, str]](), "Deny": set[tuple[str, str]]()}
    for table, pattern_type in tables:
        for (kind, name), bucket in table.items():
            for acl in (*bucket.get(who, ()), *bucket.get("User:*", ())):
                concerns = acl.operation in ("All", "Write") and acl.host in ("*", HOST)
                if kind == "Topic" and concerns:
                    found[acl.permission].add((name, pattern_type))
    allows, denies = found["Allow"], found["Deny"]
    everything = ("*", "Literal")
    if everything in denies:
        return Verdict.DENIED
    free = [
        (name, type_)
        for name, type_ in allows
        if (name, type_) == everything
        or not (
            (type_ == "Literal" and (name, type_) in denies)
            or any((name[:size], "Prefixed") in denies for size in range(1, len(name) + 1))
        )
    ]
    return Verdict.ALLOWED if free else Verdict.DENIED


def sent(cluster: Cluster) -> list[Probe]:
    """Every request of every user."""
    return [
        probe
        for user, wire in cluster.wires.items()
        for probe in (
            *everything(user, wire),
            *deletions(user, wire, cluster.ids, partial(create, cluster)),
            *told(user, wire, TOPICS),
        )
    ]


def settled(cluster: Cluster, acls: Sequence[Acl]) -> None:
    """Replace all ACLs, and wait until the broker goes by the new ones."""
    delete_all_acls(cluster.admin)
    create_acls(cluster.admin, acls)
    deadline = time.monotonic() + PATIENCE
    while count_acls(cluster.admin) != len(acls):
        assert time.monotonic() < deadline, "the broker never showed the new ACLs"
        time.sleep(0.05)


def test_the_broker_agrees(cluster: Cluster) -> None:
    """Every request of every user is answered as the simulation says, for ACLs of every kind
    that hide, imply and contradict each other, with and without the rule for no ACL."""
    chance = random.Random(f"{SEED} {cluster.open}")
    answers: Counter[bool] = Counter()
    for number, size in enumerate(cycle((40, 12, 120, 4, 0)), 1):
        acls = random_acls(chance, size)
        access = Access(index(acls), SUPER_USERS, cluster.open)
        settled(cluster, acls)
        probes, wrong = agreed(cluster, access)
        assert not wrong, f"{wrong[:5]} of {len(wrong)} with {acls}"
        answers.update(probe.allowed for probe in probes if probe.user != "admin")
        if answers.total() >= PROBES and number >= SETS:
            break
    print(f"{number} sets of ACLs, {answers.total()} comparisons, {answers[True]} allowed")
    assert min(answers[True], answers[False]) > PROBES // 10, "both answers must be at stake"


def agreed(cluster: Cluster, access: Access) -> tuple[list[Probe], list[Probe]]:
    """All probes, and those whose answer stays another than expected: brokers and controller hear
    of ACLs each on their own."""
    deadline = time.monotonic() + PATIENCE
    while True:
        probes = sent(cluster)
        wrong = [probe for probe in probes if probe.allowed != expected(access, probe)]
        if not wrong or time.monotonic() > deadline:
            return probes, wrong
        time.sleep(0.2)
