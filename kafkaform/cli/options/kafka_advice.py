"""What to type instead of an option, an operand or a command of Kafka's own tools.

Only command lines that kafkaform does not understand load these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .kafka_tools import ALTERED, DEFAULT, HOW_TO_NAME, NAME, NO_LOGGERS, SCRAM_BLOCK, TYPE

ROOT = "kafkaform"

_BLOCK = 'by a block of the configuration, such as resource "kafka_topic", and `kafkaform apply`'
_MADE = f"Topics and ACLs are made, changed and deleted {_BLOCK}."
_ACL = (
    "ACLs are kafka_acl and kafka_access blocks; `kafkaform describe acls` lists those there are."
)
_SHAPE = (
    "Partitions and replicas are changed by the kafka_topic block (partitions, "
    "replication_factor, replica_assignment) and `kafkaform apply`."
)
_MOVES = f"{_SHAPE} `kafkaform alter topic NAME --cancel-move` stops a move."
_PROPOSE = "`kafkaform propose placement` computes assignments, `--brokers ID,…` chooses brokers."
_ALTER = "`kafkaform alter topic NAME --add-config K=V` changes configs, `--delete-config K` too."
_DESCRIBE = "`kafkaform describe topics`, `… configs`, `… acls` and others show what a cluster has."
_HEALTH = "`kafkaform describe topics` has it in the column Problems, `--json` in numbers."
_ELECT = "`kafkaform alter topic NAME --elect-preferred` lets the first replicas lead."
_THERE = "A plan does only what is not so yet; it needs no such option."
_ENTITY_FLAG = f"Write {TYPE} and {NAME} or {DEFAULT}, or `kafkaform alter user NAME` and its like."
_ZOOKEEPER = "ZooKeeper is gone since Kafka 4.0; a cluster is reached by its brokers."
_CONTROLLER = "Controllers are not asked; brokers pass on what is for them."
CONNECTING = ("", _ZOOKEEPER, _CONTROLLER)
"""After these it is said how the command finds its brokers."""
_BROKERS = "Name brokers: `kafkaform describe topics --bootstrap-server HOST:PORT`, for instance."
_CONFIGURED = (
    "Brokers and login of this command stand in the provider block, or in the environment: "
    "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS and its like."
)
_FEATURES = (
    "`kafkaform describe features` shows them, `kafkaform alter features FEATURE=LEVEL` changes "
    "levels; --downgrade or --unsafe-downgrade allows lower ones."
)
_TOPIC = (
    "Name topics without a flag: `kafkaform describe topics NAME`, `kafkaform alter topic NAME`; "
    "their configs are `kafkaform describe configs topic NAME`."
)
_MEMBERS = "`kafkaform describe groups NAME` shows members, offsets and lag."
_OFFSETS = f"{_MEMBERS} Only Kafka's kafka-consumer-groups.sh changes offsets."
_TRANSACTIONS = (
    "`kafkaform describe transactions` lists transactions, with --hanging those that nobody will "
    "end. Only Kafka's kafka-transactions.sh ends one."
)

INSTEAD: Mapping[str, str] = {
    "--zookeeper": _ZOOKEEPER,
    "--zk-tls-config-file": _ZOOKEEPER,
    "--authorizer": _ZOOKEEPER,
    "--authorizer-properties": _ZOOKEEPER,
    "--bootstrap-controller": _CONTROLLER,
    "--bootstrap-server": "",
    "--command-config": "",
    "--client-property": "",
    "--alter": _ALTER,
    "--add-config": _ALTER,
    "--delete-config": _ALTER,
    "--config": _ALTER,
    "--add-config-file": "Write its lines as --add-config k1=v1,k2=[v2,v3].",
    "--describe": _DESCRIBE,
    "--list": _DESCRIBE,
    "--all": "`kafkaform describe configs` shows defaults, too.",
    TYPE: HOW_TO_NAME,
    NAME: HOW_TO_NAME,
    DEFAULT: "Only brokers, users, clients and ips have a default.",
    "--user-defaults": _ENTITY_FLAG,
    "--client-defaults": _ENTITY_FLAG,
    "--broker-defaults": _ENTITY_FLAG,
    "--ip-defaults": _ENTITY_FLAG,
    "--broker": _ENTITY_FLAG,
    "--client": _ENTITY_FLAG,
    "--user": _ENTITY_FLAG,
    "--client-metrics": _ENTITY_FLAG,
    "--broker-logger": NO_LOGGERS,
    "--topic": _TOPIC,
    "--topic-id": "`kafkaform describe topics` shows the ids of topics.",
    "--create": _MADE,
    "--delete": _MADE,
    "--if-exists": _THERE,
    "--if-not-exists": _THERE,
    "--partitions": _SHAPE,
    "--replication-factor": _SHAPE,
    "--replica-assignment": _SHAPE,
    "--topics-with-overrides": "`kafkaform describe configs` shows the source of each config.",
    "--under-replicated-partitions": _HEALTH,
    "--unavailable-partitions": _HEALTH,
    "--under-min-isr-partitions": _HEALTH,
    "--at-min-isr-partitions": _HEALTH,
    "--exclude-internal": "`kafkaform describe topics` says which are internal; --name chooses.",
    "--add": _ACL,
    "--remove": _ACL,
    "--allow-principal": _ACL,
    "--deny-principal": _ACL,
    "--allow-host": _ACL,
    "--deny-host": _ACL,
    "--producer": _ACL,
    "--consumer": _ACL,
    "--idempotent": _ACL,
    "--resource-pattern-type": _ACL,
    "--reassignment-json-file": _MOVES,
    "--topics-to-move-json-file": _PROPOSE,
    "--broker-list": _PROPOSE,
    "--generate": _PROPOSE,
    "--execute": _MOVES,
    "--verify": "`kafkaform plan` shows the moves that run, and every apply how they ended.",
    "--cancel": _MOVES,
    "--throttle": "The provider block has reassignment_throttle.",
    "--election-type": _ELECT,
    "--all-topic-partitions": _ELECT,
    "--path-to-json-file": _ELECT,
    "--validate-only": "The dry run of `kafkaform plan` and `kafkaform alter` is --validate.",
    **dict.fromkeys(("--feature", "--metadata", "--release-version", "--unsafe"), _FEATURES),
    "--group": _MEMBERS,
    "--all-groups": "`kafkaform describe groups` lists all groups.",
    "--reset-offsets": _OFFSETS,
    "--delete-offsets": _OFFSETS,
    "--members": _MEMBERS,
    "--offsets": _MEMBERS,
    "--transactional-id": _TRANSACTIONS,
}
"""An option of Kafka's tools that the command does not have -> what to do instead."""

