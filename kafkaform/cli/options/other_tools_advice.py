"""What to type instead of a command that other tools for Kafka have (topicctl, JulieOps,
kafka-gitops, jikkou, kcat), or that people expect of any tool.

Only command lines that kafkaform does not understand load this table. Words with one meaning are in
`core.text.synonyms`; these need a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

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
_RUNS = "`kafkaform audit show` shows what was changed, when and by whom."
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
_OFFSETS = (
    "`kafkaform describe groups NAME` shows offsets and lag. Only Kafka's "
    "kafka-consumer-groups.sh changes offsets."
)
_ACCESS = (
    "`kafkaform explain access topic NAME` shows who can do what with a topic, and `kafkaform "
    "fleet who-can` the same on all clusters."
)
_STATE = "`kafkaform state {0}` does this in the state; a change of a block does it in the cluster."
_BACK = (
    "An older configuration is applied like any other: take it from version control, and run "
    "`kafkaform plan`. docs/how-to/recover-after-a-crash.md is about interrupted runs."
)
_RUN_OFTEN = (
    "kafkaform runs once for each command; a pipeline runs `kafkaform plan` regularly, as "
    "docs/pipelines.md shows."
)
_SANDBOX = "`kafkaform sandbox {0}` is about the Kafka on this computer. {1}"

COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("drift", "diff", "compare", "changes"), _DIFFERENCES),
    **dict.fromkeys(("status", "info", "st"), _STATUS),
    **dict.fromkeys(("lint", "verify"), _CHECK),
    **dict.fromkeys(("log", "logs", "history", "events", "changelog"), _RUNS),
    **dict.fromkeys(("bootstrap", "adopt", "discover", "scan", "generate"), _IMPORT),
    **dict.fromkeys(("rebalance", "reassign", "balance", "reassign-partitions"), _BALANCE),
    **dict.fromkeys(("tail", "consume", "produce", "read", "write", "kcat"), _RECORDS),
    **dict.fromkeys(("reset-offsets", "lag", "offsets", "consumers", "consumer-groups"), _OFFSETS),
    **dict.fromkeys(("who-can", "can-i", "access", "permissions"), _ACCESS),
    **dict.fromkeys(("rollback", "undo", "revert"), _BACK),
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
