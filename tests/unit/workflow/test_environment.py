"""What the environment adds to provider blocks: KAFKAFORM_INSTANCE_ATTRIBUTE."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, list_of, make_schema
from kafkaform.core.value import FrozenMap, SecretRef, Value
from kafkaform.language.evaluate.providers import ProviderInfo
from kafkaform.workflow.configuration.instances import complete_provider, name_variable

from ...kit.commands.here import Here

SCHEMA = make_schema(
    "A connection.",
    AttributeSchema("servers", list_of(STRING), "Brokers.", required=True),
    AttributeSchema("protocol", STRING, "How.", choices=("SSL", "PLAINTEXT")),
    AttributeSchema("password", STRING, "Login.", secret=True),
    AttributeSchema("protect", BOOL, "Whether.", default=True),
)
NOTHING: dict[str, Value] = {"servers": None, "protocol": None, "password": None, "protect": True}


def connected(
    environ: dict[str, str], *, offline: bool = False, **said: Value
) -> tuple[FrozenMap, list[Diagnostic]]:
    """What the instance `kafka.eu` connects with, and the faults."""
    info = complete_provider(ProviderInfo(SCHEMA), environ, offline=offline)
    assert not any(one.required for one in info.schema.attributes.values())
    config, faults = info.connect("kafka.eu", FrozenMap({**NOTHING, **said}))
    return config, [fault for _, fault in faults]


def test_a_variable_is_named_after_instance_and_attribute() -> None:
    """Dots and dashes become underscores; nothing else decides."""
    assert name_variable("kafka.eu-1", "ca_cert") == "KAFKAFORM_KAFKA_EU_1_CA_CERT"


def test_what_the_block_leaves_out_is_filled() -> None:
    """Lists have commas, bools are words, and a secret stays a reference."""
    config, faults = connected(
        {
            "KAFKAFORM_KAFKA_EU_SERVERS": "one:9092, two:9092",
            "KAFKAFORM_KAFKA_EU_PASSWORD": "hush",
            "KAFKAFORM_KAFKA_EU_PROTECT": " False ",
            "KAFKAFORM_KAFKA_PROTOCOL": "SSL",
        }
    )
    assert not faults
    assert config["servers"] == ("one:9092", "two:9092")
    assert config["password"] == SecretRef("env", "KAFKAFORM_KAFKA_EU_PASSWORD")
    assert config["protect"] is False
    assert config["protocol"] is None  # that was another instance's


def test_what_the_block_says_stays() -> None:
    """The environment takes nothing back."""
    config, faults = connected({"KAFKAFORM_KAFKA_EU_SERVERS": "two:9092"}, servers=("one:9092",))
    assert (config["servers"], faults) == (("one:9092",), [])


@pytest.mark.parametrize("text", ["", None])
def test_what_nobody_says_is_named(text: str | None) -> None:
    """A required attribute that neither says, an empty variable included, names the variable; who
    does not connect needs none."""
    environ = {} if text is None else {"KAFKAFORM_KAFKA_EU_SERVERS": text}
    _, (fault,) = connected(environ)
    assert '"kafka.eu" needs "servers"' in fault.summary
    assert "KAFKAFORM_KAFKA_EU_SERVERS" in str(fault.advice)
    assert connected(environ, offline=True)[1] == []


@pytest.mark.parametrize(
    ("name", "text", "known"), [("PROTECT", "yes", "true, false"), ("PROTOCOL", "ssl", "SSL")]
)
def test_a_text_that_means_nothing_is_a_fault(name: str, text: str, known: str) -> None:
    """`yes` does not become false, and what is none of the choices is not passed on."""
    environ = {f"KAFKAFORM_KAFKA_EU_{name}": text, "KAFKAFORM_KAFKA_EU_SERVERS": "one:9092"}
    _, (fault,) = connected(environ)
    assert f"KAFKAFORM_KAFKA_EU_{name}" in fault.summary and known in str(fault.advice)


def test_a_block_without_a_connection_is_valid_and_cannot_plan(here: Here) -> None:
    """`validate` needs no environment; `plan` says at the block which variable is missing."""
    here.write(
        "main.kf.hcl",
        'provider "kafka" {}\n\nresource "kafka_topic" "a" {\n  name = "a"\n}\n',
    )
    here.done("validate")
    said = here.fails("plan")
    assert "main.kf.hcl:1" in said and "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS" in said
