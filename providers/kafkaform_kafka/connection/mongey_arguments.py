"""Arguments of Terraform's Mongey provider that this provider does not support.

The schema accepts them, so that each one gets a message of its own: an error if ignoring it would
change who logs in and how, a warning if that changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.core.diagnostics import Severity
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, list_of

Fault = tuple[str, Severity, str, str]
"""Attribute to blame, severity, summary, advice."""


_AWS = 'Belongs to sasl_mechanism = "aws-iam". Not supported.'

LOGINS: Mapping[str, tuple[AttributeSchema, ...]] = {
    "aws-iam": (
        AttributeSchema("sasl_aws_region", STRING, _AWS),
        AttributeSchema("sasl_aws_role_arn", STRING, _AWS),
        AttributeSchema("sasl_aws_external_id", STRING, _AWS),
        AttributeSchema("sasl_aws_profile", STRING, _AWS),
        AttributeSchema("sasl_aws_shared_config_files", list_of(STRING), _AWS),
        AttributeSchema("sasl_aws_access_key", STRING, _AWS, sensitive=True),
        AttributeSchema("sasl_aws_secret_key", STRING, _AWS, secret=True),
        AttributeSchema("sasl_aws_token", STRING, _AWS, secret=True),
        AttributeSchema("sasl_aws_container_authorization_token_file", STRING, _AWS),
        AttributeSchema("sasl_aws_container_credentials_full_uri", STRING, _AWS),
        AttributeSchema("sasl_aws_creds_debug", BOOL, _AWS),
    ),
}
"""A sasl_mechanism that is not supported -> the attributes that only it uses."""

_INSTEAD = {
    "aws-iam": "log in with SCRAM, which Amazon MSK offers on port 9096, or with a client "
    "certificate, on port 9094",
}

ATTRIBUTES = (
    *(attribute for group in LOGINS.values() for attribute in group),
    AttributeSchema(
        "kafka_version",
        STRING,
        "Has no effect: versions are negotiated with each broker.",
        policy=True,
    ),
)


def find_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """What these attributes ask for in vain. given: a provider block's values."""
    for mechanism, attributes in LOGINS.items():
        used = [attribute.name for attribute in attributes if given.get(attribute.name)]
        if given.get("sasl_mechanism") == mechanism:
            yield _unsupported_fault(mechanism, used)
        else:
            yield from (_stray_fault(mechanism, name) for name in used)
    if given.get("kafka_version"):
        yield (
            "kafka_version",
            Severity.WARNING,
            "kafka_version has no effect: versions are negotiated with each broker",
            "remove it",
        )


def _unsupported_fault(mechanism: str, used: list[str]) -> Fault:
    remove = f"; then remove {', '.join(used)}" if used else ""
    return (
        "sasl_mechanism",
        Severity.ERROR,
        f'sasl_mechanism "{mechanism}" is not supported',
        f"{_INSTEAD[mechanism]}{remove}",
    )


def _stray_fault(mechanism: str, name: str) -> Fault:
    return (
        name,
        Severity.ERROR,
        f'{name} belongs to sasl_mechanism "{mechanism}", which is not supported',
        f"remove it; {_INSTEAD[mechanism]}",
    )