_RESOURCE = "Write the kind and the name: `kafkaform describe acls topic NAME`, for instance."
_FILTERS = "Write `user NAME`, `client ID` or `ip ADDRESS`; an empty name is the default."
_CREDENTIALS = (
    "`--add-config 'SCRAM-SHA-256=[iterations=8192,password=env:NAME]'` sets a password, "
    f"`--delete-config SCRAM-SHA-512` deletes one. {SCRAM_BLOCK}"
)
_SETS = {
    "--add": "`--add-config K=V` sets configs.",
    "--delete": "`--delete-config K` removes them.",
}
HERE: Mapping[str, Mapping[str, str]] = {
    **{f"kafkaform alter {kind}": _SETS for kind in ALTERED.values()},
    "kafkaform alter topic": {**_SETS, "--delete": f"{_SETS['--delete']} {_MADE}"},
    "kafkaform alter user": dict.fromkeys(("--add", "--delete"), _CREDENTIALS),
    # Groups and transactions have such a flag, which chooses among them.
    "kafkaform describe": {"--topic": _TOPIC},
    "kafkaform describe acls": dict.fromkeys(
        ("--topic", "--group", "--cluster", "--transactional-id", "--delegation-token"), _RESOURCE
    ),
    "kafkaform describe quotas": dict.fromkeys(("--client", TYPE, NAME, DEFAULT), _FILTERS),
}
"""Command -> options of Kafka's tools -> the flags that it has for them."""

_HOW = "`kafkaform describe {0}` shows them."
_CONFIGS = (
    "`kafkaform describe configs` shows configs, `kafkaform alter` changes them; "
    "`kafkaform describe quotas` and `kafkaform describe users` tell of clients and users."
)
_GROUPS = (
    f"`kafkaform describe groups` lists groups. {_OFFSETS} `kafkaform alter group NAME` changes "
    "configs of a group."
)
_TOPICS = f"{_HOW.format('topics')} {_MADE}"

