"""Command lines as users of Kafka's own tools type them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer.core import TyperGroup

from kafkaform.cli.command_tree import get_commands
from kafkaform.cli.options.advice import INSTEAD, KAFKA_COMMANDS, OTHER_COMMANDS
from kafkaform.cli.options.translation import ALTERED, SAME, translate_words
from kafkaform.core.errors import UsageError

from ...kit.commands.here import Here

TOOLS: dict[str, str] = {
    "kafka-configs.sh": "add-config add-config-file all alter bootstrap-controller "
    "bootstrap-server broker broker-defaults broker-logger client client-defaults client-metrics "
    "command-config delete-config describe entity-default entity-name entity-type force group "
    "help ip ip-defaults topic user user-defaults zk-tls-config-file zookeeper",
    "kafka-topics.sh": "alter at-min-isr-partitions bootstrap-server command-config config create "
    "delete delete-config describe exclude-internal if-exists if-not-exists list partitions "
    "replica-assignment replication-factor topic topic-id topics-with-overrides "
    "unavailable-partitions under-min-isr-partitions under-replicated-partitions",
    "kafka-acls.sh": "add allow-host allow-principal bootstrap-controller bootstrap-server cluster "
    "command-config consumer delegation-token deny-host deny-principal force group idempotent "
    "list operation principal producer remove resource-pattern-type topic transactional-id "
    "user-principal authorizer authorizer-properties",
    "kafka-reassign-partitions.sh": "bootstrap-server broker-list cancel command-config execute "
    "generate list reassignment-json-file throttle topics-to-move-json-file verify",
    "kafka-leader-election.sh": "admin.config all-topic-partitions bootstrap-server "
    "election-type path-to-json-file topic",
    "kafka-features.sh": "bootstrap-controller bootstrap-server command-config feature metadata "
    "release-version unsafe",
    "KIP-248": "adminclient.config adminclient-property command-config bootstrap-servers",
}
"""Options of Kafka's tools that somebody may bring along."""
NO_ENTITIES = {"connector", "delegation-token", "features", "schema"}
"""What `alter` changes that is no type of entity of kafka-configs.sh."""


def lines(text: str) -> list[str]:
    """The command lines that a line stands for, each as one text."""
    return [" ".join(words) for words in translate_words(text.split(), get_commands())]


@pytest.mark.parametrize(
    ("typed", "meaning"),
    [
        (
            "describe --entity-type topics --entity-name t --bootstrap-server b:1",
            ["describe configs --entity-type=topics --entity-name=t --bootstrap-server b:1"],
        ),
        (
            "describe --bootstrap-server b:1 --describe --entity-type=brokers --entity-default",
            [
                "describe configs --entity-type=brokers --entity-default --bootstrap-server b:1",
            ],
        ),
        ("describe --entity-type groups --all", ["describe configs --entity-type=groups"]),
        (
            "describe --entity-type users --entity-name a*",
            ["describe quotas --user=a[*] --only", "describe users --name=a[*]"],
        ),
        (
            "describe --entity-type users",
            ["describe quotas --user=* --only", "describe users --name=*"],
        ),
        ("describe --entity-type users --entity-default", ["describe quotas --user= --only"]),
        ("describe --entity-type clients --entity-name=", ["describe quotas --client-id= --only"]),
        ("describe --entity-type ips --entity-name ::1", ["describe quotas --ip=::1 --only"]),
        (
            "describe --entity-type clients --entity-name default",
            ["describe quotas --client-id=[d]efault --only"],
        ),
        (
            "describe --entity-type users --entity-name a --entity-type clients --entity-default",
            ["describe quotas --user=a --client-id="],
        ),
        (
            "describe --entity-type users --entity-name ci --entity-type clients",
            ["describe quotas --user=ci --client-id=*"],
        ),
        (
            "describe --entity-type users --entity-type clients --entity-default",
            ["describe quotas --user= --client-id=*"],
        ),
        (
            "describe --entity-type clients --entity-type users",
            ["describe quotas --client-id=* --user=*"],
        ),
        ("describe topics --list", ["describe topics"]),
        (
            "alter --entity-type topics --entity-name t --add-config k=v --alter",
            ["alter topic --add-config k=v -- t"],
        ),
        ("alter topic t --alter --add-config k=v", ["alter topic t --add-config k=v"]),
        (
            "alter --entity-type brokers --entity-default --delete-config k",
            ["alter broker --entity-default --delete-config k"],
        ),
        (
            "alter --entity-type clients --entity-name c --entity-type users --entity-name u "
            "--add-config k=1",
            ["alter user --client-id=c --add-config k=1 -- u"],
        ),
        (
            "alter --entity-type users --entity-default --entity-type clients --entity-default",
            ["alter user --entity-default --client-default"],
        ),
        (
            "describe topics --adminclient.config f --adminclient-property "
            "bootstrap.servers=a:1,b:2,security.protocol=SSL",
            [
                "describe topics --command-config f --client-property="
                "bootstrap.servers=a:1,b:2 --client-property=security.protocol=SSL",
            ],
        ),
        ("alter topic -- --alter --adminclient.config", None),
        ("plan --target x", None),
        ("--chdir=x describe topics", None),
        ("describe", None),
        ("describe --help", None),
    ],
)
def test_what_is_understood(typed: str, meaning: list[str] | None) -> None:
    """The same object and the same change, in kafkaform's words; our own words stay as they are."""
    assert lines(typed) == ([typed] if meaning is None else meaning)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("describe --entity-type topic", 'Did you mean "topics"?'),
        ("alter --entity-type wombats", "It is one of topics, brokers, users"),
        ("describe --entity-type", "has no value"),
        ("alter --entity-type broker-loggers --entity-name 1", "Kafka does not keep"),
        ("alter --entity-type users --entity-type topics", "Only users and clients go together"),
        ("alter --entity-type users --entity-type clients --entity-name u", "after each"),
        (
            "describe --entity-type users --entity-type clients --entity-name a --entity-name b "
            "--entity-name c",
            "need 2 names, and there are 3",
        ),
    ],
)
def test_entities_that_are_none(typed: str, told: str) -> None:
    """A fault of the line, with what to type."""
    with pytest.raises(UsageError) as caught:
        lines(typed)
    assert told in f"{caught.value.message} {caught.value.advice}"


