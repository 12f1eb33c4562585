"""What to type instead of commands, options and operands of other tools.

Kafka's own tools come first, then Terraform, then tools such as topicctl, JulieOps, kafka-gitops,
jikkou and kcat, and words that people expect of any tool. Only command lines that kafkaform does
not understand load these tables. Words with one meaning are in `core.diagnostics`; these need a
sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .translation import ALTERED, DEFAULT, HOW_TO_NAME, NAME, NO_LOGGERS, SCRAM_BLOCK, TYPE

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
_PARK = (
    'The block of a topic says how long it is parked: lifecycle { park = "7d" }. Apply that, then '
    "remove the block: the next apply takes access away, and the first one after that time "
    "deletes. Putting the block back calls it off."
)
_THERE = "A plan does only what is not so yet; it needs no such option."
_ENTITY_FLAG = f"Write {TYPE} and {NAME} or {DEFAULT}, or `kafkaform alter user NAME` and its like."
_ZOOKEEPER = "ZooKeeper is gone since Kafka 4.0; a cluster is reached by its brokers."
_CONTROLLER = "Controllers are not asked; brokers pass on what is for them."
CONNECTING = ("", _ZOOKEEPER, _CONTROLLER)
"""After these it is said how the command finds its brokers."""
_BROKERS = "Name brokers: `kafkaform describe topics --bootstrap-server HOST:PORT`, for instance."
_CONFIGURED = (
    "This command takes brokers and login from the provider block, or from the environment: "
    "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS and similar variables."
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
_OFFSETS = (
    f"{_MEMBERS} `kafkaform alter group NAME --reset-offsets --to-earliest --all-topics` sets "
    "offsets, `--delete-offsets` deletes them, and `--delete` deletes the group."
)
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
    **dict.fromkeys(("--park", "--unpark"), _PARK),
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
    **dict.fromkeys(
        (
            "--reset-offsets",
            "--delete-offsets",
            "--to-earliest",
            "--to-latest",
            "--to-datetime",
            "--to-offset",
            "--to-current",
            "--by-duration",
            "--shift-by",
            "--from-file",
        ),
        _OFFSETS,
    ),
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
    "kafkaform alter group": {
        "--add": _SETS["--add"],
        "--group": "Name groups without a flag: `kafkaform alter group NAME`.",
        "--all-groups": "Name each group: `kafkaform alter group NAME NAME`.",
        "--execute": "The plan is shown, and carried out after your approval; `--auto-approve` "
        "asks nothing.",
        "--dry-run": "`--validate` shows the plan and its dry run, and sends nothing.",
        "--by-period": "`--by-duration 2h` goes to the first record of the last two hours.",
        "--export": "`kafkaform describe groups NAME --offsets --json` has the offsets.",
        "--timeout": "The provider block has operation_timeout.",
        "--offsets": _MEMBERS,
        "--members": _MEMBERS,
    },
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

KAFKA_COMMANDS: Mapping[str, str] = {
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

_RECREATE = (
    "kafkaform never recreates an object by itself: `kafkaform destroy --target ADDRESS` deletes "
    "it, and the next `kafkaform apply` creates it again."
)
_STATES = (
    "Give each environment a folder that calls shared modules, as in `kafkaform --chdir "
    "environments/prod plan`, or a file of values and a state, as in `kafkaform plan --var-file "
    "prod.kfvars.hcl --state prod.json`. docs/environments.md compares the two."
)
_UNLOCK = "`kafkaform lock show` names the run, and `kafkaform lock release RUN` releases its lock."
_LOGIN = (
    "There is no registry to log in to; the provider block has the login of each system, and "
    "`kafkaform init` checks the folder."
)
_MODULES = "`kafkaform init` fetches modules from Git, and checks those in folders."
_UPGRADE = (
    "`kafkaform init --upgrade` moves modules from Git to what their refs are now. Providers are "
    "Python packages, which pip upgrades."
)
_LOCK_FILE = "`kafkaform init --lockfile=readonly` fetches locked modules only."
_PACKAGES = (
    "Providers are Python packages, which pip installs and mirrors; `kafkaform providers` lists "
    "those of this folder."
)
_FIND = "`kafkaform import --all --out imported.kf.hcl` writes blocks for all live objects."
_BACKEND = (
    "The `backend` block, KAFKAFORM_STATE or --state says where the state is; "
    "`kafkaform state push FILE` moves a state there."
)
_COPY = "`kafkaform state pull --out FILE` saves a copy of the state and its log."
_MEANT = "`kafkaform state list ADDRESS` shows which objects an address means."
_LEAVE_OUT = "Leave it out; there is nothing to choose here."
TERRAFORM_COMMANDS: Mapping[str, str] = {
    "taint": _RECREATE,
    "untaint": "No object is ever marked for recreation; `kafkaform plan` shows what would change.",
    "workspace": _STATES,
    "env": _STATES,
    "refresh": "`kafkaform apply --refresh-only` records what was changed outside kafkaform.",
    "force-unlock": _UNLOCK,
    "unlock": _UNLOCK,
    "login": _LOGIN,
    "logout": _LOGIN,
    "modules": _MODULES,
    "metadata": "`kafkaform console` evaluates every function that docs/functions.md lists.",
    "query": _FIND,
    "stacks": "One folder can have several provider blocks; `kafkaform plan` plans them together.",
    "push": "`kafkaform state push FILE` moves a state to the place that this folder uses.",
    "help": "`kafkaform --help` lists the commands, and `kafkaform plan --help` explains one.",
    "providers mirror": _PACKAGES,
    "providers lock": _PACKAGES,
    "state replace-provider": (
        "The `provider` argument of a block names its instance; change it there, and "
        "`kafkaform plan` shows the effect."
    ),
    "state identities": "`kafkaform state show ADDRESS` shows what identifies an object.",
}
"""Words that are not a command -> what to do instead."""
OPTIONS: Mapping[str, str] = {
    "--refresh": "Every plan reads the live objects, so leave it out.",
    "--replace": _RECREATE,
    "--lock": "Every run locks the state; `--lock-timeout 60s` waits for another run.",
    "--parallelism": "kafkaform chooses the size of its batches, so leave it out.",
    "--compact-warnings": _LEAVE_OUT,
    "--generate-config-out": _FIND,
    "--state-out": _COPY,
    "--backup": _COPY,
    "--auto-approve": "`kafkaform apply --auto-approve` applies without asking.",
    "--destroy": "`kafkaform destroy` deletes everything; `kafkaform plan --destroy` shows it.",
    "--show-sensitive": "Sensitive values are stored nowhere, so nothing can show them.",
    "--dry-run": _MEANT,
    "--upgrade": _UPGRADE,
    "--lockfile": _LOCK_FILE,
    "--plugin-dir": _PACKAGES,
    "--get": _MODULES,
    "--from-module": _MODULES,
    "--backend": f"{_BACKEND} `kafkaform init --modules-only` leaves the state alone.",
    "--backend-config": _BACKEND,
    "--reconfigure": _BACKEND,
    "--migrate-state": _BACKEND,
    "--force-copy": _BACKEND,
    "--draw-cycles": _LEAVE_OUT,
    "--module-depth": _LEAVE_OUT,
    "--install-autocomplete": "`kafkaform --install-completion` installs completion of commands, "
    "flags and names.",
}
"""An option that the command does not have -> what to do instead."""
# One place for this answer: a destroy asks for the name of what it empties, and so must a script.
_HERE: Mapping[tuple[str, str], str] = {
    ("kafkaform destroy", "--auto-approve"): (
        "`kafkaform destroy --confirm ID` destroys without a question; `kafkaform plan --destroy` "
        "shows the ID in its first line."
    ),
}
"""Command and option -> what to do instead of this option there."""
_DIFFERENCES = (
    "`kafkaform plan` shows what differs from the configuration, `kafkaform plan --refresh-only` "
    "only what was changed outside kafkaform."
)
_STATUS = (
    "`kafkaform plan` shows what differs from the configuration, `kafkaform state list` what is "
    "managed, and `kafkaform describe cluster` the cluster."
)
_CHECK = (
    "`kafkaform validate` checks the configuration offline, and `kafkaform plan --validate` also "
    "asks the cluster."
)
_RUNS = (
    "`kafkaform audit show` shows what was changed, when and by whom, and `kafkaform history NAME` "
    "what happened to one object."
)
_IMPORT = (
    "`kafkaform import --all --out imported.kf.hcl` writes blocks for all live objects, and "
    "`kafkaform import --from TOOL FILE…` for those that another tool declares."
)
_BALANCE = (
    "`kafkaform propose placement` computes assignments of replicas, and `kafkaform alter topic "
    "NAME --elect-preferred` lets the first replicas lead."
)
_RECORDS = (
    "kafkaform neither reads nor writes records; kafka-console-consumer.sh, "
    "kafka-console-producer.sh and kcat do."
)
_ACCESS = (
    "`kafkaform explain access topic NAME` shows who can do what with a topic, and `kafkaform "
    "fleet who-can` the same on all clusters."
)
_STATE = "`kafkaform state {0}` does this in the state; a change of a block does it in the cluster."
_BACK = (
    "`kafkaform undo RUN` brings back what a run changed. An older configuration is applied like "
    "any other: take it from version control, and run `kafkaform plan`."
)
_RUN_OFTEN = (
    "kafkaform runs once for each command; a pipeline runs `kafkaform plan` regularly, as "
    "docs/pipelines.md shows."
)
_SANDBOX = "`kafkaform sandbox {0}` is about the Kafka on this computer. {1}"
OTHER_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("drift", "diff", "compare", "changes"), _DIFFERENCES),
    **dict.fromkeys(("status", "info", "st"), _STATUS),
    **dict.fromkeys(("lint", "verify"), _CHECK),
    **dict.fromkeys(("log", "logs", "events", "changelog"), _RUNS),
    **dict.fromkeys(("bootstrap", "adopt", "discover", "scan", "generate"), _IMPORT),
    **dict.fromkeys(("rebalance", "reassign", "balance", "reassign-partitions"), _BALANCE),
    **dict.fromkeys(("tail", "consume", "produce", "read", "write", "kcat"), _RECORDS),
    **dict.fromkeys(("reset-offsets", "lag", "offsets", "consumers", "consumer-groups"), _OFFSETS),
    **dict.fromkeys(("who-can", "can-i", "access", "permissions"), _ACCESS),
    **dict.fromkeys(("rollback", "revert"), _BACK),
    **dict.fromkeys(("watch", "daemon", "operator", "reconcile"), _RUN_OFTEN),
    "up": _SANDBOX.format("up", "`kafkaform apply` applies a configuration."),
    "down": _SANDBOX.format("down", "`kafkaform destroy` deletes what the state owns."),
    "ps": _SANDBOX.format("status", "`kafkaform describe brokers` lists those of a cluster."),
    "rm": _STATE.format("rm ADDRESS"),
    "remove": _STATE.format("rm ADDRESS"),
    "forget": _STATE.format("rm ADDRESS"),
    "mv": _STATE.format("mv OLD NEW"),
    "move": _STATE.format("mv OLD NEW"),
    "rename": f"{_STATE.format('mv OLD NEW')} docs/how-to/rename-a-topic.md renames a topic.",
    "health": "`kafkaform describe brokers` and `kafkaform describe topics` show faults.",
    "api-resources": "`kafkaform providers schema` shows all resource types and data sources.",
    "resources": "`kafkaform state list` lists what is managed; docs/reference has all types.",
    "completion": "`kafkaform --install-completion` installs completion for the current shell.",
    "account": "Users are kafka_user_scram_credential blocks; `kafkaform describe users` lists "
    "those there are.",
    "password": "docs/how-to/rotate-a-password.md changes the password of a user.",
}
"""A word that is not a command -> what to do instead."""


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
    return KAFKA_COMMANDS.get(tool)


def _list_flags(command: Any) -> frozenset[str]:
    return frozenset(
        opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)
    )


def advise_terraform_option(flag: str, path: str) -> str | None:
    """What to do instead of an option that the command does not have; None if Terraform has no such
    option. path: the command as it is typed."""
    return _HERE.get((path, flag)) or OPTIONS.get(flag)


def advise_terraform_command(word: str, path: str) -> str | None:
    """What to do instead of an unknown command; None if Terraform has no such command. path: the
    group in which it was typed."""
    return TERRAFORM_COMMANDS.get(f"{path} {word}".removeprefix("kafkaform "))
