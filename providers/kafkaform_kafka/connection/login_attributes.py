"""Attributes of a provider block that say how to log in, beyond a password, and their faults.

An OAuth token comes from a token endpoint (OAuth 2.0 client credentials, RFC 6749 §4.4), or from a
file that somebody else keeps fresh. Kerberos: names follow `sasl.kerberos.service.name` of Kafka's
own clients; tickets come from a keytab or from a ticket cache that `kinit` or a system service has
filled; no program is started. With AWS keys (`sasl_mechanism = "aws-iam"`), Amazon MSK takes an AWS
signature as the token of SASL/OAUTHBEARER.

Where Terraform's Mongey provider has an attribute, ours has the same name. The schema also accepts
those of its arguments that this provider does not support, so that each one gets its own message:
an error if ignoring it would change who logs in and how, a warning if that changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kafkaform.core.diagnostics import Severity
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, list_of
from kafkaform.core.secret import Secret
from kafkaform.provider.block_checks import is_safe_url

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

REFUSED_ATTRIBUTES = (
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


def find_refused_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
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


OAUTHBEARER = "OAUTHBEARER"
OAUTH_SPELLINGS = {"OAUTHBEARER": OAUTHBEARER, "oauthbearer": OAUTHBEARER}

OAUTH_ATTRIBUTES = (
    AttributeSchema(
        "sasl_token_url",
        STRING,
        "Token endpoint for oauthbearer, https; sasl_username and sasl_password are the client id "
        "and secret there.",
    ),
    AttributeSchema("sasl_oauth_scopes", list_of(STRING), "Scopes to ask the token endpoint for."),
    AttributeSchema(
        "sasl_token_file",
        STRING,
        "File with the JSON web token for oauthbearer, read again before the token expires. Set "
        "either this or sasl_token_url.",
    ),
)
_NAMES = tuple(attribute.name for attribute in OAUTH_ATTRIBUTES)


def find_oauth_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of these attributes. block: its values."""
    if block.get("sasl_mechanism") not in OAUTH_SPELLINGS:
        yield from (make_stray_fault(name, "oauthbearer") for name in _NAMES if block.get(name))
        return
    url, file = block.get("sasl_token_url"), block.get("sasl_token_file")
    if bool(url) == bool(file):
        yield make_fault(
            "sasl_mechanism",
            "oauthbearer needs either sasl_token_url or sasl_token_file, not both",
            "name the token endpoint, with client id and secret in sasl_username and "
            "sasl_password; or the file that holds the token",
        )
    elif url:
        yield from _endpoint_faults(block, str(url))
    else:
        yield from _file_faults(block)


def _endpoint_faults(block: Mapping[str, Any], url: str) -> Iterator[Fault]:
    if not is_safe_url(url):
        yield make_fault(
            "sasl_token_url",
            "sasl_token_url must begin with https:// and contain no login",
            "the client secret is sent there; http is only for an endpoint on this computer",
        )
    if not (block.get("sasl_username") and block.get("sasl_password")):
        yield make_fault(
            "sasl_token_url",
            "sasl_token_url needs a client id and its secret",
            "set sasl_username and sasl_password",
        )


def _file_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("sasl_username", "sasl_password", "sasl_oauth_scopes"):
        if block.get(name):
            yield make_fault(
                name,
                f"{name} has no effect with sasl_token_file",
                "remove it: the token says who logs in",
            )


GSSAPI = "GSSAPI"
KERBEROS_SPELLINGS = {"GSSAPI": GSSAPI, "gssapi": GSSAPI}
DEFAULT_SERVICE = "kafka"

KERBEROS_ATTRIBUTES = (
    AttributeSchema(
        "sasl_kerberos_service_name",
        STRING,
        "Primary of the brokers' Kerberos principals for gssapi: kafka for kafka/HOST@REALM. "
        f"Default: {DEFAULT_SERVICE}.",
    ),
    AttributeSchema(
        "sasl_kerberos_principal",
        STRING,
        "Our Kerberos principal for gssapi, such as ci@EXAMPLE.COM. Default: that of the ticket "
        "cache.",
    ),
    AttributeSchema(
        "sasl_kerberos_keytab",
        STRING,
        "File with the key of sasl_kerberos_principal. Without it, a ticket cache is used.",
    ),
    AttributeSchema(
        "sasl_kerberos_ticket_cache",
        STRING,
        "Ticket cache for gssapi, as KRB5CCNAME names it. Default: that of the environment.",
    ),
)
KERBEROS_NAMES = tuple(attribute.name for attribute in KERBEROS_ATTRIBUTES)

KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
"""Java's login module for Kerberos."""
KERBEROS_OPTIONS: Mapping[str, str] = {
    "principal": "sasl_kerberos_principal",
    "keyTab": "sasl_kerberos_keytab",
    "ticketCache": "sasl_kerberos_ticket_cache",
    "serviceName": "sasl_kerberos_service_name",
    **dict.fromkeys(("useKeyTab", "useTicketCache", "storeKey", "doNotPrompt"), ""),
    **dict.fromkeys(("renewTGT", "refreshKrb5Config", "isInitiator", "debug"), ""),
}
"""Option of that module -> the attribute of the provider block; empty for one that has no
counterpart."""


class KerberosSettings(Struct, frozen=True):
    """How to get tickets, and for which service."""

    service: str
    principal: str | None = None
    """None for that of the ticket cache."""
    keytab: str | None = None
    """Path of the keytab, None for a ticket cache."""
    ticket_cache: str | None = None
    """Name of the ticket cache, None for that of the environment."""


def read_kerberos(block: Mapping[str, Any]) -> KerberosSettings:
    """The Kerberos settings of a provider block without faults."""
    service, principal, keytab, cache = (block.get(name) or None for name in KERBEROS_NAMES)
    return KerberosSettings(service or DEFAULT_SERVICE, principal, keytab, cache)


def find_kerberos_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of a provider block that logs in with Kerberos. block: its values."""
    for name in ("sasl_username", "sasl_password"):
        if block.get(name):
            yield make_fault(
                name,
                f"{name} has no effect with gssapi",
                "remove it: sasl_kerberos_principal says who logs in, and a keytab or a ticket "
                "cache proves it",
            )
    if block.get("sasl_kerberos_keytab") and block.get("sasl_kerberos_ticket_cache"):
        yield make_fault(
            "sasl_kerberos_ticket_cache",
            "sasl_kerberos_keytab and sasl_kerberos_ticket_cache exclude each other",
            "set the one that has your key or your tickets",
        )
    if block.get("sasl_kerberos_keytab") and not block.get("sasl_kerberos_principal"):
        yield make_fault(
            "sasl_kerberos_keytab",
            "sasl_kerberos_keytab needs sasl_kerberos_principal",
            "name the principal whose key is in the file; `klist -k FILE` lists them",
        )
    service = block.get("sasl_kerberos_service_name")
    # GSSAPI appends the host of the broker, so a whole principal would name no service at all.
    if isinstance(service, str) and ("/" in service or "@" in service):
        yield make_fault(
            "sasl_kerberos_service_name",
            "sasl_kerberos_service_name is the first part of a principal only",
            "write kafka for brokers with principals such as kafka/HOST@REALM",
        )


def find_jaas_faults(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the options of Java's login module ask for and cannot be had: text and advice."""
    # With useKeyTab=false Java ignores a keytab, and with true and no name it takes the one of
    # krb5.conf. Another key would be another login.
    keytab = options.get("useKeyTab", "false").lower() == "true"
    cache = options.get("useTicketCache", "false").lower() == "true"
    if keytab != bool(options.get("keyTab")):
        yield "its options useKeyTab and keyTab do not agree", 'write useKeyTab=true keyTab="PATH"'
    if not keytab and not cache:
        yield (
            "its options name neither a keytab nor a ticket cache",
            'write useKeyTab=true keyTab="PATH", or useTicketCache=true',
        )


AWS_MECHANISM = "aws-iam"
AWS_SPELLINGS = {AWS_MECHANISM: "OAUTHBEARER"}
SESSION_NAME = "kafkaform"

AWS_ATTRIBUTES = (
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
AWS_NAMES = frozenset(attribute.name for attribute in AWS_ATTRIBUTES)

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


def find_aws_faults(block: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of these attributes. block: its values."""
    used = [attribute.name for attribute in AWS_ATTRIBUTES if block.get(attribute.name)]
    if block.get("sasl_mechanism") != AWS_MECHANISM:
        yield from (make_stray_fault(name, AWS_MECHANISM) for name in used)
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
