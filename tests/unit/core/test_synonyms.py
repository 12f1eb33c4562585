"""Words of other tools and languages are answered with ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.core import TyperGroup

from kafkaform.cli.command_tree import get_commands
from kafkaform.core import diagnostics
from kafkaform.core.diagnostics import list_meant_words, suggest
from kafkaform.core.schema import META_ARGUMENTS, META_BLOCKS, ObjectSchema
from kafkaform.language.declare.blocks import LIFECYCLE
from kafkaform.language.functions import FunctionTable
from kafkaform.provider.registry import Registry

PROVIDERS = [Registry().load(name) for name in ("kafka", "kafka_connect", "schema_registry")]
TYPES = [name for provider in PROVIDERS for name in provider.types]
TOPIC = PROVIDERS[0].types["kafka_topic"].schema
COMMANDS = [*get_commands().commands]
FUNCTIONS = list(FunctionTable())


def list_arguments() -> Iterator[str]:
    """Every argument of the providers."""
    schemas: list[ObjectSchema] = [provider.config for provider in PROVIDERS]
    schemas += [item.schema for provider in PROVIDERS for item in provider.types.values()]
    yield from (*META_ARGUMENTS, *META_BLOCKS, *LIFECYCLE.optional)
    while schemas:
        schema = schemas.pop()
        yield from schema.list_names()
        schemas += schema.blocks.values()


def list_commands() -> Iterator[str]:
    """Every command and subcommand."""
    root = get_commands()
    for name in root.commands:
        command = root.commands[name]
        yield name
        if isinstance(command, TyperGroup):
            yield from command.commands


@pytest.mark.parametrize(
    ("table", "known"),
    [
        (diagnostics._RESOURCE_TYPES, {*TYPES}),
        (diagnostics._ARGUMENTS, {*list_arguments()}),
        (diagnostics._FUNCTIONS, {*FUNCTIONS, "templatefile"}),
        (diagnostics._COMMANDS, {*list_commands()}),
    ],
)
def test_every_answer_exists(table: dict[str, str], known: set[str]) -> None:
    """No synonym leads to a word that kafkaform does not have, and none is a word of its own."""
    assert table.keys() <= known
    for word, others in table.items():
        assert others.split() == [*dict.fromkeys(others.split())], word
        assert word not in others.split()
        assert others == others.casefold()


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("kafka_user", TYPES, "kafka_user_scram_credential"),
        ("kafka_users", TYPES, "kafka_user_scram_credential"),
        ("kafka_role_binding", TYPES, "kafka_access"),
        ("kafka-connect_connector", TYPES, "kafka_connect_connector"),
        ("confluent_schema", TYPES, "schema_registry_schema"),
        ("KafkaTopic", TYPES, "kafka_topic"),
        ("kafka_topik", TYPES, "kafka_topic"),
        ("replicas", TOPIC.list_names(), "replication_factor"),
        ("partitions_count", TOPIC.list_names(), "partitions"),
        ("topic_name", TOPIC.list_names(), "name"),
        ("upcase", FUNCTIONS, "upper"),
        ("len", FUNCTIONS, "length"),
        ("getenv", FUNCTIONS, "secret_env"),
        ("drift", COMMANDS, "plan"),
        ("rebalance", COMMANDS, "propose"),
        ("list", ("up", "down", "status", "env", "logs"), "status"),
    ],
)
def test_a_word_of_another_tool_is_understood(word: str, known: list[str], meant: str) -> None:
    """It counts more than a word that is only spelled a little like it."""
    assert suggest(word, known) == f'Did you mean "{meant}"?'


def test_only_what_exists_is_suggested() -> None:
    """A folder of another provider is never told of Kafka's types."""
    assert suggest("kafka_user", ("ldap_group", "ldap_person")) == ""
    assert [*list_meant_words("kafka_user")] == ["kafka_user_scram_credential"]


@pytest.mark.parametrize("word", ["kafka_thing", "kafka_xyz", "schema_registry_foo"])
def test_a_common_beginning_makes_no_word_near(word: str) -> None:
    """All types of a system begin alike, which says nothing about what was meant."""
    assert suggest(word, TYPES) == ""


def test_a_misspelt_word_counts_more_than_a_synonym() -> None:
    """`topic` means a name elsewhere, and `topics` where there is such an argument."""
    assert suggest("topic", ("name", "topics")) == 'Did you mean "topics"?'
    assert suggest("topic", ("name", "partitions")) == 'Did you mean "name"?'
