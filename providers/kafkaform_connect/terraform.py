"""Short, because another tool prescribes its form: connectors as resources of Terraform.

The provider is `Mongey/kafka-connect`. Source: terraform-provider-kafka-connect
`connect/resource_kafka_connector.go`: the name has to be a config too, secrets are in
`config_sensitive`, and the import id is the name. An import reads every config into `config`, so
the first apply moves the secrets.
"""

from __future__ import annotations

from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.provider.contract import Exporter, ForeignResource

from .connector import KIND, RUNNING

RESOURCE = "kafka-connect_connector"


def _write(kind: str, live: FrozenMap) -> ForeignResource | str:
    """A live connector as a resource, with a variable for each secret."""
    if kind != KIND:
        return f"the provider has no resource for a {kind}"
    name, state = str(live["name"]), live.get("state")
    if state not in (RUNNING, None):
        return f"it is {state}, and the provider has no states: its apply would not keep that"
    config: dict[str, Value] = {**live["config"], "name": name, "connector.class": live["class"]}
    arguments: dict[str, Value] = {"name": name, "config": FrozenMap(config)}
    if secrets := live.get("secret_keys") or EMPTY:
        arguments["config_sensitive"] = FrozenMap(
            {key: SecretRef("variable", f"{name}_{key}") for key in secrets}
        )
    return ForeignResource(RESOURCE, FrozenMap(arguments), name)


EXPORTER = Exporter(
    requirements=FrozenMap(
        {"kafka-connect": FrozenMap(source="Mongey/kafka-connect", version=">= 0.4.0")}
    ),
    write=_write,
)
