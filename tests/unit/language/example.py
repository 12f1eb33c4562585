"""A small provider's schemas and short ways to build a configuration from text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kafkaform.core.resource import Declared, Desired, Identity
from kafkaform.core.schema import (
    NUMBER,
    STRING,
    AttributeSchema,
    list_of,
    make_schema,
    map_of,
    set_of,
)
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import (
    DataInfo,
    ProviderInfo,
    Schemas,
    TypeInfo,
    VariableInputs,
    build_desired,
    load_tree,
)
from kafkaform.language.expressions.code import Env
from kafkaform.language.expressions.compilation import make_context
from kafkaform.language.expressions.references import Fixed
from kafkaform.language.functions import FunctionTable
from kafkaform.language.values.conversion import lower_value
from kafkaform.language.values.faults import Budget
from kafkaform.language.values.value import ObjectVal, Val
from kafkaform.syntax.parse import parse_expression

TOPIC = make_schema(
    "A topic.",
    AttributeSchema("name", STRING, "Its name.", required=True),
    AttributeSchema("partitions", NUMBER, "How many.", whole=True),
    AttributeSchema("config", map_of(STRING), "Overrides."),
    AttributeSchema("config_mode", STRING, "", default="all", choices=("all", "additive")),
    AttributeSchema("replica_assignment", list_of(list_of(NUMBER)), "Brokers.", whole=True),
    AttributeSchema("topic_id", STRING, "Set by the broker.", computed=True),
    conflicts=(("partitions", "replica_assignment"),),
)
USER = make_schema(
    "A user.",
    AttributeSchema("username", STRING, "Their name.", required=True, aliases=("user",)),
    AttributeSchema("password", STRING, "", secret=True),
    AttributeSchema("password_wo_version", NUMBER, "", whole=True, aliases=("password_version",)),
)
ROLE = make_schema("A role.", AttributeSchema("topics", set_of(STRING), "", required=True))
KAFKA = make_schema(
    "A cluster.",
    AttributeSchema("bootstrap_servers", list_of(STRING), "Brokers.", required=True),
    AttributeSchema("sasl_password", STRING, "", secret=True),
    blocks={"authorizer": make_schema("", AttributeSchema("super_users", set_of(STRING), ""))},
)
PROVIDERS = {"kafka": ProviderInfo(KAFKA)}
CLUSTER = make_schema(
    "What a cluster says.",
    AttributeSchema("prefix", STRING, "Of topics."),
    AttributeSchema("names", list_of(STRING), "Its topics.", computed=True),
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
            parent.lifecycle,
        )
        for n, topic in enumerate(parent.attributes["topics"])
    ]


TYPES = {
    "kafka_topic": TypeInfo(TOPIC, _key("name"), "kafka"),
    "kafka_user": TypeInfo(USER, _key("username"), "kafka"),
    "kafka_role": TypeInfo(ROLE, _key("topics"), "kafka", _expand, shareable=True),
}
SCHEMAS = Schemas(TYPES, DATA, PROVIDERS)


def desired(
    text: str,
    inputs: VariableInputs | None = None,
    files: Mapping[str, str] | None = None,
    **more: Any,
) -> Desired:
    """What main.kf.hcl with this text (and a provider block) declares."""
    given = {"main.kf.hcl": text, "provider.kf.hcl": BLOCK, **(files or {})}
    tree = load_tree({name: content.encode() for name, content in given.items()})
    return build_desired(tree, inputs or VariableInputs(), SCHEMAS, **more)


def sound(text: str, inputs: VariableInputs | None = None, **more: Any) -> Desired:
    """The same, and there are no faults in it; a value that a test gives may be warned of."""
    found = desired(text, inputs, **more)
    assert [
        item for item in found.diagnostics if not item.summary.startswith("--var contains")
    ] == []
    return found


def faults(found: Desired) -> list[str]:
    """Each diagnostic as `place: summary`."""
    return [f"{item.range}: {item.summary}" for item in found.diagnostics]


def evaluate(text: str, **roots: Val) -> Val:
    """The value of one expression; roots: what first words stand for."""
    node, problems = parse_expression(text, "test")
    assert node is not None, problems
    spaces = {name: Fixed(value) for name, value in roots.items() if isinstance(value, ObjectVal)}
    return make_context(FunctionTable()).compile_node(node)(Env(spaces, {}, Budget()))


def plain(text: str, **roots: Val) -> Any:
    """The same as a core value."""
    return lower_value(evaluate(text, **roots))
