"""Writes docs/reference/*.md from the Kafka provider's schemas: `python docs/reference.py`.

What a schema says is taken from it word for word; what it cannot say (an example, what a change
of an attribute does) stands in `PAGES`. A test compares the files with what this prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafkaform.core.schema import Attribute, ObjectSchema
from kafkaform_providers.kafka.config_keys import TOPIC_KEYS, ConfigKey
from kafkaform_providers.kafka.provider import PROVIDER

FOLDER = Path(__file__).parent / "reference"


@dataclass(frozen=True, slots=True)
class Page:
    """One document. intro, example: Markdown and HCL; rules: what else is true, one each;
    topic_configs: list Kafka's topic configs."""

    title: str
    schema: ObjectSchema
    intro: str
    example: str
    rules: tuple[str, ...]
    identity: str = ""
    resource: bool = True
    topic_configs: bool = False


TOPIC_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_topic" "orders" {
  name               = "shop.orders"
  partitions         = 12
  replication_factor = 3

  config = {
    "cleanup.policy"      = "delete"
    "min.insync.replicas" = "2"
    "retention.ms"        = retention("7d")
  }

  owner  = "team-shop"
  labels = { tier = "gold" }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [config["segment.bytes"]]
  }
}

output "orders_id" {
  value = kafka_topic.orders.topic_id
}
"""

CONFIG_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_topic_config" "changelog" {
  topic = "app-store-changelog"

  config = {
    "max.message.bytes" = "2097152"
  }
}
"""

PROVIDER_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9093", "kafka-2:9093"]
  security_protocol = "SASL_SSL"
  sasl_mechanism    = "SCRAM-SHA-512"
  sasl_username     = "kafkaform"
  sasl_password     = secret_env("KAFKA_PASSWORD")
  ca_cert           = "ca.pem"
}

# A second cluster: its resources say `provider = kafka.eu`.
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["kafka-eu-1:9092"]
}

