"""Logins with AWS keys in a provider block (`sasl_mechanism = "aws-iam"`): attributes and faults.

Amazon MSK takes an AWS signature as the token of SASL/OAUTHBEARER. Where Terraform's Mongey
provider has an attribute, ours has the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kafkaform.core.schema import STRING, AttributeSchema
from kafkaform.core.secret import Secret

from .attribute_faults import Fault, make_fault, make_stray_fault

MECHANISM = "aws-iam"
SPELLINGS = {MECHANISM: "OAUTHBEARER"}
SESSION_NAME = "kafkaform"

ATTRIBUTES = (
    AttributeSchema(
        "sasl_aws_region",
        STRING,
        "AWS region of the cluster, for aws-iam. Default: the region in the host names of "
        "bootstrap_servers, then that of AWS_REGION, AWS_DEFAULT_REGION or the profile.",
    ),
    AttributeSchema(
        "sasl_aws_profile",
        STRING,
        "Profile of the AWS configuration files whose credentials sign, for aws-iam. Default: the "
        "first credentials of AWS's own order: environment, files, role of the computer.",
    ),
    AttributeSchema(
        "sasl_aws_access_key",
        STRING,
        "ID of the AWS access key that signs, for aws-iam.",
        sensitive=True,
    ),
    AttributeSchema("sasl_aws_secret_key", STRING, "Secret of sasl_aws_access_key.", secret=True),
    AttributeSchema(
        "sasl_aws_token",
        STRING,
        "Session token of sasl_aws_access_key, if the key is a temporary one.",
        secret=True,
    ),
    AttributeSchema(
        "sasl_aws_role_arn",
        STRING,
        "ARN of a role to assume with these credentials, for aws-iam.",
    ),
    AttributeSchema(
        "sasl_aws_role_session_name",
        STRING,
        f"Name of the role's session, which AWS logs. Default: {SESSION_NAME}.",
    ),
    AttributeSchema(
        "sasl_aws_external_id", STRING, "External id that the role demands, for aws-iam."
    ),
)
NAMES = frozenset(attribute.name for attribute in ATTRIBUTES)

# The signature and the address of STS contain the region.
_REGION = r"[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}"
_SESSION = r"[A-Za-z0-9_+=,.@-]{2,64}"
"""RoleSessionName of the API AssumeRole."""
_HOST = r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:[0-9]+$"
"""A broker of MSK, by the name that Amazon gives it."""
_SHAPES = (
    ("sasl_aws_region", _REGION, "an AWS region", "write one such as eu-west-1"),
    (
        "sasl_aws_role_session_name",
        _SESSION,
        "a name of a session",
        "use 2 to 64 letters, digits and the characters _+=,.@-",
    ),
)
_NEEDS = (
    ("sasl_aws_access_key", "sasl_aws_secret_key"),
    ("sasl_aws_secret_key", "sasl_aws_access_key"),
    ("sasl_aws_token", "sasl_aws_access_key"),
    ("sasl_aws_role_session_name", "sasl_aws_role_arn"),
    ("sasl_aws_external_id", "sasl_aws_role_arn"),
)
"""An attribute and another one without which it has no effect."""


class AwsLogin(Struct, frozen=True):
    """Whose AWS credentials sign the login, and for which region."""

    region: str | None = None
    """None: that of the environment or the profile."""
    profile: str | None = None
    access_key: str | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None
    role: str | None = None
    """ARN of a role that is assumed with these credentials."""
    session_name: str = SESSION_NAME
    external_id: str | None = None

    def describe(self) -> str:
        """Whose credentials they are, in words."""
        if self.role:
            return self.role
        if self.profile:
            return f"the AWS profile {self.profile}"
        return "the given access key" if self.access_key else "AWS's default credentials"


def find_region(servers: Sequence[str]) -> str | None:
    """The region in the host names of an MSK cluster, None if they have none or several."""
    matches = (re.search(_HOST, server) for server in servers)
    regions = {match[1] for match in matches if match}
    return regions.pop() if len(regions) == 1 else None


def find_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of these attributes. block: its values."""
    used = [attribute.name for attribute in ATTRIBUTES if block.get(attribute.name)]
    if block.get("sasl_mechanism") != MECHANISM:
        yield from (make_stray_fault(name, MECHANISM) for name in used)
        return
    for name in ("sasl_username", "sasl_password"):
        if block.get(name):
            yield make_fault(
                name, f"{name} has no effect with aws-iam", "remove it: AWS credentials log in"
            )
    for name, required in _NEEDS:
        if block.get(name) and not block.get(required):
            yield make_fault(name, f"{name} has no effect without {required}", f"give {required}")
    if block.get("sasl_aws_profile") and block.get("sasl_aws_access_key"):
        yield make_fault(
            "sasl_aws_profile",
            "sasl_aws_profile and sasl_aws_access_key exclude each other",
            "give only one of them",
        )
    for name, shape, meaning, advice in _SHAPES:
        value = block.get(name)
        if value and not re.fullmatch(shape, str(value)):
            yield make_fault(name, f"{name} {str(value)[:64]!r} is not {meaning}", advice)
