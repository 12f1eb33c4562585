"""Faults of single attributes of a provider block; and the arguments of Terraform's Mongey provider
that this provider does not support.

The schema accepts these, so that each one gets its own message: an error if ignoring it would
change who logs in and how, a warning if that changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.core.diagnostics import Severity
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, list_of

Fault = tuple[str, Severity, str, str]
"""Attribute to blame, severity, summary, advice."""


def make_fault(name: str, summary: str, advice: str) -> Fault:
    """An error. name: the attribute to blame."""
    return name, Severity.ERROR, summary, advice


def make_stray_fault(name: str, mechanism: str) -> Fault:
    """The error of an attribute that only this mechanism takes, in a block with another one."""
    return make_fault(
        name,
        f'{name} belongs to sasl_mechanism = "{mechanism}"',
        f'set sasl_mechanism = "{mechanism}", or remove it',
    )


# A configuration file of AWS can name a program to start (credential_process), and the endpoint of
# credentials gets a token. Neither may be chosen by a file that a pull request can change.
_INSTEAD = {
    "sasl_aws_shared_config_files": "AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE",
    "sasl_aws_container_authorization_token_file": "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "sasl_aws_container_credentials_full_uri": "AWS_CONTAINER_CREDENTIALS_FULL_URI",
}
"""An attribute that is refused -> the environment variables that replace it."""

_IDLE = {
    "kafka_version": "versions are negotiated with each broker",
    "sasl_aws_creds_debug": "a login that AWS refuses says whose credentials it used",
}
"""An attribute without an effect -> why it needs none."""

ATTRIBUTES = (
    *(
        AttributeSchema(
            name,
            list_of(STRING) if name.endswith("_files") else STRING,
            f"Not supported: set {variables} in the environment.",
        )
        for name, variables in _INSTEAD.items()
    ),
    AttributeSchema(
        "sasl_aws_creds_debug",
        BOOL,
        f"Has no effect: {_IDLE['sasl_aws_creds_debug']}.",
        policy=True,
    ),
    AttributeSchema(
        "kafka_version", STRING, f"Has no effect: {_IDLE['kafka_version']}.", policy=True
    ),
)


def find_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """What these attributes ask for in vain. block: its values."""
    for name, variables in _INSTEAD.items():
        if block.get(name):
            yield (
                name,
                Severity.ERROR,
                f"{name} is not supported",
                f"remove it, and set {variables} in the environment, where aws-iam finds it",
            )
    for name, reason in _IDLE.items():
        if block.get(name):
            yield name, Severity.WARNING, f"{name} has no effect: {reason}", "remove it"
