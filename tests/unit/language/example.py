"""A small provider's schemas and short ways to build a configuration from text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kafkaform.core.resource import Declared, Desired, Identity
from kafkaform.core.schema import NUMBER, STRING, Attribute, list_of, map_of, schema, set_of
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import (
    DataInfo,
    Inputs,
    ProviderInfo,
    Schemas,
    TypeInfo,
    build,
    load,
)
from kafkaform.language.expressions.code import Env
from kafkaform.language.expressions.compilation import context
from kafkaform.language.expressions.namespaces import Fixed
from kafkaform.language.functions import function_table
from kafkaform.language.values.conversion import lower
from kafkaform.language.values.limits import Budget
from kafkaform.language.values.value import ObjectVal, Val
from kafkaform.syntax.parse import parse_expression

TOPIC = schema(
    "A topic.",
    Attribute("name", STRING, "Its name.", required=True),
    Attribute("partitions", NUMBER, "How many.", whole=True),
    Attribute("config", map_of(STRING), "Overrides."),
    Attribute("config_mode", STRING, "", default="all", choices=("all", "additive")),
    Attribute("replica_assignment", list_of(list_of(NUMBER)), "Brokers.", whole=True),
    Attribute("topic_id", STRING, "Set by the broker.", computed=True),
    conflicts=(("partitions", "replica_assignment"),),
)
USER = schema(
    "A user.",
    Attribute("username", STRING, "Their name.", required=True, aliases=("user",)),
    Attribute("password", STRING, "", secret=True),
    Attribute("password_wo_version", NUMBER, "", whole=True, aliases=("password_version",)),
)
ROLE = schema("A role.", Attribute("topics", set_of(STRING), "", required=True))
KAFKA = schema(
    "A cluster.",
    Attribute("bootstrap_servers", list_of(STRING), "Brokers.", required=True),
    Attribute("sasl_password", STRING, "", secret=True),
    blocks={"authorizer": schema("", Attribute("super_users", set_of(STRING), ""))},
)
PROVIDERS = {"kafka": ProviderInfo(KAFKA)}
CLUSTER = schema(
    "What a cluster says.",
    Attribute("prefix", STRING, "Of topics."),
    Attribute("names", list_of(STRING), "Its topics.", computed=True),
)
DATA = {"kafka_topics": DataInfo(CLUSTER, "kafka")}
BLOCK = 'provider "kafka" { bootstrap_servers = ["a:9092"] }\n'


def _key(name: str) -> Any:
    def key(attributes: FrozenMap) -> str:
        if not attributes[name]:
            raise ValueError(f"{name} is empty")
        return str(attributes[name])

    return key


def _expand(parent: Declared) -> Sequence[Declared]:
    return [
        Declared(
            Identity(parent.identity.instance, "kafka_acl", topic),
            replace(parent.address, child=f'acl["{n}"]'),
            FrozenMap({"topic": topic}),
            parent.range,
        )
        for n, topic in enumerate(parent.attributes["topics"])
    ]


TYPES = {
    "kafka_topic": TypeInfo(TOPIC, _key("name"), "kafka"),
    "kafka_user": TypeInfo(USER, _key("username"), "kafka"),
    "kafka_role": TypeInfo(ROLE, _key("topics"), "kafka", _expand),
}
SCHEMAS = Schemas(TYPES, DATA, PROVIDERS)


def desired(
    text: str, inputs: Inputs | None = None, files: Mapping[str, str] | None = None, **more: Any
) -> Desired:
    """What main.kf.hcl with this text (and a provider block) declares."""
    given = {"main.kf.hcl": text, "provider.kf.hcl": BLOCK, **(files or {})}
    tree = load({name: content.encode() for name, content in given.items()})
    return build(tree, inputs or Inputs(), SCHEMAS, **more)


def sound(text: str, inputs: Inputs | None = None, **more: Any) -> Desired:
    """The same, and there are no faults in it; a value that a test gives may be warned of."""
    found = desired(text, inputs, **more)
    assert [item for item in found.diagnostics if not item.summary.startswith("--var says")] == []
    return found


def faults(found: Desired) -> list[str]:
    """Each diagnostic as `place: summary`."""
    return [f"{item.range}: {item.summary}" for item in found.diagnostics]


def evaluate(text: str, **roots: Val) -> Val:
    """The value of one expression; roots: what first words stand for."""
    node, problems = parse_expression(text, "test")
    assert node is not None, problems
    spaces = {name: Fixed(value) for name, value in roots.items() if isinstance(value, ObjectVal)}
    return context(function_table()).code(node)(Env(spaces, {}, Budget()))


def plain(text: str, **roots: Val) -> Any:
    """The same as a core value."""
    return lower(evaluate(text, **roots))