SCRAM = "SCRAM-SHA-256=[iterations=8192,password=alice-secret]"


@pytest.mark.parametrize(
    ("typed", "told", "untold"),
    [
        (
            f"--zookeeper z:2181 --add {SCRAM} --username alice",
            "To set a password: `kafkaform alter user alice --add-config 'SCRAM-SHA-256=[",
            "describe users",
        ),
        (
            "--zookeeper z:2181 --describe --username=alice",
            "To see credentials: `kafkaform describe users alice`",
            "alter user",
        ),
        (
            "--zookeeper z:2181 --delete SCRAM-SHA-512 --username alice",
            "To delete one: `kafkaform alter user alice --delete-config SCRAM-SHA-512`",
            "describe users",
        ),
        (f"alter --zookeeper z:1 --add {SCRAM} --username", "`kafkaform alter user NAME", "alice"),
        (
            "describe users --username alice",
            "`kafkaform describe users alice`",
            "--zookeeper",
        ),
    ],
)
def test_the_scram_tool_of_kip_248_is_answered(
    here: Here, typed: str, told: str, untold: str
) -> None:
    """Its three forms were answered with `describe topics`. The password that it takes on the
    command line is not repeated."""
    said = " ".join(here.fails(*typed.split()).replace("│", " ").split())
    assert told in said and untold not in said
    assert "ZooKeeper is gone since Kafka 4.0" in said and "alice-secret" not in said


@pytest.mark.parametrize("flag", INSTEAD)
def test_every_option_without_a_meaning_is_answered(here: Here, flag: str) -> None:
    """Where it means nothing, the error says what to do, and ends with 1."""
    said = here.fails("graph", f"{flag}=x")
    assert f"`kafkaform graph` has no option {flag}" in said
    assert "kafkaform graph --help" not in said


@pytest.mark.parametrize("word", KAFKA_COMMANDS)
def test_every_word_that_is_no_command_is_answered(here: Here, word: str) -> None:
    """With the command that does it."""
    for typed in (word, f"{word}.sh"):
        said = here.fails(typed, "--describe")
        assert f"No such command '{typed}'" in said
        assert "kafkaform --help" not in said


def test_no_option_of_kafkas_tools_is_unheard_of() -> None:
    """Each of their options is known to `describe` or `alter`, understood, or answered."""
    known = {*INSTEAD, *SAME, "--adminclient-property", "--help"}
    for name in ("describe", "alter", "explain"):
        known |= flags(get_commands().commands[name])
    for tool, names in TOOLS.items():
        missing = {f"--{name}" for name in names.split()} - known
        assert not missing, tool


