"""`describe`: what a cluster has, for people and for programs, and how far that can be trusted."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from kafkaform.cli.command_tree import get_commands
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.render.text import render_page, wrap_cells, wrap_text
from kafkaform_kafka.inspect.cells import size
from kafkaform_kafka.inspect.document_page import document_page
from kafkaform_kafka.inspect.documents import ASKED, OBJECTS
from kafkaform_kafka.inspect.explanations import access_page
from kafkaform_kafka.kinds.quota.resource_type import name_quota_source
from kafkaform_kafka.protocol.cluster_facts import find_level
from kafkaform_kafka.wire import describe as wire

from ...conftest import Broker
from ...kit.commands.bare import Bare
from ...kit.commands.folder import Folder
from ...kit.kafka.logins import Login
from ...kit.kafka.versions import get_choice


def text(document: dict[str, Any], width: int | None = None) -> str:
    frozen = freeze(document)
    assert isinstance(frozen, FrozenMap)
    return "\n".join(render_page(document_page(frozen), width))


TOPIC = {
    "name": "orders",
    "topic_id": "id-1",
    "internal": False,
    "partitions": 3,
    "replication_factor": 2,
    "fewest_replicas": 2,
    "throttled": False,
    "leaderless": 0,
    "under_replicated": 0,
    "offline_replicas": 0,
}


def test_topics_for_people() -> None:
    """One line a topic, its problems in words, and what may be missing."""
    sick = {**TOPIC, "name": "sick", "leaderless": 1, "under_replicated": 2, "offline_replicas": 3}
    found = text({"kind": "topics", "topics": [TOPIC, sick], "hidden": "more may be there"})
    head, first, second, *rest = found.splitlines()
    assert head.split() == ["Topic", "Partitions", "RF", "Problems", "Internal", "Id"]
    assert first.split() == ["orders", "3", "2", "id-1"]
    assert " 1 without leader, 3 replicas offline, 2 under-replicated " in second
    assert {line.index("id-1") for line in (first, second)} == {head.index("Id")}
    assert rest == ["2 topics.", "Others may be hidden: more may be there."]


def test_configs_have_the_columns_of_kip_248() -> None:
    """Name = Value, Sensitive, Read-only, Source; sorted, defaults included."""
    row = {"sensitive": False, "read_only": False}
    configs = [
        {**row, "name": "compression.type", "value": "producer", "source": "DEFAULT_CONFIG"},
        {**row, "name": "retention.ms", "value": "6000", "source": "DYNAMIC_TOPIC_CONFIG"},
        {"name": "x", "value": None, "sensitive": True, "read_only": True, "source": "UNKNOWN"},
    ]
    entity = {"name": "topicA", "default": False, "configs": configs, "error": None}
    document = {"kind": "configs", "entity_type": "topics", "entities": [entity], "hidden": None}
    assert text(document) == (
        "CONFIGS FOR TOPIC topicA\n"
        "\n"
        "            Name    Value        Sensitive  Read-only  Source\n"
        "compression.type  = producer     false      false      Default config\n"
        "    retention.ms  = 6 s (6000)   false      false      Dynamic topic config\n"
        "               x  = (sensitive)  true       true       Unknown\n"
    )


def test_names_of_others_cannot_write_to_the_terminal() -> None:
    """Control characters of a foreign name are shown as what they are."""
    found = text({"kind": "topics", "topics": [{**TOPIC, "name": "a\x1b[2Jb\nc"}], "hidden": None})
    assert "\x1b" not in found
    assert "a\\x1b[2Jb\\nc" in found


def test_a_pipe_gets_everything_and_a_terminal_what_fits() -> None:
    """On a terminal the widest column is wrapped; nothing is lost, wherever it goes."""
    document = {"kind": "topics", "topics": [{**TOPIC, "name": "n" * 200}], "hidden": None}
    assert "n" * 200 in text(document)
    narrow = text(document, 80).splitlines()
    assert max(map(len, narrow)) <= 80
    assert sum(line.partition(" ")[0].count("n") for line in narrow[1:-1]) == 200


def test_a_narrow_terminal_keeps_the_columns() -> None:
    """No column is cut to nothing, however small the terminal is."""
    rows = wrap_cells([["a" * 50, "b" * 30]], 20)
    assert rows[0] == ["a" * 12, "b" * 12] and rows[-1] == ["aa", ""]
    assert ["".join(column) for column in zip(*rows, strict=True)] == ["a" * 50, "b" * 30]


def test_cells_are_broken_between_words() -> None:
    """After blanks and commas where there are any, and never inside a wide character."""
    assert wrap_text("Describe,Alter,Create and more", 16) == ["Describe,Alter,", "Create and more"]
    assert wrap_text("日本語日本語", 5) == ["日本", "語日", "本語"]
    assert wrap_text("", 5) == [""]


def test_an_explanation_fits_a_narrow_terminal() -> None:
    """What `explain access` tells is wrapped too, and whole in a pipe."""
    why = "an ACL says so: " + "allow " * 20
    answer = {"principal": "User:ci", "operation": "Read", "verdict": "yes", "why": why}
    document = freeze(
        {
            **{"resource_type": "Topic", "resource_name": "t", "host": None, "unknown": ()},
            **{"answers": ({**answer, "acl": None},), "acls": ()},
        }
    )
    assert why.strip() in "\n".join(render_page(access_page(document)))
    narrow = list(render_page(access_page(document), 80))
    assert max(map(len, narrow)) <= 80
    assert " ".join(narrow).count("allow") == 20


@pytest.mark.parametrize(
    ("number", "shown"), [(None, "-"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"),
                          (3 << 40, "3 TiB"), (1 << 50, "1024 TiB")],
)  # fmt: skip
def test_sizes(number: int | None, shown: str) -> None:
    """In the largest unit that leaves a whole part."""
    assert size(number) == shown


@pytest.mark.parametrize(
    ("entity", "level"),
    [
        ({"user": "a", "client-id": "b"}, "Client of user"),
        ({"user": "a", "client-id": None}, "Default client of user"),
        ({"user": "a"}, "User"),
        ({"user": None, "client-id": "b"}, "Client of default user"),
        ({"user": None, "client-id": None}, "Default client of default user"),
        ({"user": None}, "Default user"),
        ({"client-id": "b"}, "Client"),
        ({"client-id": None}, "Default client"),
        ({"ip": "1.2.3.4"}, "IP"),
        ({"ip": None}, "Default IP"),
    ],
)
def test_quota_sources_are_those_of_kip_248(entity: dict[str, str | None], level: str) -> None:
    """Eight levels and the two of addresses."""
    assert name_quota_source(entity) == level


def test_quotas_for_people() -> None:
    """One line a limit, with its entity and level."""
    quota = {
        "entity": {"user": "ci", "client-id": None},
        "config": {"producer_byte_rate": 1048576, "request_percentage": Decimal("12.5")},
        "source": "Default client of user",
    }
    assert text({"kind": "quotas", "quotas": [quota], "hidden": None}) == (
        "Entity                        Name                  Value              Source\n"
        'user "ci", client-id default  producer_byte_rate  = 1 MiB/s (1048576)  '
        "Default client of user\n"
        'user "ci", client-id default  request_percentage  = 12.5               '
        "Default client of user\n"
        "1 quota."
    )


def test_every_kind_is_a_command() -> None:
    """What can be described can be typed."""
    activities, of_others = {"groups", "transactions"}, {"connectors", "subjects"}
    kinds = {*ASKED, *OBJECTS, *activities, *of_others}
    assert set(get_commands().commands["describe"].commands) == kinds


# ── a real cluster ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """Some describe what a cluster has once, and some all that it has."""
    return exclusive_broker


def test_topics(bare: Bare) -> None:
    """Filtered by a glob, with partitions and sizes; the same as JSON."""
    bare.folder.create("a", partitions=2)
    bare.folder.create("b")
    prefix = bare.folder.prefix
    found = bare.document("topics", "--name", f"{prefix}*", "--sizes", "--partitions")
    assert [(t["name"], t["partitions"], t["size_bytes"]) for t in found["topics"]] == [
        (f"{prefix}a", 2, 0),
        (f"{prefix}b", 1, 0),
    ]
    first = found["topics"][0]["assignment"][0]
    assert first == {"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "offline": []}
    assert (found["complete"], found["cluster_id"]) == (False, bare.folder.broker.cluster_id)
    said = bare.done("describe", "topics", f"{prefix}a", "--partitions").out
    assert f"Partitions of {prefix}a" in said
    assert "1 topic." in said


def test_a_topic_that_is_not_there(bare: Bare) -> None:
    """By name it is an error, not an empty list; nobody has planned anything."""
    said = bare.fails(1, "describe", "topics", f"{bare.folder.prefix}no")
    assert "does not exist" in said
    assert "plan" not in said


@pytest.mark.parametrize(
    "words",
    [
        ("describe", "topics", "{}"),
        ("describe", "configs", "--entity-name", "{}"),
        ("explain", "config", "topic", "{}", "retention.ms"),
    ],
)
def test_a_misspelt_topic_is_answered_with_the_nearest(bare: Bare, words: tuple[str, ...]) -> None:
    """Of those that the cluster has and that this principal can see."""
    bare.folder.create("shop.orders")
    misspelt = f"{bare.folder.prefix}shop.order"
    said = bare.run(*(word.format(misspelt) for word in words))
    assert said.code == 1
    assert f'Did you mean "{misspelt}s"?' in " ".join(said.text.split())


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("configs topic {}a retention.ms", "configs retention.ms --entity-name {}a"),
        ("configs topic {}*", "configs --name {}*"),
        ("configs broker 1 log.dirs", "configs log.dirs --entity-type brokers --entity-name 1"),
        ("configs cluster", "configs --entity-type brokers --entity-default"),
        ("acls topic {}a", "acls --resource-type Topic --resource-name {}a"),
        ("quotas user {}ci client app", "quotas --user {}ci --client-id app"),
        ("brokers 1", "brokers --name 1"),
    ],
)
def test_words_and_flags_name_the_same(bare: Bare, words: str, flags: str) -> None:
    """The kind and the name, or the flags of earlier versions."""
    bare.folder.create("a")
    prefix = bare.folder.prefix
    typed, old = ([part.format(prefix) for part in line.split()] for line in (words, flags))
    assert bare.document(*typed) == bare.document(*old)


def test_a_user_without_rights_is_told_so(bare: Bare, stranger: Login) -> None:
    """Nothing is to be seen, and that is said: an empty list is no proof."""
    bare.folder.create("a")
    found = bare.document("topics", user=stranger)
    assert (found["topics"], found["complete"]) == ([], False)
    assert "Others may be hidden" in bare.done("describe", "topics", user=stranger).out
    for kind in ("acls", "quotas", "users"):
        assert "on Cluster" in bare.fails(1, "describe", kind, user=stranger)


def test_configs_of_a_topic(bare: Bare) -> None:
    """All of them, sorted, with their source; a folder's provider block serves as well."""
    bare.folder.create("a")
    bare.folder.alter("a", "retention.ms", "6000")
    name = f"{bare.folder.prefix}a"
    (entity,) = bare.document("configs", "--entity-name", name)["entities"]
    configs = {item["name"]: item for item in entity["configs"]}
    assert list(configs) == sorted(configs)
    assert configs["retention.ms"] == {
        "name": "retention.ms",
        "value": "6000",
        "sensitive": False,
        "read_only": False,
        "source": "DYNAMIC_TOPIC_CONFIG",
    }
    assert configs["compression.type"]["source"] == "DEFAULT_CONFIG"
    bare.folder.connect()
    said = bare.folder.done("describe", "configs", "--entity-name", name).out
    assert f"CONFIGS FOR TOPIC {name}" in said
    assert "retention.ms  = 6 s (6000)" in said


