"""A provider block that is made from properties, and what is wrong with them."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from kafkaform.core.diagnostics import Severity
from kafkaform.core.secret import Secret
from kafkaform.core.value import SecretRef, Value

SOURCE = "property"
"""The source in references to secrets that properties contain."""


class PropertyFault(NamedTuple):
    """What is wrong with one property. The values of secret properties are not repeated."""

    key: str
    text: str
    advice: str
    severity: Severity = Severity.ERROR


class BlockDraft(Struct):
    """A provider block that is being made."""

    attributes: dict[str, Value] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    """str(SecretRef) -> the secret."""
    faults: list[PropertyFault] = field(default_factory=list)

    def hide(self, attribute: str, secret: str) -> None:
        """Set an attribute to a reference to this secret."""
        ref = SecretRef(SOURCE, attribute)
        self.attributes[attribute] = ref
        self.secrets[str(ref)] = Secret(secret)
