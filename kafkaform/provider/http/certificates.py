"""The attributes of provider blocks that name certificates and a key for TLS."""

from __future__ import annotations

from ...core.schema import STRING, AttributeSchema

CERTIFICATES = (
    AttributeSchema(
        "ca_cert",
        STRING,
        "Certificates to trust: a PEM file or PEM text. Default: those of the operating system.",
        aliases=("ca_cert_file",),
    ),
    AttributeSchema(
        "client_cert",
        STRING,
        "Our certificate for mutual TLS: a PEM file or PEM text.",
        aliases=("client_cert_file",),
    ),
    AttributeSchema(
        "client_key",
        STRING,
        "Private key of client_cert: a PEM file or PEM text.",
        sensitive=True,
        aliases=("client_key_file",),
    ),
)
"""The passphrase of the key has different names, so each block has its own."""