def flags(command: Any) -> set[str]:
    below = command.commands.values() if isinstance(command, TyperGroup) else ()
    own = {opt for one in command.params for opt in (*one.opts, *one.secondary_opts)}
    return own.union(*map(flags, below))


def test_answers_name_commands_that_there_are() -> None:
    """Whoever types what an answer says gets no further error of this kind."""
    texts = " ".join((*INSTEAD.values(), *KAFKA_COMMANDS.values(), *OTHER_COMMANDS.values()))
    named = re.findall(r"`kafkaform ([a-z][a-z-]*)(?: ([a-z][a-z-]+))?", texts)
    assert named
    for first, second in named:
        command = get_commands().commands[first]
        if second and isinstance(command, TyperGroup):
            assert second in command.commands, (first, second)
    assert OTHER_COMMANDS.keys().isdisjoint(get_commands().commands)
    altered = set(get_commands().commands["alter"].commands)
    assert set(ALTERED.values()) == altered - NO_ENTITIES


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("describe --zookeeper z:1", "ZooKeeper is gone since Kafka 4.0"),
        ("describe topics --zookeeper z:1", "--bootstrap-server HOST:PORT"),
        ("plan --zookeeper z:1", "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS"),
        ("plan --adminclient.config f", "from the provider block"),
        ("describe --bootstrap-server b:1 topics", "`kafkaform describe topics --bootstrap-server"),
        ("describe --user ci", "`kafkaform describe quotas --user`"),
        ("describe --topic t", "`kafkaform describe topics NAME`"),
        ("describe configs --add-config a=1", "`kafkaform alter topic NAME --add-config K=V`"),
        ("alter topic t --entity-default", "Only brokers, users, clients and ips have a default"),
        ("alter --describe", "show what a cluster has"),
        ("apply --throttle 5", "reassignment_throttle"),
        ("kafka-topics.sh --create", "by a block of the configuration"),
        ("alter topics t", 'Did you mean "topic"?'),
        ("drift", "`kafkaform plan` shows what differs from the configuration"),
        ("status", "`kafkaform state list` what is managed"),
        ("rebalance", "`kafkaform propose placement`"),
        ("plann", 'Did you mean "plan"?'),
        ("preview", 'Did you mean "plan"?'),
        ("sandbox list", 'Did you mean "status"?'),
        ("sandbox stop", 'Did you mean "down"?'),
        ("state delete", 'Did you mean "rm"?'),
        ("audit list", 'Did you mean "show"?'),
        ("lock unlock", 'Did you mean "release"?'),
        ("describe consumer-groups", 'Did you mean "groups"?'),
        ("explain acl", 'Did you mean "access"?'),
        ("describe acls --topic t", "`kafkaform describe acls topic NAME`"),
        ("alter user alice --add SCRAM-SHA-256=[password=x]", "--add-config 'SCRAM-SHA-256=["),
        ("alter user alice --delete SCRAM-SHA-512", "`--delete-config SCRAM-SHA-512` deletes one"),
        ("alter broker 1 --add k=v", "`--add-config K=V` sets configs"),
        ("alter topic t --delete", "Topics and ACLs are made, changed and deleted by a block"),
        ("kafka.admin.ConfigCommand --zookeeper z:1", "`kafkaform describe configs` shows configs"),
        ("config-command --describe", "`kafkaform describe configs` shows configs"),
        ("org.apache.kafka.tools.TopicCommand --list", "`kafkaform describe topics` shows them"),
        ("kafka-run-class.sh kafka.admin.ConfigCommand", "The tools of Kafka have commands here"),
        ("describe quotas --entity-type users", "Write `user NAME`, `client ID` or `ip ADDRESS`"),
        ("describe acls User:ci", "Write the kind and the name; the kinds are topic, group"),
        ("describe acls topics t", 'Did you mean "topic"?'),
        ("explain access t", "Write the kind and the name; the kinds are topic, group"),
        ("explain access topic", "Write topic NAME"),
        ("explain access topic t --topic t", "exclude each other"),
        ("explain access topic t group g", "exactly one resource is needed"),
        ("explain quota ci", "Write the kind and the name; the kinds are user, client, ip"),
        ("describe quotas user a user b", "user is named twice"),
        ("describe users ci --name c", "exclude each other"),
        ("describe configs topic t --entity-type topics --entity-name t", "Leave out the flags"),
        ("state nope", "`kafkaform state --help`"),
    ],
)
def test_what_is_answered(here: Here, typed: str, told: str) -> None:
    """In the place where it was typed, and by the command that it was typed for."""
    assert told in " ".join(here.fails(*typed.split()).split())