def test_configs_are_asked_for_by_name(bare: Bare) -> None:
    """KIP-133: those that are named, in one request for each name or glob, and no others; a name
    that nothing has is an error, beside what was found."""
    bare.folder.create("a")
    one = f"--entity-name={bare.folder.prefix}a"
    for keys, found in (
        (["segment.ms", "retention.ms"], ["retention.ms", "segment.ms"]),
        (["retention.*"], ["retention.bytes", "retention.ms"]),
    ):
        (entity,) = bare.document("configs", *keys, one)["entities"]
        assert [item["name"] for item in entity["configs"]] == found
    said = bare.run("describe", "configs", "retention.ms", "retension.ms", one)
    assert said.code == 1 and "retention.ms  = 7 d (604800000)" in said.out
    assert "no config retension.ms" in said.text and 'Did you mean "retention.ms"?' in said.text
    topic = bare.fails(1, "describe", "configs", f"{bare.folder.prefix}a")
    assert f"`kafkaform describe configs topic {bare.folder.prefix}a" in topic
    assert "CONFIGS FOR" not in topic


def test_only_named_configs_travel(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names stand in the request, so that a broker's hundreds of configs stay where they
    are."""
    asked: list[Any] = []
    real = wire.describe_all_configs

    def configs(*arguments: Any, keys: Any = None, **named: Any) -> Any:
        asked.append(keys)
        answer = real(*arguments, keys=keys, **named)
        assert [row.name for one in answer.values() for row in one.configs] == ["node.id"]
        return answer

    monkeypatch.setattr(wire, "describe_all_configs", configs)
    bare.document("configs", "node.id", "--entity-type=brokers", "--entity-name=1")
    assert asked == [("node.id",)]


def test_a_config_that_is_not_set_is_no_unknown_one(bare: Bare) -> None:
    """The default of all brokers has few of the configs that Kafka knows; a listener's prefix
    makes no unknown one."""
    for key in ("log.cleaner.threads", "listener.name.internal.ssl.keystore.type"):
        line = ("configs", key, "--entity-type=brokers", "--entity-default")
        (entity,) = bare.document(*line)["entities"]
        assert (entity["default"], entity["configs"]) == (True, [])


def test_an_empty_name_is_the_default(bare: Bare) -> None:
    """KIP-248's empty name: the configs of all brokers, and limits of the default entity, which a
    client of the name "default" does not share."""
    line = ("configs", "--entity-type=brokers")
    named, flag = (bare.document(*line, way) for way in ("--entity-name=", "--entity-default"))
    assert named == flag
    user, key = f"{bare.folder.prefix}u", "request_percentage"
    for client in ("", "default"):
        alter = ("alter", "user", user, f"--client-id={client}", "--auto-approve")
        bare.done(*alter, "--add-config", f"{key}=99")
    try:
        for client, found in (("", [None]), ("default", [None, "default"])):
            quotas = bare.document("quotas", "--user", user, f"--client-id={client}")["quotas"]
            assert sorted((q["entity"]["client-id"] for q in quotas), key=str) == found
    finally:
        for client in ("", "default"):
            alter = ("alter", "user", user, f"--client-id={client}", "--auto-approve")
            bare.done(*alter, "--delete-config", key)


def test_kafkas_own_options(bare: Bare) -> None:
    """`describe --entity-type` is `describe configs`; users have limits and credentials."""
    bare.folder.create("a")
    name = f"{bare.folder.prefix}a"
    said = bare.done("describe", "--describe", "--entity-type", "topics", "--entity-name", name)
    assert f"CONFIGS FOR TOPIC {name}" in said.out
    said = bare.done("describe", "--entity-type", "users", "--entity-name", "ci")
    assert "quotas." in said.out and "1 user with SCRAM credentials." in said.out


def test_configs_of_brokers(bare: Bare) -> None:
    """A broker's own and the shared ones; passwords have no value."""
    (entity,) = bare.document("configs", "--entity-type", "brokers")["entities"]
    configs = {item["name"]: item for item in entity["configs"]}
    assert configs["super.users"]["value"] is None
    assert configs["super.users"]["sensitive"] is True
    assert configs["node.id"]["read_only"] is True
    shared = bare.document("configs", "--entity-type", "brokers", "--entity-default")
    assert [item["default"] for item in shared["entities"]] == [True]
    assert bare.document("configs", "--entity-type", "client-metrics")["complete"] is True


def test_a_config_that_cannot_be_read(bare: Bare) -> None:
    """The others are shown, the fault is told, and the command fails."""
    missing = f"{bare.folder.prefix}no"
    bare.folder.create("a")
    said = bare.run(
        "describe", "configs", "--entity-name", missing, "--entity-name", f"{bare.folder.prefix}a"
    )
    assert said.code == 1
    assert f"CONFIGS FOR TOPIC {bare.folder.prefix}a" in said.out
    assert "does not exist" in said.text


@pytest.mark.parametrize("name", ["9", "x", "-1"])
def test_a_broker_that_is_not_there(bare: Bare, name: str) -> None:
    """It is told at once, not after a time-out."""
    line = ["describe", "configs", "--entity-type=brokers", f"--entity-name={name}"]
    assert f"no live broker has the id {name}" in bare.fails(1, *line)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("configs --entity-type=topic", 'Did you mean "topics"?'),
        ("configs --entity-type=users", "kafkaform describe users"),
        ("configs --entity-default", "`kafkaform describe configs cluster`"),
        ("configs --entity-name=", "`kafkaform describe configs cluster`"),
        ("configs --entity-name=a --name=b", "--name selects among all topics"),
        ("configs --entity-type=brokers --entity-default --name=1", "--name selects among all"),
        ("configs --entity-type=brokers --entity-default --entity-name=1", "exclude each other"),
        ("topics a --bootstrap-server=", "is not HOST:PORT"),
        ("topic", "No such command"),
    ],
)
def test_wrong_lines(bare: Bare, line: str, told: str) -> None:
    """They are answered before a connection is tried."""
    bare.folder.connect(bootstrap="127.0.0.1:1")
    assert told in bare.folder.fails(1, "describe", *line.split())


