"""Java's key stores in a provider block: attributes and faults, under the names of Java's
properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.core.schema import STRING, AttributeSchema

from .attribute_faults import Fault, make_fault

TRUSTSTORE, KEYSTORE = "ssl_truststore_location", "ssl_keystore_location"
TRUSTSTORE_PASSWORD, KEYSTORE_PASSWORD = "ssl_truststore_password", "ssl_keystore_password"

ATTRIBUTES = (
    AttributeSchema(
        TRUSTSTORE, STRING, "JKS or PKCS12 file with the certificates to trust, for ca_cert."
    ),
    AttributeSchema(
        TRUSTSTORE_PASSWORD, STRING, "Password of ssl_truststore_location.", secret=True
    ),
    AttributeSchema(
        KEYSTORE,
        STRING,
        "JKS or PKCS12 file with our certificate and its private key, for client_cert and "
        "client_key.",
    ),
    AttributeSchema(KEYSTORE_PASSWORD, STRING, "Password of ssl_keystore_location.", secret=True),
)
NAMES = frozenset(attribute.name for attribute in ATTRIBUTES)

_NEEDS = (
    (TRUSTSTORE_PASSWORD, TRUSTSTORE),
    (KEYSTORE_PASSWORD, KEYSTORE),
    (KEYSTORE, KEYSTORE_PASSWORD),
)
"""An attribute and another one without which it cannot be used."""
_INSTEAD = ((TRUSTSTORE, "ca_cert"), (KEYSTORE, "client_cert"), (KEYSTORE, "client_key"))
"""Two attributes of which only one can be given."""


def find_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of these attributes. block: its values."""
    for name, partner in _NEEDS:
        if block.get(name) and not block.get(partner):
            yield make_fault(name, f"{name} cannot be used without {partner}", f"give {partner}")
    for name, partner in _INSTEAD:
        if block.get(name) and block.get(partner):
            yield make_fault(
                name, f"{name} and {partner} exclude each other", "give only one of them"
            )
    protocol = block.get("security_protocol")
    if protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
        for name in (TRUSTSTORE, KEYSTORE):
            if block.get(name):
                yield make_fault(
                    name,
                    f"{name} has no effect with {protocol}",
                    "remove it, or choose SSL or SASL_SSL",
                )
