"""What the language makes of a file that was written for Terraform."""

from __future__ import annotations

from kafkaform.core.resource import Desired
from kafkaform.language.desired import (
    ProviderInfo,
    Schemas,
    TypeInfo,
    VariableInputs,
    build_desired,
    load_tree,
)
from kafkaform_kafka.provider import PROVIDER

BLOCK = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'


TYPES = {
    name: TypeInfo(found.schema, found.key, "kafka", found.expand)
    for name, found in PROVIDER.types.items()
}


def desired(text: str, *, checked: bool = False) -> Desired:
    """What a file declares. checked: the provider looks at its block too, not its schema alone."""
    provider = ProviderInfo(PROVIDER.config, *([PROVIDER.check] if checked else []))
    tree = load_tree({"main.tf": text.encode()})
    return build_desired(tree, VariableInputs({}), Schemas(TYPES, {}, {"kafka": provider}))


def faults(text: str, *, checked: bool = False) -> list[str]:
    """Each diagnostic as `line: summary`."""
    found = desired(text, checked=checked).diagnostics
    return [f"{item.range.line if item.range else 0}: {item.summary}" for item in found]