def test_brokers_and_the_cluster(bare: Bare) -> None:
    """Who runs it, who leads it, what it can do, and who we are there."""
    choice = get_choice()
    (broker,) = bare.document("brokers")["brokers"]
    assert broker["controller"] is True
    fenced = None if choice.lacks("4.0", zookeeper=False) else False
    assert (broker["id"], broker["rack"], broker["fenced"]) == (1, "r1", fenced)
    level = None if choice.zookeeper else find_level(choice.release)
    assert (broker["metadata_version_max"], broker["release"]) == (level, choice.release)
    cluster = bare.document("cluster")["cluster"]
    assert cluster["id"] == bare.folder.broker.cluster_id
    assert (cluster["principal"], cluster["controller_id"]) == ("User:admin", 1)
    assert cluster["authorizer"]["class"].endswith(
        "AclAuthorizer" if choice.zookeeper else "StandardAuthorizer"
    )
    assert cluster["authorizer"]["super_users"] is None
    assert "unknown: brokers do not report it" in bare.done("describe", "cluster").out


def test_users(bare: Bare) -> None:
    """Mechanisms and iterations, and nothing of a password."""
    (user,) = bare.document("users", "--name", "ci")["users"]
    assert user["credentials"] == [
        {"mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]


def test_json_is_one_document(folder: Folder) -> None:
    """Its fields are those of docs/commands.md, and it is one line."""
    said = folder.done("describe", "topics", "--json")
    (line,) = said.out.splitlines()
    known = {"format_version", "kind", "cluster_id", "topics", "complete", "hidden"}
    assert set(json.loads(line)) == {*known, "sizes_unknown"}