resource "kafka_topic" "orders" {
  provider   = kafka.eu
  name       = "orders"
  partitions = 3
}
"""

PAGES: Mapping[str, Page] = {
    "kafka_topic": Page(
        title="kafka_topic",
        schema=PROVIDER.types["kafka_topic"].schema,
        intro="The import id is the topic's name.",
        example=TOPIC_EXAMPLE,
        rules=(
            "`partitions` can be raised. Lowering it is blocked: Kafka cannot remove partitions.",
            "A change of `replication_factor`, or of `replica_assignment` for partitions that "
            "exist, is blocked: this version does not move replicas.",
            "A topic is never replaced. Another `name` is another topic: the old one stays, "
            "because it is protected. To delete the old one, give it an address of its own before "
            "the apply: `kafkaform state mv kafka_topic.orders kafka_topic.old`, and write a "
            "`removed` block for `kafka_topic.old`.",
            "`config` is the whole truth: a live override that is not in it is shown as removed, "
            "with the value that takes effect then. Three things stay: keys that "
            "`ignore_changes` names, `*.replication.throttled.replicas`, and everything else if "
            '`config_mode = "additive"`. On clusters with eligible leader replicas (KIP-966) '
            "`min.insync.replicas` stays too.",
            'Values are compared after parsing: `1`, `"1"` and `" 1"` are equal. So are '
            '`compact,delete` and `delete,compact`. `retention("7d")` writes milliseconds.',
            "A config key that Kafka does not have, a value of the wrong type, and a value out of "
            "range are faults of the plan, before anything is sent.",
            "A new topic is protected. To delete it, put a `removed` block with "
            "`lifecycle { destroy = true }` in the place of its block.",
            "A topic is deleted by its id. A topic that was recreated outside under the same name "
            "is not deleted.",
            "Names that start with `__` belong to Kafka. They are not created, changed or deleted.",
            "Two names that differ only in `.` and `_` collide in Kafka's metrics: blocked.",
        ),
        identity="name",
        topic_configs=True,
    ),
    "kafka_topic_config": Page(
        title="kafka_topic_config",
        schema=PROVIDER.types["kafka_topic_config"].schema,
        intro="For a topic that an application or another team creates. "
        "The import id is the topic's name.",
        example=CONFIG_EXAMPLE,
        rules=(
            "The object exists while the topic has overrides of its own. A topic that has some "
            "already must be adopted or imported.",
            "Deleting it removes the overrides that the topic has, but not replication throttles; "
            "the topic stays. It is not protected.",
            "The same topic in a `kafka_topic` block is a conflict, and blocked: move the configs "
            "into that block.",
            "An internal topic (`__consumer_offsets`) is allowed here, with a warning.",
            "The config keys and their ranges are those of "
            "[kafka_topic](kafka_topic.md#topic-configs).",
        ),
        identity="topic",
    ),
    "provider": Page(
        title="provider kafka",
        schema=PROVIDER.config,
        intro="`alias` names a further instance. A resource chooses it with "
        "`provider = kafka.ALIAS`; without that it uses the block without an alias.",
        example=PROVIDER_EXAMPLE,
        rules=(
            'A secret attribute takes `secret_env("NAME")`, `secret_file("PATH")` or a '
            "sensitive variable, and no literal. It is read before connecting and never stored.",
            "With a user name and nothing said about TLS the protocol is SASL_SSL: a password "
            "does not travel in the clear by omission. TLS is always verified.",
            "The first apply binds the state to the cluster id. Later runs refuse to go on if "
            "`bootstrap_servers` leads to another cluster (exit 4).",
            "`protect_topics = false` concerns topics that are created or changed under it; rows "
            "that are protected already stay protected.",
            "`acl_order` and `authorizer` are read, recorded and reserved for the ACL types, "
            "which this version does not have.",
        ),
        resource=False,
    ),
}

COMMON: Mapping[str, str] = {
    "provider": "Which provider instance, such as `kafka.eu`.",
    "for_each": "A map or a set of strings: one object for each key. `each.key`, `each.value`.",
    "count": "A number of objects. `count.index`.",
    "depends_on": "Resources that come first.",
    "owner": "Text for people and reports. Kept in the state, not in Kafka.",
    "labels": "A map of texts, likewise.",
    "lifecycle.prevent_destroy": "true: protected explicitly. false: not protected. "
    "Left out: the type's default.",
    "lifecycle.adopt": "true: take over a live object of this name.",
    "lifecycle.ignore_changes": 'Attributes whose live value stays: `config["retention.ms"]`, '
    "`config`, or `all`.",
}


def pages() -> dict[str, str]:
    """File name -> its whole text."""
    return {f"{name}.md": "\n".join(_page(page)) + "\n" for name, page in PAGES.items()}


def _page(page: Page) -> Iterator[str]:
    yield f"# {page.title}\n"
    yield "<!-- Written by docs/reference.py; change that, or the schema. -->\n"
    yield f"{page.schema.doc} {page.intro}\n"
    yield f"```hcl\n{page.example}```\n"
    yield "## Arguments\n"
    yield from _table(a for a in page.schema.attributes.values() if not a.computed)
    computed = [a for a in page.schema.attributes.values() if a.computed]
    if computed:
        yield "## Computed\n\nKnown after the apply. Legal in `output` blocks only.\n"
        yield from _table(computed)
    for name, block in page.schema.blocks.items():
        yield f"## Block `{name}`\n\n{block.doc}\n"
        yield from _table(block.attributes.values())
    for one, other in page.schema.conflicts:
        yield f"`{one}` and `{other}` exclude each other.\n"
    if page.resource:
        yield "## Arguments of every resource\n\n| name | meaning |\n|---|---|"
        yield from (f"| `{name}` | {doc} |" for name, doc in COMMON.items())
        yield ""
    yield "## Rules\n"
    yield from (f"- {rule}" for rule in page.rules)
    if page.topic_configs:
        yield "\n## Topic configs\n"
        yield "Those of Kafka 4.3. The broker's own limits have the last word in the dry run.\n"
        yield "| name | type | values | Kafka's default |\n|---|---|---|---|"
        yield from map(_config_row, TOPIC_KEYS.values())


def _table(attributes: Iterable[Attribute]) -> Iterator[str]:
    yield "| name | type | | meaning |\n|---|---|---|---|"
    for item in attributes:
        notes = [word for word, on in (("required", item.required), ("secret", item.secret)) if on]
        if item.default is not None:
            notes.append(f"default `{_text(item.default)}`")
        doc = item.doc
        if item.choices:
            doc += f" One of {', '.join(f'`{choice}`' for choice in item.choices)}."
        if item.aliases:
            doc += f" Also called {', '.join(f'`{alias}`' for alias in item.aliases)}."
        yield f"| `{item.name}` | {item.type} | {', '.join(notes)} | {doc} |"
    yield ""


def _config_row(key: ConfigKey) -> str:
    return f"| `{key.name}` | {key.kind} | {_values(key)} | {_default(key)} |"


def _values(key: ConfigKey) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    if key.kind not in ("int", "long", "double"):
        return "`true`, `false`" if key.kind == "boolean" else ""
    low = "" if key.low is None else f"from {key.low}"
    high = "" if key.high is None else f"to {key.high}"
    also = "".join(f"or {number}" for number in key.also)
    return " ".join(part for part in (low, high, also, key.unit) if part)


def _default(key: ConfigKey) -> str:
    return f"`{key.default}`" if key.default else "(empty)"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
