"""A broker of its own, its users, and what all of them are answered, held against `access`."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.secret import Secret
from kafkaform_kafka.authority.authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize,
    authorize_any,
    decide,
    index_acls,
    to_cluster_question,
    to_topics_question,
)
from kafkaform_kafka.connection.settings import PATIENCE as CLIENT_PATIENCE
from kafkaform_kafka.connection.settings import (
    KafkaSettings,
    make_client_config,
    make_librdkafka_config,
)
from kafkaform_kafka.kinds.acl.resource_type import Acl
from kafkaform_kafka.wire.answers import parse_id
from kafkaform_kafka.wire.client import Wire
from kafkaform_kafka.wire.topics import list_topics

from ...kit.kafka.versions import make_options
from .probes import (
    HOST,
    OWNERS,
    USERS,
    Probe,
    Right,
    count_acls,
    create_acls,
    delete_all_acls,
    deletions,
    everything,
    list_tokens,
    make_token,
    random_acls,
    random_writers,
    sights,
    told,
)

SIZES = (40, 12, -8, 120, -3, 4, 0)
"""How many ACLs there are at a time; less than none: so many, all about Write on topics."""
PATIENCE = 60.0
MEMORY = "/dev/shm"
TOPICS = ("a", "abc")
"""The topics that are there."""
ASKABLE = (
    ("auto.create.topics.enable", "true"),
    ("delegation.token.secret.key", "a key of these tests alone"),
    ("transaction.two.phase.commit.enable", "true"),
    ("unstable.api.versions.enable", "true"),
)
"""What a broker needs so that it can be asked for everything: version 6 of InitProducerId, which
has two-phase commit (KIP-939), is not stable in 4.3."""
SUPER_USERS = frozenset({"User:admin", "User:broker"})


@dataclass(frozen=True)
class Cluster:
    """open: its allow.everyone.if.no.acl.found; wires: user -> connection; root: the super user's
    login; ids: of TOPICS; tokens: id -> the user whose it is."""

    open: bool
    wires: Mapping[str, Wire]
    root: KafkaSettings
    ids: dict[str, UUID]
    tokens: dict[str, str]

    @property
    def admin(self) -> Wire:
        return self.wires["admin"]


@contextmanager
def running(open_: bool) -> Iterator[Cluster]:
    """A broker that nobody else uses, because its ACLs concern everybody."""
    name = f"access-{os.getpid()}"
    rule = ("allow.everyone.if.no.acl.found", str(open_).lower())
    options = make_options(name, config=(rule, *ASKABLE))
    folder = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        try:
            made = _populated(sandbox.up(options, count_brokers), open_)
            yield made
            for wire in made.wires.values():
                wire.close()
        finally:
            sandbox.down(name)


def _populated(box: sandbox.Sandbox, open_: bool) -> Cluster:
    admin = _settings(box, "admin", "PLAIN", box.admin_password)
    client = AdminClient(make_librdkafka_config(admin))
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
    made = Cluster(open_, wires, admin, {}, {})
    for name in TOPICS:
        create(made, name)
    made.tokens.update({make_token(made.admin, owner): owner for owner in OWNERS})
    deadline = time.monotonic() + PATIENCE
    while list_tokens(made.admin) != made.tokens.keys():
        assert time.monotonic() < deadline, "the tokens were never seen"
        time.sleep(0.05)
    return made


def create(cluster: Cluster, name: str) -> None:
    """Make a topic, again if it was deleted, and wait until it is seen."""
    client = AdminClient(make_librdkafka_config(cluster.root))
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


def _settings(box: sandbox.Sandbox, user: str, mechanism: str, password: str) -> KafkaSettings:
    return KafkaSettings(
        "kafka",
        (box.bootstrap,),
        "SASL_PLAINTEXT",
        mechanism,
        user,
        Secret(password),
        principal=f"User:{user}",
    )


def _wire(settings: KafkaSettings) -> Wire:
    return Wire(make_client_config(settings), CLIENT_PATIENCE)


def expected(access: Access, probe: Probe) -> bool:
    """What `access` says of a probe: one of the rights that open its door is held, and what it
    asks for besides."""
    asks = authorize if probe.alone else decide
    who = f"User:{probe.user}"
    answers = [asks(access, AccessQuestion(who, HOST, *right)).verdict for right in probe.rights]
    besides = probe.besides and decide(access, AccessQuestion(who, HOST, *probe.besides)).verdict
    assert AccessVerdict.UNKNOWN not in (*answers, besides), "everything is declared here"
    return AccessVerdict.ALLOWED in answers and besides in (None, AccessVerdict.ALLOWED)


def sent(cluster: Cluster) -> list[Probe]:
    """Every request of every user."""
    return [
        probe
        for user, wire in cluster.wires.items()
        for probe in (
            *everything(user, wire),
            *deletions(user, wire, cluster.ids, partial(create, cluster)),
            *told(user, wire, TOPICS),
            *sights(user, wire, cluster.tokens),
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


@dataclass(frozen=True)
class Compared:
    """One set of ACLs: all probes of users without other rights, those whose answer stays another
    than expected, and the rights that made the difference, each with its answer."""

    acls: tuple[Acl, ...]
    probes: tuple[Probe, ...]
    wrong: tuple[Probe, ...]
    decided: tuple[tuple[str, str, bool], ...]


def compare(cluster: Cluster, chance: random.Random) -> Iterator[Compared]:
    """One random set of ACLs after the other, without end."""
    for size in cycle(SIZES):
        some = size >= 0
        tokens = tuple(cluster.tokens)
        acls = random_acls(chance, size, tokens) if some else random_writers(chance, -size)
        access = Access(index_acls(acls), SUPER_USERS, cluster.open)
        settled(cluster, acls)
        found, wrong = agreed(cluster, access)
        probes = tuple(one for one in found if one.user != "admin")
        decided = tuple(right for one in probes for right in deciding(access, one))
        yield Compared(acls, probes, tuple(wrong), decided)


def deciding(access: Access, probe: Probe) -> Iterator[tuple[str, str, bool]]:
    """The rights without which, or with which, the answer would be another: resource type,
    operation, and whether it is held."""
    who = f"User:{probe.user}"

    def held(right: Right) -> bool:
        return authorize(access, AccessQuestion(who, HOST, *right)).verdict is AccessVerdict.ALLOWED

    asked = [AccessQuestion(who, HOST, *right) for right in probe.rights]
    more = (
        [] if probe.alone else [one for one in map(to_cluster_question, asked) if one is not None]
    )
    doors = {Right(q.operation, q.resource_type, q.resource_name) for q in (*asked, *more)}
    anywhere = any(
        authorize_any(access, later).verdict is AccessVerdict.ALLOWED
        for later in map(to_topics_question, asked)
        if later is not None and not probe.alone
    )
    besides = probe.besides is None or held(probe.besides)
    for door in doors:
        alone = besides and not anywhere and not any(held(one) for one in doors - {door})
        if alone and held(door) == probe.allowed:
            yield door.resource_type, door.operation, probe.allowed
    if probe.besides is not None and any(map(held, doors)) and besides == probe.allowed:
        yield probe.besides.resource_type, probe.besides.operation, probe.allowed
