"""What a provider block means: where to connect, as which user, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.provider.block_checks import is_pem, parse_seconds

from ..protocol.config_keys import parse_size
from ..protocol.rates import ReplicaLimits
from . import provider_block
from .login_attributes import (
    AWS_MECHANISM,
    KERBEROS_SPELLINGS,
    SESSION_NAME,
    AwsLogin,
    KerberosSettings,
    find_region,
    read_kerberos,
)
from .provider_block import (
    DEFAULT_TIMEOUT,
    MECHANISMS,
    WITHOUT_PASSWORD,
    check,
    derive_protocol,
    list_servers,
)


class KafkaSettings(Struct, frozen=True):
    """A provider block without faults, with its secrets."""

    instance: str
    servers: tuple[str, ...]
    """host:port of the brokers to ask first."""
    protocol: str
    """One of PROTOCOLS."""
    mechanism: str | None = None
    username: str | None = None
    password: Secret | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | Secret | None = None
    """A path, or PEM text as a secret."""
    passphrase: Secret | None = None
    timeout: float = DEFAULT_TIMEOUT
    """Seconds that the cluster can take for one request."""
    principal: str | None = None
    cluster_id: str | None = None
    """The only cluster that may answer."""
    acl_order: str = "create_first"
    protect_topics: bool = True
    authorizer: FrozenMap = EMPTY
    reassignment_throttle: int | None = None
    """Bytes per second and broker."""
    rates: FrozenMap | UnsetType = UNSET
    """The block, as `protocol.rates.read_rates` takes it."""
    limits: ReplicaLimits | UnsetType = UNSET
    profile: str | None = None
    """One of `vendors.names.PROFILES`; None: to be found."""
    token_url: str | None = None
    token_file: str | None = None
    scopes: tuple[str, ...] = ()
    token_auth: bool = False
    """username and password are those of a delegation token."""
    kerberos: KerberosSettings | None = None
    aws_login: AwsLogin | None = None
    """Set if AWS credentials sign the token."""

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")


def read_settings(instance: str, config: FrozenMap, secrets: Mapping[str, Secret]) -> KafkaSettings:
    """The settings that a provider block means. secrets: str(SecretRef) -> the secret. Raises
    ConfigurationError with all faults."""
    references = {n: value for n, value in config.items() if isinstance(value, SecretRef)}
    block: dict[str, Any] = {**config, **{n: secrets.get(str(r)) for n, r in references.items()}}
    faults = [fault for _, fault in check(block) if fault.severity is Severity.ERROR]
    faults += [
        Diagnostic(
            Severity.ERROR,
            f"{name} refers to {reference}, which has no value",
            advice="set it and run the command again",
        )
        for name, reference in references.items()
        if str(reference) not in secrets
    ]
    if faults:
        raise _make_refusal(instance, faults)
    if block.get(provider_block.TRUSTSTORE) or block.get(provider_block.KEYSTORE):
        block.update(_open_stores(instance, block))
    protocol = derive_protocol(block)
    # PEM text of a key is always a secret, also in an attribute that is not one; a path is not.
    key = block.get("client_key") or None
    login: dict[str, Any] = {
        "mechanism": MECHANISMS[block.get("sasl_mechanism") or "PLAIN"],
        "username": block.get("sasl_username") or None,
        "password": _to_secret(block.get("sasl_password")),
        "token_url": block.get("sasl_token_url") or None,
        "token_file": block.get("sasl_token_file") or None,
        "scopes": tuple(block.get("sasl_oauth_scopes") or ()),
        "token_auth": block.get("sasl_token_auth") is True,
    }
    if block.get("sasl_mechanism") in KERBEROS_SPELLINGS:
        login["kerberos"] = read_kerberos(block)
    servers = list_servers(block)
    if block.get("sasl_mechanism") == AWS_MECHANISM:
        login["aws_login"] = _read_aws_login(block, servers)
    return KafkaSettings(
        instance=instance,
        servers=servers,
        protocol=protocol,
        **(login if protocol.startswith("SASL") else {}),
        ca=block.get("ca_cert") or None,
        certificate=block.get("client_cert") or None,
        key=Secret(key) if isinstance(key, str) and is_pem(key) else key,
        passphrase=_to_secret(block.get("client_key_passphrase")),
        timeout=parse_seconds(block.get("operation_timeout")) or DEFAULT_TIMEOUT,
        principal=_derive_principal(block, protocol),
        cluster_id=block.get("cluster_id") or None,
        acl_order=block.get("acl_order") or "create_first",
        protect_topics=block.get("protect_topics") is not False,
        authorizer=block.get("authorizer") or EMPTY,
        reassignment_throttle=parse_size(block.get("reassignment_throttle")),
        profile=block.get("profile") or None,
        rates=block.get("rates") or UNSET,
        limits=ReplicaLimits(**block["limits"]) if block.get("limits") else UNSET,
    )


def _read_aws_login(block: Mapping[str, Any], servers: tuple[str, ...]) -> AwsLogin:
    return AwsLogin(
        # The host name first: AWS_REGION is where this computer is, which can be elsewhere.
        region=block.get("sasl_aws_region") or find_region(servers),
        profile=block.get("sasl_aws_profile") or None,
        access_key=block.get("sasl_aws_access_key") or None,
        secret_key=_to_secret(block.get("sasl_aws_secret_key")),
        session_token=_to_secret(block.get("sasl_aws_token")),
        role=block.get("sasl_aws_role_arn") or None,
        session_name=block.get("sasl_aws_role_session_name") or SESSION_NAME,
        external_id=block.get("sasl_aws_external_id") or None,
    )


def _open_stores(instance: str, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the content of Java's key stores means in other attributes. Raises
    ConfigurationError."""
    from .key_stores import StoreFault, read_key_pair, read_trusted  # noqa: PLC0415  # few provider blocks name a store

    attributes: dict[str, Any] = {}
    try:
        if block.get(provider_block.TRUSTSTORE):
            password = _to_secret(block.get(provider_block.TRUSTSTORE_PASSWORD))
            attributes["ca_cert"] = read_trusted(block[provider_block.TRUSTSTORE], password)
        if block.get(provider_block.KEYSTORE):
            password = _to_secret(block.get(provider_block.KEYSTORE_PASSWORD))
            key_pair = read_key_pair(
                block[provider_block.KEYSTORE],
                password,
                _to_secret(block.get("client_key_passphrase")),
            )
            attributes |= {"client_cert": key_pair.chain, "client_key": key_pair.key}
            attributes["client_key_passphrase"] = None
    except StoreFault as fault:
        item = Diagnostic(Severity.ERROR, fault.summary, advice=fault.advice)
        raise _make_refusal(instance, [item]) from None
    return attributes


def _to_secret(value: str | Secret | None) -> Secret | None:
    """The value as a secret, None if it is empty."""
    return (Secret(value) if isinstance(value, str) else value) or None


def _derive_principal(block: Mapping[str, Any], protocol: str) -> str | None:
    """The declared principal, or the one that PLAIN and SCRAM give to this user."""
    # For certificates, tokens and tickets only the broker knows it (ssl.principal.mapping.rules,
    # principal.builder.class, sasl.oauthbearer.sub.claim.name,
    # sasl.kerberos.principal.to.local.rules). A delegation token stands for its owner.
    foreign = block.get("sasl_mechanism") in WITHOUT_PASSWORD or block.get("sasl_token_auth")
    if block.get("principal") or foreign:
        return block.get("principal") or None
    name = block.get("sasl_username")
    return f"User:{name}" if name and protocol.startswith("SASL") else None


def _make_refusal(instance: str, faults: list[Diagnostic]) -> ConfigurationError:
    items = tuple(
        replace(fault, summary=f'provider "{instance}": {fault.summary}') for fault in faults
    )
    return ConfigurationError(items[0].summary, items[0].advice, items)