COMMANDS: Mapping[str, str] = {
    "config": _CONFIGS,
    "configs": _CONFIGS,
    "kafka-configs": _CONFIGS,
    "config-command": _CONFIGS,
    "topic": _TOPICS,
    "topics": _TOPICS,
    "kafka-topics": _TOPICS,
    "acl": _ACL,
    "acls": _ACL,
    "kafka-acls": _ACL,
    "quota": _HOW.format("quotas"),
    "quotas": _HOW.format("quotas"),
    "client": _HOW.format("quotas"),
    "clients": _HOW.format("quotas"),
    "ips": _HOW.format("quotas"),
    "user": _HOW.format("users"),
    "users": _HOW.format("users"),
    "broker": _HOW.format("brokers"),
    "brokers": _HOW.format("brokers"),
    "cluster": "`kafkaform describe cluster` shows it.",
    "kafka-cluster": "`kafkaform describe cluster` shows it.",
    "group": _GROUPS,
    "groups": _GROUPS,
    "client-metrics": "`kafkaform describe configs client-metrics` lists them.",
    "features": _FEATURES,
    "kafka-features": _FEATURES,
    "kafka-groups": _GROUPS,
    "kafka-consumer-groups": _GROUPS,
    "kafka-share-groups": _GROUPS,
    "kafka-streams-groups": _GROUPS,
    "transactions": _TRANSACTIONS,
    "kafka-transactions": _TRANSACTIONS,
    "kafka-reassign-partitions": _MOVES,
    "kafka-leader-election": _ELECT,
    "kafka-run-class": f"The tools of Kafka have commands here. {_DESCRIBE}",
    "list": _DESCRIBE,
    "ls": _DESCRIBE,
    # Also Terraform's, which downloads modules with it.
    "get": f"{_DESCRIBE} `kafkaform init` fetches modules from Git, and checks those in folders.",
    "create": _MADE,
    "delete": _MADE,
}
"""A word that is not a command -> what to do instead."""


GROUPS = frozenset(f"{ROOT} {name}" for name in ("describe", "explain", "alter"))
"""The groups in which these words are typed, too; `state delete` means something else."""

CLASSES: Mapping[str, str] = {
    "ConfigCommand": "kafka-configs",
    "TopicCommand": "kafka-topics",
    "AclCommand": "kafka-acls",
    "ClusterTool": "kafka-cluster",
    "FeatureCommand": "kafka-features",
    "GroupsCommand": "kafka-groups",
    "ConsumerGroupCommand": "kafka-consumer-groups",
    "ShareGroupCommand": "kafka-share-groups",
    "StreamsGroupCommand": "kafka-streams-groups",
    "TransactionsCommand": "kafka-transactions",
    "ReassignPartitionsCommand": "kafka-reassign-partitions",
    "LeaderElectionCommand": "kafka-leader-election",
}
"""Class of a tool, such as `kafka.admin.ConfigCommand` -> the name of its script."""


def advise_option(flag: str, command: Any, path: str) -> str | None:
    """What to do instead of an option that the command does not have; None if Kafka's tools have no
    such option.

    command: the group or the command that refused it; path: the command as it is typed.
    """
    # The flags of a group's commands are looked up, but not those of all commands of kafkaform:
    # that would load everything.
    below = {} if path == ROOT else getattr(command, "commands", {})
    if flag in HERE.get(path, {}):
        return HERE[path][flag]
    able = [name for name in below if flag in _list_flags(below[name])]
    if able:
        return f"Put it after the subcommand: `{path} {able[0]} {flag}`."
    if flag not in INSTEAD:
        return None
    reach = any(
        "--bootstrap-server" in _list_flags(command_below)
        for command_below in (command, *below.values())
    )
    if INSTEAD[flag] not in CONNECTING:
        return INSTEAD[flag]
    return f"{INSTEAD[flag]} {_BROKERS if reach or path == ROOT else _CONFIGURED}".lstrip()


def advise_command(word: str) -> str | None:
    """What to do instead of an unknown command; None if Kafka's tools have no such command."""
    # Kafka ships its tools as kafka-topics.sh, and as kafka-topics.bat for Windows. Classes are
    # started with kafka-run-class.sh.
    tool = CLASSES.get(word.rpartition(".")[2], word.removesuffix(".sh").removesuffix(".bat"))
    return COMMANDS.get(tool)


def _list_flags(command: Any) -> frozenset[str]:
    return frozenset(
        opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)
    )
